//! `keyway ssh-agent`: an SSH agent, which signs with the keys that this process may use in a cryptod.
//!
//! It is a client like any other: keys and grants are cryptod's, and it has no rights but those of its caller.

mod command;
mod constraints;
mod held;
mod place;
mod serve;

use command::{Signals, cannot_start};
use constraints::{Confirmation, Expiry};
use held::HeldKeys;
use keyway_host::failure::Failure;
use keyway_host::output;
use place::Place;
use serde_json::json;
use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

/// The settings of an agent.
#[derive(Clone, Debug)]
pub struct SshAgentOptions {
    /// Where it listens; a place of its own if none is given.
    pub socket: Option<PathBuf>,
    /// The socket of the cryptod whose keys it uses.
    pub cryptod: PathBuf,
    /// The only keys that it uses; all that it may if there are none.
    pub keys: Vec<String>,
    /// Whether the user is asked for each signature.
    pub confirm: bool,
    /// How long its keys are to be used.
    pub lifetime: Option<Duration>,
    /// The program that it runs, and ends with; until a signal if there is none.
    pub command: Vec<OsString>,
    /// Whether it says in JSON where it listens.
    pub json: bool,
}

/// Listens until a signal comes, its lifetime is over, or its command ends, whose exit status is the result.
///
/// # Errors
/// If there is no cryptod, one of the keys cannot be used, or the agent cannot listen or start its command.
pub fn run(options: &SshAgentOptions) -> Result<ExitCode, Failure> {
    let confirmation = options.confirm.then(Confirmation::new).transpose()?;
    let expiry = options.lifetime.map(Expiry::after);
    let keys = HeldKeys::open(&options.cryptod, &options.keys, confirmation, expiry)?;
    let keys = Arc::new(keys);
    let place = match &options.socket {
        Some(path) => Place::at(path)?,
        None => Place::choose(options.command.is_empty())?,
    };
    let signals = Signals::catch()?;
    let listener = place.listener().map_err(|why| cannot_start(&why))?;
    let accept = move || serve::accept(&listener, &keys);
    thread::Builder::new().name("accept".into()).spawn(accept).map_err(|why| cannot_start(&why))?;
    let path = place.path();
    if !options.command.is_empty() {
        return signals.wait_for_command(&options.command, path);
    }
    match options.json {
        true => output::json(&json!({ "event": "ready", "socket": path }))?,
        false => {
            let shown = output::shell(&path.display().to_string());
            output::text(format_args!("SSH_AUTH_SOCK={shown}; export SSH_AUTH_SOCK;"))?;
        }
    }
    signals.wait(expiry);
    Ok(ExitCode::SUCCESS)
}
