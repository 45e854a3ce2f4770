//! The arguments of `keyway crypto`, and the specifications of drivers.

use crate::value::{self, small_within};
use clap::{Args, Subcommand, ValueEnum};
use keyway_cryptotest::{Spec, Work};
use keyway_engine::{Algorithm, limits};
use std::path::PathBuf;

/// Look at the drivers that do the cryptography, verify them, and measure them
#[derive(Debug, Subcommand)]
#[command(after_help = "\
No server is needed, and none is touched: every command has an engine of its own.")]
pub enum Crypto {
    List(List),
    Test(Test),
    Bench(Bench),
}

/// Which drivers there are.
#[derive(Debug, Args)]
pub struct Drivers {
    // Not a comment for rustdoc, which would take the brackets for links.
    #[arg(
        long = "with",
        value_name = "SPEC",
        value_parser = str::parse::<Spec>,
        help = "Register a further driver: pool[:THREADS[@CORE,...]], sim:CARD[=COUNT], queued2003, \
                fault:SEED, or remote:SOCKET, a keyway cryptod"
    )]
    #[allow(missing_docs)]
    pub with: Vec<Spec>,
    /// Allow legacy algorithms (3des-cbc)
    #[arg(long)]
    pub legacy: bool,
}

/// Show the drivers, what they do, and what the engine takes their work to cost
///
/// A driver's place says whose time it takes: the caller's own, other processors of this host, or a
/// device. One that is chosen competes for every request that it can do; one that is named only
/// serves those who ask for it by name.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  keyway crypto list
      software, multibuffer (where the processor is wide enough for it) and null
  keyway crypto list --costs --with pool:2
      what each algorithm costs on each driver, and from which size on another is faster
  keyway crypto list --with sim:bcm-5820=4 --legacy --algorithm 3des-cbc
      four simulated cards beside the processor
  keyway crypto list --json
      one line of JSON")]
pub struct List {
    /// Measure what each algorithm costs on each driver (a second or two), and show it
    #[arg(long)]
    pub costs: bool,
    /// Only this driver (repeatable)
    #[arg(long = "driver", value_name = "NAME")]
    pub drivers: Vec<String>,
    /// Only this algorithm (repeatable)
    #[arg(long = "algorithm", value_name = "NAME", value_parser = algorithm)]
    pub algorithms: Vec<Algorithm>,
    #[command(flatten)]
    pub more: Drivers,
    /// Say it as one line of JSON
    #[arg(long)]
    pub json: bool,
}

/// Verify and measure drivers: the cryptotest of OpenBSD and FreeBSD
///
/// Runs one operation over and over (seal, encrypt, digest, sign, ...) and checks every result on
/// the software driver, outside the time that is measured: what can be undone is undone, the rest
/// is compared. With --driver alone the driver has to pass the conformance suite instead. The exit
/// status is 1 if a result was wrong, an operation failed, or something could not be run.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  keyway crypto test
      AES-128-GCM in three sizes, a second each
  keyway crypto test --algorithm aes-128-cbc+hmac-sha-1 --size 1k --in-flight 32 --threads 2
      encrypt-then-MAC through a queue of each of two threads
  keyway crypto test --driver multibuffer
      the conformance suite on one driver
  keyway crypto test --algorithm aes-128-gcm --size 64 --policy queued2003
      what the dispatch of 2003 costs: two thread switches for each operation
  keyway crypto test --algorithm 3des-cbc --legacy --with sim:hifn-7951 --driver hifn-7951-0 \\
      --in-flight 64
      how often a small ring is found full (BUSY)
  keyway crypto test --with remote:keyway-data/cryptod/socket --driver remote \\
      --algorithm aes-128-cbc --in-flight 32
      as the paper measured /dev/crypto: by way of another process, a keyway cryptod
  keyway crypto test --profile --algorithm sha-256 --in-flight 8
      min, mean, percentiles and max of each stage of an operation
  keyway crypto test --algorithm rsa-pss-sha-256 --key rsa.pem
      RSA needs a key; this makes one: openssl genpkey -algorithm RSA -out rsa.pem
  keyway crypto test --algorithm rsa-pkcs1-sha-256 --operation verify --rsa-bits 2048,3072,4096
      verification by modulus, with keys that are made for it")]
