//! Peers that are C programs: compiled when the benchmark starts, asked through a pipe, so that
//! they take turns with what runs in this process.

use super::sample::{Algorithm, Case, Turn, Way};
use super::secrets::Secrets;
use std::fmt::Write as _;
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

const SHARED: &str = include_str!("peer.h");
const UNPACKED: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../target/packages/ipsec-mb");

/// Compiles a program into a folder.
///
/// # Errors
/// The first message of the compiler.
pub fn compile(folder: &Path, name: &str, source: &str, library: &str) -> Result<PathBuf, String> {
    let (file, program) = (folder.join(format!("{name}.c")), folder.join(name));
    let write = |path: &Path, text: &str| fs::write(path, text).map_err(|why| why.to_string());
    write(&folder.join("peer.h"), SHARED)?;
    write(&file, source)?;
    let mut compiler = Command::new("cc");
    compiler.args(["-O2", "-o"]).arg(&program).arg(&file);
    // The files that `cargo xtask peers` unpacked, if it did: newer than those that are installed.
    let unpacked = Path::new(UNPACKED).join("usr");
    if library == "IPSec_MB" && unpacked.exists() {
        let libraries = unpacked.join("lib/x86_64-linux-gnu");
        compiler.arg("-I").arg(unpacked.join("include")).arg("-L").arg(&libraries);
        compiler.arg(format!("-Wl,-rpath,{}", libraries.display()));
    }
    if !library.is_empty() {
        compiler.arg(format!("-l{library}"));
    }
    let output = compiler.output().map_err(|why| format!("cc: {why}"))?;
    if output.status.success() {
        return Ok(program);
    }
    let said = String::from_utf8_lossy(&output.stderr);
    Err(said.lines().find(|line| line.contains("error")).unwrap_or("cc fails").to_owned())
}

/// A peer that runs.
pub struct Program {
    version: String,
    child: Child,
    /// `None` once it is to end.
    asks: Option<ChildStdin>,
    says: BufReader<ChildStdout>,
}

impl Program {
    /// Starts it and gives it the keys of both algorithms.
    pub fn start(program: &Path, secrets: [(Algorithm, &[Secrets]); 2]) -> Result<Self, String> {
        let text = |why: std::io::Error| format!("{}: {why}", program.display());
        let mut child = Command::new(program)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .map_err(text)?;
        let (asks, says) = (child.stdin.take(), child.stdout.take());
        let says = BufReader::new(says.ok_or("a program without an output")?);
        let mut program = Program { version: String::new(), child, asks, says };
        program.version = program.answer()?;
        for (algorithm, secrets) in secrets {
            for one in secrets {
                let parts = [&one.key[..], &one.iv, &one.header_key].map(hexadecimal);
                program.ask(&format!("key {} {}", number(algorithm), parts.join(" ")))?;
            }
        }
        Ok(program)
    }

    pub fn version(&self) -> &str {
        &self.version
    }

    /// The fingerprint of what it seals, after it has opened it again; `None` where it does not do
    /// that.
    pub fn check(&mut self, case: &Case) -> Result<Option<u64>, String> {
        self.ask(&command("check", case))?;
        let said = self.answer()?;
        match said.split_once(' ') {
            Some(("yes", print)) => {
                u64::from_str_radix(print, 16).map(Some).map_err(|why| why.to_string())
            }
            _ if said == "no" => Ok(None),
            _ => Err(format!("{} does not open what it sealed: {case:?}", self.version)),
        }
    }

    pub fn turn(&mut self, case: &Case) -> Result<Turn, String> {
        self.ask(&command("turn", case))?;
        let said = self.answer()?;
        let mut fields = said.split(' ');
        let mut field = || fields.next().and_then(|field| field.parse::<f64>().ok());
        match (field(), field(), field()) {
            (Some(nanoseconds), Some(good), Some(tried)) => {
                Ok(Turn { nanoseconds, good: good as usize, tried: tried as usize })
            }
            _ => Err(format!("{} says \"{said}\"", self.version)),
        }
    }

    fn ask(&mut self, line: &str) -> Result<(), String> {
        let asks = self.asks.as_mut().ok_or("a program that has ended")?;
        writeln!(asks, "{line}").map_err(|why| format!("{}: {why}", self.version))
    }

    fn answer(&mut self) -> Result<String, String> {
        let mut line = String::new();
        match self.says.read_line(&mut line) {
            Ok(0) => Err(format!("{} ended", self.version)),
            Ok(_) => Ok(line.trim_end().to_owned()),
            Err(why) => Err(format!("{}: {why}", self.version)),
        }
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        // It ends with its input.
        self.asks = None;
        let _ = self.child.wait();
    }
}

fn number(algorithm: Algorithm) -> u8 {
    match algorithm {
        Algorithm::Aes128Gcm => 0,
        Algorithm::ChaCha20Poly1305 => 1,
    }
}

fn command(what: &str, case: &Case) -> String {
    let (way, header) = (u8::from(case.way == Way::Open), u8::from(case.header));
    let algorithm = number(case.algorithm);
    format!("{what} {algorithm} {way} {header} {} {} {}", case.bytes, case.batch, case.keys)
}

fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}
