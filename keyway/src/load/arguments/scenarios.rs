//! The arguments of runs: a short form, a scenario's file, a search for the knee.

use super::value::{rate, users};
use super::{Kept, Output, Target};
use crate::value::{count_within, some_time, time};
use clap::Args;
use keyway_folder::data::name;
use keyway_load::Users;
use std::path::PathBuf;
use std::time::Duration;

/// One kind of sequence: the scenario of that name of `keyway load init`, filled in.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  keyway load search
      as fast as answers come for 10 seconds, over 8 connections, on the server on ./keyway-data
  keyway load search ldap://localhost:1389 --rate 5k --duration 1m30s
      5,000 a second for a minute and a half
  keyway load search --operations 100k
      a hundred thousand, and how long they took
  keyway load auth ldaps://localhost:1636 --ca ca.pem --users logins.txt --user-password '{user.2}'
      as fast as answers come; a name and a password a line, with a tab between
  keyway load modify ldap://localhost:1389 --bind-dn cn=admin,cn=keyway --password-file pw \\
      --in-flight 16
      changes by the administrator, 16 on their way on each connection
  keyway load bind ldaps://localhost:1636 --ca ca.pem --reconnect-after 1 --rate 100 \\
      --fail-if 'p99 > 50ms'
      a connection and a TLS handshake for each, which count; the rule decides on the exit status
  keyway load add-delete ldap://localhost:1389 --template people.template --define suffix=o=x \\
      --bind-dn cn=admin,cn=keyway --password-file pw
      entries of a MakeLDIF template, from the first on that keyway data does not make of it

These are scenarios of keyway load init, filled in; --show-scenario prints them.
Lines: what came due, was done and failed in each second, response times, how many wait for a \
connection, what our busiest thread used of a core, and how late our own starts were.
Each operation is tried once before the start. A run of which almost all fails is ended after three \
seconds, and an account that the server does not take is not tried again.
The exit status is 0 if no rule of --fail-if came true and more went right than failed, else 1.")]
pub struct Short {
    #[command(flatten)]
    pub target: Target,
    /// Sequences a second [default: as many as are answered]
    #[arg(long, value_name = "N", value_parser = rate)]
    pub rate: Option<f64>,
    /// How long: 30s, 1m30s, 2h
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = some_time)]
    pub duration: Duration,
    /// So many sequences (5000, 5k, 5M) instead of a time; how long they took in all is printed
    #[arg(long, value_name = "N", value_parser = count_within::<1, { u64::MAX }>, conflicts_with = "duration")]
    pub operations: Option<u64>,
    /// How long before that, without counting
    #[arg(long, value_name = "TIME", default_value = "0s", value_parser = time)]
    pub warm_up: Duration,
    #[command(flatten)]
    pub output: Output,
    /// Print the scenario instead of running it
    #[arg(long)]
    pub show_scenario: bool,
}

/// Run a scenario's file
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  keyway load run mixed.toml
      run it; its [[threshold]]s decide on the exit status
  keyway load run mixed.toml --url ldap://other:1389 --output other.json
      the same against another server, with the result in a file
  keyway load run find.toml
      a [[phase]] with find = { ... } searches for the highest rate

docs/guide/load.md has every key; keyway load init writes files to begin with.")]
pub struct Run {
    /// The scenario
    #[arg(value_name = "FILE")]
    pub file: PathBuf,
    /// Ask this server instead (repeatable)
    #[arg(long = "url", value_name = "URL")]
    pub urls: Vec<String>,
    /// Trust this certificate authority instead, PEM
    #[arg(long, value_name = "FILE", conflicts_with = "insecure")]
    pub ca: Option<PathBuf>,
    /// Accept any certificate: an attacker on the network path can then read and change everything
    #[arg(long)]
    pub insecure: bool,
    /// A data folder, whose authority is trusted where the scenario names none
    #[arg(long = "data", value_name = "DIR", default_value = name::DEFAULT)]
    pub folder: PathBuf,
    #[command(flatten)]
    pub output: Output,
}