pub struct Test {
    /// An algorithm, or a chain joined by + such as aes-128-cbc+hmac-sha-1 (repeatable) [default:
    /// aes-128-gcm]
    #[arg(long = "algorithm", value_name = "NAME", value_parser = str::parse::<Work>)]
    pub algorithms: Vec<Work>,
    /// Bytes an operation works on; 4k is 4,096 (repeatable) [default: 64, 1k, 8k]
    #[arg(long = "size", value_name = "BYTES", value_parser = size)]
    pub sizes: Vec<usize>,
    /// Operations of each algorithm and size, of all threads together
    #[arg(long, value_name = "N", value_parser = value::count_within::<1, { u64::MAX }>,
          conflicts_with = "seconds")]
    pub count: Option<u64>,
    /// Seconds for each algorithm and size, checks included [default: 1]
    #[arg(long, value_name = "TIME", value_parser = seconds)]
    pub seconds: Option<f64>,
    /// Threads that do so at the same time
    #[arg(long, value_name = "N", default_value = "1",
          value_parser = small_within::<1, THREADS_MAX>)]
    pub threads: u16,
    /// Go through a queue of each thread, with so many operations under way
    #[arg(long, value_name = "N", conflicts_with = "direct", value_parser = in_flight)]
    pub in_flight: Option<usize>,
    /// Run each operation on the caller's stack, one after the other (the default)
    #[arg(long)]
    pub direct: bool,
    /// Demand this driver, instead of leaving the choice to the scheduler
    #[arg(long, value_name = "NAME")]
    pub driver: Option<String>,
    /// How requests get to a driver
    #[arg(long, value_enum, default_value = "direct")]
    pub policy: Policy,
    /// Time the stages of every request (in a queue: of one of each submission), and say what that
    /// costs
    #[arg(long)]
    pub profile: bool,
    /// Check every result (the default)
    #[arg(long, overrides_with = "no_verify")]
    pub verify: bool,
    /// Check no result
    #[arg(long)]
    pub no_verify: bool,
    /// Run the conformance suite on the driver, with --algorithm on these algorithms only
    #[arg(long, requires = "driver", conflicts_with_all = ["sizes", "count", "seconds", "in_flight",
          "profile", "no_verify"])]
    pub conformance: bool,
    /// An RSA private key (PKCS#8, PEM or DER)
    #[arg(long, value_name = "FILE")]
    pub key: Option<PathBuf>,
    /// Make RSA keys of these sizes, in bits, and test with each: 2048, 3072, 4096 or 8192 (which
    /// takes up to a minute to make)
    #[arg(long, value_name = "BITS", value_delimiter = ',', conflicts_with = "key",
          value_parser = rsa_bits)]
    pub rsa_bits: Vec<u32>,
    /// The operation with signatures that is done over and over
    #[arg(long, value_enum, default_value = "sign")]
    pub operation: Signatures,
    #[command(flatten)]
    pub more: Drivers,
    /// Say it as one line of JSON
    #[arg(long)]
    pub json: bool,
}

/// Compare drivers over sizes, as a table and as a picture
///
/// Each cell is warmed up and then measured in seven short runs: their median, and by how much they
/// lie apart without the fastest and the slowest, in percent of the median. Results are not
/// checked; that is what keyway crypto test is for.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  keyway crypto bench
      AES-128-GCM, ChaCha20-Poly1305 and AES-128-CBC with HMAC-SHA-256 on every driver
  keyway crypto bench --algorithm aes-128-cbc+hmac-sha-1 --direct --in-flight 32 --svg cbc.svg
      alone and 32 at a time, with a picture
  keyway crypto bench --algorithm sha-256 --size 64 --size 1k --driver software --json
      two cells, as one line of JSON
  keyway crypto bench --profile ipsec --in-flight 32
      packets of 40, 576 and 1,460 bytes, as a gateway has them
  keyway crypto bench --with pool:2 --driver pool --driver software --in-flight 64
      does it pay to hand the work to other processors?")]
