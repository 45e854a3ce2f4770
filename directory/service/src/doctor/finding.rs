//! What an examination finds.

use serde::Serialize;

/// How bad it is.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    /// Nothing is to be done.
    Good,
    /// It may matter, and could not be told.
    Unknown,
    /// It should be changed.
    Warning,
    /// Data or keys are in danger, or the server does not start.
    Fault,
}

/// One thing that was looked at.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Finding {
    /// The part of the machine or of the folder.
    pub about: &'static str,
    /// How bad it is.
    pub verdict: Verdict,
    /// The state that was found.
    pub found: String,
    /// The change that helps.
    pub advice: Option<String>,
}

impl Finding {
    /// Something that is as it should be.
    pub(super) fn good(about: &'static str, found: impl Into<String>) -> Finding {
        Finding { about, verdict: Verdict::Good, found: found.into(), advice: None }
    }

    /// Something that could not be looked at.
    pub(super) fn unknown(about: &'static str, found: impl Into<String>) -> Finding {
        Finding { about, verdict: Verdict::Unknown, found: found.into(), advice: None }
    }

    /// Something that should be changed.
    pub(super) fn warning(
        about: &'static str,
        found: impl Into<String>,
        advice: impl Into<String>,
    ) -> Finding {
        let (found, advice) = (found.into(), Some(advice.into()));
        Finding { about, verdict: Verdict::Warning, found, advice }
    }

    /// Something that must be changed.
    pub(super) fn fault(
        about: &'static str,
        found: impl Into<String>,
        advice: impl Into<String>,
    ) -> Finding {
        Finding { verdict: Verdict::Fault, ..Finding::warning(about, found, advice) }
    }
}
