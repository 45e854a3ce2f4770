//! Members of a cluster, as etcd has them.

use crate::error::Error;
use crate::limits::MEMBER_BYTES_MAX;
use crate::row::Point;
use keyway_cluster::message::{Digest, MemberId};
use serde::{Deserialize, Serialize};

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
    pub applied: Point,
}

/// The stored form of a member: JSON.
#[derive(Serialize, Deserialize)]
struct MemberRow {
    name: String,
    url: String,
    position: u64,
    digest: Digest,
}

impl Member {
    pub(crate) fn to_bytes(&self) -> Result<Vec<u8>, Error> {
        let Member { id: _, name, url, applied } = self.clone();
        bounded(&MemberRow { name, url, position: applied.position, digest: applied.digest })
    }

    pub(crate) fn from_bytes(id: MemberId, bytes: &[u8]) -> Result<Member, Error> {
        let bad = || Error::Answer(format!("the member {id} makes no sense"));
        let MemberRow { name, url, position, digest } = read(bytes).ok_or_else(bad)?;
        Ok(Member { id, name, url, applied: Point { position, digest } })
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_come_back_and_others_are_refused() {
        let applied = Point { position: 9, digest: Digest(std::array::from_fn(|i| i as u8 * 7)) };
        let id = MemberId(0xab);
        let member = Member { id, name: "b".into(), url: "ldaps://b:636".into(), applied };
        let bytes = member.to_bytes().unwrap();
        assert_eq!(Member::from_bytes(id, &bytes).unwrap(), member);
        assert!(Member::from_bytes(id, &bytes[1..]).is_err());
        let text = String::from_utf8(bytes).unwrap();
        let short = text.replace(&applied.digest.to_string(), "00");
        assert!(Member::from_bytes(id, short.as_bytes()).is_err());
        let long = Member { name: "n".repeat(MEMBER_BYTES_MAX), ..member };
        assert!(matches!(long.to_bytes(), Err(Error::TooLarge(_))));
    }
}
