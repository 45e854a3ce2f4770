//! A chain, step by step.

use crate::parameters::Parameters;
use crate::registered::CHAIN;
use crate::registry::Registry;
use crate::session::Session;
use crate::{Algorithm, Demand, Direction, DriverSession, Error, Iv, Kind, Part, Request, Step};
use std::ops::Range;
use std::sync::Arc;
use subtle::ConstantTimeEq;
use zeroize::{Zeroize, Zeroizing};

/// Longest tag of a MAC, in bytes.
const MAC_BYTES_MAX: usize = 64;

/// Runs a chain request one step after another, `run` being asked to do step `index`. For drivers
/// that do chains whole only sometimes, and for the engine where none does.
///
/// On a wrong tag nothing is decrypted, or, where the MAC lies inside the encryption, what was
/// decrypted is wiped.
///
/// # Errors
/// Those of `run`, [`Error::Authentication`], and [`Error::InvalidRequest`] where a compression
/// leaves parts that no longer fit.
pub fn run_chain(
    request: &mut Request<'_>,
    steps: &[Algorithm],
    mut run: impl FnMut(usize, &mut Request<'_>) -> Result<usize, Error>,
) -> Result<usize, Error> {
    let Request::Chain { direction, data, length, parts } = request else {
        return Err(Error::invalid_request("this session takes chains only"));
    };
    let mut message = Message { data, length: *length, moves: Vec::new() };
    // A chain that was begun here cannot be begun elsewhere.
    let mut begun = false;
    let mut run = |index, request: &mut Request<'_>| {
        let result = run(index, request);
        begun |= result.is_ok();
        if begun && result == Err(Error::Gone) { Err(NO_DRIVER_LEFT) } else { result }
    };
    match direction {
        Direction::Protect => {
            for (index, (part, algorithm)) in parts.iter().zip(steps).enumerate() {
                message.step(part, *algorithm, *direction, |request| run(index, request))?;
            }
        }
        Direction::Unprotect => {
            let mut opened = false;
            for (index, (part, algorithm)) in parts.iter().zip(steps).enumerate().rev() {
                let result =
                    message.step(part, *algorithm, *direction, |request| run(index, request));
                if let Err(error) = result {
                    if opened {
                        message.data.zeroize();
                    }
                    return Err(error);
                }
                opened |= algorithm.kind() != Kind::Mac;
            }
        }
    }
    Ok(message.length)
}

struct Message<'a> {
    data: &'a mut [u8],
    length: usize,
    /// Texts that changed their length, and by how much.
    moves: Vec<(Range<usize>, isize)>,
}

