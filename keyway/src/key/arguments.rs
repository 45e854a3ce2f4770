//! What `keyway key` can be asked for.

use clap::{Args, Subcommand};
use std::path::PathBuf;

/// Look after the keys that a running cryptod holds: its clients name them and never see them
#[derive(Debug, Subcommand)]
#[command(after_help = "\
Who a key is for, with --for (repeatable), is 'everybody', or conditions that must all hold, joined by
'+': user:NAME, group:NAME, program:/PATH. At first a key is for nobody, root included.

Only the daemon's own user and root look after its keys. What they do, and who is refused a key, is in
its audit log (DIR/cryptod/keys/audit.log).")]
pub enum Key {
    Generate(Generate),
    Import(Import),
    List(List),
    /// Show the public half of a key, in base64
    #[command(after_help = "\
Examples:
  keyway key public web")]
    Public(Named),
    /// Give a key a new version; older ones still decrypt what they encrypted
    #[command(after_help = "\
Examples:
  keyway key rotate vault

Sessions that are open with the key end; their clients open new ones by themselves.")]
    Rotate(Named),
    /// Let others use a key, too
    #[command(after_help = "\
Examples:
  keyway key allow web --for user:haproxy+program:/usr/sbin/haproxy")]
    Allow(Callers),
    /// Take a key from somebody who was allowed to use it
    #[command(after_help = "\
Examples:
  keyway key forbid web --for user:haproxy

Each of them is written as when it was allowed.")]
    Forbid(Callers),
    /// End the use of a key, at once and by everybody
    #[command(after_help = "\
Examples:
  keyway key revoke web

There is no way back. What is revoked can be deleted.")]
    Revoke(Named),
    /// Delete a key that was revoked
    #[command(after_help = "\
Examples:
  keyway key delete web

What was encrypted under it is lost.")]
    Delete(Named),
}

/// Where the daemon is.
#[derive(Debug, Args)]
pub struct At {
    /// The daemon's data folder
    #[arg(long = "data", value_name = "DIR", default_value = "keyway-data")]
    pub folder: PathBuf,
    /// Where the daemon listens [default: DIR/cryptod/socket]
    #[arg(long, value_name = "PATH")]
    pub socket: Option<PathBuf>,
    /// Answer with one line of JSON
    #[arg(long)]
    pub json: bool,
}

/// What a key is for.
#[derive(Debug, Args)]
pub struct Policy {
    /// An algorithm that it is for (keyway crypto list); repeatable for RSA keys
    #[arg(long = "algorithm", value_name = "NAME", required = true)]
    pub algorithms: Vec<String>,
    /// A purpose: sign, decrypt, encrypt, mac, derive, agree or wrap (repeatable)
    /// [default: all that the algorithm has, but to wrap]
    #[arg(long = "purpose", value_name = "PURPOSE")]
    pub purposes: Vec<String>,
    /// Who may use it (repeatable)
    #[arg(long = "for", value_name = "WHO")]
    pub callers: Vec<String>,
}

/// Make a new key
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  keyway key generate web --algorithm ecdsa-p256-sha-256 --for user:www-data
  keyway key generate vault --algorithm aes-256-gcm --purpose decrypt --for program:/usr/bin/reader
  keyway key generate pepper --algorithm argon2id --for everybody")]
pub struct Generate {
    /// What it is to be called: lower-case letters, digits, dashes, dots and underscores
    pub name: String,
    #[command(flatten)]
    pub policy: Policy,
    #[command(flatten)]
    pub at: At,
}

/// Take in a key that was made elsewhere
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  keyway key import web server.key --algorithm rsa-pss-sha-256 --algorithm rsa-pkcs1-sha-256
      a private key as PEM or DER (PKCS#8, PKCS#1, SEC 1)
  openssl genpkey -algorithm ed25519 | keyway key import signer - --algorithm ed25519
  keyway key import shared secret.bin --algorithm hmac-sha-256 --for group:app
      a secret: the bytes of the file

Delete the file afterwards; the daemon keeps its own copy, sealed.")]
pub struct Import {
    /// What it is to be called
    pub name: String,
    /// The file, or '-' for standard input
    pub file: PathBuf,
    #[command(flatten)]
    pub policy: Policy,
    #[command(flatten)]
    pub at: At,
}

/// Show the keys that there are, what they are for, and how often they were used
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  keyway key list
  keyway key list --json")]
pub struct List {
    #[command(flatten)]
    pub at: At,
}

/// A key.
#[derive(Debug, Args)]
pub struct Named {
    /// Which
    pub name: String,
    #[command(flatten)]
    pub at: At,
}

/// A key, and who may use it or may not.
#[derive(Debug, Args)]
pub struct Callers {
    #[command(flatten)]
    pub key: Named,
    /// Who (repeatable)
    #[arg(long = "for", value_name = "WHO", required = true)]
    pub callers: Vec<String>,
}
