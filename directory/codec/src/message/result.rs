//! LDAPResult and its codes, RFC 4511 § 4.1.9.

use std::borrow::Cow;
use std::fmt;

use crate::ber::{self, OCTET_STRING, Reader, Writer, context_constructed};
use crate::error::DecodeError;
use crate::limits::REFERRALS_MAX;

use super::attribute::decode_strings;

pub(super) const REFERRAL: u8 = context_constructed(3);

/// How an operation ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LdapResult<'a> {
    /// The result code.
    pub code: ResultCode,
    /// The name of the last entry matched, where the code is about a missing entry; else empty.
    pub matched_dn: Cow<'a, str>,
    /// A text for people; may be empty.
    pub diagnostic: Cow<'a, str>,
    /// URIs to try instead; empty unless the code is `referral`.
    pub referrals: Vec<Cow<'a, str>>,
}

impl<'a> LdapResult<'a> {
    /// The result of an operation that succeeded.
    #[must_use]
    pub const fn success() -> Self {
        LdapResult {
            code: ResultCode::Success,
            matched_dn: Cow::Borrowed(""),
            diagnostic: Cow::Borrowed(""),
            referrals: Vec::new(),
        }
    }

    /// A result with a text for people and no matched DN.
    #[must_use]
    pub fn new(code: ResultCode, diagnostic: impl Into<Cow<'a, str>>) -> Self {
        LdapResult { code, diagnostic: diagnostic.into(), ..Self::success() }
    }

    pub(super) fn decode(mut body: Reader<'a>) -> Result<Self, DecodeError> {
        let result = Self::decode_components(&mut body)?;
        body.finish(&[REFERRAL])?;
        Ok(result)
    }

    /// Reads the components that responses with more of them begin with.
    pub(super) fn decode_components(body: &mut Reader<'a>) -> Result<Self, DecodeError> {
        let code = ResultCode::from_code(body.natural(ber::ENUMERATED)?);
        let matched_dn = Cow::Borrowed(body.string(OCTET_STRING)?);
        let diagnostic = Cow::Borrowed(body.string(OCTET_STRING)?);
        let referrals = match body.optional(REFERRAL)? {
            Some(contents) => decode_strings(Reader::new(contents), "referrals", REFERRALS_MAX)?,
            None => Vec::new(),
        };
        let referrals = referrals.into_iter().map(Cow::Borrowed).collect();
        Ok(LdapResult { code, matched_dn, diagnostic, referrals })
    }

    pub(super) fn encode(&self, writer: &mut Writer<'_>) {
        writer.integer(ber::ENUMERATED, i64::from(self.code.code()));
        writer.string(OCTET_STRING, &self.matched_dn);
        writer.string(OCTET_STRING, &self.diagnostic);
        if !self.referrals.is_empty() {
            let list = writer.begin(REFERRAL);
            for uri in &self.referrals {
                writer.string(OCTET_STRING, uri);
            }
            writer.end(list);
        }
    }
}

macro_rules! result_codes {
    ($($number:literal $variant:ident $name:literal,)*) => {
        /// A resultCode: those of RFC 4511 appendix A, RFC 3909, RFC 4370 and RFC 4528.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub enum ResultCode {
            $(#[doc = concat!("`", $name, "` (", $number, ").")] $variant,)*
            /// A number that none of these documents assigns.
            Unknown(u32),
        }

        impl ResultCode {
            /// Every code with a name.
            pub const ALL: &[ResultCode] = &[$(ResultCode::$variant,)*];

            /// The code of a number.
            #[must_use]
            pub const fn from_code(code: u32) -> Self {
                match code {
                    $($number => ResultCode::$variant,)*
                    other => ResultCode::Unknown(other),
                }
            }

            /// The number on the wire.
            #[must_use]
            pub const fn code(self) -> u32 {
                match self {
                    $(ResultCode::$variant => $number,)*
                    ResultCode::Unknown(code) => code,
                }
            }

            /// The name in the RFCs; `unknown` if there is none.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self {
                    $(ResultCode::$variant => $name,)*
                    ResultCode::Unknown(_) => "unknown",
                }
            }
        }
    };
}

result_codes! {
    0 Success "success",
    1 OperationsError "operationsError",
    2 ProtocolError "protocolError",
    3 TimeLimitExceeded "timeLimitExceeded",
    4 SizeLimitExceeded "sizeLimitExceeded",
    5 CompareFalse "compareFalse",
    6 CompareTrue "compareTrue",
    7 AuthMethodNotSupported "authMethodNotSupported",
    8 StrongerAuthRequired "strongerAuthRequired",
    10 Referral "referral",
    11 AdminLimitExceeded "adminLimitExceeded",
    12 UnavailableCriticalExtension "unavailableCriticalExtension",
    13 ConfidentialityRequired "confidentialityRequired",
    14 SaslBindInProgress "saslBindInProgress",
    16 NoSuchAttribute "noSuchAttribute",
    17 UndefinedAttributeType "undefinedAttributeType",
    18 InappropriateMatching "inappropriateMatching",
    19 ConstraintViolation "constraintViolation",
    20 AttributeOrValueExists "attributeOrValueExists",
    21 InvalidAttributeSyntax "invalidAttributeSyntax",
    32 NoSuchObject "noSuchObject",
    33 AliasProblem "aliasProblem",
    34 InvalidDnSyntax "invalidDNSyntax",
    36 AliasDereferencingProblem "aliasDereferencingProblem",
    48 InappropriateAuthentication "inappropriateAuthentication",
    49 InvalidCredentials "invalidCredentials",
    50 InsufficientAccessRights "insufficientAccessRights",
    51 Busy "busy",
    52 Unavailable "unavailable",
    53 UnwillingToPerform "unwillingToPerform",
    54 LoopDetect "loopDetect",
    64 NamingViolation "namingViolation",
    65 ObjectClassViolation "objectClassViolation",
    66 NotAllowedOnNonLeaf "notAllowedOnNonLeaf",
    67 NotAllowedOnRdn "notAllowedOnRDN",
    68 EntryAlreadyExists "entryAlreadyExists",
    69 ObjectClassModsProhibited "objectClassModsProhibited",
    71 AffectsMultipleDsas "affectsMultipleDSAs",
    80 Other "other",
    118 Canceled "canceled",
    119 NoSuchOperation "noSuchOperation",
    120 TooLate "tooLate",
    121 CannotCancel "cannotCancel",
    122 AssertionFailed "assertionFailed",
    123 AuthorizationDenied "authorizationDenied",
}

impl fmt::Display for ResultCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.name(), self.code())
    }
}
