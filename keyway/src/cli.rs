//! The command line: what can be asked of the program, and how it says so.

use crate::acl::Acl;
use crate::backup::{Backup, Restore};
use crate::changes::Changes;
use crate::client_certificate::ClientCertificate;
use crate::cluster::Cluster;
use crate::config::Config;
use crate::crypto::Crypto;
use crate::cryptod::Cryptod;
use crate::data_flag::Data;
use crate::decode::Decode;
use crate::doctor::Doctor;
use crate::esp::Esp;
use crate::generate::{Compression, Generate};
use crate::health::HealthOf;
use crate::history_of::HistoryOf;
use crate::index;
use crate::key::Key;
use crate::load::Load;
use crate::log::Log;
use crate::quic::Quic;
use crate::snapshot::Snapshot;
use crate::ssh_agent::SshAgent;
use crate::undo::Undo;
use crate::value::{self, count_within};
use crate::vm::Vm;
use crate::web::Web;
use clap::error::ErrorKind;
use clap::{Args, Parser, Subcommand};
use keyway_codec::certificate::Name;
use keyway_config::{CollectorUrl, MemberUrl, Overrides};
use keyway_folder::unix_socket;
use keyway_folder::user::Account;
use keyway_host::failure::Failure;
use keyway_host::listeners::{self, Listen};
use keyway_host::output::OutputMode;
use keyway_host::supervised::Inherited;
use keyway_service::cluster::{JoinToken, join_token, member_name};
use keyway_service::master;
use keyway_service::options::{FollowOptions, LdapdOptions, ServeOptions, UpOptions};
use std::ffi::OsString;
use std::path::PathBuf;

/// A directory server (LDAP) whose every cryptographic operation goes through one engine
#[derive(Debug, Parser)]
#[command(
    name = "keyway",
    version,
    arg_required_else_help = true,
    after_help = "\
Start here:
  keyway up                    a directory with 1,000 sample people, on this machine only
  keyway up --help             what it makes, where it listens, how to bring your own data
  keyway top                   what it is doing, once a second (in another terminal)
  keyway doctor                what endangers the data, on this machine and its disks
  keyway health --ready        does it answer, and may clients be sent to it: for probes
  keyway config get            every setting, its unit and where it comes from
  keyway acl explain --help    who may do what in it, and why
  keyway history DN            the changes of an entry: what, when, and by which author
  keyway backup --help         encrypted backups while it runs, and how to restore one
  keyway cluster --help        several servers of one directory
  keyway snapshot create       keeps this moment of it, to go back to after a risky change
  keyway crypto test           is the cryptography right on this machine, and how fast
  keyway cryptod               the engine for other processes, which see no key; with keyway ldapd
                               the two processes of keyway up, each started alone
  keyway vm check              what virtual machines lack to use the keys of their host
  keyway ssh-agent             an SSH agent with the keys that you may use in a cryptod
  keyway esp up                an IPsec gateway, whose keys can be in a cryptod
  keyway quic perf             QUIC on this machine: how fast, and what the time goes to
  keyway data make             entries by the million, of MakeLDIF's templates
  keyway load                  load on this directory or another one, and what it does to it
  keyway decode FILE           what LDAP clients and servers said, from a capture of their packets

With --json a failure is one line of JSON too, where the answer would have been:
  {\"event\":\"failed\",\"error\":\"what, where, and what to do\",\"status\":1}
The exit status is 1 if it could not be done, 2 if the arguments make no sense."
)]
pub struct Cli {
    #[command(subcommand)]
    pub command: Command,
}

/// The command to run.
#[derive(Debug, Subcommand)]
pub enum Command {
    Up(Up),
    Ldapd(Ldapd),
    #[command(subcommand)]
    Directory(Directory),
    #[command(subcommand)]
    Backup(Backup),
    Restore(Restore),
    #[command(subcommand)]
    Snapshot(Snapshot),
    #[command(subcommand)]
    Cluster(Cluster),
    #[command(subcommand)]
    Admin(Admin),
    #[command(subcommand)]
    Config(Config),
    #[command(subcommand)]
    Acl(Acl),
    Doctor(Doctor),
    Health(HealthOf),
    Top(Top),
    Metrics(Metrics),
    Log(Log),
    History(HistoryOf),
    Undo(Undo),
    #[command(subcommand)]
    Crypto(Crypto),
    Cryptod(Cryptod),
    #[command(subcommand)]
    Key(Key),
    #[command(subcommand)]
    Vm(Vm),
    SshAgent(SshAgent),
    #[command(subcommand)]
    Esp(Esp),
    #[command(subcommand)]
    Quic(Quic),
    #[command(subcommand)]
    Data(Generate),
    Load(Box<Load>),
    Decode(Box<Decode>),
    Web(Box<Web>),
}

