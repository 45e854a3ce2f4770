//! Parts that the sessions of every kind of algorithm have in common.

use keyway_engine::{DriverSession, Error, ExpectedLength, Field, Request};

/// The driver's name.
pub(super) const NAME: &str = "software";

/// The result of opening a session.
pub(super) type Opened = Result<Box<dyn DriverSession>, Error>;

/// Boxes a session.
pub(super) fn opened(session: impl DriverSession + 'static) -> Opened {
    Ok(Box::new(session))
}

/// The answer to a request of another kind, which the engine has refused before.
pub(super) fn misfit(_: &Request<'_>) -> Result<usize, Error> {
    Err(Error::invalid_request("it does not fit the algorithm"))
}

/// The driver's own failure.
pub(super) const fn failed(why: &'static str) -> Error {
    Error::Driver { driver: NAME, why }
}

/// Writes `bytes` to the front of `out` and returns their number.
pub(super) fn put(bytes: &[u8], out: &mut [u8]) -> Result<usize, Error> {
    let no_room = Error::length(Field::Out, out.len(), ExpectedLength::AtLeast(bytes.len()));
    let place = out.get_mut(..bytes.len()).ok_or(no_room)?;
    place.copy_from_slice(bytes);
    Ok(bytes.len())
}

pub(super) const WRONG_LENGTH: Error =
    Error::InvalidKey("it is not as long as the algorithm's keys are");
