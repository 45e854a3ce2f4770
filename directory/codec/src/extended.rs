//! Extended operations: their object identifiers, and requests and responses that have values.

use std::fmt;

use crate::ber::{self, INTEGER, SEQUENCE, Writer, context};
use crate::controls::sequence;
use crate::error::DecodeError;

/// StartTLS, RFC 4511 § 4.14: no value.
pub const START_TLS: &str = "1.3.6.1.4.1.1466.20037";
/// Who am I?, RFC 4532: no request value; the response value is the authorization identity.
pub const WHO_AM_I: &str = "1.3.6.1.4.1.4203.1.11.3";
/// Password Modify, RFC 3062: [`PasswordModifyRequest`] and [`PasswordModifyResponse`].
pub const PASSWORD_MODIFY: &str = "1.3.6.1.4.1.4203.1.11.1";
/// Cancel, RFC 3909: [`CancelRequest`]; no response value.
pub const CANCEL: &str = "1.3.6.1.1.8";
/// The unsolicited Notice of Disconnection, RFC 4511 § 4.4.1: a response only, no value.
pub const NOTICE_OF_DISCONNECTION: &str = "1.3.6.1.4.1.1466.20036";

const USER: u8 = context(0);
const OLD: u8 = context(1);
const NEW: u8 = context(2);
const GENERATED: u8 = context(0);

/// The request value of [`PASSWORD_MODIFY`]. `Debug` does not show the passwords.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct PasswordModifyRequest<'a> {
    /// The user whose password it is; without it the requester.
    pub user: Option<&'a str>,
    /// The password there is now.
    pub old: Option<&'a [u8]>,
    /// The password there shall be; without it the server generates one.
    pub new: Option<&'a [u8]>,
}

impl fmt::Debug for PasswordModifyRequest<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PasswordModifyRequest").field("user", &self.user).finish_non_exhaustive()
    }
}

impl<'a> PasswordModifyRequest<'a> {
    /// Decodes a request value; an absent one is the same as one with nothing set.
    ///
    /// The RFC has no place for further components, and a mistyped one must not be overlooked: it
    /// could have been the password that is set.
    ///
    /// # Errors
    /// Says what is malformed.
    pub fn decode(value: Option<&'a [u8]>) -> Result<Self, DecodeError> {
        let Some(value) = value else { return Ok(Self::default()) };
        let mut body = sequence(value)?;
        let user = body.optional(USER)?.map(ber::string).transpose()?;
        let old = body.optional(OLD)?;
        let new = body.optional(NEW)?;
        if body.peek_tag().is_some_and(|tag| ![USER, OLD, NEW].contains(&tag)) {
            return Err(DecodeError::malformed("component that is neither a user nor a password"));
        }
        body.finish(&[USER, OLD, NEW])?;
        Ok(PasswordModifyRequest { user, old, new })
    }

    /// Appends the request value to `out`.
    pub fn encode(&self, out: &mut Vec<u8>) {
        let mut writer = Writer::new(out);
        let mark = writer.begin(SEQUENCE);
        self.user.iter().for_each(|user| writer.string(USER, user));
        self.old.iter().for_each(|old| writer.octets(OLD, old));
        self.new.iter().for_each(|new| writer.octets(NEW, new));
        writer.end(mark);
    }
}

/// The response value of [`PASSWORD_MODIFY`]. `Debug` does not show the password.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct PasswordModifyResponse<'a> {
    /// The password that the server made up.
    pub generated: Option<&'a [u8]>,
}

impl fmt::Debug for PasswordModifyResponse<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PasswordModifyResponse").finish_non_exhaustive()
    }
}

impl<'a> PasswordModifyResponse<'a> {
    /// Decodes a response value.
    ///
    /// # Errors
    /// Says what is malformed.
    pub fn decode(value: &'a [u8]) -> Result<Self, DecodeError> {
        let mut body = sequence(value)?;
        let generated = body.optional(GENERATED)?;
        body.finish(&[GENERATED])?;
        Ok(PasswordModifyResponse { generated })
    }

    /// Appends the response value to `out`.
    pub fn encode(&self, out: &mut Vec<u8>) {
        let mut writer = Writer::new(out);
        let mark = writer.begin(SEQUENCE);
        self.generated.iter().for_each(|password| writer.octets(GENERATED, password));
        writer.end(mark);
    }
}

/// The request value of [`CANCEL`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CancelRequest {
    /// The message id of the operation to cancel.
    pub id: u32,
}

impl CancelRequest {
    /// Decodes a request value.
    ///
    /// # Errors
    /// Says what is malformed.
    pub fn decode(value: &[u8]) -> Result<Self, DecodeError> {
        let mut body = sequence(value)?;
        let id = body.natural(INTEGER)?;
        body.finish(&[INTEGER])?;
        Ok(CancelRequest { id })
    }

    /// Appends the request value to `out`.
    pub fn encode(&self, out: &mut Vec<u8>) {
        let mut writer = Writer::new(out);
        let mark = writer.begin(SEQUENCE);
        writer.integer(INTEGER, i64::from(self.id));
        writer.end(mark);
    }
}
