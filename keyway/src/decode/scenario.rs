//! A scenario that is made of what is told, and written as files at the end.

use super::{Printed, create};
use keyway_decode::say::Scenario;
use keyway_decode::view::{Printer, View};
use keyway_decode::{Note, Operation, Query};
use keyway_host::failure::Failure;
use keyway_host::output;
use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

/// A scenario that one thread makes and another writes.
#[derive(Clone)]
pub struct Recording {
    scenario: Arc<Mutex<Scenario>>,
    folder: PathBuf,
}

impl Recording {
    /// One whose files go into this folder.
    ///
    /// # Errors
    /// If none was named, or it cannot be made.
    pub fn new(into: Option<&Path>) -> Result<Self, Failure> {
        let Some(folder) = into else {
            return Err(Failure::usage("--as scenario makes files: name a folder, --into DIR"));
        };
        fs::create_dir_all(folder).map_err(|why| Failure::system("make", folder, &why))?;
        Ok(Recording { scenario: Arc::default(), folder: folder.to_owned() })
    }

    /// A printer that records the operations that a query means.
    pub fn printer(&self, filter: Option<Query>) -> Printed {
        let view: Box<dyn View + Send> = Box::new(self.clone());
        Printer::new(view, filter, Box::new(io::sink()))
    }

    /// Writes the files.
    ///
    /// # Errors
    /// If one cannot be written, or would take the place of one of these captures.
    pub fn write(&self, captures: &[PathBuf]) -> Result<(), Failure> {
        let files = self.scenario.lock().unwrap_or_else(PoisonError::into_inner).files();
        for (name, text) in &files {
            let path = self.folder.join(name);
            let written = create(&path, captures)?.write_all(text.as_bytes());
            written.map_err(|why| Failure::system("write", &path, &why))?;
        }
        output::text(format_args!(
            "{} and {} files of values",
            self.folder.join("scenario.toml").display(),
            files.len() - 1
        ))
    }
}

impl View for Recording {
    fn operation(&mut self, operation: &Operation<'_>, out: &mut Vec<u8>) {
        self.scenario.lock().unwrap_or_else(PoisonError::into_inner).operation(operation, out);
    }

    fn note(&mut self, note: &Note<'_>, out: &mut Vec<u8>) {
        self.scenario.lock().unwrap_or_else(PoisonError::into_inner).note(note, out);
    }
}
