//! How a request ended, as the daemon tells it and as its client hears it.

use keyway_engine::{Algorithm, Error};
use keyway_ring::descriptor::Status;

/// The status that the client is told for an error: its kind, and nothing that another client could
/// have caused.
pub fn status(error: &Error) -> Status {
    match error {
        Error::Unsupported(_) | Error::Disabled(_) | Error::NoSuchDriver => Status::Unsupported,
        Error::InvalidKey(_) => Status::InvalidKey,
        Error::InvalidRequest(_) => Status::InvalidRequest,
        Error::Authentication => Status::Authentication,
        Error::Busy => Status::Busy,
        Error::Exhausted(_) => Status::Exhausted,
        Error::Closed | Error::Gone => Status::Gone,
        Error::Driver { .. } => Status::Driver,
    }
}

/// The meaning of the daemon's refusal for its client.
#[cold]
pub fn error(status: Status, algorithm: Algorithm) -> Error {
    let failed = |why| Error::Driver { driver: "remote", why };
    match status {
        Status::Unsupported => Error::Unsupported(algorithm),
        Status::InvalidRequest => Error::invalid_request(
            "the daemon refused it: it does not fit the session, or breaks a limit there",
        ),
        Status::Authentication => Error::Authentication,
        Status::Busy => Error::Busy,
        Status::Exhausted => Error::Exhausted("the daemon counts its uses, and none is left"),
        Status::NoSession => {
            Error::InvalidKey("the daemon has it no more, or this client may not use it any more")
        }
        Status::InvalidKey => Error::InvalidKey("the daemon finds it malformed"),
        Status::Gone => Error::Gone,
        Status::BadSegment => failed("the daemon did not find the request's bytes"),
        Status::Driver | Status::Done => failed("the daemon's driver failed"),
    }
}
