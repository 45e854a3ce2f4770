//! `<exec>`: what another program says.

use crate::error::MakeError;
use crate::limits::EXEC_BYTES_MAX;
use std::io::Read;
use std::process::{Command, Stdio};

/// Runs a program and returns what it writes, without line ends.
pub(crate) fn output(command: &[String]) -> Result<Vec<u8>, MakeError> {
    let failed = |why: String| MakeError::Exec { command: command.join(","), why };
    let (program, arguments) = command.split_first().unwrap_or((const { &String::new() }, &[]));
    let mut child = Command::new(program)
        .args(arguments)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .map_err(|why| failed(format!("cannot start it: {why}")))?;
    let mut said = Vec::new();
    let read = match child.stdout.take() {
        Some(out) => out.take(EXEC_BYTES_MAX).read_to_end(&mut said),
        None => Ok(0),
    };
    let ended = child.wait().map_err(|why| failed(why.to_string()))?;
    read.map_err(|why| failed(why.to_string()))?;
    if !ended.success() {
        return Err(failed(format!("it ended with {ended}")));
    }
    said.retain(|byte| !b"\r\n".contains(byte));
    Ok(said)
}
