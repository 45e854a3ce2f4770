//! A Keyway server's own figures, out of the page that it counts in: looking costs it nothing.

use super::{Watch, is_over};
use crate::limits::MONITOR_EVERY;
use keyway_meter::{Figure, Interval, Reader, Snapshot};
use std::io;
use std::path::Path;
use std::sync::mpsc::Receiver;
use std::time::Instant;

/// Two pages at one moment.
struct Sample {
    at: Instant,
    directory: Snapshot,
    cryptod: Option<Snapshot>,
}

impl Watch<'_> {
    /// Looks at a server's page, and at its daemon's where there is one, once a second.
    pub(super) fn page(
        &mut self,
        directory: &Path,
        cryptod: Option<&Path>,
        figures: &[Figure],
        ended: &Receiver<()>,
    ) -> io::Result<()> {
        let not_reached = |why| io::Error::other(format!("not reached: {why}"));
        let reader = open(directory).map_err(not_reached)?;
        let mut daemon = None;
        let mut before: Option<Sample> = None;
        loop {
            if !reader.alive() {
                return Err(io::Error::other("the server that counted there has stopped"));
            }
            if daemon.as_ref().is_none_or(|daemon: &Reader| !daemon.alive()) {
                daemon = cryptod.and_then(|path| open(path).ok());
            }
            let now = Sample {
                at: Instant::now(),
                directory: reader.snapshot().map_err(io::Error::other)?,
                cryptod: daemon.as_ref().and_then(|daemon| daemon.snapshot().ok()),
            };
            match &before {
                Some(before) => self.figures(before, &now, figures),
                None => self.sees(),
            }
            let at = now.at;
            before = Some(now);
            if is_over(ended, MONITOR_EVERY.saturating_sub(at.elapsed())) {
                return Ok(());
            }
        }
    }

    fn figures(&mut self, before: &Sample, now: &Sample, figures: &[Figure]) {
        let directory = now.directory.since(&before.directory);
        let pages = now.cryptod.as_ref().zip(before.cryptod.as_ref());
        // One that was started again has counted less.
        let same = pages.filter(|(now, before)| now.started_unix_ms == before.started_unix_ms);
        let cryptod = same.map(|(now, before)| now.since(before));
        let interval = Interval {
            seconds: now.at.duration_since(before.at).as_secs_f64().max(1e-3),
            now: Some(&now.directory),
            directory: &directory,
            cryptod: cryptod.as_ref(),
        };
        for (place, figure) in figures.iter().enumerate() {
            self.say(place, figure.number(&interval));
        }
    }
}

/// Opens a page that a running server counts in.
pub(super) fn open(path: &Path) -> io::Result<Reader> {
    let reader = Reader::open(path).map_err(io::Error::other)?;
    match reader.alive() {
        true => Ok(reader),
        false => Err(io::Error::other(format!("no server counts in {}", path.display()))),
    }
}
