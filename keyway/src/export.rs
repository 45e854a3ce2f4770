//! `keyway directory export`.

use crate::cli::Export;
use crate::generate::compress;
use keyway_data::Compress;
use keyway_folder::data::{self, Folder, name};
use keyway_folder::history::Done;
use keyway_host::atomic_file::Target;
use keyway_host::failure::Failure;
use keyway_host::output::{self, grouped};
use keyway_host::progress::Progress;
use keyway_service::export::{Counted, failed};
use keyway_service::instance::{self, Instance, what_to_do};
use keyway_service::offline::{self, Offline};
use keyway_store::Salvage;
use serde_json::json;
use std::cell::Cell;
use std::io::{self, Write};
use std::time::Instant;

/// Bytes that are gathered before the system is called.
const BUFFER_BYTES: usize = 256 << 10;

/// Entries that are told one by one; the rest are counted. The LDIF names all.
const LOST_TOLD_MAX: usize = 1_000;

/// Writes the entries of a directory as LDIF, and writes down that it did. Returns whether none is lost.
///
/// # Errors
/// If there is none, it is damaged, another process than a server uses it, or the output cannot be written.
pub fn run(arguments: &Export) -> Result<bool, Failure> {
    let began = Instant::now();
    let mut done = Done::new("export", Some(&arguments.file));
    done.base.clone_from(&arguments.base);
    let exported = match arguments.go_on {
        true => salvage(arguments, &mut done),
        false => export(arguments, &mut done),
    };
    done.seconds = began.elapsed().as_secs_f64();
    let done = match (&exported, &arguments.base) {
        (Ok(true), None) => done.with("whole", None),
        (Ok(true), Some(_)) => done.with("subtree", None),
        (Ok(false), _) => done.with("in part", None),
        (Err(why), _) if arguments.go_on && done.entries.is_some() => {
            done.with("in part", Some(&why.to_string()))
        }
        (Err(why), _) => done.with("failed", Some(&why.to_string())),
    };
    done.record(&arguments.data.folder);
    exported
}

/// A directory to be read.
struct Opened {
    instance: Instance,
    /// Locked, if no server has it.
    folder: Option<Folder>,
}

fn open(arguments: &Export) -> Result<Opened, Failure> {
    if let Some(instance) = offline::beside_server(&arguments.data.folder)? {
        return Ok(Opened { instance, folder: None });
    }
    let folder = offline::folder(&arguments.data.folder)?;
    if let Some(damage) = offline::inspect(&folder)?.first.first() {
        let advice = what_to_do(folder.path());
        return Err(Failure::new(format!("the store is damaged: {damage}; {advice}")));
    }
    let Offline { instance, folder, .. } = offline::open_in(folder)?;
    Ok(Opened { instance, folder: Some(folder) })
}

fn export(arguments: &Export, done: &mut Done) -> Result<bool, Failure> {
    let Opened { instance, folder } = open(arguments)?;
    done.served = folder.is_none();
    data::is_not_own(&arguments.data.folder, &arguments.file)?;
    let target = Target::open(&arguments.file, &[])?;
    let progress = Progress::entries("exporting", instance.entry_count()?);
    let bytes = Cell::new(0);
    let counted = Counted::new(target.writer()?, &bytes);
    let mut out = Packed::new(counted, compress(arguments.compress, &arguments.file));
    let exported = instance
        .directory
        .export(arguments.base.as_deref(), &mut out, &mut |entries| progress.at(entries, entries));
    let entries = exported.map_err(|why| failed(&target, why, arguments.base.as_deref()))?;
    out.flush().map_err(|why| target.cannot_write(&why))?;
    drop(out);
    let is_file = target.finish()?;
    let seconds = progress.seconds();
    drop(progress);
    instance.close()?;
    (done.entries, done.bytes) = (Some(entries), Some(bytes.get()));
    if arguments.json {
        let line = json!({
            "event": "exported", "entries": entries, "bytes": bytes.get(), "seconds": seconds,
        });
        if is_file { output::json(&line) } else { output::aside(&line) }?;
    } else if is_file {
        output::text(format_args!("exported {} entries", grouped(entries)))?;
    }
    Ok(true)
}