impl Message<'_> {
    fn step(
        &mut self,
        part: &Part,
        algorithm: Algorithm,
        direction: Direction,
        run: impl FnOnce(&mut Request<'_>) -> Result<usize, Error>,
    ) -> Result<(), Error> {
        match part {
            Part::Cipher { iv, text } => {
                let iv = match iv {
                    Iv::Given(iv) => *iv,
                    Iv::At(at) => {
                        let at = self.moved(*at, true);
                        let mut iv = [0; crate::IV_BYTES_MAX];
                        let bytes = algorithm.iv_bytes();
                        let there = self.data.get(at..at + bytes).ok_or(OUTSIDE)?;
                        iv[..bytes].copy_from_slice(there);
                        iv
                    }
                };
                let text = self.text(text)?;
                let data = self.data.get_mut(text).ok_or(OUTSIDE)?;
                if !data.len().is_multiple_of(algorithm.block_bytes()) {
                    return Err(Error::invalid_request("the cipher's text is not whole blocks"));
                }
                run(&mut match direction {
                    Direction::Protect => Request::Encrypt { iv: &iv, data },
                    Direction::Unprotect => Request::Decrypt { iv: &iv, data },
                })?;
            }
            Part::Mac { over, tag } => {
                let (over, tag) = (self.text(over)?, self.tag(tag)?);
                let mut whole = [0; MAC_BYTES_MAX];
                let bytes = algorithm.output_bytes().unwrap_or(0).min(MAC_BYTES_MAX);
                let out = &mut whole[..bytes];
                run(&mut Request::Mac { data: &[self.data.get(over).ok_or(OUTSIDE)?], out })?;
                let place = self.data.get_mut(tag).ok_or(OUTSIDE)?;
                let made = whole.get(..place.len()).ok_or(OUTSIDE)?;
                let same = match direction {
                    Direction::Protect => {
                        place.copy_from_slice(made);
                        true
                    }
                    Direction::Unprotect => made.ct_eq(place).into(),
                };
                whole.zeroize();
                if !same {
                    return Err(Error::Authentication);
                }
            }
            Part::Compression { text } => {
                let text = self.text(text)?;
                let capacity = self.data.len() - self.length + text.len();
                let mut result = Zeroizing::new(vec![0; capacity]);
                let (data, out) = (self.data.get(text.clone()).ok_or(OUTSIDE)?, &mut result[..]);
                let bytes = run(&mut match direction {
                    Direction::Protect => Request::Compress { data, out },
                    Direction::Unprotect => Request::Decompress { data, out },
                })?;
                self.replace(text, &result[..bytes.min(capacity)]);
            }
        }
        Ok(())
    }

    /// Puts `new`, which fits, where `text` was, and moves what lies behind.
    fn replace(&mut self, text: Range<usize>, new: &[u8]) {
        self.data.copy_within(text.end..self.length, text.start + new.len());
        self.data[text.start..text.start + new.len()].copy_from_slice(new);
        let by = new.len() as isize - text.len() as isize;
        let length = self.length.saturating_add_signed(by);
        if let Some(rest) = self.data.get_mut(length..self.length) {
            rest.zeroize();
        }
        self.length = length;
        self.moves.push((text, by));
    }

    /// Where a position of the request is now. `from` says that it begins a range of text. A range
    /// that begins where an empty text was includes what has become of that text.
    fn moved(&self, position: usize, from: bool) -> usize {
        self.moves.iter().fold(position, |at, (text, by)| {
            let within = at < text.end || (from && at == text.start);
            if within { at } else { at.saturating_add_signed(*by) }
        })
    }

    /// Where a range of text is now.
    fn text(&self, range: &Range<usize>) -> Result<Range<usize>, Error> {
        self.within(self.moved(range.start, true)..self.moved(range.end, false))
    }

    /// Where a tag is now.
    fn tag(&self, range: &Range<usize>) -> Result<Range<usize>, Error> {
        self.within(self.moved(range.start, false)..self.moved(range.end, false))
    }

    fn within(&self, range: Range<usize>) -> Result<Range<usize>, Error> {
        if range.start <= range.end && range.end <= self.length { Ok(range) } else { Err(OUTSIDE) }
    }
}

const OUTSIDE: Error = Error::invalid_request("a part reaches out of the message");

const NO_DRIVER_LEFT: Error = Error::Driver { driver: CHAIN, why: "no driver is left for a step" };

/// A session whose steps are sessions of their own, each on the driver that suits it best.
struct Stepwise {
    algorithms: Vec<Algorithm>,
    sessions: Vec<Session>,
}

/// Opens a session for each step.
pub(crate) fn open(
    registry: &Arc<Registry>,
    steps: &[Step<'_>],
    demand: Demand<'_>,
) -> Result<Box<dyn DriverSession>, Error> {
    let open = |step: &Step<'_>| {
        Session::open(registry, Parameters::new(step.algorithm, step.key).on(demand))
    };
    Ok(Box::new(Stepwise {
        algorithms: steps.iter().map(|step| step.algorithm).collect(),
        sessions: steps.iter().map(open).collect::<Result<_, _>>()?,
    }))
}

impl DriverSession for Stepwise {
    fn run(&self, request: &mut Request<'_>) -> Result<usize, Error> {
        run_chain(request, &self.algorithms, |index, request| match self.sessions.get(index) {
            // `Gone` would mark the engine's own way to run chains as dead, and have it asked
            // again.
            Some(session) => session.run(request).map_err(|error| match error {
                Error::Gone => NO_DRIVER_LEFT,
                error => error,
            }),
            None => Err(OUTSIDE),
        })
    }
}
