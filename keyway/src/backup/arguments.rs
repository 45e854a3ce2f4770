//! The arguments of `keyway backup` and `keyway restore`.

use crate::administrator::Administrator;
use crate::data_flag::Data;
use crate::value::{count_within, moment, some_time};
use clap::{ArgGroup, Args, Subcommand};
use keyway_folder::data::name;
use keyway_service::backup::{Place, Point, SecretSource, With};
use std::path::PathBuf;
use std::time::Duration;

/// Back a directory up while it runs: encrypted, and each piece of data stored once
#[derive(Debug, Subcommand)]
#[command(after_help = "\
From nothing to a restored server:
  keyway backup create /mnt/backup --key-file backup.key --with keys,config
  keyway backup list /mnt/backup --key-file backup.key
  keyway backup verify /mnt/backup --key-file backup.key --restore
  keyway restore /mnt/backup --key-file backup.key --to restored
  keyway up --data restored

Keep a copy of the key file (or the passphrase) elsewhere: nothing can be read without it. A backup
is the whole store at one moment; only what the repository does not have yet is written. keyway
backup run makes them at intervals and saves each change in between, so that a restore can go to any
moment.")]
pub enum Backup {
    Create(Create),
    List(List),
    Show(Show),
    Verify(Verify),
    Prune(Prune),
    Run(Run),
}

/// The repository, and what it is encrypted under.
#[derive(Debug, Args)]
#[command(group = ArgGroup::new("secret").multiple(false))]
pub struct Repository {
    /// The folder that has the backups
    #[arg(value_name = "REPOSITORY")]
    repository: PathBuf,
    /// They are encrypted under the key in this file; the first backup create or run makes it if it is not there
    #[arg(long, value_name = "FILE", group = "secret")]
    key_file: Option<PathBuf>,
    /// They are encrypted under the passphrase in this file
    #[arg(long, value_name = "FILE", group = "secret")]
    passphrase_file: Option<PathBuf>,
    /// They are encrypted under this key for AES-256-GCM of a running cryptod (keyway key generate NAME
    /// --algorithm aes-256-gcm --for user:NAME); only a first backup has to name it
    #[arg(long, value_name = "NAME", group = "secret")]
    cryptod_key: Option<String>,
    /// The socket of the cryptod that holds that key
    #[arg(long, value_name = "PATH")]
    cryptod: Option<PathBuf>,
}

impl Repository {
    /// Where it is, and its secret.
    pub fn place(&self) -> Place {
        let file = |path: &Option<PathBuf>, of: fn(PathBuf) -> SecretSource| path.clone().map(of);
        let secret = file(&self.key_file, SecretSource::KeyFile)
            .or_else(|| file(&self.passphrase_file, SecretSource::PassphraseFile));
        let held = || {
            let is_named = self.cryptod_key.is_some() || self.cryptod.is_some();
            let of_folder = || name::socket_at(name::DEFAULT.as_ref());
            is_named.then(|| SecretSource::Cryptod {
                name: self.cryptod_key.clone(),
                socket: self.cryptod.clone().unwrap_or_else(of_folder),
            })
        };
        Place { folder: self.repository.clone(), secret: secret.or_else(held) }
    }
}

/// Make a backup, also while a server runs
///
/// It is the store as it is when this begins, whatever is written meanwhile. The first backup makes the repository in
/// an empty or missing folder.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  keyway backup create /mnt/backup --key-file backup.key --with keys,config
      all that a new server needs; the key file is made if there is none
  keyway backup create /mnt/backup --passphrase-file passphrase --data /srv/directory
      the store alone, encrypted under a passphrase
  keyway backup create /mnt/backup --cryptod-key backups --cryptod /run/keyway/cryptod.socket
      encrypted under a key that a cryptod holds, on another machine's hardware token, say")]
pub struct Create {
    #[command(flatten)]
    pub repository: Repository,
    #[command(flatten)]
    pub data: Data,
    /// What to take along beside the store: config (keyway.toml, schema), keys (certificates, private keys, the
    /// passwords' pepper, the administrator's password file), or keys,config
    #[arg(long, value_name = "PARTS", default_value = "config")]
    pub with: With,
    /// Answer with one line of JSON
    #[arg(long)]
    pub json: bool,
}

