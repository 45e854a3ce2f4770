//! The arguments of `keyway decode`.

use crate::value::{count, size_within, some_time};
use clap::{Args, Subcommand, ValueEnum};
use keyway_decode::proxy_protocol::ProxyProtocol;
use keyway_decode::replay::Speed;
use keyway_decode::{Query, ServerAddress};
use keyway_host::listeners::parse_address;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

/// Tell what LDAP clients and servers say to each other, from a capture of their packets
///
/// Reads pcap, pcapng and snoop, also compressed by gzip, from files or as tcpdump writes it. Segments may be
/// out of order, come twice, overlap or be missing: what cannot be seen is said, and the next message
/// that is whole is found. Connections on the ports of LDAP (389, 636, 1389, 1636, 3268, 3269, 10389,
/// 10636) are decoded, and others that begin with an LDAP message; on those ports UDP too (CLDAP).
///
/// Passwords are shown as *, whatever their length, also in what is written.
#[derive(Debug, Args)]
#[command(
    arg_required_else_help = true,
    args_conflicts_with_subcommands = true,
    subcommand_negates_reqs = true,
    after_help = help()
)]
pub struct Decode {
    #[command(subcommand)]
    pub command: Option<DecodeCommand>,
    /// The captures, in the order of time; - is standard input
    #[arg(value_name = "FILE", required = true)]
    pub files: Vec<PathBuf>,
    /// Only operations that this LDAP filter over their fields means (below)
    #[arg(short, long, value_name = "FILTER", value_parser = Query::parse)]
    pub filter: Option<Query>,
    #[command(flatten)]
    pub form: Form,
    /// Where the files of --as scenario go; made if it is not there
    #[arg(long, value_name = "DIR")]
    pub into: Option<PathBuf>,
    /// Secrets of TLS 1.2 and 1.3, as SSLKEYLOGFILE has clients write them down; pcapng may have them too
    #[arg(long, value_name = "FILE")]
    pub keylog: Option<PathBuf>,
    /// Show passwords as they are
    #[arg(long)]
    pub show_secrets: bool,
    /// Take connections on this port to be LDAP, and no others (repeatable)
    #[arg(long = "port", value_name = "PORT")]
    pub ports: Vec<u16>,
}

/// Commands beside the decoding of captures.
#[derive(Debug, Subcommand)]
pub enum DecodeCommand {
    Proxy(Proxy),
    Report(Report),
    Replay(Replay),
}

/// Stand between clients and a server: pass on what they say, and tell of it
///
/// Octets are passed on as they come, and a copy of them is decoded in another thread: what is told can
/// neither change nor delay them. Octets that this thread has no time for are left out, and said ("gap of
/// n bytes").
///
/// Without a certificate TLS is passed on and cannot be read. With one (--certificate and --key, or
/// --data for one of a folder's own authority) the proxy takes part in StartTLS on both sides; with
/// --tls clients begin with TLS. Clients have to trust that certificate. Theirs do not get to the
/// server, nor does SASL EXTERNAL.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  keyway decode proxy --to ldap://ds1.example.com
      clients connect to 127.0.0.1:3389; a line for each operation
  keyway decode proxy --to ldap://ds1.example.com --data proxy -f '(code>=1)'
      StartTLS too: clients trust proxy/ca.pem, and what fails is shown
  keyway decode proxy --listen 0.0.0.0:636 --tls --certificate ds1.pem --key ds1.key \\
      --to ldaps://ds2:636
      in the place of a server whose certificate is at hand
  keyway decode proxy --to ldap://127.0.0.1:1389 --proxy-protocol v2 --json > operations.jsonl
      the server is told whose connections they are
  keyway decode proxy --to ldap://ds1.example.com --report --every 10s
      what was asked so far, summed up every ten seconds, at SIGUSR1 and at the end
  keyway decode proxy --to ldap://ds1.example.com --as scenario --into captured
      at the end captured/scenario.toml, which keyway load can repeat with the same mixture
  keyway decode proxy --to ldap://ds1.example.com --tui
      a list to look through, with a filter, the elements and the octets of each operation")]