impl Command {
    /// Whether it works with keys and passwords of others, and so is hardened: `Some`, with whether
    /// it may be debugged all the same.
    pub fn holds_secrets(&self) -> Option<bool> {
        match self {
            Command::Up(up) => Some(up.serve.allow_debugging),
            Command::Ldapd(ldapd) => Some(ldapd.serve.allow_debugging),
            Command::Cryptod(cryptod) => Some(cryptod.allow_debugging),
            Command::Esp(Esp::Up(up)) => Some(up.allow_debugging),
            Command::Directory(_)
            | Command::History(_)
            | Command::Undo(_)
            | Command::Doctor(_)
            | Command::Health(_)
            | Command::Acl(_)
            | Command::Backup(_)
            | Command::Restore(_)
            | Command::Snapshot(_)
            | Command::Cluster(_)
            | Command::Admin(_)
            | Command::Key(_)
            | Command::Data(_)
            | Command::Web(_)
            | Command::Quic(Quic::Serve(_)) => Some(false),
            Command::Top(_)
            | Command::Metrics(_)
            | Command::Config(_)
            | Command::Log(_)
            | Command::Crypto(_)
            | Command::Vm(_)
            // Its command may gain rights, and it holds no secrets.
            | Command::SshAgent(_)
            | Command::Load(_)
            | Command::Decode(_)
            | Command::Esp(_)
            | Command::Quic(_) => None,
        }
    }
}

/// Start the server: made at the first start, opened at the next ones
///
/// The first start makes a data folder with a configuration, a certificate authority and a server
/// certificate, an administrator with a password of its own, and a sample directory below
/// dc=example,dc=com, or yours. Further starts open what is there. Ctrl-C stops it; what was
/// acknowledged to a client is on the disk by then.
///
/// Refusals, changes and errors are written to DIR/log. SIGHUP makes it read again what can change while
/// it runs, certificates, access rules, limits, the schema, and open its logs anew: all of it or, if
/// something is wrong, nothing. Closing its terminal does not stop it.
///
/// It is two processes, which it looks after: keyway ldapd speaks LDAP and has the store, keyway
/// cryptod has the keys. One that dies is started again, with a line in DIR/log/error.log; addresses
/// stay bound meanwhile, so that clients wait instead of being refused. Each can be started alone,
/// as an init system would. Where keyway.toml names another cryptod (cryptod.socket), that one is used.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  keyway up
      serve ./keyway-data on 127.0.0.1:1389 (LDAP, StartTLS) and 127.0.0.1:1636 (LDAPS)
  keyway up --data /srv/directory --import people.ldif
      start with your own tree; its suffix is taken from the file
  keyway up --import people.ldif --schema local.schema 99user.ldif
      the same with object classes and attributes of your own
  keyway up --sample 100000
      start with a larger sample
  keyway up --empty
      start with nothing: keyway directory import, or ldapadd below naming_contexts of
      DIR/keyway.toml, brings the entries
  keyway up --listen 0.0.0.0:389 --listen-tls 0.0.0.0:636 --name ldap.example.com
      serve other machines too, which call it by that name (also settable in DIR/keyway.toml)
  keyway up --listen 0.0.0.0:389 --listen-tls 0.0.0.0:636 --user keyway
      started by root, for the ports: what serves is the user keyway's, and so is DIR
  keyway up --listen off --listen-tls 127.0.0.1:0 --json
      LDAPS only, on a port that the system chooses; one JSON line says which
  keyway up --follow ldaps://a.example.com --join TOKEN
      a second server of the directory there (keyway cluster token makes the token)
  keyway up --listen-unix ldapi
      on the Unix socket DIR/ldapi as well, where programs of this machine are known by their users

The server's certificate:
  DIR's own authority (ca.pem) issues it for this machine's names and addresses and those of
  --name, and renews it at a start. The keys of both are made in cryptod and never leave it: tls-ca
  and tls-server of keyway key list. The authority's is needed to issue only: its file,
  DIR/cryptod/keys/tls-ca.key, may be kept elsewhere and put back for one start. A certificate of
  your own goes to DIR/server.pem with its key in DIR/server.key (chmod 600), before the first
  start or later: cryptod takes that key, and the file is removed. Or name files in
  DIR/keyway.toml; a key that is named there is read by ldapd, and stays where it is. Certificates
  that change are taken for new sessions while it runs; 14 days before one ends, this and error.log
  say so.

