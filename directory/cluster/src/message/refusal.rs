//! Why a member does not do what another asks of it, with the remedy.

use std::fmt::{self, Display, Formatter};

use serde::{Deserialize, Serialize};

use super::check::{self, Invalid};
use super::ids::MemberId;

/// Why a request is refused.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(tag = "reason", rename_all = "kebab-case")]
pub enum Refusal {
    /// The member that was asked does not write, or does not any more.
    NotWriter {
        /// Where the writer is, if the member knows it.
        writer_url: Option<String>,
    },
    /// The member that was asked has just started and has not yet asked the others which epoch it is.
    Busy,
    /// The stores have different histories: one of them was restored, or is another cluster's.
    OtherHistory,
    /// The member that was asked is in an older epoch than the one that asks.
    OlderEpoch {
        /// Of the member that was asked.
        epoch: u64,
    },
    /// The member that asks has rows that the one that was asked has not.
    Ahead {
        /// The last position of the member that was asked.
        last: u64,
    },
    /// Rows that the member that asks lacks were removed.
    Trimmed {
        /// The first position that is kept.
        first: u64,
    },
    /// Both have a row of this position, and they differ.
    Diverged {
        /// The position.
        position: u64,
    },
    /// The member that was asked writes, and lacks changes of its own epoch that the one that asks has: it was restored from
    /// an older copy. It stops writing.
    Behind {
        /// Its last position.
        last: u64,
    },
    /// The member that was asked writes, and has written another change at this position of its own epoch: its folder
    /// was restored from an older copy, or runs twice. It stops writing.
    Forked {
        /// The position.
        position: u64,
    },
    /// The contents after this position differ although the rows do not.
    OtherContents {
        /// The position.
        position: u64,
    },
    /// Another process with this member's identifier is being served: one of them is a copy of the other's folder.
    Twin,
    /// The member that was asked wrote by a lease in etcd, and has no etcd now: another member may have taken the lease.
    Unleased,
    /// The member that was asked has promised another one that it may begin to write: one of both is made the writer.
    Promised {
        /// The other one.
        to: MemberId,
    },
    /// The token is not known, was used, or has ended.
    BadToken,
    /// The cluster has no such member.
    UnknownMember,
    /// The cluster has as many members as it may have, or one with this name.
    NoRoom,
    /// The member has a name, but no member's certificate: it may only join.
    OnlyJoin,
    /// A reason that this version does not know; the text says it.
    #[serde(other)]
    Other,
}

impl Refusal {
    /// Whether asking again later, or another member, can help. If not, the member stops following until a person has
    /// mended it.
    pub(crate) fn is_passing(&self) -> bool {
        use Refusal::{
            Behind, Busy, Forked, NotWriter, OlderEpoch, Other, Promised, Twin, Unleased,
        };
        matches!(
            self,
            NotWriter { .. }
                | Busy
                | OlderEpoch { .. }
                | Behind { .. }
                | Forked { .. }
                | Twin
                | Unleased
                | Promised { .. }
                | Other
        )
    }

    pub(super) fn check(&self) -> Result<(), Invalid> {
        match self {
            Refusal::NotWriter { writer_url: Some(url) } => check::url(url),
            _ => Ok(()),
        }
    }
}

impl Display for Refusal {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Refusal::NotWriter { writer_url: Some(url) } => {
                write!(f, "this member does not write; the writer is {url}")
            }
            Refusal::NotWriter { writer_url: None } => f.write_str(
                "this member does not write, and does not know which one does; see `keyway cluster status`",
            ),
            Refusal::Busy => f.write_str(
                "this member has just started and is asking the others which epoch it is; try again",
            ),
            Refusal::OtherHistory => f.write_str(
                "the stores have different histories: one was restored, or is another cluster's; \
                 to take the writer's contents: `keyway cluster rejoin`",
            ),
            Refusal::OlderEpoch { epoch } => write!(
                f,
                "the member that was asked is only in epoch {epoch} and has missed a promotion; \
                 it stops writing, and follows again after `keyway cluster rejoin` there",
            ),
            Refusal::Ahead { last } => write!(
                f,
                "this member has changes after position {last}, the writer's last one; \
                 to write them out as LDIF and take the writer's contents: `keyway cluster rejoin`",
            ),
            Refusal::Trimmed { first } => write!(
                f,
                "the writer has removed changes before position {first}, which this member lacks; \
                 to take all contents anew: `keyway cluster rejoin`",
            ),
            Refusal::Diverged { position } => write!(
                f,
                "the change at position {position} is another one at the writer; \
                 to write this member's out as LDIF and take the writer's contents: `keyway cluster rejoin`",
            ),
            Refusal::Behind { last } => write!(
                f,
                "the writer ends at position {last} and lacks changes that it had made: it was restored from an older \
                 copy; `keyway cluster promote` at the member with the highest position (`keyway cluster status \
                 --all`), then `keyway cluster rejoin` at that writer",
            ),
            Refusal::Forked { position } => write!(
                f,
                "the writer has made two changes at position {position}: its folder was restored or runs twice; choose \
                 which changes count: `keyway cluster promote` on the member that has them, `keyway cluster rejoin` on \
                 the others",
            ),
            Refusal::OtherContents { position } => write!(
                f,
                "the contents after position {position} differ from the writer's although all changes agree; \
                 look at `keyway check` on both, then take the writer's: `keyway cluster rejoin`",
            ),
            Refusal::Twin => f.write_str(
                "another process with this member's identifier is running: one folder is a copy of the other; \
                 end one of them; to have one more server, join with an empty folder and a token: \
                 `keyway cluster token` at the writer",
            ),
            Refusal::Unleased => f.write_str(
                "the last writer had a lease in etcd, which another member may have by now, and has no cluster.etcd: set \
                 it there as on the others; where no server has it any more, `keyway cluster promote --force` at the one \
                 with the highest position begins without it",
            ),
            Refusal::Promised { to } => write!(
                f,
                "member {to} is being made the writer at this moment: changes are not taken until that is done; try again",
            ),
            Refusal::BadToken => f.write_str(
                "the token is not known, was used already, or has ended; \
                 make another one at the writer: `keyway cluster token`",
            ),
            Refusal::UnknownMember => f.write_str(
                "the cluster has no such member, or has it no more; to join again, take an empty folder and a \
                 token: `keyway cluster token` at the writer",
            ),
            Refusal::NoRoom => f.write_str(
                "the cluster has 64 members already, or one with this name; \
                 choose another name, or remove one: `keyway cluster remove`",
            ),
            Refusal::OnlyJoin => f.write_str(
                "without a member's certificate only a token can be used; \
                 make one at the writer with `keyway cluster token` and join with it",
            ),
            Refusal::Other => f.write_str("refused for a reason that this version does not know"),
        }
    }
}

impl std::error::Error for Refusal {}