/// Find the highest rate at which a rule does not come true
///
/// The rate is doubled until the rule comes true or the rate is not reached; then the gap is halved until
/// it is less than 5 %; then the rate that was found is tried once more. A search that is ended early keeps
/// what it has found, and has failed.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  keyway load find search ldap://localhost:1389
      from 100 to 100,000 a second, until p99 > 20ms or errors > 0.1%
  keyway load find auth ldaps://localhost:1636 --ca ca.pem --from 50 --to 5000 \\
      --until 'p99 > 100ms' --hold 30s --output knee.json
      each rate for 30 seconds, after 6 that do not count; keyway load report makes a page of the
      result
  keyway load find mixed ldap://ds1 --bind-dn cn=admin --password-file pw --show-scenario \\
      > find.toml
  keyway load serve find.toml --agents 2 --cert hub.pem --key hub.key --ca load-ca.pem
      the same on two other machines

The exit status is 0 if a rate was good and the search came to its end, else 1.")]
pub struct Find {
    /// The scenario: auth, search, bind, modify, add-delete, mixed, or another one that keyway load init lists
    #[arg(value_name = "SCENARIO")]
    pub scenario: String,
    #[command(flatten)]
    pub target: Target,
    /// The first rate, in sequences a second
    #[arg(long, value_name = "N", default_value = "100", value_parser = rate)]
    pub from: f64,
    /// The highest
    #[arg(long, value_name = "N", default_value = "100000", value_parser = rate)]
    pub to: f64,
    /// The rule that must not come true
    #[arg(long, value_name = "RULE", default_value = "p99 > 20ms or errors > 0.1%")]
    pub until: String,
    /// How long a rate is held
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = some_time)]
    pub hold: Duration,
    #[command(flatten)]
    pub kept: Kept,
    /// Print the scenario instead of running it; keyway load serve runs it on several machines
    #[arg(long)]
    pub show_scenario: bool,
}

/// Write a scenario to begin with, with comments; without a name list them
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  keyway load init
      what there is: one for each LDAP job type of SLAMD
  keyway load init auth-weighted > auth.toml
      write one; the server, users and accounts in it are to be changed
  keyway load init mixed ldaps://ds.example.com --ca ca.pem --users 0-249999 > mixed.toml
      the same with these filled in")]
pub struct Init {
    /// Which one
    #[arg(value_name = "NAME")]
    pub name: Option<String>,
    /// The server
    #[arg(value_name = "URL")]
    pub url: Option<String>,
    /// The certificate authority to trust
    #[arg(long, value_name = "FILE")]
    pub ca: Option<PathBuf>,
    /// Who binds on each connection
    #[arg(long, value_name = "DN", requires = "password_file")]
    pub bind_dn: Option<String>,
    /// The file with the password of --bind-dn
    #[arg(long, value_name = "FILE", requires = "bind_dn")]
    pub password_file: Option<PathBuf>,
    /// The DN that all entries are below
    #[arg(long, value_name = "DN", default_value = "dc=example,dc=com")]
    pub base: String,
    /// The users: FIRST-LAST, or a file
    #[arg(long, value_name = "FIRST-LAST|FILE", default_value = "0-9999", value_parser = users)]
    pub users: Users,
}

/// Wait until a server answers
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  keyway load wait ldap://localhost:1389 && keyway load run mixed.toml
      begin when the server is there
  keyway load wait ldaps://localhost:1636 --ca ca.pem --at-most 2m
      fail if it is not within two minutes")]
pub struct Wait {
    /// The server [default: the one that runs on --data]
    #[arg(value_name = "URL")]
    pub url: Option<String>,
    /// The certificate authority to trust, PEM [default: those of this system, and ca.pem of --data]
    #[arg(long, value_name = "FILE", conflicts_with = "insecure")]
    pub ca: Option<PathBuf>,
    /// Take any certificate
    #[arg(long)]
    pub insecure: bool,
    /// The data folder of a server on this machine
    #[arg(long = "data", value_name = "DIR", default_value = name::DEFAULT)]
    pub folder: PathBuf,
    /// How long
    #[arg(long, value_name = "TIME", default_value = "60s", value_parser = time)]
    pub at_most: Duration,
}