Hardening:
  The processes cannot be traced by others of their user, leave no core file, gain no rights and
  make files for their owner only (--allow-debugging leaves out the first two). Both give up files
  outside of their folders and most system calls, cryptod the network too (--no-sandbox leaves that
  out). Keys are wiped after use. Where one may lock memory without a limit (root,
  LimitMEMLOCK=infinity), all but the store's pages is locked, and nothing of that gets to swap;
  what it once used it then keeps.
  Started by root it binds its ports and becomes another user (--user), all of it and for good.
  With two users, one for the directory and one for cryptod (useradd --system keyway-cryptod), what
  breaks into the directory can use its keys as long as it is there, and read none: DIR/cryptod is
  closed to it, and it looks after no key. Who starts it as one user has one for both.
  A systemd unit (with Type=notify) can add:
    User=keyway                     AmbientCapabilities=CAP_NET_BIND_SERVICE (ports below 1024)
    ProtectSystem=strict            ReadWritePaths=DIR
    ProtectHome=yes                 PrivateTmp=yes
    PrivateDevices=yes              ProtectProc=invisible
    NoNewPrivileges=yes             CapabilityBoundingSet=CAP_NET_BIND_SERVICE
    MemoryDenyWriteExecute=yes      SystemCallFilter=@system-service
    MemorySwapMax=0                 LimitCORE=0
    LimitMEMLOCK=infinity
    RestrictAddressFamilies=AF_INET AF_INET6 AF_UNIX AF_NETLINK")]
pub struct Up {
    #[command(flatten)]
    pub serve: Serve,
    /// Where cryptod's master key comes from, under which keys are sealed on the disk: file:PATH,
    /// passphrase:PATH, credential:NAME or tpm:PATH, as for keyway cryptod [default:
    /// file:DIR/cryptod/master.key]
    #[arg(long, value_name = "SOURCE", value_parser = master::file_source)]
    pub master: Option<master::Source>,
    /// The user that cryptod runs as, if root starts it: another one than the directory's, so that ldapd cannot read
    /// DIR/cryptod; the directory's user to run both as one [default: the owner of DIR/cryptod, if
    /// not the directory's user, else keyway-cryptod, if that user exists]
    #[arg(long, value_name = "USER", value_parser = Account::parse)]
    pub cryptod_user: Option<Account>,
    /// First start only: follow the server there, ldaps://HOST:PORT, whose directory is taken
    #[arg(long, value_name = "URL", requires = "join", conflicts_with_all = ["sample", "import", "empty"])]
    pub follow: Option<MemberUrl>,
    /// The token to join it by (keyway cluster token), or '-' for standard input
    #[arg(long, value_name = "TOKEN", requires = "follow", value_parser = join_token)]
    pub join: Option<JoinToken>,
    /// First start only: what this server is called among others [default: the host's name]
    #[arg(long, value_name = "NAME", requires = "follow", value_parser = member_name)]
    pub member_name: Option<String>,
    /// First start only: where others reach this server: ldaps://HOST:PORT; later cluster.url says it [default: by --listen-tls]
    #[arg(long, value_name = "URL", requires = "follow")]
    pub url: Option<MemberUrl>,
}

/// Start the directory's server alone: the half of keyway up that speaks LDAP and has the store
///
/// Keys are where they are: in the cryptod of the data folder, which then has to run (keyway
/// cryptod --data DIR), if it holds keys of the folder or keyway.toml names one that it is to hold;
/// else in files, which this process reads. With --cryptod a first start has its keys made there.
///
/// It listens on the sockets that systemd hands over, if it does: the first one for LDAP and the
/// second for LDAPS, or as FileDescriptorName= says (ldap, ldaps). Signals are as for keyway up.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  keyway ldapd
      serve ./keyway-data with keys in files, or with those of the cryptod that runs on it
  keyway cryptod --data /srv/directory &
  keyway ldapd --data /srv/directory --cryptod /srv/directory/cryptod/socket
      the two processes of keyway up, each started, watched and stopped by itself

A systemd unit (keyway cryptod --help has that of the other process):
  [Unit]
  After=keyway-cryptod.service    Wants=keyway-cryptod.service
  [Service]
  Type=notify
  ExecStart=/usr/bin/keyway ldapd --data /var/lib/keyway --cryptod /run/keyway/cryptod.socket
  User=keyway")]
pub struct Ldapd {
    #[command(flatten)]
    pub serve: Serve,
    /// The socket of the cryptod, of this user, that holds the keys [default: DIR/cryptod/socket, if it
    /// holds any]
    #[arg(long, value_name = "PATH")]
    pub cryptod: Option<PathBuf>,
    /// The open files that keyway up has left to this process
    #[arg(long, hide = true, value_parser = Inherited::parse)]
    pub inherited: Option<Inherited>,
}