pub struct Proxy {
    /// Where clients connect to
    #[arg(long, value_name = "ADDRESS:PORT", default_value = "127.0.0.1:3389", value_parser = parse_address)]
    pub listen: SocketAddr,
    /// The server
    #[arg(long, value_name = "URL")]
    pub to: ServerAddress,
    /// Clients begin with TLS (ldaps)
    #[arg(long)]
    pub tls: bool,
    /// The certificate that clients see, PEM, with those of its issuers
    #[arg(long, value_name = "FILE", requires = "key")]
    pub certificate: Option<PathBuf>,
    /// Its key, PEM
    #[arg(long, value_name = "FILE", requires = "certificate")]
    pub key: Option<PathBuf>,
    /// A folder whose authority issues the certificate that clients see; made if it is not there
    #[arg(long, value_name = "DIR", conflicts_with = "certificate")]
    pub data: Option<PathBuf>,
    /// Authorities that may say who the server is, PEM [default: the system's, and
    /// keyway-data/ca.pem, or that of --data]
    #[arg(long, value_name = "FILE")]
    pub ca: Option<PathBuf>,
    /// Accept any certificate of the server: an attacker on the network path can then read and change everything
    #[arg(long, conflicts_with = "ca")]
    pub insecure: bool,
    /// Tell the server the address of each client (PROXY protocol)
    #[arg(long, value_enum, value_name = "VERSION")]
    pub proxy_protocol: Option<Version>,
    /// Only operations that this LDAP filter over their fields means; keyway decode --help lists them
    #[arg(short, long, value_name = "FILTER", value_parser = Query::parse)]
    pub filter: Option<Query>,
    #[command(flatten)]
    pub form: Form,
    /// Where the files of --as scenario go at the end; made if it is not there
    #[arg(long, value_name = "DIR")]
    pub into: Option<PathBuf>,
    /// Sum up in the manner of keyway decode report: at the end, and when SIGUSR1 comes
    #[arg(long, conflicts_with_all = ["full", "words", "write", "tui"])]
    pub report: bool,
    /// Sum up every so often too
    #[arg(long, value_name = "TIME", requires = "report", value_parser = some_time)]
    pub every: Option<Duration>,
    /// How many rows each table of the report has
    #[arg(long, value_name = "N", default_value_t = 10, requires = "report",
          value_parser = size_within::<0, { u64::MAX }>)]
    pub rows: usize,
    /// Show passwords as they are
    #[arg(long)]
    pub show_secrets: bool,
}

/// A version of the PROXY protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Version {
    /// A line of text
    V1,
    /// The binary form
    V2,
}

impl From<Version> for ProxyProtocol {
    fn from(version: Version) -> ProxyProtocol {
        match version {
            Version::V1 => ProxyProtocol::V1,
            Version::V2 => ProxyProtocol::V2,
        }
    }
}

/// How operations are told: a line each, unless one of these is asked for.
#[derive(Debug, Args)]
#[group(multiple = false)]
pub struct Form {
    /// All that is in each operation, entries found and controls included
    #[arg(long)]
    pub full: bool,
    /// An object of JSON on a line for each operation
    #[arg(long)]
    pub json: bool,
    /// In other words: requests as commands of ldap-utils, changes as LDIF, a program in Python, or a
    /// scenario for a load generator, with values that vary as data
    #[arg(long = "as", value_enum, value_name = "FORM")]
    pub words: Option<Words>,
    /// A capture (pcapng) of what was decoded, without TLS and without passwords; - is standard output
    #[arg(short, long, value_name = "FILE")]
    pub write: Option<PathBuf>,
    /// A list on the terminal, to be looked through with keys; ? shows them
    #[arg(long)]
    pub tui: bool,
}

/// Other words for an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Words {
    /// Commands of ldap-utils, for a shell
    Ldapsearch,
    /// Change records of what was changed
    Ldif,
    /// A program with python-ldap
    PythonLdap,
    /// A scenario in TOML, and files of values (--into)
    Scenario,
}

/// Sum up: kinds of operation, results, filters, clients, what was slow, what was left undone
///
/// Filters are counted without their values: (uid=?) stands for all that ask for one uid. Latencies are
/// those that the capture shows: from the last packet of the request to the last of the answer.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  keyway decode report traffic.pcap
      as text
  keyway decode report monday.pcap tuesday.pcap --rows 50 -f '(client=10.0.0.7)'
      one client's, with longer tables
  timeout 60 tcpdump -i any -U -w - port 389 | keyway decode report - --json
      a minute of now, as one line of JSON
  tcpdump -i any -U -w - port 389 | keyway decode report - --every 10s
      what there was so far, every ten seconds")]
pub struct Report {
    /// The captures, in the order of time; - is standard input
    #[arg(value_name = "FILE", required = true)]
    pub files: Vec<PathBuf>,
    /// Only operations that this LDAP filter over their fields means; keyway decode --help lists them
    #[arg(short, long, value_name = "FILTER", value_parser = Query::parse)]
    pub filter: Option<Query>,
    /// Secrets of TLS 1.2 and 1.3, as SSLKEYLOGFILE has clients write them down; pcapng may have them too
    #[arg(long, value_name = "FILE")]
    pub keylog: Option<PathBuf>,
    /// How many rows each table has
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = size_within::<0, { u64::MAX }>)]
    pub rows: usize,
    /// Say every so often what there was so far; SIGUSR1 asks for it at any time
    #[arg(long, value_name = "TIME", value_parser = some_time)]
    pub every: Option<Duration>,
    /// Take connections on this port to be LDAP, and no others (repeatable)
    #[arg(long = "port", value_name = "PORT")]
    pub ports: Vec<u16>,
    /// As one line of JSON
    #[arg(long)]
    pub json: bool,
}

