//! The row `cluster` of a store: which members there are, and which one writes.

use serde::{Deserialize, Serialize};

use super::check::{self, Invalid};
use super::ids::{ClusterId, MemberId, Reign};

/// Members that a cluster may have.
pub const MEMBERS_LIMIT: usize = 64;
/// Reigns of which the row says where they began.
pub const BEGAN_LIMIT: usize = 32;
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
    /// Where the last reigns of this history began, the oldest first; at most [`BEGAN_LIMIT`]. None before the first
    /// promotion.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub began: Vec<Began>,
    /// The etcd that the writer's lease is in; none if the writer was chosen by a person.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub etcd: Option<u64>,
}

/// Where a reign began.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Began {
    /// The reign.
    #[serde(flatten)]
    pub reign: Reign,
    /// The position of the cluster row that it began with: rows from there on are its own, and those that another reign
    /// has made from there on are lost.
    pub position: u64,
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

    /// The row of the next epoch, which is to get this position.
    pub fn next(&self, epoch: u64, writer: MemberId, position: u64) -> ClusterRow {
        let mut row = ClusterRow { epoch, writer, ..self.clone() };
        if row.began.is_empty() {
            row.began.push(Began { reign: self.reign(), position: 0 });
        }
        row.began.push(Began { reign: row.reign(), position });
        let surplus = row.began.len().saturating_sub(BEGAN_LIMIT);
        row.began.drain(..surplus);
        row
    }

    /// Its reign.
    pub fn reign(&self) -> Reign {
        Reign { epoch: self.epoch, writer: self.writer }
    }

    /// Whether a change that was made in `reign` at `position` is none of this row's history: a later reign began before it,
    /// or does not follow on that reign. One of a reign that is later than this row's is not known here, and not lost.
    pub(crate) fn has_lost(&self, reign: Reign, position: u64) -> bool {
        if reign >= self.reign() {
            return false;
        }
        match self.began.iter().position(|began| began.reign == reign) {
            Some(at) => self.began.get(at + 1).is_some_and(|next| next.position <= position),
            None => !self.began.is_empty(),
        }
    }

    fn check(&self) -> Result<(), Invalid> {
        if self.epoch == 0 {
            return Err(Invalid("the first epoch is 1"));
        }
        if self.members.len() > MEMBERS_LIMIT {
            return Err(Invalid("a cluster has at most 64 members; remove one"));
        }
        if self.began.len() > BEGAN_LIMIT {
            return Err(Invalid("the cluster row says of more than 32 reigns where they began"));
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
