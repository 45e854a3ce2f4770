//! Requests of one member to another.

use std::fmt::{self, Debug, Formatter};

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use zeroize::{Zeroize, ZeroizeOnDrop};

use super::check::{self, Invalid};
use super::ids::{MemberId, Place, Reign};

/// Octets that a token may have.
const TOKEN_LIMIT: usize = 1024;
/// Octets that a public key may have.
const KEY_LIMIT: usize = 4096;

/// The request that a connection begins with.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(tag = "want", rename_all = "kebab-case")]
pub enum Request {
    /// To become a member.
    Join {
        /// The right to.
        token: Token,
        /// The member's name.
        name: String,
        /// Where it listens, if it is to be reached by others.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        url: Option<String>,
        /// What its certificate is to be for: DER of a SubjectPublicKeyInfo.
        #[serde(serialize_with = "to_base64", deserialize_with = "from_base64")]
        public_key: Vec<u8>,
    },
    /// All of a store, to begin with.
    Base {},
    /// Rows behind a place, and those that come.
    Follow {
        /// Which member asks.
        member: MemberId,
        /// Where its store stands.
        place: Place,
        /// The highest reign that it has heard of: the one that is asked learns from it that it was replaced.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        heard: Option<Reign>,
    },
    /// To hand over operations that the writer is to do.
    Forward {
        /// Which member asks.
        member: MemberId,
    },
    /// How it is.
    Status {},
    /// To promise that the member that asks may begin this reign, and to take no changes meanwhile. The promise lasts as long
    /// as the connection, and at most [`PROMISE_MAX`](crate::promise::PROMISE_MAX).
    Prepare {
        /// The reign that is to begin.
        reign: Reign,
    },
    /// To become the writer: only a client on its own host, with its own certificate, asks a member for that.
    Promote {
        /// Also if members that answer have changes that this one has not: those are lost then.
        #[serde(default)]
        force: bool,
    },
    /// To remove a member: only a client on the writer's own host, with its own certificate, asks for that.
    Remove {
        /// The member's name.
        name: String,
    },
    /// To be reached at another URL from now on.
    Move {
        /// Where the member that asks listens.
        url: String,
    },
    /// A request that this version does not know.
    #[serde(other)]
    Unknown,
}

impl Request {
    pub(super) fn check(&self) -> Result<(), Invalid> {
        match self {
            Request::Remove { name } => return check::name(name),
            Request::Move { url } => return check::url(url),
            _ => {}
        }
        let Request::Join { token, name, url, public_key } = self else {
            return Ok(());
        };
        check::name(name)?;
        url.as_deref().map_or(Ok(()), check::url)?;
        match token.0.len() <= TOKEN_LIMIT && public_key.len() <= KEY_LIMIT {
            true => Ok(()),
            false => Err(Invalid("a token has at most 1 KiB, a public key 4 KiB")),
        }
    }
}

/// The text that lets a server become a member. It is wiped when it is dropped, and not shown.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, Zeroize, ZeroizeOnDrop)]
pub struct Token(pub String);

impl Debug for Token {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str("Token(…)")
    }
}

fn to_base64<S: Serializer>(bytes: &[u8], to: S) -> Result<S::Ok, S::Error> {
    to.serialize_str(&BASE64_STANDARD.encode(bytes))
}

fn from_base64<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<u8>, D::Error> {
    let text = String::deserialize(from)?;
    BASE64_STANDARD.decode(text).map_err(|_| D::Error::custom("a public key that is not base64"))
}
