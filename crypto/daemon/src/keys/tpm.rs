//! The TPM, by tpm2-tools: only the TPM that sealed a key can unseal it.
//!
//! The blob's file: `KWYTPM2` and a zero, length of the public part (2 bytes, little-endian),
//! public part, private part. The parent of what is sealed is the primary key of the owner
//! hierarchy that the TPM makes from its seed and the template of `tpm2_createprimary`, the same
//! each time.

use super::disk;
use super::error::Error;
use crate::limits::{MASTER_KEY_BYTES, TPM_BLOB_BYTES_MAX};
use std::fs::{self, File};
use std::io::{ErrorKind, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use zeroize::Zeroizing;

const MAGIC: &[u8; 8] = b"KWYTPM2\0";
/// Most of what a tool says that is told, in bytes.
const SAID_BYTES_MAX: u64 = 512;

/// Has a secret sealed, and puts it into a new file.
pub(super) fn seal(blob: &Path, secret: &[u8]) -> Result<(), Error> {
    let work = Work::new(blob)?;
    work.create_primary()?;
    let arguments = ["-C", "primary", "-i", "-", "-u", "public", "-r", "private"];
    work.run("tpm2_create", &arguments, Some(secret))?;
    let public = read(&work.0.join("public"))?;
    let private = read(&work.0.join("private"))?;
    let length = u16::try_from(public.len()).unwrap_or(u16::MAX);
    disk::put_new(blob, &[&MAGIC[..], &length.to_le_bytes(), &public, &private].concat())
}

/// The reverse.
pub(super) fn unseal(blob: &Path) -> Result<Zeroizing<Vec<u8>>, Error> {
    let (public, private) = parts(blob, &read(blob)?)?;
    let work = Work::new(blob)?;
    work.create_primary()?;
    disk::put(&work.0.join("public"), &public)?;
    disk::put(&work.0.join("private"), &private)?;
    let arguments = ["-C", "primary", "-u", "public", "-r", "private", "-c", "secret"];
    work.run("tpm2_load", &arguments, None)?;
    work.run("tpm2_unseal", &["-c", "secret"], None)
}

fn read(path: &Path) -> Result<Zeroizing<Vec<u8>>, Error> {
    let none = || Error::system("read", path)(ErrorKind::NotFound.into());
    disk::read_any(path, TPM_BLOB_BYTES_MAX)?.ok_or_else(none)
}

/// The public and the private part of a blob.
fn parts(path: &Path, bytes: &[u8]) -> Result<(Vec<u8>, Vec<u8>), Error> {
    let split = || {
        let (length, parts) = bytes.strip_prefix(MAGIC)?.split_first_chunk()?;
        let (public, private) = parts.split_at_checked(usize::from(u16::from_le_bytes(*length)))?;
        Some((public.to_vec(), private.to_vec()))
    };
    split().ok_or_else(|| Error::damaged(path, "it is nothing that a TPM sealed for this program"))
}

/// A folder for what the tools hand to one another; nothing in it is readable without the TPM.
struct Work(PathBuf);

impl Work {
    fn new(blob: &Path) -> Result<Self, Error> {
        let mut path = blob.as_os_str().to_owned();
        path.push(".work");
        let work = Work(path.into());
        // A folder of a process that ended.
        let _ = fs::remove_dir_all(&work.0);
        disk::make_folder(&work.0)?;
        Ok(work)
    }

    fn create_primary(&self) -> Result<(), Error> {
        let arguments = ["-C", "o", "-g", "sha256", "-G", "ecc", "-c", "primary"];
        self.run("tpm2_createprimary", &arguments, None).map(drop)
    }

    /// Runs a tool and returns what it puts out. Afterwards nothing is left in the TPM: one that
    /// has no resource manager before it has room for three objects only, and all that it has are
    /// ours.
    fn run(
        &self,
        tool: &'static str,
        arguments: &[&str],
        input: Option<&[u8]>,
    ) -> Result<Zeroizing<Vec<u8>>, Error> {
        let result = self.run_once(tool, arguments, input);
        let flushed = self.run_once("tpm2_flushcontext", &["--transient-object"], None);
        let out = result?;
        flushed?;
        Ok(out)
    }

    fn run_once(
        &self,
        tool: &'static str,
        arguments: &[&str],
        input: Option<&[u8]>,
    ) -> Result<Zeroizing<Vec<u8>>, Error> {
        let failed = |why: String| Error::Tpm { tool, why };
        let system = |why: std::io::Error| match why.kind() {
            ErrorKind::NotFound => failed("it is not installed (Debian: tpm2-tools)".to_owned()),
            _ => failed(why.to_string()),
        };
        let said = self.0.join("said");
        // Into a file, so that there is one pipe to read from, and it cannot fill up unread.
        let errors = File::create(&said).map_err(Error::system("write", &said))?;
        let mut command = Command::new(tool);
        // The tools' text for people would be mistaken for their output.
        if tool != "tpm2_flushcontext" {
            command.arg("-Q");
        }
        command
            .args(arguments)
            .current_dir(&self.0)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(errors);
        let mut child = command.spawn().map_err(system)?;
        let written = match (child.stdin.take(), input) {
            (Some(mut stdin), Some(input)) => stdin.write_all(input),
            _ => Ok(()),
        };
        let mut out = Zeroizing::new(Vec::with_capacity(2 * MASTER_KEY_BYTES));
        if let Some(stdout) = child.stdout.take() {
            let most = MASTER_KEY_BYTES as u64 + 1;
            stdout.take(most).read_to_end(&mut out).map_err(system)?;
        }
        let status = child.wait().map_err(system)?;
        if !status.success() {
            let mut said_bytes = Vec::new();
            let read = File::open(&said)
                .and_then(|file| file.take(SAID_BYTES_MAX).read_to_end(&mut said_bytes));
            let said = read.map(|_| String::from_utf8_lossy(&said_bytes).trim().to_owned());
            return Err(failed(match said {
                Ok(said) if !said.is_empty() => said,
                _ => status.to_string(),
            }));
        }
        written.map_err(system)?;
        Ok(out)
    }
}

impl Drop for Work {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}
