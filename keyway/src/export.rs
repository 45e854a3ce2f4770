//! `keyway directory export`.

use crate::cli::Export;
use crate::data::{Folder, name};
use crate::failure::{Failure, describe};
use crate::instance::{self, what_to_do};
use crate::offline::{self, Offline};
use crate::output::{self, grouped};
use crate::progress::Progress;
use keyway_server::ExportError;
use keyway_store::Salvage;
use serde_json::json;
use std::cell::Cell;
use std::fs::{self, File, OpenOptions};
use std::io::{self, BufWriter, ErrorKind, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

/// Bytes that are gathered before the system is called.
const BUFFER_BYTES: usize = 256 << 10;

/// Entries that are told one by one; the rest are counted. The LDIF names all.
const LOST_TOLD_MAX: usize = 1_000;

/// Writes the entries of a directory as LDIF. Returns whether none is lost.
///
/// # Errors
/// If there is none, it is in use or damaged, or the output cannot be written.
pub fn run(arguments: &Export) -> Result<bool, Failure> {
    let folder = offline::folder(&arguments.data.folder)?;
    if arguments.go_on {
        return salvage(arguments, &folder);
    }
    if let Some(damage) = offline::inspect(&folder)?.first.first() {
        let advice = what_to_do(&folder);
        return Err(Failure::new(format!("the store is damaged: {damage}; {advice}")));
    }
    let Offline { instance, folder: _folder, .. } = offline::open_in(folder)?;
    let target = Target::open(&arguments.file)?;
    let progress = Progress::entries("exporting", instance.entry_count()?);
    let bytes = Cell::new(0);
    let mut out =
        BufWriter::with_capacity(BUFFER_BYTES, Counted { out: target.writer()?, bytes: &bytes });
    let exported = instance
        .directory
        .export(arguments.base.as_deref(), &mut out, &mut |entries| progress.at(entries, entries));
    let entries = exported.map_err(|why| target.failed(why, arguments.base.as_deref()))?;
    out.flush().map_err(|why| target.cannot_write(&why))?;
    drop(out);
    let is_file = target.finish()?;
    let seconds = progress.seconds();
    drop(progress);
    instance.close()?;
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

/// The same for a store that is damaged: what can be read.
fn salvage(arguments: &Export, folder: &Folder) -> Result<bool, Failure> {
    let store = Salvage::open(&folder.file(name::STORE))
        .map_err(|why| instance::cannot_open(folder, &why))?;
    let target = Target::open(&arguments.file)?;
    let progress = Progress::entries("exporting", store.expected().unwrap_or_default());
    let bytes = Cell::new(0);
    let mut out =
        BufWriter::with_capacity(BUFFER_BYTES, Counted { out: target.writer()?, bytes: &bytes });
    let base = arguments.base.as_deref();
    let salvaged = keyway_server::salvage(&store, base, &mut out, &mut |entries| {
        progress.at(entries, entries)
    });
    let salvaged = salvaged.map_err(|why| target.failed(why, base))?;
    out.flush().map_err(|why| target.cannot_write(&why))?;
    drop(out);
    let is_file = target.finish()?;
    let seconds = progress.seconds();
    drop(progress);
    let is_whole = salvaged.lost.is_empty() && salvaged.unnamed == Some(0);
    let told = salvaged.lost.iter().take(LOST_TOLD_MAX);
    if arguments.json {
        let lost = told.map(|lost| json!({ "id": lost.id, "dn": lost.dn, "why": lost.why }));
        let line = json!({
            "event": "exported", "entries": salvaged.entries, "bytes": bytes.get(),
            "seconds": seconds, "whole": is_whole, "lost": salvaged.lost.len(),
            "lost_without_trace": salvaged.unnamed, "lost_entries": lost.collect::<Vec<_>>(),
            "damage": store.damage().iter().map(output::damage).collect::<Vec<_>>(),
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
    let lost = grouped(salvaged.lost.len() as u64);
    let entries = grouped(salvaged.entries);
    if is_whole {
        output::note(format_args!("exported {entries} entries; none is lost"));
        return Ok(true);
    }
    Err(Failure::new(format!("exported {entries} entries; lost are {lost}{more}")))
}

/// Where an export goes.
enum Target {
    Standard,
    /// Something that is there and is no file to be replaced: a pipe, a device.
    Special(PathBuf),
    /// A file, which is put in place when it is whole.
    File {
        path: PathBuf,
        draft: PathBuf,
    },
}

impl Target {
    fn open(path: &Path) -> Result<Target, Failure> {
        if path.as_os_str() == "-" {
            return Ok(Target::Standard);
        }
        match fs::metadata(path) {
            Ok(metadata) if metadata.is_dir() => {
                Err(Failure::system("write", path, &ErrorKind::IsADirectory.into()))
            }
            Ok(metadata) if !metadata.is_file() => Ok(Target::Special(path.to_owned())),
            _ => {
                let mut draft = path.as_os_str().to_owned();
                draft.push(".new");
                Ok(Target::File { path: path.to_owned(), draft: draft.into() })
            }
        }
    }

    fn writer(&self) -> Result<Box<dyn Write>, Failure> {
        let mut options = OpenOptions::new();
        // It has the passwords' hashes in it.
        options.write(true).mode(0o600);
        let opened = match self {
            Target::Standard => return Ok(Box::new(io::stdout())),
            Target::Special(path) => options.open(path),
            Target::File { draft, .. } => match fs::remove_file(draft) {
                Err(why) if why.kind() != ErrorKind::NotFound => Err(why),
                _ => options.create_new(true).open(draft),
            },
        };
        opened.map(|file| Box::new(file) as Box<dyn Write>).map_err(|why| self.cannot_write(&why))
    }

    fn cannot_write(&self, why: &io::Error) -> Failure {
        match self {
            Target::Standard => Failure::output(why),
            Target::Special(path) => Failure::system("write", path, why),
            Target::File { path, draft } => {
                // What could not be written is not worth a second complaint.
                let _ = fs::remove_file(draft);
                Failure::system("write", path, why)
            }
        }
    }

    fn failed(&self, why: ExportError, base: Option<&str>) -> Failure {
        match why {
            ExportError::Output(why) => self.cannot_write(&why),
            ExportError::Directory(why) => {
                if let Target::File { draft, .. } = self {
                    let _ = fs::remove_file(draft);
                }
                Failure::new(match base {
                    Some(base) => format!("cannot export {base:?}: {}", describe(&why)),
                    None => format!("cannot export: {}", describe(&why)),
                })
            }
        }
    }

    /// Puts a file in place. Says whether it was one.
    fn finish(&self) -> Result<bool, Failure> {
        let Target::File { path, draft } = self else { return Ok(false) };
        File::open(draft)
            .and_then(|file| file.sync_all())
            .and_then(|()| fs::rename(draft, path))
            .and_then(|()| {
                File::open(
                    path.parent().filter(|it| !it.as_os_str().is_empty()).unwrap_or(".".as_ref()),
                )
            })
            .and_then(|folder| folder.sync_all())
            .map_err(|why| self.cannot_write(&why))?;
        Ok(true)
    }
}

/// Counts the bytes that go through.
struct Counted<'a> {
    out: Box<dyn Write>,
    bytes: &'a Cell<u64>,
}

impl Write for Counted<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.out.write(bytes)?;
        self.bytes.set(self.bytes.get() + written as u64);
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}
