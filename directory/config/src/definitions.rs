//! Files of definitions: those in the data folder, and those that are to get there.

use crate::limits::{SCHEMA_FILES_MAX, SCHEMA_WARNINGS_SAID_MAX};
use keyway_folder::data::{self, Folder, name};
use keyway_host::failure::Failure;
use keyway_host::output;
use keyway_schema::SourceFile;
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

/// How the files in the folder end.
const ENDINGS: [&str; 2] = ["schema", "ldif"];

/// The files in the schema folder of a data folder, by name. There may be none.
///
/// # Errors
/// If one cannot be read, or there are too many.
pub fn files(folder: &Path) -> Result<Vec<SourceFile>, Failure> {
    let folder = folder.join(name::SCHEMA);
    let unreadable = |why| Failure::system("read the schema's folder", &folder, &why);
    let entries = match fs::read_dir(&folder) {
        Err(why) if why.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries.map_err(unreadable)?,
    };
    let mut paths = Vec::new();
    for entry in entries {
        let path = entry.map_err(unreadable)?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        if is_definitions(&path) && !name.starts_with('.') {
            paths.push(path);
        }
    }
    if paths.len() > SCHEMA_FILES_MAX {
        let folder = folder.display();
        return Err(Failure::new(format!("{folder} has more than {SCHEMA_FILES_MAX} files")));
    }
    paths.sort_unstable();
    paths.iter().map(|path| read(path, path)).collect()
}

fn is_definitions(path: &Path) -> bool {
    path.extension().is_some_and(|ending| ENDINGS.iter().any(|known| ending == *known))
}

/// Reads a file that is called `shown` from then on.
///
/// # Errors
/// If it cannot be read, or is too long.
pub fn read(path: &Path, shown: &Path) -> Result<SourceFile, Failure> {
    let bytes = data::read_bytes(path)?;
    Ok(SourceFile { name: shown.display().to_string(), bytes: bytes.into() })
}

/// Files that were named on the command line, as they will be in the data folder.
pub struct Given {
    files: Vec<(PathBuf, SourceFile)>,
}

impl Given {
    /// None.
    pub const fn none() -> Given {
        Given { files: Vec::new() }
    }

    /// Reads them; `folder` is where they will go.
    ///
    /// # Errors
    /// If one cannot be read, or the folder has another one of its name.
    pub fn read(paths: &[PathBuf], folder: &Path) -> Result<Given, Failure> {
        let folder = std::path::absolute(folder)
            .map_err(|why| Failure::system("find the data folder", folder, &why))?;
        let mut files: Vec<(PathBuf, SourceFile)> = Vec::new();
        for path in paths {
            let named = named(path)?;
            let place = folder.join(name::SCHEMA).join(&named);
            let file = read(path, &place)?;
            let other = |why: &str| {
                let (path, place) = (path.display(), place.display());
                Err(Failure::new(format!("{path}: {place} {why}; give it another name")))
            };
            if files.iter().any(|(known, known_file)| *known == named && *known_file != file) {
                return other("is the place of another file that is given");
            }
            if place.exists() && *data::read_bytes(&place)? != *file.bytes {
                return other("is there already, and has something else in it");
            }
            files.push((named, file));
        }
        Ok(Given { files })
    }

    /// The files of the folder together with these.
    pub fn among(&self, mut files: Vec<SourceFile>) -> Vec<SourceFile> {
        for (_, given) in &self.files {
            if !files.iter().any(|file| file.name == given.name) {
                files.push(given.clone());
            }
        }
        files
    }

    /// Copies them into the data folder, each whole or not at all.
    ///
    /// # Errors
    /// If the system refuses.
    pub fn put(&self, folder: &Folder) -> Result<(), Failure> {
        if !self.files.is_empty() {
            folder.make_folder(name::SCHEMA)?;
        }
        for (named, file) in &self.files {
            let place = Path::new(name::SCHEMA).join(named);
            let place = place.to_string_lossy();
            if !folder.has(&place) {
                folder.write(&place, &file.bytes)?;
            }
        }
        Ok(())
    }
}

/// A file's name in the folder: its own, with an ending by which it is found there.
fn named(path: &Path) -> Result<PathBuf, Failure> {
    let name = path.file_name().and_then(|name| name.to_str());
    let Some(name) = name else {
        return Err(Failure::new(format!("{} is not the name of a file", path.display())));
    };
    let name = name.trim_start_matches('.');
    Ok(match is_definitions(Path::new(name)) {
        true => name.into(),
        // Which of the forms it has, its text says.
        false => format!("{name}.schema").into(),
    })
}

/// Says warnings about definitions, if they are not too many.
pub fn say(warnings: &[String]) {
    for warning in warnings.iter().take(SCHEMA_WARNINGS_SAID_MAX) {
        output::note(format_args!("warning: {warning}"));
    }
    let more = warnings.len().saturating_sub(SCHEMA_WARNINGS_SAID_MAX);
    if more > 0 {
        output::note(format_args!("warning: {more} more of the kind"));
    }
}
