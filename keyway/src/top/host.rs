//! A server that is looked at, and the lines that say what was seen of it.

use super::columns::{COLUMNS, Column, fitting};
use super::sheet::cut;
use super::source::Source;
use keyway_host::failure::Failure;
use keyway_host::timestamp::Timestamp;
use keyway_watch::{ServerDelta, ServerSnapshot};
use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

/// A server and what was seen of it.
pub struct Host {
    pub name: String,
    pub before: Option<ServerSnapshot>,
    pub now: Option<ServerSnapshot>,
    /// Why nothing is seen of it now.
    pub gone: Option<String>,
    /// What was seen before, all columns of it.
    pub lines: VecDeque<String>,
}

impl Host {
    pub fn new(name: String) -> Host {
        Host { name, before: None, now: None, gone: None, lines: VecDeque::new() }
    }

    /// What happened in the last interval.
    pub fn change(&self) -> Option<ServerDelta<'_>> {
        ServerDelta::between(self.before.as_ref()?, self.now.as_ref()?)
    }

    pub fn seen(&mut self, snapshot: Result<ServerSnapshot, String>) {
        match snapshot {
            Ok(snapshot) => {
                if self.gone.take().is_some() {
                    // What happened meanwhile is nobody's interval.
                    (self.before, self.now) = (None, None);
                }
                self.before = self.now.replace(snapshot);
            }
            Err(why) => self.gone = Some(why),
        }
    }
}

/// What is seen, and of which.
pub type Seen = Receiver<(usize, Result<ServerSnapshot, String>)>;

/// Has a thread look at each.
pub fn watch(
    sources: Vec<(String, Source)>,
    interval: Duration,
    connections: &Arc<AtomicBool>,
) -> Seen {
    let (tell, seen) = channel();
    for (number, (_, source)) in sources.into_iter().enumerate() {
        let (tell, connections) = (tell.clone(), connections.clone());
        std::thread::spawn(move || source.watch(number, interval, &connections, &tell));
    }
    seen
}

/// Why none of them can be looked at.
pub fn why_not(hosts: &[Host]) -> Failure {
    let reasons = hosts.iter().filter_map(|host| {
        let why = host.gone.as_ref()?;
        Some(if hosts.len() > 1 { format!("{}: {why}", host.name) } else { why.clone() })
    });
    Failure::new(reasons.collect::<Vec<_>>().join("; "))
}

/// The time of day, UTC.
pub fn clock() -> String {
    let time = Timestamp::now().date_time();
    format!("{:02}:{:02}:{:02}", time.hour(), time.minute(), time.second())
}

const TIME_WIDTH: usize = 8;

/// All columns, with marks between them, to be cut later.
pub fn line(change: &ServerDelta<'_>, time: &str) -> String {
    let cells = COLUMNS.iter().map(|column| column.shown(change));
    [time.to_owned()].into_iter().chain(cells).collect::<Vec<_>>().join("\t")
}

/// Those columns of such a line that there is room for.
pub fn cut_to(line: &str, room: usize) -> String {
    let mut cells = line.split('\t');
    let mut text = format!("{:<TIME_WIDTH$}", cells.next().unwrap_or_default());
    let shown = fitting(room.saturating_sub(TIME_WIDTH));
    for (column, cell) in COLUMNS.iter().zip(cells) {
        if shown.iter().any(|one| one.name == column.name) {
            text += &format!(" {cell:>width$}", width = column.width);
        }
    }
    cut(&text, room)
}

pub fn header(room: usize) -> String {
    let shown = fitting(room.saturating_sub(TIME_WIDTH));
    titled(&format!("{:<TIME_WIDTH$}", "time"), &shown, room)
}

fn titled(first: &str, shown: &[&Column], room: usize) -> String {
    let mut text = first.to_owned();
    for column in shown {
        text += &format!(" {:>width$}", column.title, width = column.width);
    }
    cut(&text, room)
}

/// How wide the names of servers are.
pub fn name_width<'a>(names: impl Iterator<Item = &'a str>, room: usize) -> usize {
    names.map(|name| name.chars().count()).max().unwrap_or(0).clamp(6, room / 3)
}

pub fn hosts_header(names: usize, room: usize) -> String {
    titled(&format!("{:<names$}", "server"), &fitting(room.saturating_sub(names)), room)
}

/// The last interval of a server.
pub fn of_host(host: &Host, names: usize, room: usize) -> String {
    let name = cut(&host.name, names);
    if let Some(why) = &host.gone {
        return cut(&format!("{name:<names$} GONE: {why}"), room);
    }
    let Some(change) = host.change() else {
        return cut(&format!("{name:<names$} (the first interval is not over)"), room);
    };
    let mut text = format!("{name:<names$}");
    for column in fitting(room.saturating_sub(names)) {
        text += &format!(" {:>width$}", column.shown(&change), width = column.width);
    }
    cut(&text, room)
}
