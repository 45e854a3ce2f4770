//! The options of the three processes: what their flags mean.

use crate::cluster::JoinToken;
use crate::limit::{Limit, Space, Weight};
use crate::master::Source;
use crate::tokens::Labelled;
use crate::vms::Vm;
use keyway_config::{MemberUrl, Overrides};
use keyway_folder::user::Account;
use keyway_host::listeners::Listen;
use keyway_host::supervised::Inherited;
use std::ffi::OsString;
use std::path::PathBuf;

/// The options that a directory is served with.
#[derive(Clone, Debug)]
pub struct ServeOptions {
    /// The data folder.
    pub folder: PathBuf,
    /// Settings that win over the file's.
    pub overrides: Overrides,
    /// At a first start: how many sample people to fill the directory with.
    pub sample: Option<u32>,
    /// At a first start: begin without entries.
    pub empty: bool,
    /// At a first start: the LDIF file to fill it from; `-` is standard input.
    pub import: Option<PathBuf>,
    /// Files of definitions to be copied into the folder.
    pub schema: Vec<PathBuf>,
    /// The user to run as, if root starts it.
    pub user: Option<Account>,
    /// Whether debuggers may attach and core files be written.
    pub allow_debugging: bool,
    /// Whether it goes without its sandbox.
    pub no_sandbox: bool,
    /// Whether it says what happens as lines of JSON.
    pub json: bool,
}

/// Options of the directory's server.
#[derive(Clone, Debug)]
pub struct LdapdOptions {
    /// The options that it serves with.
    pub serve: ServeOptions,
    /// The socket of the cryptod that holds the keys.
    pub cryptod: Option<PathBuf>,
    /// The files that it inherits from the supervisor.
    pub inherited: Option<Inherited>,
}

/// Options of the supervisor.
#[derive(Clone, Debug)]
pub struct UpOptions {
    /// The options that ldapd serves with.
    pub serve: ServeOptions,
    /// Where cryptod's master key comes from.
    pub master: Option<Source>,
    /// The user that cryptod is to be.
    pub cryptod_user: Option<Account>,
    /// The server to follow, at a first start.
    pub follow: Option<FollowOptions>,
}

/// Which server is followed.
#[derive(Clone, Debug)]
pub struct FollowOptions {
    /// Where it is.
    pub follow: MemberUrl,
    /// The right to join it.
    pub token: JoinToken,
    /// The member's name.
    pub member: Option<String>,
    /// Where others reach this one.
    pub url: Option<MemberUrl>,
}

/// Options of the daemon.
#[derive(Clone, Debug)]
pub struct CryptodOptions {
    /// The data folder.
    pub folder: PathBuf,
    /// Where to listen, if not at the usual place.
    pub socket: Option<PathBuf>,
    /// Users that are let in, by name or number.
    pub users: Vec<String>,
    /// Groups whose members are let in, by name or number.
    pub groups: Vec<String>,
    /// Programs that others have to run to be let in; none: any.
    pub programs: Vec<PathBuf>,
    /// Whether every user is let in.
    pub allow_everybody: bool,
    /// Where the master key comes from.
    pub master: Option<Source>,
    /// How much of the time clients get.
    pub weights: Vec<Weight>,
    /// Where clients that are no administrators may make keys.
    pub name_spaces: Vec<Space>,
    /// Limits that are not the usual ones.
    pub limits: Vec<Limit>,
    /// Tokens that keys may live in, with their modules.
    pub tokens: Vec<Labelled>,
    /// Files with the PINs of tokens.
    pub token_pins: Vec<Labelled>,
    /// Files and folders that the modules read and write.
    pub token_files: Vec<PathBuf>,
    /// Virtual machines whose processes use it.
    pub vms: Vec<Vm>,
    /// Virtual machines whose kernels use it.
    pub vhost_users: Vec<Vm>,
    /// The machine whose device this process is to keep.
    pub keeps: Option<String>,
    /// The machine whose device it is to be.
    pub is_device_of: Option<String>,
    /// Whether it does legacy algorithms.
    pub legacy: bool,
    /// Whether it takes the place of the daemon that listens there.
    pub take_over: bool,
    /// Threads that poll.
    pub pumps: Option<u16>,
    /// The user to run as, if root starts it.
    pub user: Option<Account>,
    /// Whether it goes without its sandbox.
    pub no_sandbox: bool,
    /// Whether it says what happens as lines of JSON.
    pub json: bool,
    /// Whether it is the witness, which looks at clients' processes for the daemon at standard input.
    pub witness: bool,
    /// The files that it inherits from the supervisor.
    pub inherited: Option<Inherited>,
}

impl ServeOptions {
    /// The arguments again; those for a first start only if it may be one.
    pub fn arguments(&self, first: bool) -> Vec<OsString> {
        let mut all: Vec<OsString> = vec!["--data".into(), self.folder.clone().into()];
        let mut add = |flag: &str, value: OsString| all.extend([flag.into(), value]);
        let address = |listen: Listen| listen.map_or("off".to_owned(), |it| it.to_string());
        for (flag, listen) in
            [("--listen", self.overrides.listen), ("--listen-tls", self.overrides.listen_tls)]
        {
            if let Some(listen) = listen {
                add(flag, address(listen).into());
            }
        }
        if let Some(path) = &self.overrides.listen_unix {
            add("--listen-unix", path.clone().unwrap_or_else(|| "off".into()).into());
        }
        self.overrides.names.iter().for_each(|name| add("--name", name.to_string().into()));
        if let Some(people) = self.sample.filter(|_| first) {
            add("--sample", people.to_string().into());
        }
        if let Some(file) = self.import.clone().filter(|_| first) {
            add("--import", file.into());
        }
        self.schema.iter().filter(|_| first).for_each(|file| add("--schema", file.into()));
        let flags = [
            ("--json", self.json),
            ("--allow-debugging", self.allow_debugging),
            ("--empty", self.empty),
            ("--no-sandbox", self.no_sandbox),
        ];
        all.extend(flags.iter().filter(|(_, given)| *given).map(|(flag, _)| flag.into()));
        all
    }
}
