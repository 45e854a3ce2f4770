//! Data that lies in pieces, or whose result goes elsewhere.
//!
//! Drivers see one contiguous buffer and work in place. Here pieces are gathered into one and the
//! result scattered again; where a single piece can serve as the buffer, nothing is copied twice.

use crate::{Error, Request, Session, TAG_BYTES};
use zeroize::Zeroizing;

/// Where the data of a request lies, and where the result goes.
pub enum Iovec<'a, 'b> {
    /// The result takes the data's place, piece by piece.
    InPlace(&'a mut [&'b mut [u8]]),
    /// The result goes to other pieces, which need not be cut alike; the data stays as it is.
    Apart {
        /// The data.
        from: &'a [&'b [u8]],
        /// Room for at least as much as the request puts out.
        to: &'a mut [&'b mut [u8]],
    },
}

impl Session {
    /// Runs a request whose data is spread: a [`Request::Seal`], [`Request::Open`],
    /// [`Request::Encrypt`], [`Request::Decrypt`] or [`Request::Chain`] with an empty `data`, which
    /// is taken from `spread`. What the request puts out fills the pieces from the front; bytes
    /// behind it stay as they were. A request that fails leaves `to` undefined, and data in place
    /// as it was, unless it is one piece: then as [`Session::run`] leaves it.
    ///
    /// ```
    /// # fn run(engine: &keyway_engine::Engine) -> Result<(), keyway_engine::Error> {
    /// use keyway_engine::{Algorithm, Key, Parameters, Request, Iovec};
    ///
    /// let session = engine.session(Parameters::new(Algorithm::Aes128Gcm, Key::Secret(&[7; 16])))?;
    /// let (mut front, mut back, mut tag) = ([0; 3], [0; 8], [0; 16]);
    /// session.run_iovec(
    ///     &mut Request::Seal { nonce: &[0; 12], aad: &[], data: &mut [], tag: &mut tag },
    ///     Iovec::Apart { from: &[b"two ", b"pieces"], to: &mut [&mut front, &mut back] },
    /// )?;
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// Those of [`Session::run`], and [`Error::InvalidRequest`] if there is too little room or the
    /// request is of another kind.
    pub fn run_iovec(
        &self,
        request: &mut Request<'_>,
        spread: Iovec<'_, '_>,
    ) -> Result<usize, Error> {
        let overhead = if matches!(request, Request::Open { .. }) { TAG_BYTES } else { 0 };
        match spread {
            Iovec::InPlace([only]) => self.run(&mut over(request, only)?),
            Iovec::InPlace(pieces) => {
                let mut data = gather(pieces.iter().map(|piece| &**piece));
                let used = self.run(&mut over(request, &mut data)?)?;
                scatter(data.get(..used).ok_or(SHORT)?, pieces);
                Ok(used)
            }
            Iovec::Apart { from, to } => {
                let length: usize = from.iter().map(|piece| piece.len()).sum();
                let room: usize = to.iter().map(|piece| piece.len()).sum();
                if room + overhead < length {
                    return Err(SHORT);
                }
                if let [only] = to
                    && let Some(data) = only.get_mut(..length)
                {
                    let mut at = 0;
                    for piece in from {
                        data[at..at + piece.len()].copy_from_slice(piece);
                        at += piece.len();
                    }
                    return self.run(&mut over(request, data)?);
                }
                let mut data = gather(from.iter().copied());
                let used = self.run(&mut over(request, &mut data)?)?;
                scatter(data.get(..used).ok_or(SHORT)?, to);
                Ok(used)
            }
        }
    }
}

const SHORT: Error = Error::invalid_request("there is too little room for the result");

/// The same request over other data.
fn over<'s>(request: &'s mut Request<'_>, data: &'s mut [u8]) -> Result<Request<'s>, Error> {
    Ok(match request {
        Request::Seal { nonce, aad, tag, .. } => Request::Seal { nonce, aad, data, tag },
        Request::Open { nonce, aad, .. } => Request::Open { nonce, aad, data },
        Request::Encrypt { iv, .. } => Request::Encrypt { iv, data },
        Request::Decrypt { iv, .. } => Request::Decrypt { iv, data },
        Request::Chain { direction, parts, .. } => {
            Request::Chain { direction: *direction, length: data.len(), data, parts }
        }
        _ => return Err(Error::invalid_request("only requests that work in place can be spread")),
    })
}

/// All pieces, one after the other.
fn gather<'a>(pieces: impl Iterator<Item = &'a [u8]> + Clone) -> Zeroizing<Vec<u8>> {
    // With room for all: what a vector outgrows is not wiped.
    let length = pieces.clone().map(<[u8]>::len).sum();
    let mut whole = Zeroizing::new(Vec::with_capacity(length));
    for piece in pieces {
        whole.extend_from_slice(piece);
    }
    whole
}

/// Fills the pieces from the front.
fn scatter(mut whole: &[u8], pieces: &mut [&mut [u8]]) {
    for piece in pieces {
        let bytes = piece.len().min(whole.len());
        let (front, rest) = whole.split_at(bytes);
        piece[..bytes].copy_from_slice(front);
        whole = rest;
    }
}