/// List the backups, oldest first
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  keyway backup list /mnt/backup --key-file backup.key
      name, entries, position of the feed, size, and what is there beside the store")]
pub struct List {
    #[command(flatten)]
    pub repository: Repository,
    /// A line of JSON for each
    #[arg(long)]
    pub json: bool,
}

/// Show one backup: its state, its files, and what a server made of it would lack
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  keyway backup show /mnt/backup --key-file backup.key
      the newest one
  keyway backup show /mnt/backup --key-file backup.key --backup 00000007-20261124T083000Z --json
      another one, for a program")]
pub struct Show {
    #[command(flatten)]
    pub repository: Repository,
    /// The backup's name
    #[arg(long, value_name = "NAME", default_value = "latest")]
    pub backup: String,
    /// Answer with one line of JSON
    #[arg(long)]
    pub json: bool,
}

/// Read and decrypt all that the repository has, and say what is damaged
///
/// With --restore the newest backup is restored into a folder of its own as well, opened and checked as keyway
/// directory check does, and removed. The exit status is 1 if anything is damaged.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  keyway backup verify /mnt/backup --key-file backup.key
      each piece is read, decrypted and compared with its name
  keyway backup verify /mnt/backup --key-file backup.key --restore --data keyway-data
      and the newest one is restored to see that it opens; keyway doctor knows of it then")]
pub struct Verify {
    #[command(flatten)]
    pub repository: Repository,
    /// Restore one, too, to see that it opens
    #[arg(long)]
    pub restore: bool,
    /// The folder in which it is restored for that time
    #[arg(long, value_name = "DIR", default_value = "/var/tmp", requires = "restore")]
    pub scratch: PathBuf,
    /// The backup that is restored
    #[arg(long, value_name = "NAME", requires = "restore")]
    pub backup: Option<String>,
    /// Move damaged files to REPOSITORY/damaged: the next backup writes anew what the directory still has of them,
    /// which mends earlier backups too
    #[arg(long)]
    pub set_aside: bool,
    /// The data folder that is to note it: keyway directory history and keyway doctor go by that
    #[arg(long = "data", value_name = "DIR")]
    pub noted_in: Option<PathBuf>,
    /// Answer with one line of JSON
    #[arg(long)]
    pub json: bool,
}

/// Remove old backups, and what only they needed
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  keyway backup prune /mnt/backup --key-file backup.key --keep-last 10 --keep-daily 30 --dry-run
      say what would go
Say with --keep flags which backups stay; the newest one always does.")]
pub struct Prune {
    #[command(flatten)]
    pub repository: Repository,
    /// Keep so many of the newest
    #[arg(long, value_name = "N", default_value_t = 0, value_parser = count_within::<0, 100_000>)]
    pub keep_last: u64,
    /// Keep the newest of each of so many days
    #[arg(long, value_name = "N", default_value_t = 0, value_parser = count_within::<0, 100_000>)]
    pub keep_daily: u64,
    /// Keep the newest of each of so many weeks
    #[arg(long, value_name = "N", default_value_t = 0, value_parser = count_within::<0, 100_000>)]
    pub keep_weekly: u64,
    /// Keep the newest of each of so many months
    #[arg(long, value_name = "N", default_value_t = 0, value_parser = count_within::<0, 100_000>)]
    pub keep_monthly: u64,
    /// Only say what would go
    #[arg(long)]
    pub dry_run: bool,
    /// Answer with one line of JSON
    #[arg(long)]
    pub json: bool,
}

/// Make backups at intervals, and save each change in between, until it is stopped
///
/// A whole backup is made at the start if there is none that is young enough, and whenever changes are missing. At the
/// first failure it ends with status 1, for its supervisor to start it again; DIR/history.jsonl, error.log and the page
/// warn of it.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  keyway backup run /mnt/backup --key-file backup.key --with keys,config --every 15m --full-every 1d
      at most 15 minutes of changes are lost with the machine

A systemd unit:
  [Unit]
  After=keyway.service
  [Service]
  ExecStart=/usr/bin/keyway backup run /mnt/backup --data /var/lib/keyway --with keys,config \\
      --key-file /etc/keyway/backup.key
  Restart=on-failure              RestartSec=60
  User=keyway")]
