//! Why an operation was not done, as its response will say it (RFC 4511 § 4.1.9).

use keyway_codec::message::{LdapResult, ResultCode};
use keyway_codec::password_policy::PasswordError;
use std::borrow::Cow;
use std::fmt;

/// An operation's error: what a response needs to say who is at fault and what to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// The result code.
    pub code: ResultCode,
    /// The DN of the last entry found on the way to a missing one; else empty.
    pub matched_dn: String,
    /// What, where and what to do; for people.
    pub diagnostic: String,
    /// The error that the password policy control tells of it.
    pub password: Option<PasswordError>,
    /// Where to ask instead.
    pub referrals: Vec<String>,
}

/// The result of an operation.
pub type Result<T, E = Failure> = std::result::Result<T, E>;

impl Failure {
    /// A failure without a matched DN.
    pub fn new(code: ResultCode, diagnostic: impl Into<String>) -> Self {
        Failure {
            code,
            matched_dn: String::new(),
            diagnostic: diagnostic.into(),
            password: None,
            referrals: Vec::new(),
        }
    }

    /// `referral`: these servers have what was asked for.
    pub fn referral(referrals: Vec<String>) -> Self {
        let text = "another server has this part of the tree";
        Failure { referrals, ..Failure::new(ResultCode::Referral, text) }
    }

    /// A refusal by a password policy.
    pub fn policy(code: ResultCode, error: PasswordError, diagnostic: impl Into<String>) -> Self {
        Failure { password: Some(error), ..Failure::new(code, diagnostic) }
    }

    /// `noSuchObject` with the last entry that was there.
    pub fn no_such_object(matched_dn: impl Into<String>) -> Self {
        Failure {
            matched_dn: matched_dn.into(),
            ..Failure::new(ResultCode::NoSuchObject, "there is no such entry")
        }
    }

    /// `insufficientAccessRights`; `what` is what was not allowed.
    pub fn denied(what: impl fmt::Display) -> Self {
        Failure::new(
            ResultCode::InsufficientAccessRights,
            format!("no access rule allows you to {what}"),
        )
    }

    /// This failure, with something said in front of it.
    #[must_use]
    pub fn context(mut self, before: impl fmt::Display) -> Self {
        self.diagnostic = format!("{before}: {}", self.diagnostic);
        self
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.code, self.diagnostic)
    }
}

impl std::error::Error for Failure {}

impl From<Failure> for LdapResult<'static> {
    fn from(failure: Failure) -> Self {
        LdapResult {
            code: failure.code,
            matched_dn: Cow::Owned(failure.matched_dn),
            diagnostic: Cow::Owned(failure.diagnostic),
            referrals: failure.referrals.into_iter().map(Cow::Owned).collect(),
        }
    }
}

impl From<keyway_schema::NameError> for Failure {
    fn from(error: keyway_schema::NameError) -> Self {
        Failure::new(ResultCode::InvalidDnSyntax, error.to_string())
    }
}

impl From<keyway_schema::Violation> for Failure {
    fn from(violation: keyway_schema::Violation) -> Self {
        Failure::new(violation.code, violation.why)
    }
}

impl From<keyway_engine::Error> for Failure {
    fn from(error: keyway_engine::Error) -> Self {
        let code = match error {
            keyway_engine::Error::Busy => ResultCode::Busy,
            // A driver that has gone may come back.
            keyway_engine::Error::Closed | keyway_engine::Error::Gone => ResultCode::Unavailable,
            _ => ResultCode::Other,
        };
        Failure::new(code, error.to_string())
    }
}

impl From<keyway_store::Error> for Failure {
    fn from(error: keyway_store::Error) -> Self {
        use keyway_store::Error::*;
        let code = match error {
            Busy | TooManyReaders => ResultCode::Busy,
            Exists => ResultCode::EntryAlreadyExists,
            NotFound => ResultCode::NoSuchObject,
            HasChildren => ResultCode::NotAllowedOnNonLeaf,
            WouldLoop => ResultCode::UnwillingToPerform,
            Following => {
                // It stopped writing while the change was on its way.
                let text = "another server writes by now, and this one takes no changes: ask again";
                return Failure::new(ResultCode::Unavailable, text);
            }
            TooDeep | TooLarge { .. } | TooLargeToAppend { .. } => ResultCode::AdminLimitExceeded,
            DiskFull
            | MapFull { .. }
            | Failed { .. }
            | Displaced { .. }
            | NotAppended { .. }
            | NotConfirmed { .. } => ResultCode::Unavailable,
            FeedTrimmed { .. } | FeedAhead { .. } | NotNext { .. } => {
                ResultCode::UnwillingToPerform
            }
            BadMetaName | Damaged { .. } | ContentsDiffer | JobPanicked | System { .. } => {
                ResultCode::Other
            }
        };
        Failure::new(code, error.to_string())
    }
}

impl From<keyway_password::Error> for Failure {
    fn from(error: keyway_password::Error) -> Self {
        match error {
            keyway_password::Error::TooLong => {
                Failure::new(ResultCode::ConstraintViolation, error.to_string())
            }
            keyway_password::Error::Busy => Failure::new(ResultCode::Busy, error.to_string()),
            keyway_password::Error::Engine(error) => error.into(),
            keyway_password::Error::Pepper(_) => {
                Failure::new(ResultCode::Unavailable, error.to_string())
            }
        }
    }
}

/// `unwillingToPerform`, for a reason.
pub(crate) fn unwilling(why: impl Into<String>) -> Failure {
    Failure::new(ResultCode::UnwillingToPerform, why)
}
