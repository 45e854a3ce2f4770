//! The one program: flags, configuration, wiring, output.
//!
//! It has no logic of its own: directories, counters and certificates are the business of the other crates.
//! A failure ends here as one line on standard error, or with `--json` as one JSON object
//! in place of the answer, and an exit status: 1 if the command failed, 2 if its arguments are wrong.
#![forbid(unsafe_code)]

mod acl;
mod admin;
mod administrator;
mod backup;
mod changes;
mod check;
mod cli;
mod client_certificate;
mod cluster;
mod config;
mod crypto;
mod cryptod;
mod data_flag;
mod decode;
mod doctor;
mod esp;
mod export;
mod generate;
mod health;
mod history;
mod history_of;
mod import;
mod index;
mod key;
mod limits;
mod load;
mod log;
mod metrics;
mod provider;
mod quic;
mod snapshot;
mod ssh_agent;
mod terminal;
mod top;
mod undo;
mod value;
mod vm;
mod web;

use cli::{Admin, Command, Directory};
use keyway_host::failure::Failure;
use keyway_host::{output, process_hardening};
use std::process::ExitCode;

/// Puts large buffers at the start of a page. The C library's begin at any 16 bytes, and into every
/// second of those Zen 3 copies slowly: where a QUIC server receives, that takes 230 ns a packet
/// more.
#[global_allocator]
static ALLOCATOR: keyway_allocator::MiMalloc = keyway_allocator::MiMalloc;

fn main() -> ExitCode {
    match run() {
        Ok(status) => status,
        Err(failure) => {
            output::failure(&failure, cli::output_mode());
            ExitCode::from(failure.status())
        }
    }
}

/// Does what the arguments ask for.
fn run() -> Result<ExitCode, Failure> {
    let Some(command) = cli::parse()? else { return Ok(ExitCode::SUCCESS) };
    // An agent's own command would inherit that.
    if !matches!(command, Command::SshAgent(_)) {
        keyway_host::limits::raise_open_files();
    }
    if let Some(debugging) = command.holds_secrets() {
        process_hardening::process(debugging);
    }
    keyway_drivers::chosen_backend().map_err(|why| Failure::usage(why.to_string()))?;
    let done = match command {
        // A process of its has said itself what it had to say.
        Command::Up(arguments) => return keyway_service::up::run(&arguments.options()),
        Command::Ldapd(arguments) => {
            keyway_service::ldapd::run(&arguments.options(), metrics::pusher()).map(|()| true)
        }
        Command::Top(arguments) => top::run(&arguments).map(|()| true),
        Command::Log(arguments) => log::run(&arguments).map(|()| true),
        Command::History(arguments) => history_of::run(&arguments).map(|()| true),
        Command::Undo(arguments) => undo::run(&arguments).map(|()| true),
        Command::Metrics(arguments) => metrics::run(&arguments).map(|()| true),
        Command::Directory(Directory::Import(arguments)) => import::run(&arguments),
        Command::Directory(Directory::Export(arguments)) => export::run(&arguments),
        Command::Backup(command) => backup::run(&command),
        Command::Restore(arguments) => backup::restore(&arguments).map(|()| true),
        Command::Cluster(command) => cluster::run(&command),
        Command::Snapshot(command) => snapshot::run(&command),
        Command::Admin(Admin::Password(arguments)) => admin::password(&arguments).map(|()| true),
        Command::Admin(Admin::Certificate(arguments)) => {
            client_certificate::run(&arguments).map(|()| true)
        }
        Command::Config(command) => config::run(&command).map(|()| true),
        Command::Acl(command) => acl::run(&command).map(|()| true),
        Command::Crypto(command) => crypto::run(&command),
        Command::Data(command) => generate::run(&command),
        Command::Key(command) => key::run(&command),
        Command::Cryptod(arguments) => {
            keyway_service::cryptod::run(&arguments.options()).map(|()| true)
        }
        Command::SshAgent(arguments) => {
            return keyway_service::ssh_agent::run(&arguments.options());
        }
        Command::Esp(command) => esp::run(&command).map(|()| true),
        Command::Quic(command) => quic::run(&command),
        Command::Load(command) => load::run(&command),
        Command::Decode(arguments) => decode::run(&arguments),
        Command::Health(arguments) => health::run(&arguments),
        Command::Doctor(arguments) => doctor::run(&arguments),
        Command::Vm(command) => vm::run(&command),
        Command::Web(arguments) => web::run(&arguments).map(|()| true),
        Command::Directory(Directory::Check(arguments)) => check::run(&arguments),
        Command::Directory(Directory::Changes(arguments)) => {
            changes::run(&arguments).map(|()| true)
        }
        Command::Directory(Directory::History(arguments)) => {
            history::run(&arguments).map(|()| true)
        }
        Command::Directory(Directory::Advise(arguments)) => {
            index::advise(&arguments).map(|()| true)
        }
        Command::Directory(Directory::Indexes(arguments)) => index::list(&arguments).map(|()| true),
        Command::Directory(Directory::Reindex(arguments)) => {
            index::reindex(&arguments).map(|()| true)
        }
        Command::Directory(Directory::Explain(arguments)) => {
            index::explain(&arguments).map(|()| true)
        }
    };
    // Whether all of it could be done.
    done.map(|all| if all { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
