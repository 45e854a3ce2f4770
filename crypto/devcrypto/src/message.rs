//! A message that comes in several requests.

use std::sync::Arc;
use zeroize::Zeroizing;

/// The parts of a message so far. To copy one costs little, however long it is: a session is copied for each request.
#[derive(Clone, Debug, Default)]
pub struct Message {
    /// Each is longer than all behind it together were when it was made, so that they are few.
    pieces: Vec<Arc<Zeroizing<Vec<u8>>>>,
    length: usize,
}

impl Message {
    /// Its length, in bytes.
    pub fn length(&self) -> usize {
        self.length
    }

    /// Goes on with this part.
    pub fn extend(&mut self, part: Zeroizing<Vec<u8>>) {
        if part.is_empty() {
            return;
        }
        self.length += part.len();
        let (mut first, mut bytes) = (self.pieces.len(), part.len());
        while let Some(at) = first.checked_sub(1).filter(|at| self.pieces[*at].len() <= bytes) {
            (first, bytes) = (at, bytes + self.pieces[at].len());
        }
        let piece = match first == self.pieces.len() {
            true => part,
            false => {
                let mut joined = Zeroizing::new(Vec::with_capacity(bytes));
                self.pieces[first..].iter().for_each(|piece| joined.extend_from_slice(piece));
                joined.extend_from_slice(&part);
                joined
            }
        };
        self.pieces.truncate(first);
        self.pieces.push(Arc::new(piece));
    }

    /// Its parts, and this last one.
    pub fn with<'a>(&'a self, last: &'a [u8]) -> Vec<&'a [u8]> {
        self.pieces.iter().map(|piece| &piece[..]).chain([last]).collect()
    }
}
