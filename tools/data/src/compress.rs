//! Compressed output. Each part is a whole gzip member or zstd frame, which decompressors read one
//! after the other, so that threads can compress and the bytes do not depend on how many there are.

use crate::error::MakeError;
use flate2::{Compression, write::GzEncoder};
use std::io::{self, Write};

/// How output is compressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Compress {
    /// RFC 1952.
    Gzip,
    /// RFC 8878.
    Zstd,
}

const ZSTD_LEVEL: i32 = 3;

impl Compress {
    /// Compresses a part.
    ///
    /// # Errors
    /// If the library fails.
    pub fn part(self, plain: &[u8]) -> Result<Vec<u8>, MakeError> {
        if plain.is_empty() {
            return Ok(Vec::new());
        }
        match self {
            Compress::Gzip => {
                let mut encoder =
                    GzEncoder::new(Vec::with_capacity(plain.len() / 4), Compression::fast());
                encoder.write_all(plain).map_err(MakeError::Compress)?;
                encoder.finish().map_err(MakeError::Compress)
            }
            Compress::Zstd => {
                let mut packed = Vec::with_capacity(zstd_safe::compress_bound(plain.len()));
                match zstd_safe::compress(&mut packed, plain, ZSTD_LEVEL) {
                    Ok(_) => Ok(packed),
                    Err(code) => Err(MakeError::Compress(io::Error::other(
                        zstd_safe::get_error_name(code).to_owned(),
                    ))),
                }
            }
        }
    }
}
