//! The row `cluster` of a store: which members there are, and which one writes.

use serde::{Deserialize, Serialize};

use super::check::{self, Invalid};
use super::ids::{ClusterId, MemberId};

/// Members that a cluster may have.
pub const MEMBERS_LIMIT: usize = 64;
/// Characters that a member's name may have.
pub const NAME_LIMIT: usize = 64;
/// Octets that a member's URL may have.
pub const URL_LIMIT: usize = 256;
/// Octets that the row may have: more than all members with the longest names and URLs need.
const ROW_LIMIT: usize = 48 << 10;

/// The members of a cluster as of a position: it is in the feed, so that each member has it.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct ClusterRow {
    /// Which cluster it is.
    pub cluster: ClusterId,
    /// Numbers the writers of a history; 1 for the first.
    pub epoch: u64,
    /// The member that writes in this epoch.
    pub writer: MemberId,
    /// All of them, the writer too.
    pub members: Vec<Member>,
}

/// A member of a cluster.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Member {
    /// Which one it is.
    pub id: MemberId,
    /// Its name, for people.
    pub name: String,
    /// Where it listens: `ldaps://HOST:PORT`.
    pub url: String,
    /// Since when it is one, in seconds since 1970.
    pub since: u64,
}

impl ClusterRow {
    /// The row's name in the store's table.
    pub const NAME: &'static str = "cluster";

    /// Reads the row.
    ///
    /// # Errors
    /// If it is no such row: it is not JSON, has more than [`MEMBERS_LIMIT`] members or two that are alike, a name or a
    /// URL that is none, no epoch, or a writer that is no member.
    pub fn parse(json: &[u8]) -> Result<ClusterRow, Invalid> {
        if json.len() > ROW_LIMIT {
            return Err(Invalid("the cluster row is longer than 48 KiB"));
        }
        let row: ClusterRow = serde_json::from_slice(json).map_err(|_| {
            Invalid("the cluster row is not JSON of the form that this version knows")
        })?;
        row.check()?;
        Ok(row)
    }

    /// The row as it is stored.
    ///
    /// # Errors
    /// If [`ClusterRow::parse`] would not take it.
    pub fn to_json(&self) -> Result<Vec<u8>, Invalid> {
        self.check()?;
        let json =
            serde_json::to_vec(self).map_err(|_| Invalid("the cluster row has no JSON form"))?;
        match json.len() <= ROW_LIMIT {
            true => Ok(json),
            false => Err(Invalid("the cluster row is longer than 48 KiB")),
        }
    }

    /// A member by its identifier.
    pub fn member(&self, id: MemberId) -> Option<&Member> {
        self.members.iter().find(|member| member.id == id)
    }

    fn check(&self) -> Result<(), Invalid> {
        if self.epoch == 0 {
            return Err(Invalid("the first epoch is 1"));
        }
        if self.members.len() > MEMBERS_LIMIT {
            return Err(Invalid("a cluster has at most 64 members; remove one"));
        }
        if self.member(self.writer).is_none() {
            return Err(Invalid("the cluster's writer is not one of its members"));
        }
        for (at, member) in self.members.iter().enumerate() {
            check::name(&member.name)?;
            check::url(&member.url)?;
            let is_like = |other: &Member| other.id == member.id || other.name == member.name;
            if self.members.iter().take(at).any(is_like) {
                return Err(Invalid("two members have one identifier or one name"));
            }
        }
        Ok(())
    }
}
