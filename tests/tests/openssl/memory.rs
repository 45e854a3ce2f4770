//! The private half of a key that a test has made in a file, and the processes in whose memory it is.

use super::Site;
use memchr::memmem::Finder;
use std::fs::{self, File};
use std::os::unix::fs::FileExt;

/// Bytes of a number that are searched for at once; a page may end within it.
const PIECE_BYTES: usize = 16;
/// A mapping is read in parts of this many bytes.
const READ_BYTES: usize = 1 << 20;

/// The secret numbers of a private key: RSA's primes and exponent, or a curve's scalar.
pub struct Secret {
    pieces: Vec<Finder<'static>>,
}

/// The processes that a process has started, such as the workers of a master.
pub fn children(process: u32) -> Vec<u32> {
    let all = fs::read_to_string(format!("/proc/{process}/task/{process}/children"));
    all.unwrap_or_default().split_whitespace().flat_map(str::parse).collect()
}

impl Secret {
    /// Those of a file that stock OpenSSL reads.
    pub fn read(site: &Site, file: &str) -> Secret {
        let text = site.stock_openssl(&["pkey", "-noout", "-text", "-in", file]).expect(0).out;
        let mut pieces = Vec::new();
        for label in ["priv:", "privateExponent:", "prime1:", "prime2:"] {
            let after = text.lines().skip_while(|line| *line != label).skip(1);
            let digits: String = after.take_while(|line| line.starts_with(' ')).collect();
            let bytes = digits.split(':').map(|byte| u8::from_str_radix(byte.trim(), 16));
            let number: Vec<u8> = bytes.flatten().skip_while(|byte| *byte == 0).collect();
            // As it is written, and as libcrypto has it in memory: the lowest word first.
            let reversed: Vec<u8> = number.iter().rev().copied().collect();
            for number in [number, reversed] {
                let both = number.first_chunk::<PIECE_BYTES>().into_iter();
                let both = both.chain(number.last_chunk::<PIECE_BYTES>());
                pieces.extend(both.map(|piece| Finder::new(piece).into_owned()));
            }
        }
        assert!(!pieces.is_empty(), "{text}");
        Secret { pieces }
    }

    /// Whether it is in the memory of a process or of one that it has started.
    ///
    /// # Panics
    /// If their memory cannot be read.
    pub fn is_known_to(&self, process: u32) -> bool {
        let (mut processes, mut searched) = (vec![process], 0);
        while let Some(process) = processes.pop() {
            processes.extend(children(process));
            let Some((found, bytes)) = self.search(process) else { continue };
            if found {
                return true;
            }
            searched += bytes;
        }
        assert!(searched > 1 << 20, "only {searched} bytes of memory were searched");
        false
    }

    /// Whether it is there, and how many bytes were searched. `None` if the process has ended.
    fn search(&self, process: u32) -> Option<(bool, usize)> {
        let maps = fs::read_to_string(format!("/proc/{process}/maps")).ok()?;
        let memory = File::open(format!("/proc/{process}/mem")).ok()?;
        let (mut buffer, mut searched) = (vec![0; READ_BYTES], 0);
        for line in maps.lines() {
            let (range, rest) = line.split_once(' ')?;
            let (from, to) = range.split_once('-')?;
            let [from, to] = [from, to].map(|at| u64::from_str_radix(at, 16).unwrap_or(0));
            if !rest.starts_with('r') {
                continue;
            }
            let mut at = from;
            while at < to {
                let most = READ_BYTES.min(usize::try_from(to - at).ok()?);
                // The kernel's own mappings cannot be read.
                let Ok(read @ 1..) = memory.read_at(&mut buffer[..most], at) else { break };
                if self.pieces.iter().any(|piece| piece.find(&buffer[..read]).is_some()) {
                    return Some((true, searched));
                }
                searched += read;
                // The next part begins with the end of this one.
                at += if read == most && at + (read as u64) < to {
                    (read - PIECE_BYTES) as u64
                } else {
                    read as u64
                };
            }
        }
        Some((false, searched))
    }
}

impl Site {
    /// Makes a key in a file `NAME.key`, and imports it; the rest is as [`Site::generate`] does it.
    pub fn import(&self, name: &str, kind: &str, who: &str) -> Secret {
        let file = format!("{name}.key");
        let options = match kind {
            "rsa" => ["RSA", "-pkeyopt", "rsa_keygen_bits:2048"],
            _ => ["EC", "-pkeyopt", "ec_paramgen_curve:P-256"],
        };
        let made = ["genpkey", "-out", &file, "-algorithm"];
        self.stock_openssl(&[&made[..], &options].concat()).expect(0);
        self.key(&["import", name, &file, "--for", who, "--algorithm", kind]);
        self.write_files(name);
        Secret::read(self, &file)
    }
}
