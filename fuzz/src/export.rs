//! Exports with their frame, and files that may be compressed, in pieces as they come from a disk.

use keyway_engine::Engine;
use keyway_host::decompress::Decompress;
use keyway_server::{Verdict, Verifying};
use std::io::Read;
use std::sync::OnceLock;

/// Bytes that an input may unpack to here: a few of them can be many.
const UNPACKED_BYTES_MAX: u64 = 1 << 20;

/// Reads the bytes at once and in pieces whose size the first byte gives, which must not matter: neither
/// to what is handed out nor to what is said of it. A strict reader fails where there is damage, and only
/// there.
pub fn export(data: &[u8]) {
    static ENGINE: OnceLock<Engine> = OnceLock::new();
    let engine = ENGINE.get_or_init(keyway_drivers::engine);
    let Some((piece, packed)) = data.split_first() else { return };
    let Ok(plain) = Decompress::open(packed) else { return };
    let mut text = Vec::new();
    let is_whole = plain.take(UNPACKED_BYTES_MAX).read_to_end(&mut text).is_ok();
    if is_whole && text.len() as u64 == UNPACKED_BYTES_MAX {
        return;
    }
    let read = |piece_bytes: usize, is_strict| {
        let mut verifying = Verifying::new(Pieces(&text, piece_bytes), engine, is_strict);
        let definitions = verifying.definitions().map(str::to_owned);
        let mut read = Vec::new();
        let result = definitions.and_then(|it| verifying.read_to_end(&mut read).map(|_| it));
        (read, result.ok(), verifying.verdict())
    };
    let (all, definitions, verdict) = read(text.len().max(1), false);
    assert!(all == text && definitions.is_some(), "all of it is handed out");
    let in_pieces = read(usize::from(*piece) % 16 + 1, false);
    assert_eq!((&in_pieces.0, &in_pieces.2), (&all, &verdict));
    let (read, strictly, same) = read(usize::from(*piece) + 1, true);
    assert_eq!(same, verdict);
    assert_eq!(strictly.is_none(), matches!(verdict, Verdict::Damaged(_)), "{verdict:?}");
    assert!(strictly.is_none() || read == all);
}

struct Pieces<'t>(&'t [u8], usize);

impl Read for Pieces<'_> {
    fn read(&mut self, out: &mut [u8]) -> std::io::Result<usize> {
        let length = out.len().min(self.1);
        let out = out.get_mut(..length).unwrap_or_default();
        self.0.read(out)
    }
}
