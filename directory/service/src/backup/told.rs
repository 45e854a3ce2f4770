//! Backups for people and for programs: one that was made, the list of a repository, the files of one, and what came of a
//! verification.

use super::create::Created;
use super::meta::Meta;
use super::place::Place;
use super::verify::Verified;
use keyway_backup::{Listed, StoredFile};
use keyway_host::failure::Failure;
use keyway_host::output::{self, grouped};
use keyway_host::timestamp::Timestamp;
use serde_json::{Value, json};

/// Says what a server lacks that is made of a backup.
pub fn lacking(lacks: &[String]) {
    for what in lacks {
        output::note(format_args!("the backup does not have {what}"));
    }
}

impl Created {
    /// Says what was made.
    ///
    /// # Errors
    /// If nothing reads it.
    pub fn say(&self, in_json: bool) -> Result<(), Failure> {
        let Created { name, meta, bytes, new_bytes, key_file } = self;
        if in_json {
            return output::json(&json!({
                "event": "backed up", "backup": name, "position": meta.position, "entries": meta.entries,
                "bytes": bytes, "new_bytes": new_bytes, "with": with(meta), "key_file": key_file, "left_out": meta.left_out,
            }));
        }
        for file in &meta.left_out {
            output::note(format_args!("not in the backup: {file}"));
        }
        output::text(format_args!(
            "backup {name}: {}, {} entries{}; {} bytes, of which {} are new",
            meta.with,
            grouped(meta.entries),
            position(meta.position),
            grouped(*bytes),
            grouped(*new_bytes)
        ))
    }
}

fn position(position: Option<u64>) -> String {
    position.map(|position| format!(", position {position}")).unwrap_or_default()
}

fn with(meta: &Meta) -> Value {
    json!({ "config": meta.with.config, "keys": meta.with.keys })
}

/// Lists a repository's backups. Returns whether none is damaged.
///
/// # Errors
/// If the repository cannot be opened, or nothing reads what is said.
pub fn list(place: &Place, in_json: bool) -> Result<bool, Failure> {
    let repository = place.open()?;
    let all = repository.backups().map_err(Failure::new)?;
    for Listed { name, manifest } in &all {
        let name = name.to_string();
        let meta = match manifest {
            Ok(manifest) => Meta::read(&name, &manifest.meta).map(|meta| (meta, manifest)),
            Err(why) => Err(Failure::new(why)),
        };
        match (meta, in_json) {
            (Ok((meta, manifest)), true) => output::json(&json!({
                "backup": name, "time": Timestamp::from_unix_s(manifest.created_unix_s).to_string(),
                "position": meta.position, "entries": meta.entries, "bytes": manifest.bytes, "with": with(&meta),
                "incarnation": meta.incarnation, "epoch": meta.epoch, "program": meta.version,
            }))?,
            (Ok((meta, manifest)), false) => output::text(format_args!(
                "{name}  {} entries{}, {} bytes: {}",
                grouped(meta.entries),
                position(meta.position),
                grouped(manifest.bytes),
                meta.with
            ))?,
            (Err(why), true) => {
                output::json(&json!({ "backup": name, "damaged": why.to_string() }))?
            }
            (Err(why), false) => output::text(format_args!("{name}  DAMAGED: {why}"))?,
        }
    }
    if all.is_empty() && !in_json {
        output::text("there is no backup yet")?;
    }
    Ok(all.iter().all(|one| one.manifest.is_ok()))
}

/// Shows a backup, and the files that it has.
///
/// # Errors
/// If there is none, it is damaged, or nothing reads what is said.
pub fn show(place: &Place, backup: &str, in_json: bool) -> Result<(), Failure> {
    let repository = place.open()?;
    let found = repository.backup(backup).map_err(Failure::new)?;
    let name = found.name().to_string();
    let (manifest, meta) = (found.manifest(), Meta::read(&name, &found.manifest().meta)?);
    let time = Timestamp::from_unix_s(manifest.created_unix_s).to_string();
    if in_json {
        let file = |file: &StoredFile| json!({ "path": file.path, "mode": format!("{:o}", file.mode), "bytes": file.bytes });
        return output::json(&json!({
            "backup": name, "time": time, "position": meta.position, "entries": meta.entries,
            "bytes": manifest.bytes, "with": with(&meta), "incarnation": meta.incarnation, "epoch": meta.epoch,
            "program": meta.version, "lacks": meta.lacks(), "files": found.files().iter().map(file).collect::<Vec<_>>(),
        }));
    }
    output::text(format_args!(
        "backup {name}, begun {time} by version {}\n{} entries{}\nstore {}, epoch {}",
        meta.version,
        grouped(meta.entries),
        position(meta.position),
        meta.incarnation,
        meta.epoch
    ))?;
    for file in found.files() {
        output::text(format_args!("{:>14}  {:o}  {}", grouped(file.bytes), file.mode, file.path))?;
    }
    lacking(&meta.lacks());
    Ok(())
}

impl Verified {
    /// Says what was found. Returns whether all is sound.
    ///
    /// # Errors
    /// If nothing reads it.
    pub fn say(&self, in_json: bool) -> Result<bool, Failure> {
        let restored = self.restored.as_ref().map(|restored| restored.backup.clone());
        if in_json {
            output::json(&json!({
                "event": "verified", "sound": self.is_sound(), "backups": self.backups, "chunks": self.chunks,
                "segments": self.segments, "bytes": self.bytes, "damage": self.damages, "gaps": self.gaps,
                "lacks": self.lacks, "restored": restored, "restore_failed": self.restore_failed,
                "set_aside": self.set_aside,
            }))?;
            return Ok(self.is_sound());
        }
        self.damages.iter().for_each(|damage| output::note(format_args!("DAMAGED: {damage}")));
        self.gaps.iter().for_each(output::note);
        lacking(&self.lacks);
        if let Some(why) = &self.restore_failed {
            output::note(format_args!("a restore failed: {why}"));
        }
        let read = format!(
            "{} backups, {} pieces, {} segments, {} bytes",
            grouped(self.backups),
            grouped(self.chunks),
            grouped(self.segments),
            grouped(self.bytes)
        );
        match self.damages.is_empty() {
            true if self.gaps.is_empty() => {
                output::text(format_args!("all is as it was written: {read}"))?
            }
            true => output::text(format_args!(
                "what is there is as it was written, and changes are missing: {read}"
            ))?,
            false => {
                let count = grouped(self.damages.len() as u64);
                output::text(format_args!("damaged at {count} places: {read}"))?;
            }
        }
        if self.set_aside > 0 {
            output::text(format_args!(
                "{} damaged files were moved to damaged/: the next backup writes anew what it still needs of them",
                grouped(self.set_aside)
            ))?;
        }
        if let Some(name) = restored {
            output::text(format_args!("backup {name} was restored, opened and checked"))?;
        }
        Ok(self.is_sound())
    }
}
