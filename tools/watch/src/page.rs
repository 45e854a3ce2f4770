//! The page of counters of a process on a data folder: which one, and a sample of it.

use crate::limits::{PAGE_AGAIN_LOOK_EVERY, PAGE_AGAIN_MAX};
use crate::snapshot::{ServerLists, ServerSnapshot};
use keyway_folder::data::{self, State, look, name};
use keyway_host::failure::Failure;
use keyway_meter::{Reader, Snapshot};
use std::path::Path;
use std::thread;
use std::time::Instant;

/// A process that counts into a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PageOwner {
    /// ldapd.
    Directory,
    /// The daemon that holds its keys.
    Cryptod,
    /// An ESP gateway, whose folder is that of its state.
    Esp,
}

impl PageOwner {
    /// The page of the process that runs on a data folder.
    ///
    /// # Errors
    /// If none runs there, or its page cannot be read.
    pub fn open(self, folder: &Path) -> Result<Reader, Failure> {
        match self {
            PageOwner::Directory => open_directory(folder),
            PageOwner::Cryptod => {
                data::may_look(folder)?;
                let shown = folder.display();
                open_page(&name::meter_at(folder), || {
                    format!(
                        "no cryptod runs on {shown}; start one with keyway cryptod, or name its folder with --data DIR"
                    )
                })
            }
            PageOwner::Esp => open_page(&folder.join(name::METER), || {
                format!(
                    "no ESP gateway has its state in {}; start one with keyway esp up, or name its folder with --esp DIR",
                    folder.display()
                )
            }),
        }
    }

    /// The page of a server that keyway up starts again. Who has the folder will have one soon.
    #[must_use]
    pub fn open_again(self, folder: &Path) -> Option<Reader> {
        let begun = Instant::now();
        // No process has a gateway's folder while it is started again.
        let is_used = || self == PageOwner::Esp || data::user(folder).is_some();
        while begun.elapsed() < PAGE_AGAIN_MAX && is_used() {
            match self.open(folder) {
                Ok(reader) => return Some(reader),
                Err(_) => thread::sleep(PAGE_AGAIN_LOOK_EVERY),
            }
        }
        None
    }
}

fn open_directory(folder: &Path) -> Result<Reader, Failure> {
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

fn open_page(page: &Path, absent: impl FnOnce() -> String) -> Result<Reader, Failure> {
    let reader = page.exists().then(|| Reader::open(page)).transpose().map_err(Failure::new)?;
    reader.filter(Reader::alive).ok_or_else(|| Failure::new(absent()))
}

/// A page at one moment.
pub struct PageSample {
    /// When it was read.
    pub at: Instant,
    /// Its counters and histograms.
    pub page: Snapshot,
}

impl PageSample {
    /// Takes one now.
    ///
    /// # Errors
    /// If the page makes no sense.
    pub fn take(reader: &Reader) -> Result<PageSample, Failure> {
        let page = reader.snapshot().map_err(Failure::new)?;
        Ok(PageSample { at: Instant::now(), page })
    }

    /// The form of a server's that is seen by whichever means.
    #[must_use]
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
