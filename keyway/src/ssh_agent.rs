//! The arguments of `keyway ssh-agent`.

use crate::value::some_time;
use clap::Args;
use keyway_folder::data::name;
use keyway_service::ssh_agent::SshAgentOptions;
use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

/// Be an SSH agent: sign with the keys that you may use in a cryptod
///
/// ssh, sshd, git and ssh-keygen use the keys as those of any agent, and never see them. Logins are signed for by
/// cryptod, which knows who asks: this command has the rights of the user who runs it and no others, and only
/// that user's processes and root's may connect to it.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  keyway ssh-agent -- ssh host
      run a command with the agent, and end with it; its exit status is the agent's
  keyway ssh-agent --key deploy -- git push
      with one key only
  keyway ssh-agent --cryptod /run/keyway/cryptod.socket
      serve until Ctrl-C, and print the line that tells a shell where:
      SSH_AUTH_SOCK=/run/user/1000/keyway-ssh-agent.sock; export SSH_AUTH_SOCK;
  keyway ssh-agent --confirm --lifetime 8h
      for a working day, and with a question for each signature
  keyway ssh-agent --socket /run/keyway/host-keys/agent.sock --key host
      for sshd: 'HostKeyAgent /run/keyway/host-keys/agent.sock', and the key's line of
      ssh-add -L in the file that HostKey names

Keys for SSH are of the kinds rsa, ec-p256 and ec-p384 (keyway key generate --algorithm), or for these algorithms:
  ed25519               ssh-ed25519
  ecdsa-p256-sha-256    ecdsa-sha2-nistp256
  ecdsa-p384-sha-384    ecdsa-sha2-nistp384
  rsa-pkcs1-sha-256     rsa-sha2-256
  rsa-pkcs1-sha-512     rsa-sha2-512
ssh-rsa is refused, since it signs with SHA-1. ssh-add lists keys (-l, -L) and tests them (-T). It adds, removes and \
fail at once; a new one at the same socket is used by the next. Why a request was refused stands on standard error. Grants that change count from the next request on. While cryptod is away, requests \
fail at once; a new one at the same socket is used by the next.")]
pub struct SshAgent {
    /// Where the agent listens [default: $XDG_RUNTIME_DIR/keyway-ssh-agent.sock; with a COMMAND, or without that
    /// variable, a fresh folder that only you can open]
    #[arg(long, value_name = "PATH")]
    pub socket: Option<PathBuf>,
    /// The daemon's data folder
    #[arg(long = "data", value_name = "DIR", default_value = "keyway-data")]
    pub folder: PathBuf,
    /// Where the daemon listens [default: DIR/cryptod/socket]
    #[arg(long, value_name = "SOCKET")]
    pub cryptod: Option<PathBuf>,
    /// Use this key and no other (repeatable) [default: all that you may use]
    #[arg(long = "key", value_name = "NAME")]
    pub keys: Vec<String>,
    /// Ask for each signature: the program that SSH_ASKPASS names, or /usr/bin/ssh-askpass, shows the question
    #[arg(long)]
    pub confirm: bool,
    /// End after this time, for example 8h; with a COMMAND, offer no key any more
    #[arg(long, value_name = "TIME", value_parser = some_time)]
    pub lifetime: Option<Duration>,
    /// Say where it listens with one line of JSON
    #[arg(long, conflicts_with = "command")]
    pub json: bool,
    /// A program to run with SSH_AUTH_SOCK set, and its arguments
    #[arg(last = true, value_name = "COMMAND")]
    pub command: Vec<OsString>,
}

impl SshAgent {
    /// The settings that the arguments stand for.
    pub fn options(self) -> SshAgentOptions {
        let SshAgent { socket, folder, cryptod, keys, confirm, lifetime, json, command } = self;
        let cryptod = cryptod.unwrap_or_else(|| name::socket_at(&folder));
        SshAgentOptions { socket, cryptod, keys, confirm, lifetime, command, json }
    }
}