pub struct Run {
    #[command(flatten)]
    pub repository: Repository,
    #[command(flatten)]
    pub data: Data,
    /// The time between two looks for changes
    #[arg(long, value_name = "TIME", default_value = "15m", value_parser = some_time)]
    pub every: Duration,
    /// The time between two whole backups
    #[arg(long, value_name = "TIME", default_value = "1d", value_parser = some_time)]
    pub full_every: Duration,
    /// What whole backups have beside the store: keys, config, or keys,config
    #[arg(long, value_name = "PARTS", default_value = "config")]
    pub with: With,
    /// A line of JSON for each step
    #[arg(long)]
    pub json: bool,
}

/// Make a new data folder of a backup, or bring single entries back
///
/// With --to it makes a new folder, which gets its name when all of it is on the disk; a restore that is killed leaves
/// none. The store in it gets an identity of its own, so that nothing that followed the old one takes it for that.
///
/// With --entry or --subtree it changes the directory that is there, in the running server, or in the data folder if
/// none runs: an entry that is gone comes back as it was, with its entryUUID, its passwords, and its memberships in
/// groups; one that differs is changed back. No entry is ever deleted.
#[derive(Debug, Args)]
#[command(
    group = ArgGroup::new("target").required(true),
    mut_arg("folder", |data| data.conflicts_with("to").help("The data folder of the entries")),
    mut_arg("password_file", |file| file.conflicts_with("to")),
    after_help = "\
Examples:
  keyway restore /mnt/backup --key-file backup.key --to restored
      the newest backup; then: keyway up --data restored
  keyway restore /mnt/backup --key-file backup.key --to restored --at 2026-11-24T08:30
      as it was then (UTC); the changes after a backup are there if keyway backup run saved them
  keyway restore /mnt/backup --key-file backup.key --to restored --position 1199
      as it was behind that commit (keyway directory changes shows positions)
  keyway restore /mnt/backup --key-file backup.key --dry-run \\
      --entry uid=ann,ou=People,dc=example,dc=com
      show what would bring one entry back into the directory that is there
  keyway restore /mnt/backup --key-file backup.key --at 2h --data /srv/directory \\
      --subtree ou=People,dc=example,dc=com
      an entry and all below it, as they were two hours ago; entries that are new stay"
)]
pub struct Restore {
    #[command(flatten)]
    pub repository: Repository,
    /// The folder that is made
    #[arg(long, value_name = "DIR", group = "target")]
    pub to: Option<PathBuf>,
    /// The entry that comes back
    #[arg(long, value_name = "DN", group = "target")]
    pub entry: Option<String>,
    /// The entry that comes back with all below it
    #[arg(long, value_name = "DN", group = "target")]
    pub subtree: Option<String>,
    /// The backup's name [default: the newest before the moment that is asked for]
    #[arg(long, value_name = "NAME")]
    pub backup: Option<String>,
    /// As it was at this time (RFC 3339 or its beginning, UTC without an offset), or so long ago (30m, 2h, 7d)
    #[arg(long, value_name = "TIME", value_parser = moment, conflicts_with = "position")]
    pub at: Option<u64>,
    /// As it was behind the commit of this position
    #[arg(long, value_name = "N", value_parser = count_within::<0, { u64::MAX }>)]
    pub position: Option<u64>,
    #[command(flatten)]
    pub data: Data,
    /// Give memberships that they had in the backup also to entries that are in their places
    #[arg(long, conflicts_with = "to")]
    pub memberships: bool,
    /// Show the changes as LDIF, and make none
    #[arg(long, conflicts_with = "to")]
    pub dry_run: bool,
    /// The folder in which the backup is restored for that time
    #[arg(long, value_name = "DIR", default_value = "/var/tmp", conflicts_with = "to")]
    pub scratch: PathBuf,
    #[command(flatten)]
    pub administrator: Administrator,
    /// Answer with one line of JSON, or with --dry-run one for each change
    #[arg(long)]
    pub json: bool,
}

impl Restore {
    /// The moment that is asked for.
    pub fn point(&self) -> Option<Point> {
        self.position.map(Point::Position).or_else(|| self.at.map(Point::Time))
    }
}
