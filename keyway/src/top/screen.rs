//! `keyway top` on a terminal: views by key, drawn with the terminal's own colours.

use crate::terminal::Keys;
use keyway_host::failure::{Failure, plain};
use keyway_host::shutdown::Stop;
use keyway_host::signals::Second;
use keyway_watch::sheet::{Order, Sheet};
use keyway_watch::text::cut;
use keyway_watch::{
    ServerSnapshot, SnapshotSource, Snapshots, WatchedServer, rows, views, watch, why_not,
};
use ratatui::Frame;
use ratatui::crossterm::event::{Event, KeyCode, KeyEvent, KeyEventKind, KeyModifiers};
use ratatui::layout::Rect;
use ratatui::style::{Modifier, Style};
use ratatui::text::Line;
use ratatui::widgets::Paragraph;
use std::io::IsTerminal;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// How long a key may go unnoticed, at most.
const LOOK: Duration = Duration::from_millis(50);
/// Lines of the past that are kept.
const LINES_MAX: usize = 1_000;

/// The view that is shown.
#[derive(Clone, Copy, PartialEq, Eq)]
enum View {
    Operations,
    Store,
    Crypto,
    Connections,
    Filters,
    Slow,
    Help,
}

const VIEWS: [(char, View, &str); 7] = [
    ('o', View::Operations, "ops"),
    ('s', View::Store, "store"),
    ('c', View::Crypto, "crypto"),
    ('n', View::Connections, "conns"),
    ('f', View::Filters, "filters"),
    ('l', View::Slow, "slow"),
    ('?', View::Help, "help"),
];

const HELP: [&str; 17] = [
    "o  operations: a line each interval, the newest last, and each kind of operation",
    "s  store: its size, its readers, commits, changes a commit, what a sync takes",
    "c  crypto: each driver and algorithm (p50, p99: what requests took, of a sample,",
    "   expd: what is expected, q99: waiting, failed: when last); cryptod's clients",
    "n  connections: who, from where, over which TLS, idle, requests under way (now)",
    "f  filters by cost: share of the search time, entries looked at (cand) and",
    "   returned (retd) a search, how many had no index (no ix)",
    "l  slow operations, now and in the last five minutes, and their longest stage",
    "",
    "< >          sort by the column left or right     r  the other way round",
    "arrows, j k, PgUp, PgDn, Home, End   move         p or space  pause",
    "Tab          the next server, where there are several",
    "q, Ctrl-C    quit                                 ?  this page, and back",
    "",
    "p50, p99, max: from a request's arrival to its answer, in the last interval",
    "inq: read and not begun; grp: changes a commit; dirty: accepted, not on disk",
    "hash, of, hq: password threads that work, of how many, passwords that wait",
];

struct Screen {
    hosts: Vec<WatchedServer>,
    view: View,
    /// Where `?` goes back to.
    last: View,
    host: usize,
    orders: [Order; VIEWS.len()],
    scroll: usize,
    is_paused: bool,
    interval: Duration,
    /// Rows that the last drawing had room for, and columns that its table had.
    page: usize,
    columns: usize,
}

/// Whether standard input and output are a terminal.
pub fn is_there() -> bool {
    std::io::stdout().is_terminal() && std::io::stdin().is_terminal()
}

/// Shows them until the user quits.
///
/// # Errors
/// If none of them can be looked at, or the terminal cannot be used.
pub fn run(
    sources: Vec<(String, SnapshotSource)>,
    interval: Duration,
    crypto: bool,
) -> Result<(), Failure> {
    let stop = Stop::watch(Second::Asks)?;
    let connections = Arc::new(AtomicBool::new(false));
    let hosts = sources.iter().map(|(name, _)| WatchedServer::new(name.clone())).collect();
    let seen = watch(sources, interval, &connections);
    let view = if crypto { View::Crypto } else { View::Operations };
    let mut screen = Screen {
        hosts,
        view,
        last: view,
        host: 0,
        orders: Default::default(),
        scroll: 0,
        is_paused: false,
        interval,
        page: 1,
        columns: 1,
    };
    screen.first_look(&seen, &stop)?;
    let cannot =
        |why: std::io::Error| Failure::new(format!("cannot use the terminal: {}", plain(&why)));
    let keys = Keys::open().map_err(cannot)?;
    let mut terminal = ratatui::try_init().map_err(cannot)?;
    let ended = loop {
        if let Err(why) = terminal.draw(|frame| screen.draw(frame)) {
            break Err(why);
        }
        match screen.turn(&keys, &seen, &stop) {
            Ok(true) => {}
            Ok(false) => break Ok(()),
            Err(why) => break Err(why),
        }
        connections.store(screen.view == View::Connections, Ordering::Relaxed);
    };
    ratatui::restore();
    ended.map_err(cannot)
}