/// The arguments of a server.
#[derive(Debug, Args)]
pub struct Serve {
    #[command(flatten)]
    pub data: Data,
    /// Where to take LDAP with StartTLS, or 'off' [default: 127.0.0.1:1389]
    #[arg(long, value_name = "ADDRESS:PORT", value_parser = listeners::parse)]
    pub listen: Option<Listen>,
    /// Where to take LDAPS, or 'off' [default: 127.0.0.1:1636]
    #[arg(long, value_name = "ADDRESS:PORT", value_parser = listeners::parse)]
    pub listen_tls: Option<Listen>,
    /// Where to take LDAP of this machine's own processes (ldapi), or 'off': a file, in DIR unless it
    /// begins with / [default: off]
    #[arg(long, value_name = "PATH", value_parser = unix_socket::path)]
    pub listen_unix: Option<unix_socket::Wanted>,
    /// A name or an address that clients use, for the server's certificate (repeatable)
    #[arg(long = "name", value_name = "HOST", value_parser = keyway_folder::host_names::name)]
    pub names: Vec<Name>,
    /// First start only: fill the directory with this many sample people, like 5000, 5k or 1M
    /// [default: 1000]
    #[arg(long, value_name = "N", conflicts_with = "import", value_parser = people)]
    pub sample: Option<u32>,
    /// First start only: begin without entries, to be filled by an import or by clients
    #[arg(long, conflicts_with_all = ["sample", "import"])]
    pub empty: bool,
    /// First start only: fill the directory from this LDIF file ('-': standard input)
    #[arg(long, value_name = "FILE")]
    pub import: Option<PathBuf>,
    /// Definitions of attributes and classes that the directory is to know (OpenLDAP's .schema, LDIF of
    /// cn=config or cn=schema); they are copied to DIR/schema
    #[arg(long, value_name = "FILE", num_args = 1..)]
    pub schema: Vec<PathBuf>,
    /// The user to run as, if root starts it: a user of this machine, by name or number, and :GROUP if not the user's
    /// own; 'root' to stay root [default: process.user of DIR/keyway.toml, else the owner of DIR]
    #[arg(long, value_name = "USER", value_parser = Account::parse)]
    pub user: Option<Account>,
    /// Let debuggers attach and core files be written; keys and passwords are in both
    #[arg(long)]
    pub allow_debugging: bool,
    /// Keep the right to open any file and make any system call
    #[arg(long)]
    pub no_sandbox: bool,
    /// Say where it listens as one line of JSON
    #[arg(long)]
    pub json: bool,
}

impl Up {
    /// The options that it asks for.
    pub fn options(&self) -> UpOptions {
        UpOptions {
            serve: self.serve.options(),
            master: self.master.clone(),
            cryptod_user: self.cryptod_user.clone(),
            follow: self.follow.clone().zip(self.join.clone()).map(|(follow, token)| {
                let (member, url) = (self.member_name.clone(), self.url.clone());
                FollowOptions { follow, token, member, url }
            }),
        }
    }
}

impl Ldapd {
    /// The options that it asks for.
    pub fn options(&self) -> LdapdOptions {
        LdapdOptions {
            serve: self.serve.options(),
            cryptod: self.cryptod.clone(),
            inherited: self.inherited.clone(),
        }
    }
}

impl Serve {
    /// The options that it asks for.
    fn options(&self) -> ServeOptions {
        ServeOptions {
            folder: self.data.folder.clone(),
            overrides: Overrides {
                listen: self.listen,
                listen_tls: self.listen_tls,
                listen_unix: self.listen_unix.clone(),
                names: self.names.clone(),
            },
            sample: self.sample,
            empty: self.empty,
            import: self.import.clone(),
            schema: self.schema.clone(),
            user: self.user.clone(),
            allow_debugging: self.allow_debugging,
            no_sandbox: self.no_sandbox,
            json: self.json,
        }
    }
}

/// Move entries in and out of a directory, check it, and ask about its indexes
#[derive(Debug, Subcommand)]
#[command(after_help = "\
A running server alone writes to its data folder: to import stop it first, or use ldapadd against it. The \
others work beside it too: export and check then read one state of the store, whatever is written meanwhile. \
keyway history shows the changes of one entry.")]
pub enum Directory {
    Import(Import),
    Export(Export),
    Check(Check),
    Changes(Changes),
    History(History),
    Indexes(index::Indexes),
    Reindex(index::Reindex),
    Explain(index::Explain),
    Advise(index::Advise),
}

