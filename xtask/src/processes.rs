//! The processes that a step started, from `/proc`.

use std::fmt;
use std::fs;
use std::process::{Command, Stdio};

pub struct Process {
    id: u32,
    parent: u32,
    group: u32,
    /// `R`, `S`, `D`, `Z`, ... as in proc(5).
    state: String,
    command: String,
}

impl fmt::Display for Process {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Process { id, parent, state, command, .. } = self;
        write!(out, "{id} (of {parent}, {state}) {command}")
    }
}

/// Those in a process group, its leader included, and their descendants that left it.
pub fn below(group: u32) -> Vec<Process> {
    let (mut found, mut others): (Vec<_>, Vec<_>) =
        all().into_iter().partition(|process| process.group == group);
    let mut next = 0;
    while next < found.len() {
        let id = found[next].id;
        let (children, rest) = others.into_iter().partition(|process| process.parent == id);
        found.extend::<Vec<_>>(children);
        others = rest;
        next += 1;
    }
    found
}

/// Kills the group, and what left it.
pub fn kill(group: u32, processes: &[Process]) {
    let group = format!("-{group}");
    let ids = processes.iter().map(|process| process.id.to_string());
    // Some have ended since.
    let _ = Command::new("kill")
        .args(["-KILL", "--"])
        .args([group].into_iter().chain(ids))
        .stderr(Stdio::null())
        .status();
}

fn all() -> Vec<Process> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    entries.filter_map(|entry| read(entry.file_name().to_str()?.parse().ok()?)).collect()
}

fn read(id: u32) -> Option<Process> {
    let stat = fs::read_to_string(format!("/proc/{id}/stat")).ok()?;
    // The name in brackets may have brackets and blanks in it.
    let (name, fields) = stat.rsplit_once(')')?;
    let mut fields = fields.split_whitespace();
    let state = fields.next()?.to_string();
    let parent = fields.next()?.parse().ok()?;
    let group = fields.next()?.parse().ok()?;
    let words = fs::read_to_string(format!("/proc/{id}/cmdline")).unwrap_or_default();
    let mut command = words.replace('\0', " ").trim().to_string();
    if command.is_empty() {
        command = name.split_once('(')?.1.to_string();
    }
    Some(Process { id, parent, group, state, command })
}
