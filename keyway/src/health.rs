//! `keyway health`: one line and an exit status, for probes.

use crate::data_flag::DataAndForm;
use crate::provider::provider;
use crate::value::some_time;
use clap::Args;
use keyway_config::Running;
use keyway_host::failure::Failure;
use keyway_service::cluster::{self, Health};
use keyway_watch::ldap::SearchClient;
use std::fs;

/// Say whether the server that runs on a data folder answers, and whether clients may be sent to it
///
/// It sends a search over LDAP, without a login. The exit status is 1 if there is no answer within five seconds, and
/// with --ready also if the server is fenced or has to rejoin, or is still asking the other members of its cluster which
/// one writes.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  keyway health
      does it answer? for a liveness probe
  keyway health --ready --max-lag 5s
      for a readiness probe; without a writer no follower is ready, unless --max-lag is left out")]
pub struct HealthOf {
    /// Also ask how it is in its cluster
    #[arg(long)]
    pub ready: bool,
    /// How far a follower may be behind
    #[arg(long, value_name = "TIME", requires = "ready", value_parser = some_time)]
    pub max_lag: Option<std::time::Duration>,
    #[command(flatten)]
    pub data: DataAndForm,
}

/// Asks it. Returns whether all is well.
///
/// # Errors
/// If it does not answer.
pub fn run(arguments: &HealthOf) -> Result<bool, Failure> {
    let folder = &arguments.data.folder;
    // Another user's folder does not say whether a server runs.
    fs::read_dir(folder).map_err(|why| Failure::system("read", folder, &why))?;
    let running = Running::look(folder)
        .ok_or_else(|| Failure::new(format!("no server runs on {}", folder.display())))?;
    SearchClient::probe_own(running.ldaps, running.ldap, provider)?;
    let asked = arguments.ready.then(|| cluster::health(folder, arguments.max_lag)).transpose()?;
    Health::say(asked.as_ref(), arguments.data.json)
}
