//! What exports into a file have in common, by whichever way they are asked for.

use crate::instance::describe;
use keyway_host::atomic_file::Target;
use keyway_host::failure::Failure;
use keyway_server::ExportError;
use std::cell::Cell;
use std::io::{self, Write};

/// Why an export of a target's failed; the part of it that is there is removed.
pub fn failed(target: &Target, why: ExportError, base: Option<&str>) -> Failure {
    match why {
        ExportError::Output(why) => target.cannot_write(&why),
        ExportError::Directory(why) => {
            target.discard();
            Failure::new(match base {
                Some(base) => format!("cannot export {base:?}: {}", describe(&why)),
                None => format!("cannot export: {}", describe(&why)),
            })
        }
    }
}

/// Counts the bytes that go through.
pub struct Counted<'a> {
    out: Box<dyn Write>,
    bytes: &'a Cell<u64>,
}

impl<'a> Counted<'a> {
    /// Writes to `out`, and counts in `bytes`.
    pub fn new(out: Box<dyn Write>, bytes: &'a Cell<u64>) -> Counted<'a> {
        Counted { out, bytes }
    }
}

impl Write for Counted<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.out.write(bytes)?;
        self.bytes.set(self.bytes.get() + written as u64);
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}
