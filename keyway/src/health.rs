//! `keyway health`: one line and an exit status, for probes.

use crate::data_flag::Data;
use crate::provider::provider;
use crate::value::some_time;
use clap::Args;
use keyway_codec::message::Scope;
use keyway_config::Running;
use keyway_host::failure::Failure;
use keyway_host::output;
use keyway_load::Trust;
use keyway_service::cluster::{self, Health};
use keyway_watch::ldap::{ConnectOptions, SearchClient, ServerUrl};
use std::path::Path;
use std::time::Duration;

/// How long the server may take to answer.
const WAIT: Duration = Duration::from_secs(5);

/// Say whether the server that runs on a data folder answers, and whether clients may be sent to it
///
/// It sends a search over LDAP, without a login. The exit status is 1 if there is no answer within five seconds, and
/// with --ready also if the server is fenced, or is still asking the other members of its cluster which one writes.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  keyway health
      does it answer? for a liveness probe
  keyway health --ready --max-lag 5s
      may clients be sent to it? for a readiness probe; a follower that is connected to no writer is not ready
      either, so without a writer no follower is; leave out --max-lag if reads are to go on then")]
pub struct HealthOf {
    /// Also ask how it is in its cluster
    #[arg(long)]
    pub ready: bool,
    /// How far a follower may be behind
    #[arg(long, value_name = "TIME", requires = "ready", value_parser = some_time)]
    pub max_lag: Option<Duration>,
    #[command(flatten)]
    pub data: Data,
    /// Answer with one line of JSON
    #[arg(long)]
    pub json: bool,
}

/// Asks it. Returns whether all is well.
///
/// # Errors
/// If it does not answer.
pub fn run(arguments: &HealthOf) -> Result<bool, Failure> {
    let folder = &arguments.data.folder;
    answers(folder)?;
    let health = match arguments.ready {
        true => cluster::health(folder, arguments.max_lag)?,
        false => Health { why_not: None, status: None },
    };
    match (arguments.json, arguments.ready) {
        (true, _) => output::json(&health.json())?,
        (false, true) => output::text(&health)?,
        (false, false) => output::text("it answers")?,
    }
    Ok(health.why_not.is_none())
}

/// Has it answer a search.
fn answers(folder: &Path) -> Result<(), Failure> {
    let running = Running::look(folder)
        .ok_or_else(|| Failure::new(format!("no server runs on {}", folder.display())))?;
    let url = match (running.ldaps, running.ldap) {
        (Some(address), _) => ServerUrl::of_own(address),
        (None, Some(address)) => ServerUrl::parse("keyway health", &format!("ldap://{address}"))?,
        (None, None) => {
            return Err(Failure::new(
                "it listens neither for LDAP nor for LDAPS (listen, listen_tls)",
            ));
        }
    };
    let options = ConnectOptions {
        // It is asked for nothing secret, and is told nothing.
        trust: Trust { insecure: true, ..Trust::default() },
        start_tls: false,
        connect_wait: WAIT,
        answer_wait: WAIT,
        provider,
    };
    // A refusal is an answer too.
    let mut client = SearchClient::open(&url, &options, &None)?;
    client.search("", Scope::Base, "(objectClass=*)", &["1.1"]).map(drop)
}
