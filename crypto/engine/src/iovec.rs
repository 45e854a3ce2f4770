//! Data in pieces, or with a result that goes elsewhere: scatter and gather.
//!
//! Drivers see one contiguous buffer and work in place. Here the pieces are gathered into one
//! buffer, and the result is scattered again. Where one piece can serve as the buffer, nothing is
//! copied twice.

use crate::{Error, Request, Session, TAG_BYTES};
use zeroize::Zeroizing;

/// Where the data of a request lies, and where the result goes.
pub enum Iovec<'a, 'b> {
    /// The result takes the data's place, piece by piece.
    InPlace(&'a mut [&'b mut [u8]]),
    /// The result goes to other pieces, which may have other lengths. The data stays as it is.
    Apart {
        /// The data.
        from: &'a [&'b [u8]],
        /// Room for at least as much as the request puts out.
        to: &'a mut [&'b mut [u8]],
    },
}

impl Session {
    /// Runs a request over data in pieces: a [`Request::Seal`], [`Request::Open`],
    /// [`Request::Encrypt`], [`Request::Decrypt`] or [`Request::Chain`] with an empty `data`, which
    /// is taken from `iovec`. The output of the request fills the pieces from the front. Bytes
    /// behind it stay as they were. A request that fails leaves `to` undefined. Data in place it
    /// leaves as it was, or, if that is one piece, as [`Session::run`] leaves it.
    ///
    /// ```
    /// # fn run(engine: &keyway_engine::Engine) -> Result<(), keyway_engine::Error> {
    /// use keyway_engine::{Algorithm, Iovec, Key, Parameters, Request};
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
        iovec: Iovec<'_, '_>,
    ) -> Result<usize, Error> {
        let overhead = if matches!(request, Request::Open { .. }) { TAG_BYTES } else { 0 };
        match iovec {
            Iovec::InPlace([only]) => self.run(&mut over(request, only)?),
            Iovec::InPlace(pieces) => {
                let mut data = gather(pieces.iter().map(|piece| &**piece));
                let used = self.run(&mut over(request, &mut data)?)?;
                scatter(data.get(..used).ok_or(SHORT)?, pieces);
                Ok(used)
            }
            Iovec::Apart { from, to } => {
                let length: usize = from.iter().map(|piece| piece.len()).sum();
                let capacity: usize = to.iter().map(|piece| piece.len()).sum();
                if capacity + overhead < length {
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

/// A copy of the request over other data.
fn over<'s>(request: &'s mut Request<'_>, data: &'s mut [u8]) -> Result<Request<'s>, Error> {
    Ok(match request {
        Request::Seal { nonce, aad, tag, .. } => Request::Seal { nonce, aad, data, tag },
        Request::Open { nonce, aad, .. } => Request::Open { nonce, aad, data },
        Request::Encrypt { iv, .. } => Request::Encrypt { iv, data },
        Request::Decrypt { iv, .. } => Request::Decrypt { iv, data },
        Request::Chain { direction, parts, .. } => {
            Request::Chain { direction: *direction, length: data.len(), data, parts }
        }
        _ => {
            return Err(Error::invalid_request(
                "only requests that work in place can have their data in pieces",
            ));
        }
    })
}

/// All pieces, one after the other.
fn gather<'a>(pieces: impl Iterator<Item = &'a [u8]> + Clone) -> Zeroizing<Vec<u8>> {
    // Allocated for all at once: the bytes that a growing vector leaves behind are not wiped.
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
