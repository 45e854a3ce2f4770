//! The arguments of `keyway acl`.

use crate::data_flag::Data;
use clap::{Args, Subcommand};
use keyway_server::access::{Rights, Strength};
use std::net::IpAddr;
use std::path::PathBuf;

/// Query the access rules (in DIR/keyway.toml and in entries): which client may do what, why, and what would change
#[derive(Debug, Subcommand)]
#[command(after_help = "\
explain and who-can look at the entries of the data folder as well, also while a server has it
open. Any user who may read the folder may ask; nothing is changed.")]
pub enum Acl {
    Explain(Explain),
    WhoCan(WhoCan),
    Diff(Diff),
}

/// Say whether a client may do something, and which rule decides
///
/// If it is allowed, the rule that allows it is shown, with its line in the file or the entry that
/// holds it (keywayAccessRule). If it is refused, the rules that come nearest are shown, with the condition that
/// fails in each. Groups are evaluated as they are now.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  keyway acl explain ann uid=bob,ou=People,dc=example,dc=com
      all that the user with uid ann may do to an entry
  keyway acl explain ann uid=bob,ou=People,dc=example,dc=com --attribute mail --right write
      may ann change bob's mail address? Which rule allows it, or which condition fails?
  keyway acl explain anonymous dc=example,dc=com --right search --from 192.0.2.7 --over tls
      an anonymous client, from that address, over TLS
  keyway acl explain ann uid=bob,ou=People,dc=example,dc=com --rules new.toml
      under the rules of another file, before it is put in place
  keyway acl explain ann uid=bob,ou=People,dc=example,dc=com --json
      one line of JSON, with every rule and the condition that fails in it")]
pub struct Explain {
    /// A DN, a uid, or 'anonymous'
    #[arg(value_name = "WHO")]
    pub who: String,
    /// The DN of an entry; '' for the root DSE
    #[arg(value_name = "WHAT")]
    pub what: String,
    /// The attribute that it is about [default: any]
    #[arg(long, value_name = "NAME")]
    pub attribute: Option<String>,
    /// The right: read, search, compare, write, add, delete, rename or reset [default: each]
    #[arg(long, value_name = "RIGHT", value_parser = one_right)]
    pub right: Option<Rights>,
    /// Where the client is
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1")]
    pub from: IpAddr,
    /// How strong its connection is: any, private, tls or certificate
    #[arg(long, value_name = "STRENGTH", default_value = "tls", value_parser = strength)]
    pub over: Strength,
    #[command(flatten)]
    pub asked: Asked,
    /// Answer with one line of JSON
    #[arg(long)]
    pub json: bool,
}

/// Which rules are asked, and about which entries.
#[derive(Debug, Args)]
pub struct Asked {
    /// Take the rules of this file instead of DIR/keyway.toml
    #[arg(long, value_name = "FILE")]
    pub rules: Option<PathBuf>,
    #[command(flatten)]
    pub data: Data,
}

/// List the clients that the rules let do something
///
/// A rule's conditions on the entry are checked if one is named with --at; otherwise every rule is
/// listed that allows it on some entry. Members of groups are counted, those of nested groups too.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  keyway acl who-can read userPassword
      all clients that a rule lets read passwords anywhere
  keyway acl who-can write mail --at uid=ann,ou=People,dc=example,dc=com
      all clients that may change this entry's mail address
  keyway acl who-can reset userPassword --json
      as one line of JSON")]
pub struct WhoCan {
    /// read, search, compare, write, add, delete, rename or reset
    #[arg(value_name = "RIGHT", value_parser = one_right)]
    pub right: Rights,
    /// The attribute; for add, delete and rename any will do
    #[arg(value_name = "ATTRIBUTE")]
    pub attribute: String,
    /// The entry that it is about
    #[arg(long, value_name = "DN")]
    pub at: Option<String>,
    #[command(flatten)]
    pub asked: Asked,
    /// Answer with one line of JSON
    #[arg(long)]
    pub json: bool,
}

/// Say what becomes allowed and what is lost when the rules of one file take the place of another's
///
/// A rule is compared with all that cover it in the other file: that let at least the same subjects
/// do at least the same on at least the same entries. Rules in entries are not looked at. A right that
/// several rules allow only together may be listed though nothing changes; a change is always listed.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  keyway acl diff keyway-data/keyway.toml new.toml
      before new.toml is put in place and the server told with SIGHUP
  keyway acl diff old.toml new.toml --json
      as one line of JSON: lists \"gained\" and \"lost\"")]
pub struct Diff {
    /// The configuration that is in force
    #[arg(value_name = "OLD")]
    pub old: PathBuf,
    /// The one that is to be
    #[arg(value_name = "NEW")]
    pub new: PathBuf,
    /// Answer with one line of JSON
    #[arg(long)]
    pub json: bool,
}

fn one_right(text: &str) -> Result<Rights, String> {
    let one = Rights::EACH.iter().find(|(name, _)| *name == text);
    one.map(|(_, right)| *right).ok_or_else(|| {
        let names: Vec<&str> = Rights::EACH.iter().map(|(name, _)| *name).collect();
        format!("it is not one of {}", names.join(", "))
    })
}

fn strength(text: &str) -> Result<Strength, String> {
    Strength::from_name(text)
        .ok_or_else(|| "it is not one of any, private, tls, certificate".to_owned())
}
