//! A scenario that is made of what is told, and written as files at the end.

use super::file::create;
use crate::say::Scenario;
use crate::view::View;
use crate::{Note, Operation};
use keyway_host::failure::Failure;
use keyway_lock::Unpoisoned;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

/// A scenario that one thread makes and another writes.
#[derive(Clone, Debug)]
pub struct Recording {
    scenario: Arc<Mutex<Scenario>>,
    folder: PathBuf,
}

impl Recording {
    /// One whose files go into this folder, which is made if it is not there.
    ///
    /// # Errors
    /// If it cannot be made.
    pub fn new(folder: &Path) -> Result<Recording, Failure> {
        fs::create_dir_all(folder).map_err(|why| Failure::system("make", folder, &why))?;
        Ok(Recording { scenario: Arc::default(), folder: folder.to_owned() })
    }

    /// Writes the files; what there is then, in words.
    ///
    /// # Errors
    /// If one cannot be written, or would take the place of one of these captures.
    pub fn write(&self, captures: &[PathBuf]) -> Result<String, Failure> {
        let files = self.scenario.lock().unpoisoned().files();
        for (name, text) in &files {
            let path = self.folder.join(name);
            let written = create(&path, captures)?.write_all(text.as_bytes());
            written.map_err(|why| Failure::system("write", &path, &why))?;
        }
        Ok(format!(
            "{} and {} files of values",
            self.folder.join("scenario.toml").display(),
            files.len() - 1
        ))
    }
}

impl View for Recording {
    fn operation(&mut self, operation: &Operation<'_>, out: &mut Vec<u8>) {
        self.scenario.lock().unpoisoned().operation(operation, out);
    }

    fn note(&mut self, note: &Note<'_>, out: &mut Vec<u8>) {
        self.scenario.lock().unpoisoned().note(note, out);
    }
}