/// Exports what can be read of a store that is damaged.
fn salvage(arguments: &Export, done: &mut Done) -> Result<bool, Failure> {
    let folder = &offline::folder(&arguments.data.folder)?;
    let store = Salvage::open(&folder.file(name::STORE))
        .map_err(|why| instance::cannot_open(folder.path(), &why))?;
    data::is_not_own(&arguments.data.folder, &arguments.file)?;
    let target = Target::open(&arguments.file, &[])?;
    let progress = Progress::entries("exporting", store.expected().unwrap_or_default());
    let bytes = Cell::new(0);
    let counted = Counted::new(target.writer()?, &bytes);
    let mut out = Packed::new(counted, compress(arguments.compress, &arguments.file));
    let base = arguments.base.as_deref();
    let engine = keyway_drivers::engine();
    let salvaged = keyway_server::salvage(&store, &engine, base, &mut out, &mut |entries| {
        progress.at(entries, entries)
    });
    let salvaged = salvaged.map_err(|why| failed(&target, why, base))?;
    out.flush().map_err(|why| target.cannot_write(&why))?;
    drop(out);
    let is_file = target.finish()?;
    let seconds = progress.seconds();
    drop(progress);
    (done.entries, done.bytes) = (Some(salvaged.entries), Some(bytes.get()));
    let is_whole =
        salvaged.lost.is_empty() && salvaged.lost_values == 0 && salvaged.unnamed == Some(0);
    let told = salvaged.lost.iter().take(LOST_TOLD_MAX);
    if arguments.json {
        let lost = told.map(|lost| json!({ "id": lost.id, "dn": lost.dn, "why": lost.why }));
        let line = json!({
            "event": "exported", "entries": salvaged.entries, "bytes": bytes.get(),
            "seconds": seconds, "whole": is_whole, "lost": salvaged.lost.len(),
            "lost_without_trace": salvaged.unnamed, "lost_values": salvaged.lost_values, "lost_entries": lost.collect::<Vec<_>>(),
            "damage": store.damage().iter().map(crate::check::damage).collect::<Vec<_>>(),
        });
        if is_file { output::json(&line) } else { output::aside(&line) }?;
        return Ok(is_whole);
    }
    store.damage().iter().for_each(output::note);
    for lost in told {
        let dn = lost.dn.as_deref().unwrap_or("its name is not known");
        output::note(format_args!("lost: entry {}, {dn}: {}", lost.id, lost.why));
    }
    let more = match salvaged.unnamed {
        Some(0) => String::new(),
        Some(more) => format!(" and {} of which nothing is known", grouped(more)),
        None => ", and how many more there should be cannot be read".to_owned(),
    };
    if salvaged.lost_values > 0 {
        let values = grouped(salvaged.lost_values);
        output::note(format_args!("lost: {values} values of entries that are exported"));
    }
    let lost = grouped(salvaged.lost.len() as u64);
    let entries = grouped(salvaged.entries);
    if is_whole {
        output::note(format_args!("exported {entries} entries; none is lost"));
        return Ok(true);
    }
    Err(Failure::new(format!("exported {entries} entries; lost are {lost}{more}")))
}

/// Gathers what is written, and compresses it if that is wanted.
struct Packed<W> {
    out: W,
    how: Option<Compress>,
    gathered: Vec<u8>,
}

impl<W: Write> Packed<W> {
    fn new(out: W, how: Option<Compress>) -> Packed<W> {
        Packed { out, how, gathered: Vec::with_capacity(BUFFER_BYTES) }
    }
}

impl<W: Write> Write for Packed<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.gathered.extend_from_slice(bytes);
        if self.gathered.len() >= BUFFER_BYTES {
            self.flush()?;
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        match self.how {
            None => self.out.write_all(&self.gathered)?,
            Some(how) => {
                let packed = how.part(&self.gathered).map_err(io::Error::other)?;
                self.out.write_all(&packed)?;
            }
        }
        self.gathered.clear();
        self.out.flush()
    }
}
