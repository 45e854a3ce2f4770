//! Controls of the password policy: draft-behera-ldap-password-policy-10 § 6, and the account usability
//! control of Sun's directory and its relatives.

use crate::ber::{self, Reader, SEQUENCE, Writer, context, context_constructed};
use crate::controls::sequence;
use crate::error::DecodeError;

/// Password policy: no value in the request, [`PasswordPolicyResponse`] in the response.
pub const PASSWORD_POLICY: &str = "1.3.6.1.4.1.42.2.27.8.5.1";
/// Account usability: no value in a search request, [`AccountUsability`] with each entry returned.
pub const ACCOUNT_USABILITY: &str = "1.3.6.1.4.1.42.2.27.9.5.8";

const WARNING: u8 = context_constructed(0);
const ERROR: u8 = context(1);
const TIME_BEFORE_EXPIRATION: u8 = context(0);
const GRACE_REMAINING: u8 = context(1);

/// A warning to a user whose password was right.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PasswordWarning {
    /// `timeBeforeExpiration`, in seconds.
    ExpiresIn(u32),
    /// `graceAuthNsRemaining`: the password has expired, and so many more binds are let through.
    GraceLeft(u32),
}

macro_rules! errors {
    ($($number:literal $variant:ident $name:literal,)*) => {
        /// Why the policy refused something, or what it asks for.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub enum PasswordError {
            $(#[doc = concat!("`", $name, "` (", $number, ").")] $variant,)*
        }

        impl PasswordError {
            /// Every error.
            pub const ALL: &[PasswordError] = &[$(PasswordError::$variant,)*];

            /// The number on the wire.
            #[must_use]
            pub const fn code(self) -> u32 {
                match self {
                    $(PasswordError::$variant => $number,)*
                }
            }

            /// The name in the draft.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self {
                    $(PasswordError::$variant => $name,)*
                }
            }
        }
    };
}

errors! {
    0 PasswordExpired "passwordExpired",
    1 AccountLocked "accountLocked",
    2 ChangeAfterReset "changeAfterReset",
    3 PasswordModNotAllowed "passwordModNotAllowed",
    4 MustSupplyOldPassword "mustSupplyOldPassword",
    5 InsufficientPasswordQuality "insufficientPasswordQuality",
    6 PasswordTooShort "passwordTooShort",
    7 PasswordTooYoung "passwordTooYoung",
    8 PasswordInHistory "passwordInHistory",
    // Not in the draft, but what OpenLDAP and its clients have added to it.
    9 PasswordTooLong "passwordTooLong",
}

/// The value of a [`PASSWORD_POLICY`] response: `PasswordPolicyResponseValue`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct PasswordPolicyResponse {
    /// A warning, if there is one.
    pub warning: Option<PasswordWarning>,
    /// An error, if there is one.
    pub error: Option<PasswordError>,
}

impl PasswordPolicyResponse {
    /// Decodes a control value.
    ///
    /// # Errors
    /// `Invalid` for an error or a warning that is not defined, else the malformed part.
    pub fn decode(value: &[u8]) -> Result<Self, DecodeError> {
        let mut body = sequence(value)?;
        let warning = body.optional(WARNING)?.map(warning).transpose()?;
        let error = body.optional(ERROR)?.map(error).transpose()?;
        body.finish(&[WARNING, ERROR])?;
        Ok(PasswordPolicyResponse { warning, error })
    }

    /// Appends the control value to `out`.
    pub fn encode(&self, out: &mut Vec<u8>) {
        let mut writer = Writer::new(out);
        let mark = writer.begin(SEQUENCE);
        if let Some(warning) = self.warning {
            let choice = writer.begin(WARNING);
            match warning {
                PasswordWarning::ExpiresIn(seconds) => {
                    writer.integer(TIME_BEFORE_EXPIRATION, i64::from(seconds));
                }
                PasswordWarning::GraceLeft(binds) => {
                    writer.integer(GRACE_REMAINING, i64::from(binds));
                }
            }
            writer.end(choice);
        }
        if let Some(error) = self.error {
            writer.integer(ERROR, i64::from(error.code()));
        }
        writer.end(mark);
    }
}