impl Screen {
    /// Waits until something is said of each: if that is bad of all of them, it is a mistake.
    fn first_look(&mut self, seen: &Snapshots, stop: &Stop) -> Result<(), Failure> {
        while self.hosts.iter().any(|host| host.now.is_none() && host.gone.is_none()) {
            if let Ok((number, snapshot)) = seen.recv_timeout(LOOK) {
                self.take(number, snapshot);
            }
            if stop.is_asked() {
                return Ok(());
            }
        }
        match self.hosts.iter().all(|host| host.now.is_none()) {
            true => Err(why_not(&self.hosts)),
            false => Ok(()),
        }
    }

    fn take(&mut self, number: usize, snapshot: Result<ServerSnapshot, String>) {
        let Some(host) = self.hosts.get_mut(number) else { return };
        host.seen(snapshot);
        let Some(change) = host.change().filter(|_| host.gone.is_none()) else { return };
        // The widest; it is cut when it is drawn.
        let time = rows::clock();
        let line = rows::line(&change, &time);
        drop(change);
        host.lines.push_back(line);
        if host.lines.len() > LINES_MAX {
            host.lines.pop_front();
        }
    }

    /// Takes what there is to take; false if it is over.
    fn turn(&mut self, keys: &Keys, seen: &Snapshots, stop: &Stop) -> std::io::Result<bool> {
        let mut is_new = false;
        while !is_new {
            if stop.is_asked() {
                return Ok(false);
            }
            if let Some(event) = keys.next(LOOK)? {
                is_new = true;
                match event {
                    Event::Key(key) if key.kind != KeyEventKind::Release && !self.key(key) => {
                        return Ok(false);
                    }
                    _ => {}
                }
            }
            // A snapshot that comes while it is paused is not looked at.
            while let Ok((number, snapshot)) = seen.try_recv() {
                if !self.is_paused {
                    self.take(number, snapshot);
                    is_new = true;
                }
            }
        }
        Ok(true)
    }

    /// Does what a key says; false if that is to end.
    fn key(&mut self, key: KeyEvent) -> bool {
        let control = key.modifiers.contains(KeyModifiers::CONTROL);
        match key.code {
            KeyCode::Char('c' | 'd') if control => return false,
            KeyCode::Char('q' | 'Q') => return false,
            KeyCode::Char('?' | 'h') | KeyCode::Esc if self.view == View::Help => {
                self.show(self.last)
            }
            KeyCode::Char('?' | 'h') => self.show(View::Help),
            KeyCode::Char('p' | ' ') => self.is_paused = !self.is_paused,
            KeyCode::Char('<') => self.sort_beside(-1),
            KeyCode::Char('>') => self.sort_beside(1),
            KeyCode::Char('r') => {
                let order = self.order();
                order.is_reversed = !order.is_reversed;
            }
            KeyCode::Tab => self.host = (self.host + 1) % self.hosts.len().max(1),
            KeyCode::BackTab => {
                self.host = (self.host + self.hosts.len() - 1) % self.hosts.len().max(1);
            }
            KeyCode::Down | KeyCode::Char('j') => self.scroll += 1,
            KeyCode::Up | KeyCode::Char('k') => self.scroll = self.scroll.saturating_sub(1),
            KeyCode::PageDown => self.scroll += self.page,
            KeyCode::PageUp => self.scroll = self.scroll.saturating_sub(self.page),
            KeyCode::Home => self.scroll = 0,
            KeyCode::End => self.scroll = usize::MAX / 2,
            KeyCode::Char(letter) => {
                if let Some((_, view, _)) = VIEWS.iter().find(|(key, ..)| *key == letter) {
                    self.show(*view);
                }
            }
            _ => {}
        }
        true
    }

