//! The arguments of `keyway cryptod`.

use crate::value::small_within;
use clap::Args;
use keyway_folder::user::Account;
use keyway_host::supervised::Inherited;
use keyway_service::limit::{self, Limit, Space, Weight};
use keyway_service::master;
use keyway_service::options::CryptodOptions;
use keyway_service::tokens::{self, Labelled};
use keyway_service::vms::{self, Vm};
use std::path::PathBuf;

/// Start the daemon that does cryptography for other processes, past the kernel
///
/// A client connects to a Unix socket and is let in by the user, groups and program of its process.
/// Then it shares memory with the daemon: requests and their answers go through rings in it,
/// without a system call while both are awake. Requests of many clients that wait at the same time
/// are done together. Each client gets its share of the time, and no more than its share of
/// anything else.
///
/// It needs no root and no network, and takes from itself what it does not need. keyway up starts one by
/// itself, for the keys of its data folder.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  keyway cryptod
      for programs of this user, at ./keyway-data/cryptod/socket
  keyway cryptod --socket /run/keyway/cryptod.socket --data /var/lib/keyway --allow-group keyway
      for all users in a group
  keyway cryptod --socket /run/keyway/cryptod.socket --allow-user www-data \\
      --allow-program /usr/sbin/haproxy
      for one program of another user
  keyway cryptod --take-over
      a new version takes the place of the one that runs, without a request lost
  keyway cryptod --pumps 4 --json
      with four threads that poll; one JSON line says when it is ready
  keyway cryptod --socket /run/keyway/cryptod.socket --allow-user app --name-space app.=user:app
      the user app makes keys by itself: keyway key generate app.token --algorithm ed25519
  keyway cryptod --weight user:ldap=8 --weight key:web=4 --limit memory=4G
      more of the time for some, and no more than 4 GiB of shared memory for all clients together
  keyway cryptod --token office=/usr/lib/softhsm/libsofthsm2.so \\
      --token-pin office=/etc/keyway/office.pin --token-files /etc/softhsm \\
      --token-files /var/lib/softhsm/tokens
      with keys that live in a token