fn warning(contents: &[u8]) -> Result<PasswordWarning, DecodeError> {
    let mut choice = Reader::new(contents);
    let (tag, number) = choice.element()?;
    if !choice.is_empty() {
        return Err(DecodeError::malformed("octets after the warning"));
    }
    let number = ber::natural(number)?;
    match tag {
        TIME_BEFORE_EXPIRATION => Ok(PasswordWarning::ExpiresIn(number)),
        GRACE_REMAINING => Ok(PasswordWarning::GraceLeft(number)),
        _ => Err(DecodeError::invalid("warning of an unknown kind")),
    }
}

fn error(contents: &[u8]) -> Result<PasswordError, DecodeError> {
    let number = ber::natural(contents)?;
    let known = PasswordError::ALL.iter().find(|error| error.code() == number);
    known.copied().ok_or(DecodeError::invalid("error of an unknown number"))
}

const AVAILABLE: u8 = context(0);
const NOT_AVAILABLE: u8 = context_constructed(1);
const INACTIVE: u8 = context(0);
const RESET: u8 = context(1);
const EXPIRED: u8 = context(2);
const GRACE: u8 = context(3);
const UNLOCKED_IN: u8 = context(4);

/// The value of an [`ACCOUNT_USABILITY`] response: whether a user could bind as the entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AccountUsability {
    /// A bind with the right password succeeds.
    Available {
        /// Seconds until the password expires; `None` if it does not (-1 on the wire).
        expires_in_s: Option<u32>,
    },
    /// It fails, or allows nothing but a change of the password.
    NotAvailable(Unusable),
}

/// Why an account is not available: `MORE_INFO`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Unusable {
    /// It is locked or disabled.
    pub inactive: bool,
    /// The password was reset and must be changed.
    pub reset: bool,
    /// The password has expired.
    pub expired: bool,
    /// Binds that are let through with the expired password.
    pub grace_left: Option<u32>,
    /// Seconds until the account is unlocked by itself.
    pub unlocked_in_s: Option<u32>,
}

impl AccountUsability {
    /// Decodes a control value.
    ///
    /// # Errors
    /// Says what is malformed.
    pub fn decode(value: &[u8]) -> Result<Self, DecodeError> {
        let mut outer = Reader::new(value);
        let usability = match outer.peek_tag() {
            Some(NOT_AVAILABLE) => {
                AccountUsability::NotAvailable(Unusable::decode(outer.nested(NOT_AVAILABLE)?)?)
            }
            _ => {
                let seconds = outer.integer(AVAILABLE)?;
                AccountUsability::Available { expires_in_s: u32::try_from(seconds).ok() }
            }
        };
        match outer.is_empty() {
            true => Ok(usability),
            false => Err(DecodeError::malformed("octets after the value")),
        }
    }

    /// Appends the control value to `out`.
    pub fn encode(&self, out: &mut Vec<u8>) {
        let mut writer = Writer::new(out);
        match self {
            AccountUsability::Available { expires_in_s } => {
                writer.integer(AVAILABLE, expires_in_s.map_or(-1, i64::from));
            }
            AccountUsability::NotAvailable(unusable) => {
                let mark = writer.begin(NOT_AVAILABLE);
                unusable.encode(&mut writer);
                writer.end(mark);
            }
        }
    }
}