    fn show(&mut self, view: View) {
        if self.view != View::Help {
            self.last = self.view;
        }
        (self.view, self.scroll) = (view, 0);
    }

    fn order(&mut self) -> &mut Order {
        &mut self.orders[self.view as usize]
    }

    fn sort_beside(&mut self, by: isize) {
        let columns = self.columns.max(1);
        let order = self.order();
        let at = order.column.unwrap_or(0) as isize + by;
        order.column = Some(at.rem_euclid(columns as isize) as usize);
    }

    fn draw(&mut self, frame: &mut Frame<'_>) {
        let area = frame.area();
        if area.height < 4 || area.width < 20 {
            return put(frame, 0, "too small", Style::new());
        }
        put(frame, 0, &self.headline(), Style::new().add_modifier(Modifier::BOLD));
        put(
            frame,
            area.height - 1,
            &footer(self.view),
            Style::new().add_modifier(Modifier::REVERSED),
        );
        let gone = self.hosts.get(self.host).and_then(|host| host.gone.clone());
        let mut top = 1;
        if let Some(why) = gone.filter(|_| self.view != View::Help) {
            let text = format!("GONE: {why} (it is looked for again)");
            put(frame, top, &text, Style::new().add_modifier(Modifier::BOLD));
            top += 1;
        }
        let room = Rect { y: top, height: area.height - 1 - top, ..area };
        match self.view {
            View::Help => HELP.iter().zip(room.y..room.y + room.height).for_each(|(line, y)| {
                put(frame, y, line, Style::new());
            }),
            View::Operations if self.hosts.len() > 1 => self.draw_hosts(frame, room),
            View::Operations => self.draw_operations(frame, room),
            _ => self.draw_sheets(frame, room),
        }
    }

    fn headline(&self) -> String {
        let Some(host) = self.hosts.get(self.host) else { return String::new() };
        let seen = host.now.as_ref();
        let up = seen.and_then(|snapshot| snapshot.uptime_s).map(|up| views::length(up as f64));
        let up = up.map(|up| format!("  up {up}")).unwrap_or_default();
        let kind = seen.map(|snapshot| snapshot.kind.as_str()).unwrap_or_default();
        let paused = if self.is_paused { "  PAUSED" } else { "" };
        let of = match self.hosts.len() {
            1 => String::new(),
            all => format!(" ({} of {all})", self.host + 1),
        };
        let every = self.interval.as_secs_f64();
        format!("{}{of}  {kind}{up}  {}  every {every}s{paused}", host.name, rows::clock())
    }

    /// The lines of one server, and a table of its operations.
    fn draw_operations(&mut self, frame: &mut Frame<'_>, room: Rect) {
        let Some(host) = self.hosts.get(self.host) else { return };
        let sheet = host.change().map(|change| views::operations(&change));
        let table_rows = sheet.as_ref().map_or(0, |sheet| sheet.rows.len() as u16 + 2);
        let lines_room = room.height.saturating_sub(table_rows).max(3).min(room.height);
        let width = usize::from(room.width);
        let bold = Style::new().add_modifier(Modifier::BOLD);
        put(frame, room.y, &rows::header(width), bold);
        let visible = usize::from(lines_room.saturating_sub(1));
        let first = host.lines.len().saturating_sub(visible);
        for (line, y) in host.lines.iter().skip(first).zip(room.y + 1..) {
            put(frame, y, &rows::cut_to(line, width), Style::new());
        }
        if host.lines.is_empty() {
            put(frame, room.y + 1, "(the first interval is not over)", Style::new());
        }
        let below = Rect { y: room.y + lines_room, height: room.height - lines_room, ..room };
        if let Some(sheet) = sheet {
            self.draw_sheet(frame, below, sheet);
        }
    }