/// Send the requests of a capture to a server again, and compare what comes of them
///
/// Connections are those of the capture. Within one, requests keep their order, and each is sent once
/// the answers have come that its client had when it sent it: what was in flight together is so again.
/// At a speed, the times between requests are kept; with max each is sent as soon as it may be, on as
/// many connections at a time as there were.
///
/// Result codes and numbers of entries are compared with those in the capture, and how long answers
/// took is shown beside how long they did then. Changes are made again: send them to a copy.
///
/// Passwords in the capture are not sent unless one of --captured-passwords, --passwords and
/// --bind-dn says whose; without that, requests that have one are left out. StartTLS and SASL binds other
/// than PLAIN are always left out.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  keyway decode replay traffic.pcap --to ldap://test:1389 --captured-passwords
      as it was, with the pauses that clients made
  keyway decode replay traffic.pcap --to ldaps://test --ca ca.pem --speed max -f '(op=search)' \\
      --bind-dn cn=reader,dc=example,dc=com --password-file pw
      searches, as fast as answers come, each connection bound as one reader
  keyway decode replay monday.pcapng --to ldap://test:1389 --speed 10x --passwords names.tsv --json
      ten times as fast, with the passwords of a file: a name, a tab, a password; a line of JSON for
      each difference, and one for the whole

The exit status is 0 if everything was answered as in the capture, else 1.")]
pub struct Replay {
    /// The captures, in the order of time; - is standard input
    #[arg(value_name = "FILE", required = true)]
    pub files: Vec<PathBuf>,
    /// The server that they are sent to; never that of the capture by itself
    #[arg(long, value_name = "URL")]
    pub to: ServerAddress,
    /// How fast: 1x, 2x, 0.5x, ..., or max
    #[arg(long, value_name = "SPEED", default_value = "1x")]
    pub speed: Speed,
    /// Only operations that this LDAP filter over their fields means; keyway decode --help lists them
    #[arg(short, long, value_name = "FILTER", value_parser = Query::parse)]
    pub filter: Option<Query>,
    /// Secrets of TLS 1.2 and 1.3, as SSLKEYLOGFILE has clients write them down; pcapng may have them too
    #[arg(long, value_name = "FILE")]
    pub keylog: Option<PathBuf>,
    /// Take connections on this port to be LDAP, and no others (repeatable)
    #[arg(long = "port", value_name = "PORT")]
    pub ports: Vec<u16>,
    /// The certificate authority to trust, PEM; a server's own certificate, if that has signed itself
    /// [default: those of this system, and keyway-data/ca.pem]
    #[arg(long, value_name = "FILE", conflicts_with = "insecure")]
    pub ca: Option<PathBuf>,
    /// Accept any certificate: an attacker on the network path can then read and change everything
    #[arg(long)]
    pub insecure: bool,
    /// Begin TLS on ldap:// with StartTLS
    #[arg(long)]
    pub start_tls: bool,
    /// Send the passwords that are in the capture
    #[arg(long, conflicts_with_all = ["passwords", "bind_dn"])]
    pub captured_passwords: bool,
    /// Send in simple binds the passwords of this file: on each line a name, a tab and a password
    #[arg(long, value_name = "FILE", conflicts_with = "bind_dn")]
    pub passwords: Option<PathBuf>,
    /// The DN that binds on each connection, in place of the captured binds
    #[arg(long, value_name = "DN", requires = "password_file")]
    pub bind_dn: Option<String>,
    /// The file with the password of --bind-dn; a line end at its end does not count
    #[arg(long, value_name = "FILE", requires = "bind_dn")]
    pub password_file: Option<PathBuf>,
    /// How long an answer may take
    #[arg(long, value_name = "TIME", default_value = "30s", value_parser = some_time)]
    pub timeout: Duration,
    /// How many differences are told; all are counted
    #[arg(long, value_name = "N", default_value = "100", value_parser = count)]
    pub rows: u64,
    /// Lines of JSON
    #[arg(long)]
    pub json: bool,
}

fn help() -> String {
    format!(
        "\
Examples:
  keyway decode traffic.pcap
      a line for each operation: time, connection and message id, latency, result, what was asked
  tcpdump -i any -U -w - port 389 | keyway decode -
      as it happens
  keyway decode traffic.pcapng.gz -f '(&(op=search)(|(latency>=10ms)(code>=1)))'
      searches that were slow, or failed
  keyway decode traffic.pcap --full -f '(&(conn=12)(id=3))'
      one operation, all of it
  keyway decode traffic.pcap --json | jq -r 'select(.code == 49) | .request.name'
      who could not log in
  keyway decode traffic.pcap --as ldapsearch -f '(&(op=search)(code>=1))'
      searches that failed, to be tried again
  keyway decode traffic.pcap --as scenario --into captured
      captured/scenario.toml, which keyway load can repeat with the same mixture
  SSLKEYLOGFILE=keys.log ldapsearch -H ldaps://ds1.example.com ...
  keyway decode tls.pcap --keylog keys.log -w plain.pcapng
      what was within TLS, for Wireshark, without passwords

A filter is one of LDAP (RFC 4515) over these fields; = takes *, ~= is 'contains', case does not count:
{}",
        keyway_decode::query::help()
    )
}
