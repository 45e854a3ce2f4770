//! SASL's parts of a bind: the message of PLAIN, and authorization identities.

use std::fmt;

/// The message of the mechanism PLAIN (RFC 4616 § 2). `Debug` does not show the password.
#[derive(Clone, PartialEq, Eq)]
pub struct Plain<'a> {
    /// The identity to act as; empty for the one who authenticates.
    pub authorization: &'a str,
    /// Who authenticates; not empty.
    pub authentication: &'a str,
    /// The password; not empty.
    pub password: &'a str,
}

impl fmt::Debug for Plain<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Plain")
            .field("authorization", &self.authorization)
            .field("authentication", &self.authentication)
            .finish_non_exhaustive()
    }
}

impl<'a> Plain<'a> {
    /// Reads `[authzid] NUL authcid NUL passwd`. `None` if it is not that, or not UTF-8.
    pub fn decode(message: &'a [u8]) -> Option<Self> {
        let mut parts = std::str::from_utf8(message).ok()?.split('\0');
        let (authorization, authentication) = (parts.next()?, parts.next()?);
        let password = parts.next()?;
        let complete = parts.next().is_none() && !authentication.is_empty() && !password.is_empty();
        complete.then_some(Plain { authorization, authentication, password })
    }

    /// Writes it to the end of `out`.
    pub fn encode(&self, out: &mut Vec<u8>) {
        for part in [self.authorization, "\0", self.authentication, "\0", self.password] {
            out.extend_from_slice(part.as_bytes());
        }
    }
}

/// An authorization identity (RFC 4513 § 5.2.1.8).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Identity<'a> {
    /// `dn:` and a distinguished name; also text without either prefix that has a `=`.
    Dn(&'a str),
    /// `u:` and a user name; also text without either prefix and without a `=`.
    Uid(&'a str),
}

impl<'a> Identity<'a> {
    /// Reads `dn:DN`, `u:UID`, a bare DN, or a bare user name. Whether a DN is one is not checked.
    pub fn parse(identity: &'a str) -> Self {
        match (identity.strip_prefix("dn:"), identity.strip_prefix("u:")) {
            (Some(dn), _) => Identity::Dn(dn),
            (_, Some(uid)) => Identity::Uid(uid),
            _ if identity.contains('=') => Identity::Dn(identity),
            _ => Identity::Uid(identity),
        }
    }
}

impl fmt::Display for Identity<'_> {
    /// The form with a prefix.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Identity::Dn(dn) => write!(f, "dn:{dn}"),
            Identity::Uid(uid) => write!(f, "u:{uid}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plain_is_three_parts_of_which_the_first_may_be_empty() {
        let plain = |authorization, authentication, password| {
            Some(Plain { authorization, authentication, password })
        };
        assert_eq!(Plain::decode(b"\0tim\0tanstaaftanstaaf"), plain("", "tim", "tanstaaftanstaaf"));
        assert_eq!(Plain::decode(b"Ursel\0Kurt\0xipj3plmq"), plain("Ursel", "Kurt", "xipj3plmq"));
        for bad in [&b""[..], b"a", b"a\0b", b"\0\0p", b"\0a\0", b"\0a\0b\0", b"\0a\0\xff"] {
            assert_eq!(Plain::decode(bad), None, "{bad:?}");
        }
        assert!(!format!("{:?}", Plain::decode(b"\0tim\0secret")).contains("secret"));
    }

    #[test]
    fn identities_have_a_prefix_or_are_told_by_their_form() {
        assert_eq!(Identity::parse("dn:"), Identity::Dn(""));
        assert_eq!(Identity::parse("dn:u:a"), Identity::Dn("u:a"));
        assert_eq!(Identity::parse("u:a=b"), Identity::Uid("a=b"));
        assert_eq!(Identity::parse("uid=a,dc=b"), Identity::Dn("uid=a,dc=b"));
        assert_eq!(Identity::parse("a"), Identity::Uid("a"));
    }
}
