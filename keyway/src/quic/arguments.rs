//! The arguments of `keyway quic`.

use crate::value::{self, small_within};
use clap::{Args, Subcommand, ValueEnum};
use keyway_host::listeners::parse_address;
use keyway_quic::{Target, target};
use std::net::SocketAddr;
use std::path::PathBuf;

/// Where the server's certificate and its authority are, unless told otherwise. Not the directory's
/// folder, which a running directory has to itself.
pub const DATA: &str = "keyway-quic";

/// Serve, fetch and measure over QUIC (RFC 9000), its packets protected by the engine
#[derive(Debug, Subcommand)]
#[command(after_help = "\
The QUIC is quinn's; the TLS is rustls'; keys, packets and headers are the engine's. --crypto ring
and --crypto aws-lc take the cryptography that rustls brings instead, to compare with.")]
pub enum Quic {
    Serve(Serve),
    Get(Get),
    Perf(Perf),
}

/// How packets are made and sent.
#[derive(Debug, Args)]
pub struct Transport {
    /// Whose cryptography: the engine's, or one of the two that rustls brings
    #[arg(long, value_enum, value_name = "WHOSE", default_value = "keyway")]
    pub crypto: Crypto,
    /// Largest UDP payload, in bytes, taken to fit from the start [default: 1200, and up to 1452 as
    /// probes get through]
    #[arg(long, value_name = "BYTES", value_parser = small_within::<1200, 65_000>)]
    pub mtu: Option<u16>,
    /// Threads [default: one for each processor]
    #[arg(long, value_name = "N", value_parser = small_within::<1, 1024>)]
    pub threads: Option<u16>,
}

/// Whose cryptography.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Crypto {
    /// The engine, with whichever of its drivers is cheapest
    Keyway,
    /// ring, which is quinn's own default
    Ring,
    /// AWS-LC, by aws-lc-rs
    AwsLc,
}

/// Which AEAD protects the packets once the handshake is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
#[allow(missing_docs)]
pub enum Cipher {
    #[value(name = "aes-128-gcm")]
    Aes128Gcm,
    #[value(name = "aes-256-gcm")]
    Aes256Gcm,
    #[value(name = "chacha20-poly1305")]
    ChaCha20Poly1305,
}

/// Which key exchange begins a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
#[allow(missing_docs)]
pub enum Group {
    #[value(name = "x25519mlkem768")]
    X25519MlKem768,
    #[value(name = "x25519")]
    X25519,
    #[value(name = "secp256r1")]
    Secp256r1,
    #[value(name = "secp384r1")]
    Secp384r1,
}

/// Serve the files of a folder (HTTP/0.9 over QUIC, "hq-interop"), and keyway quic perf
///
/// Nothing outside the folder is served, also not through links. The first start makes a
/// certificate authority and a certificate for this host in the data folder, keys in files;
/// a certificate of your own is named with --certificate and --key. A key can also be in a keyway
/// cryptod, which makes the signatures and never shows it. Ctrl-C stops it: who is connected is told
/// so.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  keyway quic serve
      the files of this folder, on 127.0.0.1:4433
  keyway quic serve /srv/files --listen 0.0.0.0:4433
      another folder's, to other machines too
  keyway quic serve --data keyway-data
      with the certificate of a directory, whose key its cryptod holds
  keyway quic serve --certificate web.pem --key cryptod:web --cryptod /run/keyway/cryptod.socket
      with a key that was made with keyway key generate or import
  keyway quic serve --listen 127.0.0.1:0 --json
      on a port that the system chooses; one JSON line says which")]
pub struct Serve {
    /// The folder whose files are served
    #[arg(value_name = "FOLDER", default_value = ".")]
    pub folder: PathBuf,
    /// Where to listen (UDP)
    #[arg(long, value_name = "ADDRESS:PORT", default_value = "127.0.0.1:4433", value_parser = parse_address)]
    pub listen: SocketAddr,
    /// Where the certificate is, and where DIR/cryptod/socket is if its key is in a cryptod
    #[arg(long = "data", value_name = "DIR", default_value = DATA)]
    pub data: PathBuf,
    /// A certificate and those of its issuers, PEM [default: that of DIR]
    #[arg(long, value_name = "FILE", requires = "key")]
    pub certificate: Option<PathBuf>,
    /// Its private key: a file, PEM, or cryptod:NAME
    #[arg(long, value_name = "KEY", requires = "certificate", value_parser = place)]
    pub key: Option<Place>,
    /// The socket of the cryptod that holds the key [default: DIR/cryptod/socket]
    #[arg(long, value_name = "PATH")]
    pub cryptod: Option<PathBuf>,
    #[command(flatten)]
    pub transport: Transport,
    /// Say where it listens as one line of JSON
    #[arg(long)]
    pub json: bool,
}

/// Who is believed to be the server.
#[derive(Debug, Args)]
pub struct Trust {
    /// Certificate authorities to trust, PEM [default: keyway-quic/ca.pem if there is one, and the
    /// system's]
    #[arg(long, value_name = "FILE")]
    pub ca: Option<PathBuf>,
    /// Accept any certificate: an attacker on the network path can then read and change everything
    #[arg(long, conflicts_with = "ca")]
    pub insecure: bool,
}

