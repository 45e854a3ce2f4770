//! Names of the files of a repository.

use crate::limits::NAME_BYTES;
use keyway_host::timestamp::Timestamp;
use std::fmt;
use std::path::PathBuf;

/// The header, and its copy, which is read if the header is damaged.
pub(crate) const HEADER: &str = "keyway-backup";
/// See [`HEADER`].
pub(crate) const COPY: &str = "keyway-backup.copy";
/// The pieces of files, in 256 folders.
pub(crate) const CHUNKS: &str = "chunks";
/// A file for each backup.
pub(crate) const MANIFESTS: &str = "manifests";
/// A folder for each history of a store, with pieces of its feed.
pub const SEGMENTS: &str = "segments";
/// Files until they are whole; only the holder of the [`LOCK`] has any.
pub(crate) const DRAFTS: &str = "drafts";
/// Damaged files that were moved out of the way.
pub(crate) const DAMAGED: &str = "damaged";
/// The file whose lock a writer has.
pub(crate) const LOCK: &str = "lock";
/// The file whose lock readers share, and one that removes has alone.
pub(crate) const READERS: &str = "lock.readers";
/// The file whose lock the process has that stores a piece of the feed.
pub(crate) const SEGMENTS_LOCK: &str = "lock.segments";
/// The newest backup.
pub(crate) const LATEST: &str = "latest";

/// Bytes as lower-case hexadecimal digits.
pub(crate) fn hex(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let digit = |nibble: u8| char::from(DIGITS[usize::from(nibble & 15)]);
    bytes.iter().flat_map(|byte| [digit(byte >> 4), digit(*byte)]).collect()
}

/// The reverse of [`hex`], of exactly `N` bytes.
pub(crate) fn from_hex<const N: usize>(text: &str) -> Option<[u8; N]> {
    let digit = |digit: u8| match digit {
        b'0'..=b'9' => Some(digit - b'0'),
        b'a'..=b'f' => Some(digit - b'a' + 10),
        _ => None,
    };
    let mut bytes = [0; N];
    if text.len() != 2 * N {
        return None;
    }
    for (byte, pair) in bytes.iter_mut().zip(text.as_bytes().chunks_exact(2)) {
        *byte = digit(pair[0])? << 4 | digit(pair[1])?;
    }
    Some(bytes)
}

/// A chunk's name: a keyed hash of its content.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Name(pub [u8; NAME_BYTES]);

impl Name {
    /// Which of the 256 folders it is in.
    pub(crate) fn folder(&self) -> u8 {
        self.0[0]
    }

    /// Its file, below the repository's folder.
    pub(crate) fn path(&self) -> PathBuf {
        let name = hex(&self.0);
        PathBuf::from_iter([CHUNKS, &name[..2], &name])
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&hex(&self.0))
    }
}

impl fmt::Debug for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// A backup's name, `NUMBER-TIME`: `00000042-20260131T235959Z`.
///
/// Numbers count upwards and are not given again while the newest backup is there, so names sort in the order
/// in which backups were made, also where a clock was set back in between.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BackupName {
    /// How many-th backup it is.
    pub number: u32,
    /// The time, in the name's form.
    time: String,
}

/// Digits of a backup's number.
const NUMBER_DIGITS: usize = 8;

impl BackupName {
    /// The name of the backup after these, made at this time.
    pub(crate) fn after(newest: Option<&BackupName>, now: Timestamp) -> Option<BackupName> {
        let number = newest.map_or(1, |newest| newest.number + 1);
        // RFC 3339 without what a file's name had better not have.
        let time = now.to_string().replace(['-', ':'], "");
        // No name is given that would not be found again.
        BackupName::parse(&BackupName { number, time }.to_string())
    }

    /// Reads a name.
    pub fn parse(text: &str) -> Option<BackupName> {
        let (number, time) = text.split_once('-')?;
        let is_number = |digits: &str| digits.bytes().all(|digit| digit.is_ascii_digit());
        let (date, clock) = time.strip_suffix('Z')?.split_once('T')?;
        let fits = number.len() == NUMBER_DIGITS
            && date.len() == 8
            && clock.len() == 6
            && [number, date, clock].into_iter().all(is_number);
        let number = number.parse().ok().filter(|_| fits)?;
        Some(BackupName { number, time: time.to_owned() })
    }

    /// When it was begun (RFC 3339, UTC), also of one that is damaged: the name says so.
    pub fn time(&self) -> String {
        let (date, clock) = self.time.split_once('T').unwrap_or_default();
        let part = |text: &str, at: usize| text.get(at..at + 2).unwrap_or_default().to_owned();
        let year = date.get(..4).unwrap_or_default();
        let [month, day] = [4, 6].map(|at| part(date, at));
        let [hour, minute, second] = [0, 2, 4].map(|at| part(clock, at));
        format!("{year}-{month}-{day}T{hour}:{minute}:{second}Z")
    }
}

impl fmt::Display for BackupName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:0NUMBER_DIGITS$}-{}", self.number, self.time)
    }
}

/// A piece of the feed of one history: the changes at positions `first` to `last`, both among them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Segment {
    /// The store's incarnation.
    pub history: [u8; 16],
    /// The position of its first change.
    pub first: u64,
    /// The position of its last change.
    pub last: u64,
}

impl Segment {
    /// Its file's name, in the folder of its history.
    pub(crate) fn file_name(&self) -> String {
        format!("{:020}-{:020}", self.first, self.last)
    }

    /// Its file, below the repository's folder.
    pub(crate) fn path(&self) -> PathBuf {
        PathBuf::from_iter([SEGMENTS, &hex(&self.history), &self.file_name()])
    }

    /// Reads the name of a file in the folder of a history.
    pub fn parse(history: [u8; 16], name: &str) -> Option<Segment> {
        let (first, last) = name.split_once('-')?;
        let position = |digits: &str| digits.parse::<u64>().ok();
        let segment = Segment { history, first: position(first)?, last: position(last)? };
        (segment.file_name() == name && segment.first <= segment.last).then_some(segment)
    }

    pub(crate) fn label(&self) -> [u8; 32] {
        let mut label = [0; 32];
        label[..16].copy_from_slice(&self.history);
        label[16..24].copy_from_slice(&self.first.to_be_bytes());
        label[24..].copy_from_slice(&self.last.to_be_bytes());
        label
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_says_when_its_backup_was_begun() {
        let name = BackupName::parse("00000042-20260131T235958Z").unwrap();
        assert_eq!(name.time(), "2026-01-31T23:59:58Z");
    }
}
