//! Whether a member has contents that clients may be sent to.

use super::asking::{Asked, status};
use keyway_cluster::message::{RoleName, Status};
use keyway_folder::member;
use keyway_host::failure::Failure;
use keyway_host::output;
use serde_json::{Value, json};
use std::fmt;
use std::path::Path;
use std::time::Duration;

/// How a server is, for a probe.
#[derive(Clone, PartialEq, Debug)]
pub struct Health {
    /// Why it is not ready; `None` if it is.
    pub why_not: Option<String>,
    /// How it is in its cluster, if it is in one.
    pub status: Option<Status>,
}

/// Asks the server that runs on a data folder. One that is in no cluster is ready as it is. The process may become the
/// folder's user for good.
///
/// # Errors
/// If it does not answer.
pub fn health(folder: &Path, max_lag: Option<Duration>) -> Result<Health, Failure> {
    if member::read(folder)?.is_none() {
        return Ok(Health { why_not: None, status: None });
    }
    let own = status(folder, false)?.into_iter().next().map(|Asked { status, .. }| status);
    let status = own.transpose()?;
    let why_not = status.as_ref().and_then(|status| why_not(status, max_lag));
    Ok(Health { why_not, status })
}

/// Why clients are not to be sent to it.
fn why_not(status: &Status, max_lag: Option<Duration>) -> Option<String> {
    match (status.role, max_lag) {
        (RoleName::Fenced, _) => Some(match &status.last_error {
            Some(why) => format!("it is fenced: {why}"),
            None => "it is fenced: it needs the writer's contents (keyway cluster rejoin)".into(),
        }),
        (RoleName::Starting, _) => Some("it is asking the other members which one writes".into()),
        (RoleName::Follower, _) if status.has_stopped || status.diverged_from.is_some() => {
            let why = status.last_error.as_deref();
            Some(why.unwrap_or("it follows no more (keyway cluster rejoin)").to_owned())
        }
        (RoleName::Follower, Some(max_lag)) => match status.lag_seconds {
            _ if !status.is_connected => Some("it is connected to no writer".into()),
            Some(seconds) if seconds <= max_lag.as_secs_f64() => None,
            Some(seconds) => Some(format!(
                "it is {seconds:.1} s behind, which is more than {:.1} s",
                max_lag.as_secs_f64()
            )),
            None => Some("it does not know yet how far it is behind".into()),
        },
        _ => None,
    }
}

impl Health {
    /// Says it, in one line; of a server that was not asked, that it answers. Returns whether all is well.
    ///
    /// # Errors
    /// If it cannot be said.
    pub fn say(asked: Option<&Health>, json: bool) -> Result<bool, Failure> {
        match (asked, json) {
            (Some(health), true) => output::json(&health.json())?,
            (Some(health), false) => output::text(health)?,
            (None, true) => output::json(&json!({ "answers": true }))?,
            (None, false) => output::text("it answers")?,
        }
        Ok(asked.is_none_or(|health| health.why_not.is_none()))
    }

    /// As a line of JSON.
    fn json(&self) -> Value {
        let status = self.status.as_ref();
        json!({
            "ready": self.why_not.is_none(),
            "why_not": self.why_not,
            "role": status.map(|status| status.role),
            "position": status.map(|status| status.position),
            "lag_changes": status.and_then(|status| status.lag_changes),
            "lag_seconds": status.and_then(|status| status.lag_seconds),
        })
    }
}

impl fmt::Display for Health {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (&self.why_not, &self.status) {
            (Some(why), _) => write!(f, "not ready: {why}"),
            (None, Some(status)) => write!(f, "ready ({})", status.role),
            (None, None) => write!(f, "ready"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use keyway_cluster::message::{Digest, MemberId};

    fn follower(is_connected: bool, lag_seconds: Option<f64>) -> Status {
        Status {
            role: RoleName::Follower,
            member: MemberId(2),
            name: "b".into(),
            url: None,
            epoch: 1,
            writer: Some(MemberId(1)),
            heard: None,
            is_connected,
            position: 7,
            digest: Digest([0; 32]),
            head: 9,
            lag_changes: Some(2),
            lag_seconds,
            last_error: None,
            followers: Vec::new(),
            contents: None,
            rules: None,
            diverged_from: None,
            promised: None,
            has_stopped: false,
        }
    }

    #[test]
    fn a_follower_is_ready_if_it_is_connected_and_no_further_behind() {
        let five = Some(Duration::from_secs(5));
        let ready = |status: &Status, max| why_not(status, max).is_none();
        assert!(ready(&follower(true, Some(5.0)), five));
        assert!(!ready(&follower(true, Some(5.1)), five));
        assert!(!ready(&follower(true, None), five));
        assert!(!ready(&follower(false, Some(0.0)), five));
        assert!(ready(&follower(false, None), None), "reads go on without a writer");
        let stopped = Status { has_stopped: true, ..follower(false, None) };
        assert!(!ready(&stopped, None), "its contents are not the writer's");
    }

    #[test]
    fn a_writer_is_ready_unless_another_one_may_write() {
        let as_role = |role| Status { role, ..follower(false, Some(0.0)) };
        let five = Some(Duration::from_secs(5));
        let of = |role| why_not(&as_role(role), five).is_none();
        let roles = [RoleName::Writer, RoleName::Alone, RoleName::Starting, RoleName::Fenced];
        assert_eq!(roles.map(of), [true, true, false, false]);
        let said = Health {
            why_not: why_not(&as_role(RoleName::Fenced), None),
            status: Some(as_role(RoleName::Fenced)),
        };
        assert_eq!(
            (&said.json()["ready"], &said.json()["role"]),
            (&false.into(), &"fenced".into())
        );
        assert!(said.to_string().contains("keyway cluster rejoin"), "{said}");
    }
}
