//! Members and their states, for people and for programs.

use super::asking::{Asked, Members};
use super::rejoin::Rejoined;
use super::tokening::MadeToken;
use keyway_cluster::message::{RoleName, Status};
use keyway_host::failure::Failure;
use keyway_host::output::{self, grouped, shell};
use keyway_host::timestamp::Timestamp;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::fmt;
use std::path::Path;

impl MadeToken {
    /// Says it, alone on its line, and beside that what the other server's administrator does with it.
    ///
    /// # Errors
    /// If nothing reads it.
    pub fn say(&self, in_json: bool) -> Result<(), Failure> {
        let MadeToken { token, ends, url } = self;
        let text = token.as_str();
        let command = format!("keyway up --follow {url} --join {text}");
        if in_json {
            return output::json(&json!({
                "event": "token made", "token": text, "ends": ends, "url": url, "command": command,
            }));
        }
        output::note(format_args!("good once, until {ends}; at the other server:\n  {command}"));
        output::text(text)
    }
}

impl Rejoined {
    /// Says what was done to a data folder.
    ///
    /// # Errors
    /// If nothing reads it.
    pub fn say(&self, folder: &Path, in_json: bool) -> Result<(), Failure> {
        let (kept, from, own) = (self.kept.display(), &self.from, self.own.as_ref());
        if in_json {
            return output::json(&json!({
                "event": "rejoined", "from": from.to_string(), "kept": kept.to_string(),
                "own_changes": own.map(|own| own.changes), "own_rows": own.map(|own| own.rows), "ldif": own.map(|own| own.file.display().to_string()),
            }));
        }
        if let Some(own) = own {
            output::note(format_args!(
                "{} changes of entries that only this server had are in {} (with passwords){}",
                own.changes,
                own.file.display(),
                match own.rows {
                    0 => String::new(),
                    rows => format!(
                        ", and as comments {rows} changes of the schema or of the cluster: make those again by hand"
                    ),
                }
            ));
        }
        let data = shell(&folder.to_string_lossy());
        output::text(format_args!(
            "the directory is that of {from}; the one of before is kept in {kept}\nstart it with: keyway up --data {data}"
        ))
    }
}

/// Says how members are. Returns whether all of them answered, and no more than one writes.
///
/// # Errors
/// If nothing reads it.
pub fn say_status(all: &[Asked], in_json: bool) -> Result<bool, Failure> {
    for asked in all {
        match in_json {
            true => output::json(&asked.json()?)?,
            false => output::text(asked)?,
        }
    }
    let found = all.iter().filter_map(|asked| asked.status.as_ref().ok());
    let writers = found.filter(|status| status.role == RoleName::Writer).count();
    if writers > 1 {
        output::note(
            "more than one member writes: the one of the highest epoch counts; look whether each reaches the others' URLs",
        );
    }
    let rules = all.iter().filter_map(|asked| asked.status.as_ref().ok()?.rules);
    if rules.collect::<BTreeSet<_>>().len() > 1 {
        output::note(
            "the members have different access rules, so that clients see other things at each: compare with keyway acl diff",
        );
    }
    Ok(writers <= 1 && all.iter().all(|asked| asked.status.is_ok()))
}

impl Asked {
    /// As a line of JSON.
    ///
    /// # Errors
    /// If it has no JSON form.
    fn json(&self) -> Result<Value, Failure> {
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

/// Says that this server writes now.
///
/// # Errors
/// If it cannot be said.
pub fn say_promoted(epoch: u64, json: bool) -> Result<(), Failure> {
    match json {
        true => output::json(&json!({ "event": "promoted", "epoch": epoch })),
        false => output::text(format_args!("this server writes from now on (epoch {epoch})")),
    }
}

/// Says that a member was removed.
///
/// # Errors
/// If it cannot be said.
pub fn say_removed(name: &str, json: bool) -> Result<(), Failure> {
    match json {
        true => output::json(&json!({ "event": "removed", "member": name })),
        false => output::text(format_args!("{name} is no member any more")),
    }
}

fn show(f: &mut fmt::Formatter<'_>, url: &str, status: &Status) -> fmt::Result {
    let url = status.url.as_deref().unwrap_or(url);
    let (role, position) = (status.role, grouped(status.position));
    write!(f, "{}  {url}  {role}, epoch {}, position {position}", status.name, status.epoch)?;
    let knows = status.is_connected || status.role != RoleName::Follower;
    if !knows {
        write!(f, ", not connected to a writer")?;
    }
    if let Some(changes) = status.lag_changes.filter(|changes| *changes > 0) {
        let least = if knows { "" } else { "at least " };
        write!(f, ", {least}{} changes behind", grouped(changes))?;
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
    /// Says which there are.
    ///
    /// # Errors
    /// If nothing reads it.
    pub fn say(&self, in_json: bool) -> Result<(), Failure> {
        let Members { cluster, epoch, writer, members } = self;
        match in_json {
            true => output::json(&json!({
                "cluster": cluster, "epoch": epoch, "writer": writer, "members": members,
            })),
            false => output::text(self),
        }
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
