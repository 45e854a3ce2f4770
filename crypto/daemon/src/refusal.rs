//! Why the control thread does not do something.

use crate::keys;
use keyway_engine::Error;
use keyway_ring::control::Answer;
use keyway_ring::descriptor::Status;
use keyway_wire as wire;

/// Why something is not done for a client.
pub struct Refusal {
    /// In a word.
    pub status: Status,
    /// In a sentence.
    pub why: String,
}

impl From<Error> for Refusal {
    fn from(error: Error) -> Self {
        Refusal { status: wire::status(&error), why: error.to_string() }
    }
}

impl From<keys::Error> for Refusal {
    fn from(error: keys::Error) -> Self {
        use keys::Error::*;
        let status = match &error {
            Engine(error) => wire::status(error),
            Unwrap => Status::Authentication,
            Refused | Revoked(_) | Unusable(_) | Disabled { .. } | Unfit(_) => Status::Unsupported,
            Limit { .. } | Busy(_) => Status::Busy,
            Token(_) | Unsaved { .. } | System { .. } | Damaged { .. } => Status::Driver,
            _ => Status::InvalidRequest,
        };
        Refusal { status, why: error.to_string() }
    }
}

impl From<Refusal> for Answer {
    fn from(Refusal { status, why }: Refusal) -> Self {
        Answer::refused(status, why)
    }
}
