//! Compressed output. Each part is a whole gzip member or zstd frame, which decompressors read one
//! after the other, so that threads can compress and the bytes do not depend on how many there are.

use crate::error::MakeError;
use flate2::{Compression, write::GzEncoder};
use std::io::{self, Write};
use std::path::Path;

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
    /// How a file of this name is compressed: by its extension, if that is one of a compressor.
    #[must_use]
    pub fn by_name(file: &Path) -> Option<Compress> {
        match file.extension().and_then(|it| it.to_str()) {
            Some("gz") => Some(Compress::Gzip),
            Some("zst" | "zstd") => Some(Compress::Zstd),
            _ => None,
        }
    }

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

#[cfg(test)]
mod tests {
    use super::*;
    use keyway_host::decompress::Decompress;
    use std::io::{self, Read};

    fn unpacked(packed: &[u8]) -> io::Result<Vec<u8>> {
        let mut out = Vec::new();
        // Pieces of odd sizes, so that every state is met.
        let mut reader = Decompress::open(packed)?;
        let mut piece = [0; 777];
        loop {
            match reader.read(&mut piece)? {
                0 => return Ok(out),
                read => out.extend_from_slice(&piece[..read]),
            }
        }
    }

    #[test]
    fn what_is_packed_is_unpacked_and_what_is_cut_is_an_error() {
        let parts = [vec![b'a'; 300_000], b"dn: o=x\n".repeat(2_000), b"end".to_vec()];
        let whole = parts.concat();
        assert_eq!(unpacked(&whole).unwrap(), whole);
        assert_eq!(unpacked(b"").unwrap(), b"");
        for how in [Compress::Gzip, Compress::Zstd] {
            let packed: Vec<Vec<u8>> = parts.iter().map(|part| how.part(part).unwrap()).collect();
            let ends: Vec<usize> = packed
                .iter()
                .scan(0, |end, part| {
                    *end += part.len();
                    Some(*end)
                })
                .collect();
            let packed = packed.concat();
            assert_eq!(unpacked(&packed).unwrap(), whole, "{how:?}");
            for cut in (6..packed.len()).step_by(7).filter(|cut| !ends.contains(cut)) {
                let why = unpacked(&packed[..cut]).unwrap_err();
                assert!(why.to_string().contains("file"), "{how:?} {cut}: {why}");
            }
            let mut changed = packed.clone();
            let at = changed.len() - 5;
            changed[at] ^= 1;
            assert!(unpacked(&changed).is_err() || how == Compress::Zstd);
        }
        let why = unpacked(b"\xFD7zXZ\0...").unwrap_err();
        assert!(why.to_string().contains("xz -dc"), "{why}");
    }
}
