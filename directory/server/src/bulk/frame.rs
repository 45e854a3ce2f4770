//! The frame of an export: a head that says what the file is and which definitions its entries need, and
//! an end with a count and a checksum.
//!
//! ```text
//! # keyway: export 1
//! # keyway: attributeTypes: ( 1.2.3 NAME 'shoeSize' ... )
//!
//! dn: dc=example
//! ...
//!
//! # keyway: end, entries 12, sha-256 5f70...
//! ```
//!
//! All of the frame is comments (RFC 2849), which other programs skip. There is no `version: 1`, for which
//! slapadd refuses a file. The checksum is that of every byte
//! before its line. Exports can be written one after the other into one file.

use super::error::ExportError;
use crate::failure::Failure;
use keyway_engine::{Algorithm, Engine, Stream};
use std::fmt::Write as _;
use std::io::Write;

pub(super) const PREFIX: &str = "# keyway: ";
pub(super) const EXPORT: &str = "# keyway: export ";
pub(super) const END: &str = "# keyway: end";
/// The form of the frame that this program writes.
pub(super) const FORM: &str = "1";
const DIGEST_BYTES: usize = 32;

/// Writes an export into its frame.
pub(super) struct Framed<'o> {
    out: &'o mut dyn Write,
    hash: Stream,
}

impl<'o> Framed<'o> {
    /// Writes the head; `definitions` are lines such as `attributeTypes: ( ... )`.
    ///
    /// # Errors
    /// The output's; the engine's.
    pub fn begin(
        out: &'o mut dyn Write,
        engine: &Engine,
        definitions: &str,
    ) -> Result<Self, ExportError> {
        let mut framed = Framed { out, hash: stream(engine)? };
        let mut head = format!("{EXPORT}{FORM}\n");
        definitions.lines().for_each(|line| {
            // Writing into a string does not fail.
            let _ = writeln!(head, "{PREFIX}{line}");
        });
        head.push('\n');
        framed.write(head.as_bytes())?;
        Ok(framed)
    }

    /// Writes lines of entries and comments.
    ///
    /// # Errors
    /// As [`Framed::begin`].
    pub fn write(&mut self, bytes: &[u8]) -> Result<(), ExportError> {
        self.hash.update(bytes).map_err(Failure::from)?;
        Ok(self.out.write_all(bytes)?)
    }

    /// Writes the end.
    ///
    /// # Errors
    /// As [`Framed::begin`].
    pub fn end(self, entries: u64) -> Result<(), ExportError> {
        let line = end_line(entries, &digest(self.hash)?);
        Ok(self.out.write_all(line.as_bytes())?)
    }
}

pub(super) fn stream(engine: &Engine) -> Result<Stream, Failure> {
    Ok(engine.stream(Algorithm::Sha256)?)
}

pub(super) fn digest(hash: Stream) -> Result<[u8; DIGEST_BYTES], Failure> {
    let mut digest = [0; DIGEST_BYTES];
    hash.finish(&mut digest)?;
    Ok(digest)
}

pub(super) fn end_line(entries: u64, digest: &[u8; DIGEST_BYTES]) -> String {
    let mut line = format!("{END}, entries {entries}, sha-256 ");
    digest.iter().for_each(|byte| {
        // Writing into a string does not fail.
        let _ = write!(line, "{byte:02x}");
    });
    line.push('\n');
    line
}
