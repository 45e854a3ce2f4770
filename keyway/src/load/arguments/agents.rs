//! Several machines.

use super::Output;
use crate::value::small_within;
use clap::Args;
use keyway_host::listeners::parse_address;
use keyway_load::Identity;
use std::net::SocketAddr;
use std::path::PathBuf;

/// This side's certificate, and the authority of the other's: both have certificates of one authority.
#[derive(Debug, Args)]
pub struct Who {
    /// Our certificate, PEM, with those that lead to the authority's
    #[arg(long, value_name = "FILE")]
    pub cert: PathBuf,
    /// Its key, PEM
    #[arg(long, value_name = "FILE")]
    pub key: PathBuf,
    /// The authority of both sides, PEM; every holder of a certificate of it is admitted
    #[arg(long, value_name = "FILE")]
    pub ca: PathBuf,
}

impl Who {
    /// That identity, for the library.
    pub fn identity(&self) -> Identity {
        let Who { cert, key, ca } = self;
        Identity { certificate: cert.clone(), key: key.clone(), ca: ca.clone() }
    }
}

/// Run a scenario on several machines, on each of which an agent calls this one
///
/// Rate and connections are shared out among the agents; they begin together, by clocks that are compared
/// first. Histograms are added up. An agent that is lost is said so, and the run has failed. A scenario that
/// searches for the knee (find) holds one rate after the other on the same agents.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  keyway load serve mixed.toml --agents 2 --cert hub.pem --key hub.key --ca load-ca.pem
      wait for two agents at 0.0.0.0:4690, then run
  keyway load agent hub.example.com:4690 --cert a.pem --key a.key --ca load-ca.pem
      on each of the other machines

An authority and a certificate for a machine, by openssl:
  openssl req -x509 -newkey ed25519 -nodes -subj /CN=load -days 30 -keyout load-ca.key \\
    -out load-ca.pem
  openssl req -x509 -newkey ed25519 -nodes -subj /CN=hub -days 30 -keyout hub.key -out hub.pem \\
    -CA load-ca.pem -CAkey load-ca.key -addext subjectAltName=DNS:hub.example.com \\
    -addext basicConstraints=critical,CA:FALSE")]
pub struct Serve {
    /// The scenario; files that it names are on each agent, below the folder that it runs in
    #[arg(value_name = "FILE")]
    pub file: PathBuf,
    /// How many agents to wait for
    #[arg(long, value_name = "N", value_parser = small_within::<1, 256>)]
    pub agents: u16,
    /// Where they call
    #[arg(long, value_name = "ADDRESS:PORT", default_value = "0.0.0.0:4690", value_parser = parse_address)]
    pub listen: SocketAddr,
    #[command(flatten)]
    pub who: Who,
    #[command(flatten)]
    pub output: Output,
}

/// Put load on servers as keyway load serve says
///
/// It calls until a server answers, does one run after the other, and stops at Ctrl-C. It reads no files
/// but those below its folder, whatever a scenario says.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  keyway load agent hub.example.com:4690 --cert a.pem --key a.key --ca load-ca.pem
      until Ctrl-C
  keyway load agent hub.example.com:4690 --cert a.pem --key a.key --ca load-ca.pem --once
      one run; fails if it does")]
pub struct Agent {
    /// Who tells it what to do
    #[arg(value_name = "HOST:PORT")]
    pub hub: String,
    #[command(flatten)]
    pub who: Who,
    /// Where files are that scenarios name
    #[arg(long, value_name = "DIR", default_value = ".")]
    pub folder: PathBuf,
    /// End after one run
    #[arg(long)]
    pub once: bool,
}
