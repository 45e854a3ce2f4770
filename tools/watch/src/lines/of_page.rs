//! Lines of the page of counters of a process on this machine.

use super::{Form, Lines};
use crate::cryptod::{self, CryptodClients};
use crate::delta::{self, PageDelta};
use crate::page::{PageOwner, PageSample};
use crate::snapshot::ServerDelta;
use crate::{esp, figures};
use keyway_folder::data::name;
use keyway_host::failure::Failure;
use keyway_host::output;
use keyway_meter::Reader;
use std::io;
use std::path::Path;
use std::time::{Duration, Instant};
use tokio::signal::unix::{Signal, SignalKind, signal};

/// Lines between two headers.
const HEADER_LINES: u64 = 20;
/// How long a server's end may go unnoticed.
const LOOK_MAX: Duration = Duration::from_millis(500);

/// Shows lines until the count is reached, the server stops, or Ctrl-C is pressed.
///
/// # Errors
/// If none runs on the folder, or its page cannot be read.
pub fn of_page(owner: PageOwner, folder: &Path, wanted: &Lines) -> Result<(), Failure> {
    let mut reader = owner.open(folder)?;
    let mut shown = 0;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|why| Failure::new(format!("cannot start: {why}")))?;
    loop {
        match runtime.block_on(show((owner, folder), wanted, &reader, &mut shown)) {
            Err(End::Failed(failure)) => return Err(failure),
            Err(End::Output(why)) if why.kind() != io::ErrorKind::BrokenPipe => {
                return Err(Failure::output(&why));
            }
            Err(End::ServerStopped) => {}
            Ok(()) | Err(End::Output(_) | End::Interrupted) => return Ok(()),
        }
        match owner.open_again(folder) {
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

/// Why no more lines are shown.
enum End {
    ServerStopped,
    Interrupted,
    /// The reader of the lines has gone, or the disk is full.
    Output(io::Error),
    Failed(Failure),
}

async fn show(
    (owner, folder): (PageOwner, &Path),
    wanted: &Lines,
    reader: &Reader,
    lines: &mut u64,
) -> Result<(), End> {
    let Lines { form, interval, count } = *wanted;
    let mut interrupted = false;
    let mut interrupts = signal(SignalKind::interrupt()).map_err(End::Output)?;
    let mut clients = match owner {
        PageOwner::Cryptod => Some(CryptodClients::at(&name::socket_at(folder))),
        PageOwner::Directory | PageOwner::Esp => None,
    };
    let mut before = sample(reader)?;
    let mut next = before.at;
    loop {
        next += interval;
        wait(reader, &mut interrupts, next).await?;
        let now = sample(reader)?;
        let delta = PageDelta::between(&before, &now);
        if form == Form::Json {
            let mut json = match &mut clients {
                Some(clients) => cryptod::json(&delta, clients),
                None => delta.json(),
            };
            if owner == PageOwner::Esp {
                json["esp"] = esp::json(&delta);
            }
            let snapshots = (before.snapshot(), now.snapshot());
            if let Some(change) = ServerDelta::between(&snapshots.0, &snapshots.1) {
                json["figures"] = figures::figures(&change);
                json["operations"] = figures::operations(&change);
            }
            output::write_json(&json).map_err(End::Output)?;
        } else if form == Form::Csv {
            if *lines == 0 {
                output::write(figures::csv_header()).map_err(End::Output)?;
            }
            let snapshots = (before.snapshot(), now.snapshot());
            if let Some(change) = ServerDelta::between(&snapshots.0, &snapshots.1) {
                let server = folder.display().to_string();
                output::write(figures::csv_line(&server, &change)).map_err(End::Output)?;
            }
        } else {
            if interrupted {
                output::write("").map_err(End::Output)?;
            }
            let (header, line) = match owner {
                PageOwner::Cryptod => (cryptod::header(), cryptod::line(&delta)),
                PageOwner::Esp => (esp::header(), esp::line(&delta)),
                PageOwner::Directory => (delta::header(), delta.line()),
            };
            if interrupted || lines.is_multiple_of(HEADER_LINES) {
                output::write(header).map_err(End::Output)?;
            }
            output::write(line).map_err(End::Output)?;
            let mut sections = delta.sections();
            if owner == PageOwner::Esp {
                sections.extend(esp::sections(&delta));
            }
            if let Some(clients) = &mut clients {
                sections.extend(clients.lines(delta.seconds));
            }
            interrupted = !sections.is_empty();
            for line in sections {
                output::write(line).map_err(End::Output)?;
            }
        }
        *lines += 1;
        if count == Some(*lines) {
            return Ok(());
        }
        // After a pause of the machine, do not make up for the lines that were missed.
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

fn sample(reader: &Reader) -> Result<PageSample, End> {
    PageSample::take(reader).map_err(End::Failed)
}
