//! Names of members, clusters and histories, and where a store stands.

use std::fmt::{self, Debug, Display, Formatter};
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::check::Invalid;
use super::hex;

macro_rules! octets {
    ($(#[$doc:meta])* $name:ident, $bytes:literal) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(pub [u8; $bytes]);

        impl Display for $name {
            fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
                f.write_str(&hex::encode(&self.0))
            }
        }

        impl Debug for $name {
            fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
                Display::fmt(self, f)
            }
        }

        impl FromStr for $name {
            type Err = Invalid;

            fn from_str(text: &str) -> Result<$name, Invalid> {
                let what = concat!(stringify!($name), " of another length, or not hexadecimal");
                hex::decode(text).map($name).ok_or(Invalid(what))
            }
        }

        impl Serialize for $name {
            fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
                to.collect_str(self)
            }
        }

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(from: D) -> Result<$name, D::Error> {
                hex::deserialize(from).map($name)
            }
        }
    };
}

octets! {
    /// Which cluster it is; random.
    ClusterId, 16
}
octets! {
    /// The incarnation of a store: positions of one history are not those of another. A restored store has another one.
    History, 16
}
octets! {
    /// A SHA-256 digest: of a row of the feed, or of a store's contents.
    Digest, 32
}

/// Which member it is; random. Shown as 16 hexadecimal digits.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct MemberId(pub u64);

impl Display for MemberId {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}

impl Debug for MemberId {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        Display::fmt(self, f)
    }
}

impl FromStr for MemberId {
    type Err = Invalid;

    fn from_str(text: &str) -> Result<MemberId, Invalid> {
        let bytes =
            hex::decode(text).ok_or(Invalid("a member that is not 16 hexadecimal digits"))?;
        Ok(MemberId(u64::from_be_bytes(bytes)))
    }
}

impl Serialize for MemberId {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for MemberId {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<MemberId, D::Error> {
        hex::deserialize(from).map(|bytes| MemberId(u64::from_be_bytes(bytes)))
    }
}

/// A writer's time: no two members are writers of one epoch, unless two were promoted without knowing of each other. Then
/// the reign with the greater identifier counts, so that all members decide alike.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub struct Reign {
    /// The writer's epoch.
    pub epoch: u64,
    /// Which member it is.
    pub writer: MemberId,
}

/// Where a store stands.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Place {
    /// The store's incarnation.
    pub history: History,
    /// The epoch in its cluster row, as of `position`.
    pub epoch: u64,
    /// The writer in that row; `None` from a version that does not say it. Two writers of one epoch have different pasts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub writer: Option<MemberId>,
    /// Of its last row.
    pub position: u64,
    /// Of its last row.
    pub digest: Digest,
}