/// Read entries and changes from an LDIF file (RFC 2849)
///
/// Entries are checked like those that clients add. An entry that begins a tree makes its suffix.
/// At the first error it stops and names line and DN; what came before is in, and --resume goes on
/// from there, also after the program was killed.
///
/// Passwords that are hashed are kept as they are, also those that cannot be verified here, which
/// match nothing and are counted by scheme. Clear ones are hashed, slowly on purpose: how long that
/// will take is said beforehand, unless the input is a pipe.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  keyway directory import people.ldif
      read it into ./keyway-data, which is made if there is none
  keyway directory import people.ldif --schema local.schema --schema 99user.ldif
      read definitions first: OpenLDAP's files, an LDIF of its cn=config, 389's 99user.ldif
  keyway directory import --continue people.ldif
      report what is refused, and go on
  keyway directory import --resume people.ldif
      go on where an import was stopped or killed
  keyway directory import everything.ldif.zst --data /srv/directory
      read a compressed file (gzip or zstd, told by its first bytes); what keyway has exported
      brings its definitions with it, and nothing of it is imported if it was cut off or changed
  ldapsearch -LLL ... | keyway directory import - --data /srv/directory
      read standard input
  keyway directory import people.ldif --json
      one JSON line at the end: records imported and refused, how long it took")]
pub struct Import {
    /// The file, or '-' for standard input
    #[arg(value_name = "FILE")]
    pub file: PathBuf,
    #[command(flatten)]
    pub data: Data,
    /// Definitions of attributes and classes to be known first (OpenLDAP's .schema, LDIF of cn=config
    /// or cn=schema; repeatable); they are copied to DIR/schema
    #[arg(long, value_name = "FILE")]
    pub schema: Vec<PathBuf>,
    /// Report entries that are refused, and go on with the next
    #[arg(long = "continue")]
    pub go_on: bool,
    /// Go on with an import that was not finished: leave out the records that are in
    #[arg(long, conflicts_with = "restart")]
    pub resume: bool,
    /// Forget an import that was not finished, and begin with the first record of this file
    #[arg(long)]
    pub restart: bool,
    /// Import what can be read of an export whose checksum is wrong or missing, because it was cut off, or
    /// changed on purpose
    #[arg(long)]
    pub unverified: bool,
    /// Store passwords in clear as {SSHA512}, which takes microseconds each and not the tens of milliseconds
    /// of Argon2id: for test data. They are verified all the same
    #[arg(long)]
    pub fast_passwords: bool,
    /// Say how it went as one line of JSON
    #[arg(long)]
    pub json: bool,
}