Limits (--limit), of all clients together and of those of one user. Some connections and files are kept for \
root and for the key managers; root may have all that there is. A client that reaches a limit is told which one.
  clients, clients-of-user     connections
                               [default: 1024, fewer where few files may be open; a quarter]
  files, files-of-user         files that the daemon has open for them
                               [all that it may (ulimit -n); a quarter]
  memory, memory-of-user       bytes of memory that they share with it
                               [half of the machine's; a quarter of that]
  sessions, sessions-of-user   sessions [65536; 16384]
Of a request:
  request-bytes                bytes [64M]
  slow-seconds                 how long it may be expected to take: passwords [5]
  slow-memory                  bytes of memory that a password may be derived in [256M]

Keys that it holds and its clients use by name: keyway key --help.

A token is whatever has a PKCS#11 module: a hardware security module, a smart card, SoftHSM. The module is code in the \
daemon's process: trust it as much as the daemon. It reaches libraries, local sockets and the files that --token-files \
names; one that needs a network or a device needs --no-sandbox. A PIN that a token has refused is not tried again, by \
a later start of the daemon neither, until its file is written anew: tokens lock after a few wrong ones. A token that \
is not there, or does not answer, keeps only its own keys from being used, until it is back.

A client's program (--allow-program, and keyway key allow --for program:PATH) is determined when it \
connects: the file at PATH as the daemon finds it, in the daemon's namespaces, and none that got a user, \
group or capability from its file (setuid). Other users' programs are seen if root starts the daemon or \
systemd gives it AmbientCapabilities=CAP_SYS_PTRACE; a helper process keeps that right alone. A program \
is no protection from the user who runs it, who can load code into it (LD_PRELOAD, a debugger), and a \
connection can be handed to another process. Name the user as well.

In a program with the engine:
  let options = RemoteOptions::new(\"keyway-data/cryptod/socket\", \"what it is called\");
  let remote = Remote::connect(&engine, options)?;

A systemd unit (with --socket left out, it takes the socket that its .socket unit listens on:
ListenSequentialPacket=/run/keyway/cryptod.socket, SocketMode=0660):
  [Service]
  Type=notify
  ExecStart=/usr/bin/keyway cryptod --data /var/lib/keyway --allow-group keyway
  ExecReload=/bin/sh -c 'exec /usr/bin/keyway cryptod --data /var/lib/keyway \\
      --allow-group keyway --socket /run/keyway/cryptod.socket --take-over &'
  User=keyway
  LimitMEMLOCK=infinity           LimitCORE=0
  PrivateNetwork=yes              RestrictAddressFamilies=AF_UNIX
  ProtectSystem=strict            ReadWritePaths=/var/lib/keyway /run/keyway
  ProtectHome=yes                 PrivateTmp=yes
  NoNewPrivileges=yes             CapabilityBoundingSet=
  MemoryDenyWriteExecute=yes      SystemCallFilter=@system-service")]
pub struct Cryptod {
    /// The data folder: what is the daemon's is below DIR/cryptod
    #[arg(long = "data", value_name = "DIR", default_value = "keyway-data")]
    pub folder: PathBuf,
    /// Where to listen [default: the socket that systemd hands over, or DIR/cryptod/socket]
    #[arg(long, value_name = "PATH")]
    pub socket: Option<PathBuf>,
    /// Let a user in, by name or number (repeatable); this user and root always are
    #[arg(long = "allow-user", value_name = "USER")]
    pub users: Vec<String>,
    /// Let the members of a group in, by name or number (repeatable)
    #[arg(long = "allow-group", value_name = "GROUP")]
    pub groups: Vec<String>,
    /// Let others in only if they run one of these programs (repeatable). To see what other users run, root
    /// has to start the daemon, or it needs CAP_SYS_PTRACE
    #[arg(long = "allow-program", value_name = "PATH")]
    pub programs: Vec<PathBuf>,
    /// Let every user in
    #[arg(long, conflicts_with_all = ["users", "groups"])]
    pub allow_everybody: bool,
    /// Where the master key comes from, under which the daemon's keys are sealed: file:PATH (made
    /// if there is none), passphrase:PATH (the first line of a file, '-': standard input),
    /// credential:NAME (of systemd), or tpm:PATH (sealed by the TPM; made if there is none)
    /// [default: file:DIR/cryptod/master.key]
    #[arg(long, value_name = "SOURCE", value_parser = master::source)]
    pub master: Option<master::Source>,
    /// Give clients more of the time than others, or requests with a key of the daemon (repeatable): user:NAME,
    /// group:NAME, program:/PATH (joined by '+' if all must be true) or key:NAME, and N from 1 to 100, how
    /// many times the time of others. Others have 1
    #[arg(long = "weight", value_name = "WHO=N", value_parser = limit::weight)]
    pub weights: Vec<Weight>,
    /// Let clients make and destroy keys whose names begin with PREFIX (repeatable), which ends in '.', '-' or '_'. WHO
    /// is user:NAME, group:NAME or program:/PATH, joined by '+' if all must be true. The keys are for these clients and
    /// for no others, and there are 256 at most
    #[arg(long = "name-space", value_name = "PREFIX=WHO", value_parser = limit::name_space)]
    pub name_spaces: Vec<Space>,
    /// Set a limit (repeatable): see below
    #[arg(long = "limit", value_name = "NAME=NUMBER", value_parser = limit::limit)]
    pub limits: Vec<Limit>,
    /// Let keys live in a token, by its label and the library of its PKCS#11 module (repeatable): keyway key generate
    /// --in LABEL, keyway key import --in LABEL
    #[arg(long = "token", value_name = "LABEL=MODULE.so", value_parser = tokens::labelled)]
    pub tokens: Vec<Labelled>,
    /// The PIN of a token: the first line of a file that only this user or root may read (repeatable)
    #[arg(long = "token-pin", value_name = "LABEL=FILE", value_parser = tokens::labelled)]
    pub token_pins: Vec<Labelled>,
    /// A file or folder that the modules of tokens read and write (repeatable); they reach no others but libraries
    #[arg(long = "token-files", value_name = "PATH", requires = "tokens")]
    pub token_files: Vec<PathBuf>,
    /// Let the processes of a virtual machine use the daemon, past kernel and hypervisor (repeatable): QEMU connects to
    /// SOCKET, with -chardev socket,id=keyway,path=SOCKET -device ivshmem-doorbell,chardev=keyway. Keys are allowed to it
    /// by keyway key allow --for vm:NAME; the process that may connect there is that machine
    #[arg(long = "vm", value_name = "NAME=SOCKET", value_parser = vms::vm)]
    pub vms: Vec<Vm>,
    /// Give the kernel of a virtual machine a device for AES-CBC and RSA (repeatable), to which QEMU connects:
    /// -chardev socket,id=c,path=SOCKET -object cryptodev-vhost-user,id=crypto,chardev=c
    /// -device virtio-crypto-pci,cryptodev=crypto
    #[arg(long = "vhost-user", value_name = "NAME=SOCKET", value_parser = vms::vm)]
    pub vhost_users: Vec<Vm>,
    /// Allow legacy algorithms (3des-cbc), for clients that bring such a key
    #[arg(long)]
    pub legacy: bool,
    /// Take the place of the daemon that listens there, which hands over its clients and ends: they
    /// notice nothing but a pause
    #[arg(long)]
    pub take_over: bool,
    /// Threads that poll [default: one for two processors]
    #[arg(long, value_name = "N", value_parser = small_within::<1, 256>)]
    pub pumps: Option<u16>,
    /// The user to run as, if root starts it: a user of this machine, by name or number, and :GROUP if not the user's
    /// own; 'root' to stay root [default: the owner of DIR]
    #[arg(long, value_name = "USER", value_parser = Account::parse)]
    pub user: Option<Account>,
    /// Let debuggers attach and core files be written; keys are in both
    #[arg(long)]
    pub allow_debugging: bool,
    /// Keep the right to open any file and make any system call
    #[arg(long)]
    pub no_sandbox: bool,
    /// Say what happens as lines of JSON
    #[arg(long)]
    pub json: bool,
    /// Look at clients' processes, for the daemon at standard input
    #[arg(long, hide = true)]
    pub witness: bool,
    /// Keep the vhost-user device of a machine, for the daemon at standard input
    #[arg(long, hide = true)]
    pub vhost_user_keeper: Option<String>,
    /// Be it
    #[arg(long, hide = true)]
    pub vhost_user_device: Option<String>,
    /// The open files that keyway up has left to this process
    #[arg(long, hide = true, value_parser = Inherited::parse)]
    pub inherited: Option<Inherited>,
}

impl Cryptod {
    /// The options that it asks for.
    pub fn options(&self) -> CryptodOptions {
        let Cryptod {
            folder, socket, users, groups, programs, master, weights, name_spaces, ..
        } = self;
        CryptodOptions {
            folder: folder.clone(),
            socket: socket.clone(),
            users: users.clone(),
            groups: groups.clone(),
            programs: programs.clone(),
            allow_everybody: self.allow_everybody,
            master: master.clone(),
            weights: weights.clone(),
            name_spaces: name_spaces.clone(),
            limits: self.limits.clone(),
            tokens: self.tokens.clone(),
            token_pins: self.token_pins.clone(),
            token_files: self.token_files.clone(),
            vms: self.vms.clone(),
            vhost_users: self.vhost_users.clone(),
            keeps: self.vhost_user_keeper.clone(),
            is_device_of: self.vhost_user_device.clone(),
            legacy: self.legacy,
            take_over: self.take_over,
            pumps: self.pumps,
            user: self.user.clone(),
            no_sandbox: self.no_sandbox,
            json: self.json,
            witness: self.witness,
            inherited: self.inherited.clone(),
        }
    }
}
