//! `[log]` of the configuration, and the logs it is about.

use keyway_folder::data::name;
use keyway_server::log::{Access, LogKind};
use std::path::PathBuf;

/// `[log]` of the configuration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// Where lines go.
    pub to: To,
    /// Where the files are; below the data folder unless it begins at the root.
    pub folder: PathBuf,
    /// The mode of the files.
    pub mode: u32,
    /// How a line looks.
    pub form: Form,
    /// Socket of the journal.
    pub journal: PathBuf,
    /// Which operations are written down.
    pub access: Access,
    /// One in so many of those that went well is, and the others are counted.
    pub access_one_in: u32,
    /// Whether changes are.
    pub audit: bool,
    /// The handling of lines that come faster than they can be written.
    pub when_full: WhenFull,
    /// Size at which a file is put aside, in bytes.
    pub file_bytes_max: u64,
    /// How many files that were put aside are kept, of each log.
    pub files_kept: u32,
}

/// Where lines go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum To {
    /// A file for each log.
    Files,
    /// systemd's journal, with all fields.
    Journal,
    /// All of them to standard error: for a container.
    Stderr,
    /// Nowhere.
    Nowhere,
}

/// The form of lines.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Form {
    /// `TIME LOG EVENT name=value ...`
    #[default]
    Text,
    /// One JSON object a line.
    Json,
    /// An entry of the journal, whatever the configuration says.
    Journal,
}

/// The handling of lines that come faster than they can be written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum WhenFull {
    /// They are counted, and a line says how many they were.
    #[default]
    Drop,
    /// The thread that has a line waits.
    Wait,
}

impl Default for Settings {
    fn default() -> Self {
        Settings {
            to: To::Files,
            folder: name::LOG.into(),
            mode: 0o600,
            form: Form::Text,
            journal: "/run/systemd/journal/socket".into(),
            access: Access::Refused,
            access_one_in: 1,
            audit: true,
            when_full: WhenFull::Drop,
            file_bytes_max: 64 << 20,
            files_kept: 10,
        }
    }
}

impl Settings {
    /// The form of lines where these go.
    pub fn line_form(&self) -> Form {
        if self.to == To::Journal { Form::Journal } else { self.form }
    }
}

/// Reads a mode: who else may read the files.
///
/// # Errors
/// A sentence that says what is wrong.
pub fn mode(text: &str) -> Result<u32, String> {
    match u32::from_str_radix(text, 8) {
        Ok(mode @ (0o600 | 0o640 | 0o644)) => Ok(mode),
        _ => Err(format!("\"{text}\" is not one of \"0600\", \"0640\" and \"0644\"")),
    }
}

/// The mode of a folder of files with a mode: a user who may read these may look into it.
pub fn folder_mode(mode: u32) -> u32 {
    0o700 | (mode & 0o044) | (mode & 0o044) >> 2
}

/// The three logs, in the order of their files.
pub const LOG_NAMES: [&str; 3] = ["access", "error", "audit"];

/// The place of a log among the three.
pub fn place(kind: LogKind) -> usize {
    match kind {
        LogKind::Access => 0,
        LogKind::Error(_) => 1,
        LogKind::Audit => 2,
    }
}
