//! Members of a cluster, as etcd has them.

use crate::error::Error;
use crate::limits::MEMBER_BYTES_MAX;
use crate::row::{Digest, Place};
use serde::{Deserialize, Serialize};
use std::fmt;

/// A server of the cluster. Shown as 16 hexadecimal digits.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct MemberId(pub u64);

impl fmt::Display for MemberId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}

/// A server, as it says of itself.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Member {
    /// Its number.
    pub id: MemberId,
    /// Its name, for people.
    pub name: String,
    /// Where the other servers reach it.
    pub url: String,
    /// How far it has come.
    pub applied: Place,
}

/// A copy of the directory that a new follower can begin with.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Base {
    /// The place of the feed that it is a copy of.
    pub place: Place,
    /// The member that has it.
    pub member: MemberId,
}

/// The stored form of a member: JSON.
#[derive(Serialize, Deserialize)]
struct MemberRow {
    name: String,
    url: String,
    position: u64,
    digest: String,
}

/// The stored form of a base: JSON.
#[derive(Serialize, Deserialize)]
struct BaseRow {
    position: u64,
    digest: String,
    member: String,
}

impl Member {
    pub(crate) fn to_bytes(&self) -> Result<Vec<u8>, Error> {
        let Member { id: _, name, url, applied } = self.clone();
        let digest = applied.digest.to_string();
        bounded(&MemberRow { name, url, position: applied.position, digest })
    }

    pub(crate) fn from_bytes(id: MemberId, bytes: &[u8]) -> Result<Member, Error> {
        let bad = || Error::Answer(format!("the member {id} makes no sense"));
        let row: MemberRow = read(bytes).ok_or_else(bad)?;
        let applied = place(row.position, &row.digest).ok_or_else(bad)?;
        Ok(Member { id, name: row.name, url: row.url, applied })
    }
}

impl Base {
    pub(crate) fn to_bytes(self) -> Result<Vec<u8>, Error> {
        let Base { place, member } = self;
        let (digest, member) = (place.digest.to_string(), member.to_string());
        bounded(&BaseRow { position: place.position, digest, member })
    }

    pub(crate) fn from_bytes(bytes: &[u8]) -> Result<Base, Error> {
        let base = || {
            let row: BaseRow = read(bytes)?;
            let member = MemberId(number(row.member.as_bytes())?);
            Some(Base { place: place(row.position, &row.digest)?, member })
        };
        base().ok_or_else(|| Error::Answer("the base makes no sense".into()))
    }
}

fn bounded(row: &impl Serialize) -> Result<Vec<u8>, Error> {
    let bytes = serde_json::to_vec(row).map_err(|why| Error::Config(why.to_string()))?;
    match bytes.len() <= MEMBER_BYTES_MAX {
        true => Ok(bytes),
        false => Err(Error::TooLarge(format!("a member's name and URL: {} bytes", bytes.len()))),
    }
}

fn read<T: serde::de::DeserializeOwned>(bytes: &[u8]) -> Option<T> {
    (bytes.len() <= MEMBER_BYTES_MAX).then(|| serde_json::from_slice(bytes).ok())?
}

fn place(position: u64, digest: &str) -> Option<Place> {
    let mut bytes = [0; Digest::BYTES];
    let (digits, []) = digest.as_bytes().as_chunks::<16>() else { return None };
    if digits.len() * 8 != bytes.len() {
        return None;
    }
    for (bytes, digits) in bytes.chunks_exact_mut(8).zip(digits) {
        bytes.copy_from_slice(&number(digits)?.to_be_bytes());
    }
    Some(Place { position, digest: Digest(bytes) })
}

/// A number of 16 hexadecimal digits.
pub(crate) fn number(digits: &[u8]) -> Option<u64> {
    let is_digit = |it: &u8| matches!(it, b'0'..=b'9' | b'a'..=b'f');
    let fits = digits.len() == 16 && digits.iter().all(is_digit);
    let digits = std::str::from_utf8(digits).ok().filter(|_| fits)?;
    u64::from_str_radix(digits, 16).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_come_back_and_others_are_refused() {
        let applied = Place { position: 9, digest: Digest(std::array::from_fn(|i| i as u8 * 7)) };
        let id = MemberId(0xab);
        let member = Member { id, name: "b".into(), url: "ldaps://b:636".into(), applied };
        let bytes = member.to_bytes().unwrap();
        assert_eq!(Member::from_bytes(id, &bytes).unwrap(), member);
        let base = Base { place: applied, member: id };
        assert_eq!(Base::from_bytes(&base.to_bytes().unwrap()).unwrap(), base);
        assert!(Base::from_bytes(&bytes).is_err());
        assert!(Member::from_bytes(id, &bytes[1..]).is_err());
        let text = String::from_utf8(bytes).unwrap();
        let short = text.replace(&applied.digest.to_string(), "00");
        assert!(Member::from_bytes(id, short.as_bytes()).is_err());
        let long = Member { name: "n".repeat(MEMBER_BYTES_MAX), ..member };
        assert!(matches!(long.to_bytes(), Err(Error::TooLarge(_))));
        assert_eq!(number(b"+000000000000001"), None);
    }
}
