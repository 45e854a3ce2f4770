//! Members and their states, for people and for programs.

use super::asking::{Asked, Members};
use keyway_cluster::message::Status;
use keyway_host::failure::Failure;
use keyway_host::output::grouped;
use keyway_host::timestamp::Timestamp;
use serde_json::{Value, json};
use std::fmt;

impl Asked {
    /// As a line of JSON.
    ///
    /// # Errors
    /// If it has no JSON form.
    pub fn json(&self) -> Result<Value, Failure> {
        match &self.status {
            Ok(status) => serde_json::to_value(status).map_err(Failure::new),
            Err(why) => Ok(json!({ "name": self.name, "url": self.url, "error": why.to_string() })),
        }
    }
}

impl fmt::Display for Asked {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Asked { name, url, status } = self;
        match status {
            Ok(status) => show(f, url, status),
            Err(why) => write!(f, "{name}  {url}  no answer: {why}"),
        }
    }
}

fn show(f: &mut fmt::Formatter<'_>, url: &str, status: &Status) -> fmt::Result {
    let role = serde_json::to_value(status.role).unwrap_or_default();
    let url = status.url.as_deref().unwrap_or(url);
    let (role, position) = (role.as_str().unwrap_or_default(), grouped(status.position));
    write!(f, "{}  {url}  {role}, epoch {}, position {position}", status.name, status.epoch)?;
    if status.lag_changes > 0 {
        write!(f, ", {} changes behind", grouped(status.lag_changes))?;
    }
    if let Some(seconds) = status.lag_seconds {
        write!(f, ", {seconds:.1} s behind")?;
    }
    for follower in &status.followers {
        write!(
            f,
            "\n  followed by {} (position {}, heard {:.1} s ago)",
            follower.name,
            grouped(follower.position),
            follower.heard_seconds
        )?;
    }
    match &status.last_error {
        Some(why) => write!(f, "\n  last error: {why}"),
        None => Ok(()),
    }
}

impl Members {
    /// As a line of JSON.
    pub fn json(&self) -> Value {
        let Members { cluster, epoch, writer, members } = self;
        json!({ "cluster": cluster, "epoch": epoch, "writer": writer, "members": members })
    }
}

impl fmt::Display for Members {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "cluster {}, epoch {}", self.cluster, self.epoch)?;
        for member in &self.members {
            let since = i64::try_from(member.since).unwrap_or(i64::MAX);
            let since = Timestamp::from_unix_s(since);
            let writes = if member.id.to_string() == self.writer { ", writes" } else { "" };
            write!(f, "\n{}  {}  {} (since {since}{writes})", member.name, member.id, member.url)?;
        }
        Ok(())
    }
}