/// Fetch files over QUIC (HTTP/0.9, "hq-interop")
///
/// Each file is written beside its place, under a name that ends in .part, and moved there when it
/// is whole. Files of one server are fetched over one connection, at the same time. The exit status
/// is 1 if one of them could not be had.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  keyway quic get https://localhost:4433/README.md
      into ./README.md
  keyway quic get https://localhost:4433/README.md -o -
      to standard output
  keyway quic get https://10.0.0.7:4433/a https://10.0.0.7:4433/b -o files --ca ca.pem
      two files into the folder files, from a server whose authority is in ca.pem")]
pub struct Get {
    /// The resource to fetch, as https://HOST:PORT/PATH
    #[arg(value_name = "URL", required = true, value_parser = target)]
    pub urls: Vec<Target>,
    /// The file to write, or a folder to write into; '-' is standard output [default: the last part
    /// of the URL's path]
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
    #[command(flatten)]
    pub trust: Trust,
    #[command(flatten)]
    pub transport: Transport,
    /// Say how it went as one line of JSON
    #[arg(long)]
    pub json: bool,
}

/// Measure throughput, requests and connections, and where processor time goes
///
/// Without an address it starts a server of its own on loopback, and both ends count. With one,
/// that is measured which is on this side. The protocol is that of quinn's and msquic's perf
/// (draft-banks-quic-performance), which keyway quic serve speaks too.
///
/// UDP-SEND and UDP-RECV are the calls of the system that move datagrams, PACKET is sealing and
/// opening, HEADER is header protection, OTHER is all else: QUIC's frames, streams and timers, TLS
/// handshakes, copying, and scheduling. The calls of the system are timed each; of the packets, one
/// in thirteen. Handshakes with the engine's cryptography exchange keys with ML-KEM as well
/// (X25519MLKEM768), those with ring's and AWS-LC's do not: to compare connections, demand the same
/// of both with --group x25519.
#[derive(Debug, Args)]
#[command(after_help = "\
The first table has rates, and which part of the processor's time goes where. The second has packets of both \
directions (with itself: at both ends) a second, the bytes in one on average, the nanoseconds of processor time \
that cryptography takes of one, and by how much that makes all the rest cost more (OVERHEAD).

Examples:
  keyway quic perf
      upload, download, requests and connections with itself, three seconds each
  keyway quic perf --crypto ring
      the same with quinn's own cryptography
  keyway quic perf 10.0.0.7:4433 --ca ca.pem --test download --bytes 10G
      ten gigabytes from a server elsewhere
  keyway quic perf --test requests --connections 8 --streams 16 --json
      eight connections with sixteen requests under way on each, as one line of JSON")]
pub struct Perf {
    /// The server, as HOST:PORT [default: one of its own, on loopback]
    #[arg(value_name = "ADDRESS", value_parser = keyway_quic::address)]
    pub address: Option<Target>,
    /// The test to run (repeatable) [default: all four]
    #[arg(long = "test", value_enum, value_name = "TEST")]
    pub tests: Vec<Test>,
    /// Seconds that each takes
    #[arg(long, value_name = "TIME", default_value = "3", value_parser = seconds)]
    pub seconds: f64,
    /// Upload and download: end after so many bytes instead; 10G is 10,737,418,240
    #[arg(long, value_name = "BYTES", value_parser = value::bytes, conflicts_with = "seconds")]
    pub bytes: Option<u64>,
    /// Connections at the same time
    #[arg(long, value_name = "N", default_value = "1",
          value_parser = small_within::<1, 1024>)]
    pub connections: u16,
    /// Streams at the same time on each connection
    #[arg(long, value_name = "N", default_value = "1",
          value_parser = small_within::<1, 100>)]
    pub streams: u16,
    /// Demand an AEAD [default: the first that both sides have]
    #[arg(long, value_enum, value_name = "NAME")]
    pub cipher: Option<Cipher>,
    /// Demand a key exchange [default: the first that both sides have]
    #[arg(long, value_enum, value_name = "NAME")]
    pub group: Option<Group>,
    #[command(flatten)]
    pub trust: Trust,
    #[command(flatten)]
    pub transport: Transport,
    /// Say how it went as one line of JSON
    #[arg(long)]
    pub json: bool,
}

/// A test of `perf`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Test {
    /// Bytes to the server
    Upload,
    /// Bytes from the server
    Download,
    /// Small requests, each on a stream of its own
    Requests,
    /// Connections, each with a full handshake and one request
    Connections,
}

impl From<Test> for keyway_quic::Test {
    fn from(test: Test) -> keyway_quic::Test {
        match test {
            Test::Upload => keyway_quic::Test::Upload,
            Test::Download => keyway_quic::Test::Download,
            Test::Requests => keyway_quic::Test::Requests,
            Test::Connections => keyway_quic::Test::Connections,
        }
    }
}

const SECONDS_MIN: f64 = 0.1;
const SECONDS_MAX: f64 = 86_400.0;

fn seconds(text: &str) -> Result<f64, String> {
    value::seconds_within(text, SECONDS_MIN, SECONDS_MAX)
}

/// Where a private key is.
#[derive(Clone, Debug)]
pub enum Place {
    /// In a file.
    File(PathBuf),
    /// In a cryptod, under this name.
    Held(String),
}

fn place(text: &str) -> Result<Place, String> {
    match text.strip_prefix("cryptod:") {
        None => Ok(Place::File(text.into())),
        Some(name) if keyway_engine::is_key_name(name) => Ok(Place::Held(name.to_owned())),
        Some(_) => Err("behind cryptod: is the name of a key".to_owned()),
    }
}
