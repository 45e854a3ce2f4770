//! Lines that say what was seen of servers, as wide as there is room.

use crate::columns::{COLUMNS, Column, fitting};
use crate::server::WatchedServer;
use crate::snapshot::ServerDelta;
use crate::text::cut;
use keyway_host::timestamp::Timestamp;

const TIME_WIDTH: usize = 8;

/// The time of day, UTC.
#[must_use]
pub fn clock() -> String {
    let time = Timestamp::now().date_time();
    format!("{:02}:{:02}:{:02}", time.hour(), time.minute(), time.second())
}

/// All columns, with marks between them, to be cut later.
#[must_use]
pub fn line(change: &ServerDelta<'_>, time: &str) -> String {
    let cells = COLUMNS.iter().map(|column| column.shown(change));
    [time.to_owned()].into_iter().chain(cells).collect::<Vec<_>>().join("\t")
}

/// Those columns of a [`line()`] that there is room for.
#[must_use]
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

/// The titles of lines that are [`cut_to`] this room.
#[must_use]
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

/// The titles of [`of_server`].
#[must_use]
pub fn servers_header(names: usize, room: usize) -> String {
    titled(&format!("{:<names$}", "server"), &fitting(room.saturating_sub(names)), room)
}

/// The last interval of a server, below its name.
#[must_use]
pub fn of_server(host: &WatchedServer, names: usize, room: usize) -> String {
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