    /// A row for each server.
    fn draw_hosts(&mut self, frame: &mut Frame<'_>, room: Rect) {
        let width = usize::from(room.width);
        let bold = Style::new().add_modifier(Modifier::BOLD);
        let name_width = rows::name_width(self.hosts.iter().map(|host| host.name.as_str()), width);
        put(frame, room.y, &rows::servers_header(name_width, width), bold);
        for (at, (host, y)) in self.hosts.iter().zip(room.y + 1..room.y + room.height).enumerate() {
            let line = rows::of_server(host, name_width, width);
            let style = if at == self.host {
                Style::new().add_modifier(Modifier::BOLD)
            } else {
                Style::new()
            };
            put(frame, y, &line, style);
        }
        let taken = (self.hosts.len() as u16 + 2).min(room.height);
        let below = Rect { y: room.y + taken, height: room.height - taken, ..room };
        let sheet = self.hosts.get(self.host).and_then(WatchedServer::change);
        if let Some(sheet) = sheet.map(|change| views::operations(&change)) {
            self.draw_sheet(frame, below, sheet);
        }
    }

    fn draw_sheets(&mut self, frame: &mut Frame<'_>, room: Rect) {
        let Some(host) = self.hosts.get(self.host) else { return };
        let Some(change) = host.change() else {
            return put(frame, room.y, "(the first interval is not over)", Style::new());
        };
        let before = host.before.as_ref().map(|snapshot| &snapshot.lists);
        let sheet = match self.view {
            View::Store => views::store(&change),
            View::Connections => {
                let before = before.map(|lists| lists.connections.clone()).unwrap_or_default();
                views::connections(&change, &before)
            }
            View::Filters => views::filters(&change),
            View::Slow => views::slow(&change),
            _ => {
                let before = before.map(|lists| lists.clients.clone()).unwrap_or_default();
                let [drivers, clients] = views::crypto(&change, &before);
                let below = (clients.rows.len() as u16 + 4).min(room.height / 3);
                let top = room.height - below;
                drop(change);
                self.draw_sheet(frame, Rect { y: room.y + top, height: below, ..room }, clients);
                return self.draw_sheet(frame, Rect { height: top, ..room }, drivers);
            }
        };
        drop(change);
        self.draw_sheet(frame, room, sheet);
    }

    fn draw_sheet(&mut self, frame: &mut Frame<'_>, room: Rect, mut sheet: Sheet) {
        if room.height < 2 {
            return;
        }
        let order = self.orders[self.view as usize];
        sheet.sort(order);
        let width = usize::from(room.width);
        let bold = Style::new().add_modifier(Modifier::BOLD);
        put(frame, room.y, &sheet.headline(order), Style::new().add_modifier(Modifier::UNDERLINED));
        let mut y = room.y + 1;
        let end = room.y + room.height;
        for note in sheet.notes.iter().take(usize::from(end - y)) {
            put(frame, y, note, Style::new());
            y += 1;
        }
        if y >= end {
            return;
        }
        put(frame, y, &sheet.header(width), bold);
        y += 1;
        self.page = usize::from(end - y).max(1);
        self.columns = sheet.columns.len();
        self.scroll = self.scroll.min(sheet.rows.len().saturating_sub(self.page));
        for (row, y) in sheet.rows.iter().skip(self.scroll).zip(y..end) {
            put(frame, y, &sheet.row(row, width), Style::new());
        }
    }
}

fn footer(view: View) -> String {
    let keys = VIEWS.iter().map(|(key, of, title)| {
        if *of == view { format!("[{key} {title}]") } else { format!(" {key} {title} ") }
    });
    format!("{} q quit", keys.collect::<String>())
}

/// A line of its own, to the right end.
fn put(frame: &mut Frame<'_>, y: u16, text: &str, style: Style) {
    let area = frame.area();
    if y >= area.height {
        return;
    }
    let width = usize::from(area.width);
    let text = format!("{:<width$}", cut(text, width));
    frame.render_widget(
        Paragraph::new(Line::styled(text, style)),
        Rect { x: 0, y, width: area.width, height: 1 },
    );
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_never_changes_fits_into_eighty_columns() {
        assert!(HELP.iter().all(|line| line.chars().count() <= 80));
        assert!(HELP.len() + 2 <= 24);
        assert!(VIEWS.iter().all(|(_, view, _)| footer(*view).chars().count() <= 80));
    }
}
