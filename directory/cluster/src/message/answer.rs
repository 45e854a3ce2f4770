//! Answers of one member to another.

use serde::{Deserialize, Serialize};

use super::check::{self, Invalid};
use super::ids::{ClusterId, MemberId, Reign};
use super::refusal::Refusal;
use super::status::Status;

/// Files that a base may have.
const FILES_LIMIT: usize = 512;
/// Octets that the path of a file may have.
const PATH_LIMIT: usize = 255;

/// The answer to a [`Request`](super::Request).
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(tag = "is", rename_all = "kebab-case")]
pub enum Answer {
    /// It is a member now.
    Joined {
        /// Its identifier.
        member: MemberId,
        /// Of which cluster.
        cluster: ClusterId,
        /// Its certificate, in PEM.
        certificate: String,
        /// The authority that has issued it, in PEM.
        authority: String,
    },
    /// Not done.
    Refused {
        /// Why.
        #[serde(flatten)]
        reason: Refusal,
        /// The reason in words, for versions that do not know it.
        text: String,
        /// The highest reign that the member that was asked has heard of.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        heard: Option<Reign>,
    },
    /// These files follow, one after the other, in frames of data.
    Base {
        /// In the order in which their octets come.
        files: Vec<BaseFile>,
    },
    /// Rows follow.
    Following {
        /// The epoch of the member that was asked.
        epoch: u64,
        /// Its last position.
        head: u64,
    },
    /// Operations are taken.
    Forwarding {},
    /// How it is.
    Status(Box<Status>),
    /// It promises what it was asked for. It has all that it has acknowledged, and takes no changes now.
    Promised(Box<Status>),
    /// It writes from now on.
    Promoted {
        /// In this epoch.
        epoch: u64,
    },
    /// It is no member any more.
    Removed {},
    /// The members know where the one that asked is reached.
    Moved {},
    /// An answer that this version does not know.
    #[serde(other)]
    Unknown,
}

/// A file of a base.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct BaseFile {
    /// Relative to the folder; parts between `/`.
    pub path: String,
    /// Its permissions.
    pub mode: u32,
    /// How long it is.
    pub bytes: u64,
}

impl Answer {
    /// The answer that says no.
    pub fn refused(reason: Refusal, heard: Option<Reign>) -> Answer {
        let text = reason.to_string();
        Answer::Refused { reason, text, heard }
    }

    pub(super) fn check(&mut self) -> Result<(), Invalid> {
        match self {
            Answer::Refused { reason, text, .. } => {
                *text = check::shown(text);
                reason.check()
            }
            Answer::Base { files } if files.len() > FILES_LIMIT => {
                Err(Invalid("a base of more than 512 files"))
            }
            Answer::Base { files } => files.iter().try_for_each(BaseFile::check),
            Answer::Status(status) | Answer::Promised(status) => status.check(),
            _ => Ok(()),
        }
    }
}

impl BaseFile {
    fn check(&self) -> Result<(), Invalid> {
        let is_fit = |part: &str| {
            !matches!(part, "" | "." | "..")
                && part.bytes().all(|c| c.is_ascii_graphic() && c != b'\\')
        };
        if self.path.len() > PATH_LIMIT || !self.path.split('/').all(is_fit) {
            return Err(Invalid(
                "a base's file with a path that leads out of the folder, or is too long",
            ));
        }
        match self.mode <= 0o777 {
            true => Ok(()),
            false => Err(Invalid("a base's file with permissions that files do not have")),
        }
    }
}