/// Write entries as LDIF (RFC 2849), parents first
///
/// Passwords are exported as they are stored (hashed), and so are the attributes that the server
/// keeps (entryUUID, createTimestamp): what is imported again is equal entry for entry. Before the entries
/// are the definitions of attributes and classes that a new folder lacks, and behind them are their number
/// and a checksum, all in comments, which other programs skip: an export can always be imported into a new
/// folder, and one that was cut off or changed is noticed.
///
/// It works while a server runs, too, and does not disturb it: what is exported is the directory at one
/// moment, the one at which the export begins. For as long as it takes, the store cannot use again what changes
/// have freed, and may grow by what they write (keyway_store_reader_lag says how far). A running server lets
/// go of an export that was killed within a second. Each export is written down (keyway directory
/// history).
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  keyway directory export
      everything, to standard output
  keyway directory export everything.ldif
      to a file (0600: it has the passwords' hashes in it), in place when it is complete
  keyway directory export everything.ldif.zst
      compressed (.gz as well)
  keyway directory export --base ou=People,dc=example,dc=com people.ldif
      one subtree
  keyway directory export --continue rest.ldif
      of a damaged store that no process serves, everything readable; the rest is listed")]
pub struct Export {
    /// The file, or '-' for standard output
    #[arg(value_name = "FILE", default_value = "-")]
    pub file: PathBuf,
    #[command(flatten)]
    pub data: Data,
    /// The entry whose subtree is exported, instead of everything
    #[arg(long, value_name = "DN")]
    pub base: Option<String>,
    /// Write all that can be read of a damaged store and list what cannot, which ends with status
    /// 1. An entry whose name is lost is called 'cn=lost entry N' in the names of those below it
    #[arg(long = "continue")]
    pub go_on: bool,
    /// Compress the file, whatever it is called; without this .gz and .zst files are
    #[arg(long, value_name = "HOW")]
    pub compress: Option<Compression>,
    /// Say how it went as one line of JSON (on standard error if the LDIF goes to standard output)
    #[arg(long)]
    pub json: bool,
}

/// Check that everything in the store fits together
///
/// Looks at every page of the data file first. If those are sound, it compares entries (by their
/// checksums), the tree and the indexes with each other, in a process of its own that a damaged
/// page may kill. It says what is wrong and where, and changes nothing.
///
/// While a server runs it compares entries, tree and indexes of one moment, as an export does, and leaves out
/// the look at the pages, which change meanwhile.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  keyway directory check
  keyway directory check --data /srv/directory --json
  keyway directory check --feed
      also make all changes of the feed again, in a store beside, and compare that one")]
pub struct Check {
    #[command(flatten)]
    pub data: Data,
    /// Make the changes of the feed again too: do they lead to the entries that there are?
    #[arg(long)]
    pub feed: bool,
    /// Say how it went as one line of JSON
    #[arg(long)]
    pub json: bool,
    /// Do the work, and tell the process that has started this one how far it is
    #[arg(long, hide = true)]
    pub in_this_process: bool,
}

/// Show when the directory was last imported, exported and checked
///
/// The commands write it down in DIR/history.jsonl, a line of JSON each, the last thousand. A warning is said
/// if everything was last exported more than seven days ago or never, if the last export failed, and if the
/// last check is older than thirty days or found damage. The web page has it as Backups, and cn=monitor
/// below cn=Backups.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  keyway directory history
      the last twenty
  keyway directory history --lines 1000 --json
      all that is known, as one line of JSON")]
pub struct History {
    #[command(flatten)]
    pub data: Data,
    /// How many of the last are shown
    #[arg(long, value_name = "N", default_value = "20", value_parser = value::size_within::<0, { u64::MAX }>)]
    pub lines: usize,
    /// Answer with one line of JSON
    #[arg(long)]
    pub json: bool,
}

/// Do what only the owner of the data folder may
#[derive(Debug, Subcommand)]
pub enum Admin {
    Password(AdminPassword),
    Certificate(ClientCertificate),
}

/// Set a new password for the administrator, if it is lost
///
/// It asks for no old password: any user who may write to the data folder may do this. Without --from it
/// generates a password, in DIR/admin-password (0600). The administrator's entry (cn=admin,cn=keyway)
/// is made again if it is gone, and unlocked if it was locked.
///
/// A running server has its data folder to itself: stop it, set the password, start it again. While
/// it runs, a password that is known can be changed with ldappasswd.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  keyway admin password
      make a new one; it is in ./keyway-data/admin-password then
  keyway admin password --from secret.txt --data /srv/directory
      take the first line of a file; DIR/admin-password is removed if there is one
  pass show ldap/admin | keyway admin password --from -
      take the first line of standard input; a password is never an argument, which others see
  keyway admin password --json
      one JSON line that says where the password is")]
pub struct AdminPassword {
    #[command(flatten)]
    pub data: Data,
    /// The file whose first line is the new password, or '-' for standard input
    #[arg(long, value_name = "FILE")]
    pub from: Option<PathBuf>,
    /// Say what was done as one line of JSON
    #[arg(long)]
    pub json: bool,
}

/// Show what a running server is doing
///
/// On a terminal it is a page with views: o operations, s store, c crypto, n connections, f filters by
/// cost, l slow operations, ? help; q ends it. Otherwise, and with --lines, --json, --csv or --count, it is a line each
/// interval. Without a URL it looks at the server of a data folder, whose counters it reads in place: looking
/// costs the server nothing (connections and slow operations it asks for over LDAPS, as the administrator whose
/// password is in the folder). With URLs it asks for cn=monitor, which Keyway shows to its administrator and
/// to users that an access rule admits; for slapd and 389 Directory Server it shows the figures that they have.
///
/// Numbers are per second of the last interval, times in it from the arrival of a request to its answer. The
/// lines of a data folder have below them what the engine did meanwhile, if anything: by driver and
/// algorithm, with percentiles of a sample of requests (run: from start to finish; queue: from submission to
/// start), its errors with their counts, and its clients.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  keyway top
      the server on ./keyway-data, on this terminal; q ends it
  keyway top ldaps://a.example.com ldaps://b.example.com --bind-dn cn=admin,cn=keyway \\
      --password-file pw
      two servers, a row each; Tab chooses the one that the other views show (several --bind-dn and
      --password-file: one for each, in their order)
  keyway top --data /srv/directory --lines --interval 10
      a line every ten seconds
  keyway top --cryptod --lines
      the daemon: its clients, what they ask for, how many requests go together, who rings and who
      is woken
  keyway top --esp
      the ESP gateway of keyway-esp@esp: packets and bytes each way, and what was dropped, by cause
  keyway top --json --count 60 > minute.jsonl
      a minute as JSON, a line a second, for programs; --csv is a table")]
pub struct Top {
    /// Servers to look at over LDAP: ldaps://HOST or ldap://HOST, with :PORT [default: that of --data]
    #[arg(value_name = "URL", conflicts_with = "cryptod")]
    pub urls: Vec<String>,
    #[command(flatten)]
    pub data: Data,
    /// Show the daemon that keyway cryptod has started (DIR/cryptod) instead of the directory
    #[arg(long)]
    pub cryptod: bool,
    /// Show the ESP gateway that has its state in DIR
    #[arg(long, value_name = "DIR", num_args = 0..=1, default_missing_value = "/var/lib/keyway-esp/esp", conflicts_with_all = ["urls", "cryptod", "csv"])]
    pub esp: Option<PathBuf>,
    /// Who asks, where it is asked over LDAP; one for all servers, or one for each in their order (repeatable)
    #[arg(long, value_name = "DN", requires = "password_file")]
    pub bind_dn: Vec<String>,
    /// The file with the password of --bind-dn (0600); a line end at its end does not count (repeatable)
    #[arg(long, value_name = "FILE", requires = "bind_dn")]
    pub password_file: Vec<PathBuf>,
    /// The certificate authority to trust, PEM; a server's own certificate, if that has signed itself
    /// [default: those of this system, and ca.pem in --data]
    #[arg(long, value_name = "FILE", conflicts_with = "insecure")]
    pub ca: Option<PathBuf>,
    /// Accept any certificate: an attacker on the network path can then read and change everything
    #[arg(long)]
    pub insecure: bool,
    /// Begin TLS on ldap:// with StartTLS
    #[arg(long)]
    pub start_tls: bool,
    /// Lines, on a terminal too
    #[arg(long)]
    pub lines: bool,
    /// A line of JSON for each line
    #[arg(long, conflicts_with = "csv")]
    pub json: bool,
    /// A table: names in the first line, then values with commas between them
    #[arg(long, conflicts_with = "cryptod")]
    pub csv: bool,
    /// How long from line to line: 500ms, 10, 1m30s
    #[arg(long, value_name = "TIME", default_value = "1", value_parser = seconds)]
    pub interval: f64,
    /// End after this many lines
    #[arg(long, value_name = "N", value_parser = count_within::<1, { u64::MAX }>)]
    pub count: Option<u64>,
}

/// Show the counters of what runs on a data folder to Prometheus, or push them by OTLP
///
/// Reads the same pages as keyway top, of the directory and of the cryptod in its folder, and costs
/// what it reads nothing. Names are those of keyway top with underscores. Without --listen and --otlp it
/// prints them once. With --listen it answers GET /metrics, with --otlp it pushes the same metrics to an
/// OpenTelemetry collector (OTLP over HTTP, protobuf), until it is told to stop and also while nothing
/// runs there (keyway_up is 0 then). A server can push by itself too (metrics.otlp in keyway.toml).
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  keyway metrics
      print them, for a look or for a collector of text files
  keyway metrics --listen
      answer http://127.0.0.1:9464/metrics
  keyway metrics --data /srv/directory --listen 10.0.0.5:9464
      let other machines ask too: unencrypted, and every host that reaches the port may read
  keyway metrics --listen --esp /var/lib/keyway-esp/esp
      with the figures of an ESP gateway
  keyway metrics --otlp http://127.0.0.1:4318/v1/metrics --interval 15
      push them to a collector every 15 seconds; one that is away is tried again")]
pub struct Metrics {
    #[command(flatten)]
    pub data: Data,
    /// Those of the ESP gateway that has its state in DIR, too (repeatable)
    #[arg(long, value_name = "DIR")]
    pub esp: Vec<PathBuf>,
    /// Answer GET /metrics at this address; 127.0.0.1:9464 if none is given
    #[arg(long, value_name = "ADDRESS:PORT", num_args = 0..=1, default_missing_value = "127.0.0.1:9464", value_parser = listeners::parse_address)]
    pub listen: Option<std::net::SocketAddr>,
    /// Push them to this collector: http://HOST:PORT/PATH or https://; without a path to /v1/metrics
    #[arg(long, value_name = "URL", value_parser = CollectorUrl::parse, conflicts_with = "listen")]
    pub otlp: Option<CollectorUrl>,
    /// How long from one push to the next, in whole seconds: 15, 15s, 1m30s
    #[arg(long, value_name = "TIME", default_value = "60", requires = "otlp", value_parser = push_interval)]
    pub interval: u64,
    /// The certificate authority of a collector at https://, PEM; its own certificate, if that has signed itself
    /// [default: those of this system, and ca.pem in --data]
    #[arg(long, value_name = "FILE", requires = "otlp", conflicts_with = "insecure")]
    pub ca: Option<PathBuf>,
    /// Take any certificate: a third party on the way can read and change everything
    #[arg(long, requires = "otlp")]
    pub insecure: bool,
}

fn people(text: &str) -> Result<u32, String> {
    u32::try_from(value::count(text)?).map_err(|_| format!("there are {} at most", u32::MAX))
}

const INTERVAL_S_MIN: f64 = 0.01;
const INTERVAL_S_MAX: f64 = 86_400.0;

fn seconds(text: &str) -> Result<f64, String> {
    value::seconds_within(text, INTERVAL_S_MIN, INTERVAL_S_MAX)
}

fn push_interval(text: &str) -> Result<u64, String> {
    let seconds = value::seconds_within(text, 1.0, INTERVAL_S_MAX)?;
    match seconds.fract() == 0.0 {
        true => Ok(seconds as u64),
        false => Err("it should be whole seconds".to_owned()),
    }
}

/// The command that the arguments ask for; `None` if it was help or the version, which has been printed.
///
/// # Errors
/// If they cannot be understood.
pub fn parse() -> Result<Option<Command>, Failure> {
    match Cli::try_parse() {
        Ok(cli) => Ok(Some(cli.command)),
        Err(error) => match error.kind() {
            ErrorKind::DisplayHelp | ErrorKind::DisplayVersion => {
                error.print().map_err(|why| Failure::output(&why))?;
                Ok(None)
            }
            ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand | ErrorKind::MissingSubcommand => {
                // To standard error: it is not what was asked for.
                if output_mode() == OutputMode::Text {
                    error.print().map_err(|why| Failure::output(&why))?;
                }
                Err(Failure::usage("a command is missing; its help lists what there is"))
            }
            _ => Err(Failure::usage(sentence(&error.to_string()))),
        },
    }
}

/// How a failure of what the arguments ask for is said; also where they cannot be understood.
pub fn output_mode() -> OutputMode {
    output_mode_of(std::env::args_os().collect())
}

fn output_mode_of(arguments: Vec<OsString>) -> OutputMode {
    let mut flags = arguments.iter().take_while(|argument| *argument != "--");
    if !flags.any(|argument| argument == "--json") {
        return OutputMode::Text;
    }
    let aside = match Cli::try_parse_from(&arguments).map(|cli| cli.command) {
        Ok(Command::Directory(Directory::Export(export))) => export.file.as_os_str() == "-",
        Ok(Command::Data(command)) => command.writes_to_standard_output(),
        Ok(_) => false,
        Err(_) => {
            let has = |word| arguments.iter().any(|argument| argument == word);
            has("export") || (has("data") && has("make"))
        }
    };
    if aside { OutputMode::JsonOnStandardError } else { OutputMode::Json }
}

/// clap's message without its heading and its usage.
fn sentence(message: &str) -> String {
    let message = message.strip_prefix("error: ").unwrap_or(message);
    let is_said = |part: &&str| {
        !part.trim_start().starts_with("Usage:") && !part.starts_with("For more information")
    };
    let words = |part: &str| part.split_whitespace().collect::<Vec<_>>().join(" ");
    let parts: Vec<_> = message.split("\n\n").filter(is_said).map(words).collect();
    format!("{}; keyway COMMAND --help explains", parts.join("; "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_definition_holds_together() {
        Cli::command().debug_assert();
    }

    #[test]
    fn every_command_has_examples() {
        fn check(command: &clap::Command) {
            let name = command.get_name();
            assert!(command.get_about().is_some(), "{name}");
            if command.has_subcommands() {
                command.get_subcommands().for_each(check);
            } else {
                let help = command.get_after_help().map(ToString::to_string).unwrap_or_default();
                assert!(help.contains("Examples:"), "{name}");
            }
        }
        check(&Cli::command());
    }

    /// A line that is broken where it should not be is hard to read: clap wraps help at 100 columns.
    #[test]
    fn help_is_wrapped_between_paragraphs_only() {
        fn check(command: &clap::Command) {
            let help = command.get_after_help().map(ToString::to_string).unwrap_or_default();
            let lines: Vec<&str> = help.lines().collect();
            for (at, line) in lines.iter().enumerate().filter(|(_, line)| line.len() > 100) {
                let next = lines.get(at + 1).copied().unwrap_or_default();
                let is_paragraph = !line.starts_with(' ')
                    && line.ends_with(['.', ':'])
                    && next.chars().next().is_none_or(|c| c.is_uppercase() || c == ' ');
                assert!(is_paragraph, "{}: {line:?}", command.get_name());
            }
            command.get_subcommands().for_each(check);
        }
        check(&Cli::command());
    }

    #[test]
    fn addresses() {
        assert_eq!(listeners::parse("off"), Ok(None));
        assert_eq!(listeners::parse("127.0.0.1:0"), Ok(Some("127.0.0.1:0".parse().unwrap())));
        assert!(listeners::parse("[::]:389").is_ok());
        for bad in ["", "389", "localhost:389", "127.0.0.1", "127.0.0.1:65536"] {
            assert!(listeners::parse(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn a_usage_error_is_one_sentence() {
        let error = Cli::try_parse_from(["keyway", "top", "--cuont", "3"]).unwrap_err();
        let line = sentence(&error.to_string());
        assert!(line.starts_with("unexpected argument '--cuont' found"), "{line}");
        assert!(line.contains("--count") && !line.contains('\n'), "{line}");
    }
}
