//! How a member is.

use std::fmt::{self, Display, Formatter};

use serde::{Deserialize, Serialize};

use super::check::{self, Invalid};
use super::ids::{Digest, MemberId, Reign};
use super::row::MEMBERS_LIMIT;

/// How a member is, as it says it itself.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Status {
    /// What it does.
    pub role: RoleName,
    /// Which one it is.
    pub member: MemberId,
    /// Its name.
    pub name: String,
    /// Where it listens.
    pub url: Option<String>,
    /// The epoch of its cluster row.
    pub epoch: u64,
    /// The writer of its cluster row.
    pub writer: Option<MemberId>,
    /// The highest reign that it has heard of: that of its row if there is no other.
    pub heard: Option<Reign>,
    /// Whether it is connected to a writer that it follows.
    pub is_connected: bool,
    /// Its last position.
    pub position: u64,
    /// Of its last row.
    pub digest: Digest,
    /// The writer's last position, as far as it knows it.
    pub head: u64,
    /// How many changes it is behind, as far as it knows it; `None` if it has heard of no writer.
    pub lag_changes: Option<u64>,
    /// Since when, in seconds; `None` if it does not know because the writer is silent.
    pub lag_seconds: Option<f64>,
    /// What went wrong last.
    pub last_error: Option<String>,
    /// Those that follow it.
    pub followers: Vec<FollowerStatus>,
    /// Of its contents at the last position that a thousand divides.
    pub contents: Option<Contents>,
    /// Of the access rules that it is configured with, which are to be all members'.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rules: Option<Digest>,
    /// The etcd whose last row contradicts what it has: it takes no lease there before it has rejoined.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub diverged_from: Option<u64>,
    /// The reign that it has promised to let begin.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub promised: Option<Reign>,
    /// Whether it follows no more, as what it has is not the writer's: `last_error` says why, and the way out.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub has_stopped: bool,
}

/// What a member does.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RoleName {
    /// It is in no cluster, or the only member.
    Alone,
    /// It writes.
    Writer,
    /// It would write, and is asking the others first.
    Starting,
    /// It wrote until there was a newer epoch, and does not follow that yet.
    Fenced,
    /// It follows.
    Follower,
    /// A role that this version does not know.
    #[serde(other)]
    Unknown,
}

impl Display for RoleName {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            RoleName::Alone => "alone",
            RoleName::Writer => "writer",
            RoleName::Starting => "starting",
            RoleName::Fenced => "fenced",
            RoleName::Follower => "follower",
            RoleName::Unknown => "unknown",
        })
    }
}

/// A digest of a store's contents.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Contents {
    /// After which position.
    pub position: u64,
    /// Of all entries.
    pub digest: Digest,
}

/// A member that follows, as the writer sees it.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct FollowerStatus {
    /// Which one it is.
    pub member: MemberId,
    /// Its name.
    pub name: String,
    /// The position that it has acknowledged last.
    pub position: u64,
    /// How many seconds ago that was.
    pub heard_seconds: f64,
}

impl Status {
    pub(super) fn check(&mut self) -> Result<(), Invalid> {
        check::name(&self.name)?;
        self.url.as_deref().map_or(Ok(()), check::url)?;
        if let Some(text) = &mut self.last_error {
            *text = check::shown(text);
        }
        if self.followers.len() > MEMBERS_LIMIT {
            return Err(Invalid("a status with more than 64 followers"));
        }
        self.followers.iter().try_for_each(|follower| check::name(&follower.name))
    }
}

#[cfg(test)]
impl Status {
    /// Of a follower that has heard of no writer.
    pub fn follower(member: MemberId, position: u64) -> Status {
        Status {
            role: RoleName::Follower,
            member,
            name: "x".into(),
            url: None,
            epoch: 1,
            writer: None,
            heard: None,
            is_connected: false,
            position,
            digest: Digest([0; 32]),
            head: position,
            lag_changes: None,
            lag_seconds: None,
            last_error: None,
            followers: Vec::new(),
            contents: None,
            rules: None,
            diverged_from: None,
            promised: None,
            has_stopped: false,
        }
    }
}