pub struct Bench {
    /// An algorithm, or a chain joined by + (repeatable) [default: aes-128-gcm, chacha20-poly1305,
    /// aes-128-cbc+hmac-sha-256]
    #[arg(long = "algorithm", value_name = "NAME", value_parser = str::parse::<Work>)]
    pub algorithms: Vec<Work>,
    /// Only this driver (repeatable) [default: all that do the work]
    #[arg(long = "driver", value_name = "NAME")]
    pub drivers: Vec<String>,
    /// Bytes an operation works on; 4k is 4,096 (repeatable) [default: 16 to 64k]
    #[arg(long = "size", value_name = "BYTES", value_parser = size)]
    pub sizes: Vec<usize>,
    /// The sizes of a protocol's operations: ssh a keystroke's packet of 64 bytes, scp 4k, tls a full
    /// record of 16k, ipsec packets of 40, 576 and 1,460
    #[arg(long, value_enum, value_name = "PROTOCOL", conflicts_with = "sizes")]
    pub profile: Option<Profile>,
    /// Go through a queue with so many operations under way (repeatable)
    #[arg(long, value_name = "N", value_parser = in_flight)]
    pub in_flight: Vec<usize>,
    /// Run each operation on the caller's stack (the default without --in-flight)
    #[arg(long)]
    pub direct: bool,
    /// Seconds for each cell
    #[arg(long, value_name = "TIME", default_value = "0.2", value_parser = seconds)]
    pub seconds: f64,
    /// Draw nanoseconds over bytes into this file
    #[arg(long, value_name = "FILE")]
    pub svg: Option<PathBuf>,
    /// An RSA private key (PKCS#8, PEM or DER)
    #[arg(long, value_name = "FILE")]
    pub key: Option<PathBuf>,
    #[command(flatten)]
    pub more: Drivers,
    /// Say it as one line of JSON
    #[arg(long)]
    pub json: bool,
}

/// The work that is done with signatures.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Signatures {
    /// They are made
    Sign,
    /// One is verified
    Verify,
}

/// A protocol whose operations have typical sizes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Profile {
    /// A login's packets: 64 bytes
    Ssh,
    /// Files in blocks of 4 KiB
    Scp,
    /// Full records: 16 KiB
    Tls,
    /// Packets of 40, 576 and 1,460 bytes
    Ipsec,
}

impl Profile {
    /// Bytes that an operation works on.
    pub fn sizes(self) -> &'static [usize] {
        match self {
            Profile::Ssh => &[64],
            Profile::Scp => &[4 << 10],
            Profile::Tls => &[16 << 10],
            Profile::Ipsec => &[40, 576, 1_460],
        }
    }
}

/// How requests get to a driver.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Policy {
    /// As this engine does it
    Direct,
    /// Over a dispatch thread and a return thread, as the systems of 2003 did it
    Queued2003,
}

const THREADS_MAX: u64 = 256;
const SIZE_BYTES_MAX: usize = 16 << 20;
const SECONDS_MIN: f64 = 0.001;
const SECONDS_MAX: f64 = 86_400.0;

fn algorithm(text: &str) -> Result<Algorithm, String> {
    text.parse().map_err(|why: keyway_engine::Unknown| why.to_string())
}

/// Bytes, with k for 1,024 and m for 1,048,576.
fn size(text: &str) -> Result<usize, String> {
    let bytes = value::bytes(text).ok().and_then(|bytes| usize::try_from(bytes).ok());
    bytes
        .filter(|bytes| (1..=SIZE_BYTES_MAX).contains(bytes))
        .ok_or_else(|| "it is not a number of bytes from 1 to 16m, like 64, 4k or 1m".to_owned())
}

fn rsa_bits(text: &str) -> Result<u32, String> {
    let bits = text.parse().ok().filter(|bits| [2_048, 3_072, 4_096, 8_192].contains(bits));
    bits.ok_or_else(|| "it is none of 2048, 3072, 4096 and 8192".to_owned())
}

fn in_flight(text: &str) -> Result<usize, String> {
    let most = limits::QUEUE_DEPTH_MAX;
    let number = value::count(text).ok().and_then(|n| usize::try_from(n).ok());
    let number = number.filter(|n| (1..=most).contains(n));
    number.ok_or_else(|| format!("it is not a number from 1 to {most}"))
}

fn seconds(text: &str) -> Result<f64, String> {
    value::seconds_within(text, SECONDS_MIN, SECONDS_MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_have_suffixes() {
        assert_eq!((size("64"), size("4k"), size("16M")), (Ok(64), Ok(4096), Ok(16 << 20)));
        for bad in ["", "0", "k", "-1", "1g", "17m", "99999999999999999999", "é"] {
            assert!(size(bad).is_err(), "{bad}");
        }
    }
}
