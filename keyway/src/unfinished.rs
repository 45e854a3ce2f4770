//! The mark that a data folder is being filled: what a killed fill leaves behind.

use crate::data::{Folder, name};
use crate::failure::Failure;
use crate::moment::Moment;
use crate::output;
use serde::{Deserialize, Serialize};

/// Something that was begun and did not end.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Unfinished {
    /// What was being put in.
    pub source: Source,
    /// Whether the store was made for it: then nothing else is in it, and nobody was ever served
    /// from it.
    pub fresh: bool,
    /// When it began (RFC 3339, UTC).
    pub since: String,
}

/// What entries come from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Source {
    /// The sample.
    Sample,
    /// An LDIF file, or `-`.
    Import(String),
}

impl Unfinished {
    /// Marks the folder, durably, before the first entry goes in.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn begin(folder: &Folder, source: Source, fresh: bool, now: Moment) -> Result<(), Failure> {
        let mark = Unfinished { source, fresh, since: now.to_string() };
        let text = serde_json::to_string(&mark).map_err(Failure::new)?;
        folder.write(name::UNFINISHED, format!("{text}\n").as_bytes())
    }

    /// What to tell somebody who cannot go on because of it.
    pub fn refusal(&self, folder: &Folder) -> Failure {
        let (folder_shown, since) = (folder.path().display(), &self.since);
        let data = output::shell(&folder.path().to_string_lossy());
        let file = match &self.source {
            Source::Sample => {
                return Failure::new(format!(
                    "the sample in {folder_shown}, begun {since}, was not finished; keyway up --data \
                     {data} makes it anew"
                ));
            }
            Source::Import(file) => file,
        };
        let shown = output::shell(file);
        Failure::new(if self.fresh {
            format!(
                "the import of {file} into {folder_shown}, begun {since}, was not finished; start \
                 it over with: keyway up --import {shown} --data {data} (or keyway directory import)"
            )
        } else {
            format!(
                "the import of {file} into {folder_shown}, begun {since}, was not finished; go on \
                 with: keyway directory import --continue {shown} --data {data} (what is in is \
                 reported as existing), or remove {} to keep what came in",
                folder.file(name::UNFINISHED).display()
            )
        })
    }

    /// Takes the mark away.
    ///
    /// # Errors
    /// If the system refuses.
    pub fn end(folder: &Folder) -> Result<(), Failure> {
        folder.remove(name::UNFINISHED)
    }

    /// The mark of a folder, if it has one.
    ///
    /// # Errors
    /// If it cannot be read, or is not a mark of ours.
    pub fn of(folder: &Folder) -> Result<Option<Unfinished>, Failure> {
        if !folder.has(name::UNFINISHED) {
            return Ok(None);
        }
        let text = folder.read(name::UNFINISHED)?;
        serde_json::from_str(&text).map(Some).map_err(|_| {
            let path = folder.file(name::UNFINISHED);
            Failure::new(format!(
                "{} is not what Keyway writes there; remove it if all that was to be imported is in",
                path.display()
            ))
        })
    }
}
