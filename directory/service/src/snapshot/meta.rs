//! What a snapshot says of itself.

use crate::plain_file;
use keyway_folder::data::{self, StoreId};
use keyway_host::failure::Failure;
use keyway_host::timestamp::Timestamp;
use keyway_store::Snapshot;
use rustix::fs::OFlags;
use serde::{Deserialize, Serialize};
use std::fs::OpenOptions;
use std::io::{self, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

/// The file that it is in.
const FILE: &str = "meta.json";
/// More bytes than it ever has.
const BYTES_MAX: u64 = 1 << 16;

/// The state that a snapshot holds.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Meta {
    /// When it was made (RFC 3339, UTC).
    pub time: String,
    /// The store's incarnation, in hexadecimal digits.
    pub incarnation: String,
    /// How often a store before it was restored.
    pub epoch: u64,
    /// The last commit that it has; `None` if its feed is switched off.
    pub position: Option<u64>,
    /// How many entries it has.
    pub entries: u64,
    /// The length of its data file in bytes, holes counted.
    pub length: u64,
    /// The version of the program that made it.
    pub version: String,
}

impl Meta {
    /// That of a state.
    ///
    /// # Errors
    /// If the store cannot be read.
    pub fn of(snapshot: &Snapshot, now: Timestamp) -> Result<Meta, keyway_store::Error> {
        Ok(Meta {
            time: now.to_string(),
            incarnation: data::shown(snapshot.incarnation()),
            epoch: snapshot.epoch()?,
            position: snapshot.feed_head()?.map(|head| head.position),
            entries: snapshot.entries()?,
            length: snapshot.length(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
        })
    }

    /// The store's incarnation.
    ///
    /// # Errors
    /// If it is none.
    pub fn store(&self) -> Result<StoreId, Failure> {
        let number = u128::from_str_radix(&self.incarnation, 16);
        let number = number.map_err(|_| Failure::new("a snapshot names no store"))?;
        Ok(number.to_be_bytes())
    }

    /// Reads that of a snapshot's folder; `None` if it has none.
    ///
    /// # Errors
    /// If the system refuses, or it is none that this version knows.
    pub fn read(folder: &Path) -> Result<Option<Meta>, Failure> {
        let path = folder.join(FILE);
        let Some((file, _)) = plain_file::open(&path)? else { return Ok(None) };
        let mut text = String::new();
        let read = file.take(BYTES_MAX).read_to_string(&mut text);
        read.map_err(|why| Failure::system("read", &path, &why))?;
        let no_meta = |why| Failure::new(format!("{FILE} is none that this version knows: {why}"));
        serde_json::from_str(&text).map(Some).map_err(no_meta)
    }

    /// Writes it, durably but for its name.
    ///
    /// # Errors
    /// If the system refuses.
    pub fn write(&self, folder: &Path) -> Result<(), Failure> {
        let path = folder.join(FILE);
        let written = (|| {
            let mut options = OpenOptions::new();
            options.write(true).create_new(true).mode(0o600);
            options.custom_flags(OFlags::NOFOLLOW.bits() as i32);
            let mut file = options.open(&path)?;
            let text = serde_json::to_string_pretty(self).map_err(io::Error::other)?;
            file.write_all(format!("{text}\n").as_bytes())?;
            file.sync_all()
        })();
        written.map_err(|why| Failure::system("write", &path, &why))
    }
}
