//! The arguments of `keyway config`.

use crate::data_flag::Data;
use clap::{Args, Subcommand};
use std::path::PathBuf;

/// Show, change and compare settings
///
/// Settings are in DIR/keyway.toml, with comments. Their names are those of the file with the section in
/// front: limits.idle_max_s, tls.certificate, indexes.mail.
#[derive(Debug, Subcommand)]
pub enum Config {
    Get(Get),
    Set(Set),
    Diff(Diff),
    Check(Check),
    Accept(Accept),
    Restore(Restore),
}

/// Show settings, with their units and where they come from
///
/// Those that are in force in the server that runs on the folder; if none runs, those that the next one
/// would start with.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  keyway config get
      all settings, as lines of TOML
  keyway config get limits.idle_max_s
      one: limits.idle_max_s = 3600  # seconds; default
  keyway config get limits --data /srv/directory
      a section
  keyway config get password.policy --json
      one JSON line: key, value, unit, from, and at_next_start if another value waits for that")]
pub struct Get {
    /// A setting or a section [default: all]
    #[arg(value_name = "KEY")]
    pub key: Option<String>,
    #[command(flatten)]
    pub data: Data,
    /// Show them as one line of JSON
    #[arg(long)]
    pub json: bool,
}

/// Change settings in keyway.toml, and have the running server take them
///
/// The file keeps its comments, its layout and its mode, and is replaced whole or not at all. The whole
/// configuration is checked first. A server that runs on the folder is told to read it again (SIGHUP); if
/// it refuses, the file is put back as it was. Settings that wait for the next start, or over which a flag of
/// the server wins, are said.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  keyway config set limits.idle_max_s 600
      a number; texts need no quotes, lists take several values
  keyway config set tls.versions 1.3
      a list of one
  keyway config set tls.certificate=/etc/ssl/ldap.pem tls.key=/etc/ssl/ldap.key
      several at once, which are checked and taken together
  keyway config set indexes.carLicense equality presence
      an index more
  keyway config set tls.client_ca []
      an empty list
  keyway config set integrity.unique '{ attributes = [\"uid\"], below = \"dc=example,dc=com\" }'
      a list of tables, each as TOML's inline table; those that stay keep their comments
  keyway config set limits.idle_max_s --default
      back to its default; an index that has no default is removed")]
pub struct Set {
    /// The setting, or KEY=VALUE for each of several
    #[arg(value_name = "KEY")]
    pub key: String,
    /// Its value; each of them, if it is a list
    #[arg(value_name = "VALUE", allow_negative_numbers = true)]
    pub values: Vec<String>,
    /// Give it its default value
    #[arg(long, conflicts_with = "values")]
    pub default: bool,
    #[command(flatten)]
    pub data: Data,
    /// Say what was done as one line of JSON
    #[arg(long)]
    pub json: bool,
}

/// Compare the file with what is in force, or two files
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  keyway config diff
      which settings of DIR/keyway.toml the running server does not have
  keyway config diff keyway.toml new.toml
      what another file would change; keyway acl diff says what its rules mean")]
pub struct Diff {
    /// A file
    #[arg(value_name = "OLD", requires = "new")]
    pub old: Option<PathBuf>,
    /// The other one
    #[arg(value_name = "NEW")]
    pub new: Option<PathBuf>,
    #[command(flatten)]
    pub data: Data,
    /// Say it as one line of JSON
    #[arg(long)]
    pub json: bool,
}

/// Check a configuration, and the certificates that it names, without a start
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  keyway config check
      DIR/keyway.toml, with the schema and the certificates of DIR
  keyway config check new.toml --data /srv/directory
      another file, as if it were that of the folder")]
pub struct Check {
    /// The file [default: DIR/keyway.toml]
    #[arg(value_name = "FILE")]
    pub file: Option<PathBuf>,
    #[command(flatten)]
    pub data: Data,
    /// Say it as one line of JSON
    #[arg(long)]
    pub json: bool,
}

/// Take the configuration as it is, although it looks cut
///
/// A server remembers the configuration that was in force last, and refuses a file that looks like what is left
/// of it: gone, empty, cut, or without its access rules. With the default values in the place of those that
/// are missing others could have access. This says that the file is meant to be as it is.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  keyway config accept
      DIR/keyway.toml is as it should be: the running server takes it, or the next start
  keyway config accept --default
      DIR/keyway.toml is gone: begin again with the default one and its access rules")]
pub struct Accept {
    /// Write the default configuration in the place of one that is gone
    #[arg(long)]
    pub default: bool,
    #[command(flatten)]
    pub data: Data,
    /// Say what was done as one line of JSON
    #[arg(long)]
    pub json: bool,
}

/// Write the configuration that was in force last
///
/// The store remembers its text. The content that keyway.toml has now is replaced, and kept in
/// keyway.toml.before-restore; a running server takes the text.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  keyway config restore --data /srv/directory
      after keyway.toml was lost or damaged")]
pub struct Restore {
    #[command(flatten)]
    pub data: Data,
    /// Say what was done as one line of JSON
    #[arg(long)]
    pub json: bool,
}
