//! `keyway esp`.

use clap::{Args, Subcommand};
use keyway_esp_gateway::{UpOptions, commands};
use keyway_host::failure::Failure;
use std::path::PathBuf;

/// An IPsec gateway in user space: ESP between a TUN device and UDP or raw sockets
///
/// Security associations are written in a file, on both sides: there is no key exchange (IKE). Their keys can be in a
/// cryptod, which seals and opens for the gateway and shows it no key.
#[derive(Debug, Subcommand)]
pub enum Esp {
    Up(Up),
    Check(Check),
    Status(Status),
    Reload(Reload),
}

/// Start a gateway
///
/// It makes its device, the routes of its tunnels and its sockets, gives up all other rights, and carries packets until
/// Ctrl-C. SIGHUP, or keyway esp reload, makes it read its configuration again: new keys are in use at once, and those
/// that packets under way still have are taken for a minute more. A sequence number is never used twice under a key,
/// also after kill -9: numbers are leased ahead in the state folder, which has to be kept as long as the keys.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  keyway esp up /etc/keyway-esp/esp.toml
      carry packets, and keep records in /var/lib/keyway-esp/esp
  keyway esp up office.toml --state /var/lib/keyway-esp/office \\
      --control /run/keyway-esp/office.socket
      a second gateway on this machine
  keyway key import office-out out.key --algorithm aes-256-gcm --purpose esp --for user:root
      a key that the gateway uses by its name (key_name) and never sees

A configuration (docs/guide/esp.md has all settings, and the commands for a Linux kernel at the other end):
  [device]
  name = \"esp0\"
  addresses = [\"10.1.0.1/24\"]
  [[tunnel]]
  name = \"office\"
  remote = \"198.51.100.1:4500\"
  algorithm = \"aes-256-gcm\"
  selector = [{ local = \"10.1.0.0/24\", remote = \"10.2.0.0/24\" }]
  out = { spi = \"0x1001\", key_file = \"out.key\" }
  in = { spi = \"0x2001\", key_file = \"in.key\" }

It needs CAP_NET_ADMIN, and CAP_NET_RAW for raw ESP. packaging/systemd has a unit, keyway-esp@.service.")]
pub struct Up {
    /// The configuration
    #[arg(value_name = "FILE")]
    pub file: PathBuf,
    /// The folder of its records, which no other gateway uses
    #[arg(long, value_name = "DIR", default_value = "/var/lib/keyway-esp/esp")]
    pub state: PathBuf,
    #[command(flatten)]
    pub control: Control,
    /// Lines of JSON: when it is ready, and what happens
    #[arg(long)]
    pub json: bool,
    /// Keep files of others and all system calls
    #[arg(long)]
    pub no_sandbox: bool,
    /// Let it be traced, and leave core files
    #[arg(long)]
    pub allow_debugging: bool,
}

/// Where the gateway is asked.
#[derive(Debug, Args)]
pub struct Control {
    /// The gateway's control socket
    #[arg(long = "control", value_name = "SOCKET", default_value = "/run/keyway-esp/esp.socket")]
    pub socket: PathBuf,
}

/// Check a configuration, and start nothing
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  keyway esp check /etc/keyway-esp/esp.toml
      the first fault, with its line and what to write; the exit status is 1")]
pub struct Check {
    /// The configuration
    #[arg(value_name = "FILE")]
    pub file: PathBuf,
    /// A line of JSON
    #[arg(long)]
    pub json: bool,
}

/// Show a gateway's tunnels, the use of their keys, and what was dropped for which reason
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  keyway esp status
      in words
  keyway esp status --json --control /run/keyway-esp/office.socket
      that of another gateway, for programs")]
pub struct Status {
    #[command(flatten)]
    pub control: Control,
    /// A line of JSON
    #[arg(long)]
    pub json: bool,
}

/// Have a gateway read its configuration again: all of it or, if something is wrong, nothing
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  keyway esp reload
      after the file was changed; docs/guide/esp.md says how new keys come in without a packet lost")]
pub struct Reload {
    #[command(flatten)]
    pub control: Control,
    /// A line of JSON
    #[arg(long)]
    pub json: bool,
}

/// Does it.
///
/// # Errors
/// If it cannot be done.
pub fn run(command: &Esp) -> Result<(), Failure> {
    match command {
        Esp::Up(Up { file, state, control, json, no_sandbox, .. }) => {
            keyway_esp_gateway::run(&UpOptions {
                configuration: file.clone(),
                state: state.clone(),
                control: control.socket.clone(),
                json: *json,
                no_sandbox: *no_sandbox,
            })
        }
        Esp::Check(Check { file, json }) => commands::check(file, *json),
        Esp::Status(Status { control, json }) => commands::status(&control.socket, *json),
        Esp::Reload(Reload { control, json }) => commands::reload(&control.socket, *json),
    }
}
