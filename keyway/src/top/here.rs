//! `keyway top` without a terminal, of what runs on a data folder: a line each interval.

use super::daemon;
use super::lines;
use super::tally::{Difference, header};
use crate::cli::Top;
use keyway_folder::data::{self, State, look, name};
use keyway_host::failure::Failure;
use keyway_host::output;
use keyway_meter::{Reader, Snapshot};
use keyway_watch::{ServerDelta, ServerLists, ServerSnapshot};
use std::io;
use std::time::{Duration, Instant};
use tokio::signal::unix::{Signal, SignalKind, signal};

/// Lines between two headers.
const HEADER_LINES: u64 = 20;
/// How long a server's end may go unnoticed.
const LOOK_MAX: Duration = Duration::from_millis(500);
/// How long is waited for a server that is started again.
const AGAIN_MAX: Duration = Duration::from_secs(10);

/// Shows lines until the count is reached, the server stops, or somebody presses Ctrl-C.
///
/// # Errors
/// If no server runs on the data folder, or its page cannot be read.
pub fn run(arguments: &Top) -> Result<(), Failure> {
    let mut reader = open(arguments)?;
    let mut lines = 0;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|why| Failure::new(format!("cannot start: {why}")))?;
    loop {
        match runtime.block_on(show(arguments, &reader, &mut lines)) {
            Err(End::Failed(failure)) => return Err(failure),
            Err(End::Output(why)) if why.kind() != io::ErrorKind::BrokenPipe => {
                return Err(Failure::output(&why));
            }
            Err(End::ServerStopped) => {}
            Ok(()) | Err(End::Output(_) | End::Interrupted) => return Ok(()),
        }
        match open_again(arguments) {
            Some(next) => {
                output::note("the server was started again");
                reader = next;
            }
            None => {
                output::note("the server has stopped");
                return Ok(());
            }
        }
    }
}

/// The page of a server that keyway up starts again. Whoever has the folder will have one soon.
fn open_again(arguments: &Top) -> Option<Reader> {
    let begun = Instant::now();
    while begun.elapsed() < AGAIN_MAX && data::user(&arguments.data.folder).is_some() {
        match open(arguments) {
            Ok(reader) => return Some(reader),
            Err(_) => std::thread::sleep(LOOK_MAX / 10),
        }
    }
    None
}

/// Why no more lines are shown.
enum End {
    ServerStopped,
    Interrupted,
    /// Whoever reads the lines has gone, or the disk is full.
    Output(io::Error),
    Failed(Failure),
}

fn open(arguments: &Top) -> Result<Reader, Failure> {
    let folder = &arguments.data.folder;
    if arguments.cryptod {
        return daemon::open(folder);
    }
    let not_running = || {
        let shown = folder.display();
        Failure::new(format!(
            "no server runs on {shown}; start one with keyway up, or name its folder with --data DIR"
        ))
    };
    let page = folder.join(name::METER);
    if look(folder)? == State::Absent {
        return Err(not_running());
    }
    let reader = match page.exists() {
        true => Some(Reader::open(&page).map_err(Failure::new)?),
        false => None,
    };
    if let Some(reader) = reader.filter(Reader::alive) {
        return Ok(reader);
    }
    match data::user(folder) {
        None => Err(not_running()),
        Some(process) => Err(Failure::new(format!(
            "{process} uses {}, and there are no counters to look at: either it is no server, or \
             it found no room on the disk for them; make room and start it again",
            folder.display()
        ))),
    }
}

async fn show(arguments: &Top, reader: &Reader, lines: &mut u64) -> Result<(), End> {
    let interval = Duration::from_secs_f64(arguments.interval);
    let mut interrupted = false;
    let mut interrupts = signal(SignalKind::interrupt()).map_err(End::Output)?;
    let mut clients = match arguments.cryptod {
        true => Some(daemon::Clients::at(&name::socket_at(&arguments.data.folder))),
        false => None,
    };
    let mut before = look_at(reader)?;
    let mut next = before.at;
    loop {
        next += interval;
        wait(reader, &mut interrupts, next).await?;
        let now = look_at(reader)?;
        let difference = Difference::between(&before, &now);
        if arguments.json {
            let mut json = match &mut clients {
                Some(clients) => daemon::json(&difference, clients),
                None => difference.json(),
            };
            let snapshots = (before.snapshot(), now.snapshot());
            if let Some(change) = ServerDelta::between(&snapshots.0, &snapshots.1) {
                json["figures"] = lines::figures(&change);
                json["operations"] = lines::operations(&change);
            }
            output::write_json(&json).map_err(End::Output)?;
        } else if arguments.csv {
            if *lines == 0 {
                output::write(lines::csv_header()).map_err(End::Output)?;
            }
            let snapshots = (before.snapshot(), now.snapshot());
            if let Some(change) = ServerDelta::between(&snapshots.0, &snapshots.1) {
                let server = arguments.data.folder.display().to_string();
                output::write(lines::csv_line(&server, &change)).map_err(End::Output)?;
            }
        } else {
            if interrupted {
                output::write("").map_err(End::Output)?;
            }
            let (header, line) = match clients {
                Some(_) => (daemon::header(), daemon::line(&difference)),
                None => (header(), difference.line()),
            };
            if interrupted || lines.is_multiple_of(HEADER_LINES) {
                output::write(header).map_err(End::Output)?;
            }
            output::write(line).map_err(End::Output)?;
            let mut sections = difference.sections();
            if let Some(clients) = &mut clients {
                sections.extend(clients.lines(difference.seconds));
            }
            interrupted = !sections.is_empty();
            for line in sections {
                output::write(line).map_err(End::Output)?;
            }
        }
        *lines += 1;
        if arguments.count == Some(*lines) {
            return Ok(());
        }
        // After a pause of the machine, do not make up for the lines that nobody saw.
        next = next.max(now.at.checked_sub(interval).unwrap_or(now.at));
        before = now;
    }
}

/// Waits for the next line's time, or for the end.
async fn wait(reader: &Reader, interrupts: &mut Signal, until: Instant) -> Result<(), End> {
    loop {
        let look = until.min(Instant::now() + LOOK_MAX);
        tokio::select! {
            _ = interrupts.recv() => return Err(End::Interrupted),
            () = tokio::time::sleep_until(look.into()) => {}
        }
        if !reader.alive() {
            return Err(End::ServerStopped);
        }
        if Instant::now() >= until {
            return Ok(());
        }
    }
}

/// The page at one moment.
pub struct Look {
    pub at: Instant,
    pub page: Snapshot,
}

impl Look {
    /// The same as it is seen by those who look at any server.
    pub fn snapshot(&self) -> ServerSnapshot {
        ServerSnapshot {
            at: self.at,
            uptime_s: None,
            kind: String::new(),
            directory: Some(self.page.clone()),
            cryptod: None,
            lists: ServerLists::default(),
        }
    }
}

fn look_at(reader: &Reader) -> Result<Look, End> {
    let page = reader.snapshot().map_err(|why| End::Failed(Failure::new(why)))?;
    Ok(Look { at: Instant::now(), page })
}
