//! Octets of a connection, made into frames as they come.

use zeroize::Zeroize;

use super::frame::{Frame, FrameError, SMALL_FRAME};

/// Takes octets and gives frames. It holds at most one frame and what was pushed behind it.
#[derive(Debug)]
pub struct Decoder {
    bytes: Vec<u8>,
    /// How many octets in front were given out already.
    used: usize,
    most: usize,
}

impl Default for Decoder {
    fn default() -> Decoder {
        Decoder { bytes: Vec::new(), used: 0, most: SMALL_FRAME }
    }
}

impl Decoder {
    /// For a peer that is not known yet: frames of at most [`SMALL_FRAME`] octets, of any kind.
    pub fn new() -> Decoder {
        Decoder::default()
    }

    /// From now on frames may have up to `most` octets, and no more than their kind may have.
    pub fn allow(&mut self, most: usize) {
        self.most = most;
    }

    /// Octets that came.
    pub fn push(&mut self, bytes: &[u8]) {
        if self.used > 0 {
            self.bytes.drain(..self.used);
            self.used = 0;
        }
        self.bytes.extend_from_slice(bytes);
    }

    /// The next frame; `None` until more octets have come.
    ///
    /// # Errors
    /// If the octets are no frame, as soon as its kind and length are there. The connection is of no more use then.
    pub fn next_frame(&mut self) -> Result<Option<Frame>, FrameError> {
        let rest = self.bytes.get_mut(self.used..).unwrap_or_default();
        let Some((frame, length)) = Frame::decode(rest, self.most)? else { return Ok(None) };
        if let (Frame::Request(_), Some(spent)) = (&frame, rest.get_mut(..length)) {
            // It may hold a token.
            spent.zeroize();
        }
        self.used += length;
        Ok(Some(frame))
    }
}
