//! What an examination finds.

use keyway_host::failure::Failure;
use keyway_host::output;
use serde::Serialize;
use serde_json::json;

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
    pub(crate) fn good(about: &'static str, found: impl Into<String>) -> Finding {
        Finding { about, verdict: Verdict::Good, found: found.into(), advice: None }
    }

    /// Something that could not be looked at.
    pub(crate) fn unknown(about: &'static str, found: impl Into<String>) -> Finding {
        Finding { about, verdict: Verdict::Unknown, found: found.into(), advice: None }
    }

    /// Something that should be changed.
    pub(crate) fn warning(
        about: &'static str,
        found: impl Into<String>,
        advice: impl Into<String>,
    ) -> Finding {
        let (found, advice) = (found.into(), Some(advice.into()));
        Finding { about, verdict: Verdict::Warning, found, advice }
    }

    /// Something that must be changed.
    pub(crate) fn fault(
        about: &'static str,
        found: impl Into<String>,
        advice: impl Into<String>,
    ) -> Finding {
        Finding { verdict: Verdict::Fault, ..Finding::warning(about, found, advice) }
    }
}

/// Says all of them, and whether there is no fault: a line each, with a line for the advice, or lines of JSON.
///
/// # Errors
/// If the output cannot be written.
pub fn say(findings: &[Finding], as_json: bool) -> Result<bool, Failure> {
    let count = |verdict| findings.iter().filter(|one| one.verdict == verdict).count();
    let (faults, warnings) = (count(Verdict::Fault), count(Verdict::Warning));
    if as_json {
        let line = |one: &Finding| {
            output::json(&json!({
                "event": "found", "about": one.about, "verdict": one.verdict, "found": one.found,
                "advice": one.advice,
            }))
        };
        findings.iter().try_for_each(line)?;
        output::json(&json!({ "event": "examined", "faults": faults, "warnings": warnings }))?;
        return Ok(faults == 0);
    }
    for Finding { about, verdict, found, advice } in findings {
        let verdict = match verdict {
            Verdict::Good => "good",
            Verdict::Unknown => "?",
            Verdict::Warning => "WARNING",
            Verdict::Fault => "FAULT",
        };
        output::text(format_args!("{verdict:<8} {about:<14} {found}"))?;
        if let Some(advice) = advice {
            output::text(format_args!("{:<8} {:<14} -> {advice}", "", ""))?;
        }
    }
    output::text(match (faults, warnings) {
        (0, 0) => "nothing is to be done".to_owned(),
        _ => format!("{faults} faults, {warnings} warnings"),
    })?;
    Ok(faults == 0)
}