impl Unusable {
    fn decode(mut body: Reader<'_>) -> Result<Self, DecodeError> {
        let flag = |body: &mut Reader<'_>, tag| {
            Ok(body.optional(tag)?.map(ber::boolean).transpose()?.unwrap_or(false))
        };
        let unusable = Unusable {
            inactive: flag(&mut body, INACTIVE)?,
            reset: flag(&mut body, RESET)?,
            expired: flag(&mut body, EXPIRED)?,
            grace_left: body.optional(GRACE)?.map(ber::natural).transpose()?,
            unlocked_in_s: body.optional(UNLOCKED_IN)?.map(ber::natural).transpose()?,
        };
        body.finish(&[INACTIVE, RESET, EXPIRED, GRACE, UNLOCKED_IN])?;
        Ok(unusable)
    }

    /// The flags are written also where they are false, as the servers do that clients know.
    fn encode(&self, writer: &mut Writer<'_>) {
        writer.boolean(INACTIVE, self.inactive);
        writer.boolean(RESET, self.reset);
        writer.boolean(EXPIRED, self.expired);
        self.grace_left.iter().for_each(|left| writer.integer(GRACE, i64::from(*left)));
        self.unlocked_in_s.iter().for_each(|left| writer.integer(UNLOCKED_IN, i64::from(*left)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// By hand from the draft's ASN.1, which has implicit tags; a CHOICE is tagged explicitly.
    #[test]
    fn responses_as_the_draft_has_them() {
        let cases: [(PasswordPolicyResponse, &[u8]); 4] = [
            (PasswordPolicyResponse::default(), b"\x30\x00"),
            (
                PasswordPolicyResponse {
                    warning: Some(PasswordWarning::ExpiresIn(600)),
                    error: None,
                },
                b"\x30\x06\xa0\x04\x80\x02\x02\x58",
            ),
            (
                PasswordPolicyResponse {
                    warning: Some(PasswordWarning::GraceLeft(3)),
                    error: Some(PasswordError::ChangeAfterReset),
                },
                b"\x30\x08\xa0\x03\x81\x01\x03\x81\x01\x02",
            ),
            (
                PasswordPolicyResponse {
                    warning: None,
                    error: Some(PasswordError::PasswordTooShort),
                },
                b"\x30\x03\x81\x01\x06",
            ),
        ];
        for (response, bytes) in cases {
            let mut written = Vec::new();
            response.encode(&mut written);
            assert_eq!(written, bytes, "{response:?}");
            assert_eq!(PasswordPolicyResponse::decode(bytes), Ok(response));
        }
    }

    #[test]
    fn usability_as_clients_know_it() {
        let locked = Unusable { inactive: true, unlocked_in_s: Some(60), ..Unusable::default() };
        let cases: [(AccountUsability, &[u8]); 3] = [
            (AccountUsability::Available { expires_in_s: None }, b"\x80\x01\xff"),
            (AccountUsability::Available { expires_in_s: Some(300) }, b"\x80\x02\x01\x2c"),
            (
                AccountUsability::NotAvailable(locked),
                b"\xa1\x0c\x80\x01\xff\x81\x01\x00\x82\x01\x00\x84\x01\x3c",
            ),
        ];
        for (usability, bytes) in cases {
            let mut written = Vec::new();
            usability.encode(&mut written);
            assert_eq!(written, bytes, "{usability:?}");
            assert_eq!(AccountUsability::decode(bytes), Ok(usability));
        }
    }

    #[test]
    fn what_is_none_of_it_is_refused() {
        let responses: [&[u8]; 6] = [
            b"",
            b"\x30\x03\x81\x01\x63",
            b"\x30\x05\xa0\x03\x82\x01\x03",
            b"\x30\x02\xa0\x00",
            b"\x30\x08\xa0\x06\x80\x01\x01\x81\x01\x01",
            b"\x30\x00\x00",
        ];
        for bytes in responses {
            assert!(PasswordPolicyResponse::decode(bytes).is_err(), "{bytes:?}");
        }
        for bytes in [&b""[..], b"\x80\x00", b"\xa1\x03\x80\x01", b"\x80\x01\x00\x00"] {
            assert!(AccountUsability::decode(bytes).is_err(), "{bytes:?}");
        }
    }
}
