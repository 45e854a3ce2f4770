//! The module in its process: its configuration, and whether it is in use.

use crate::abi::{self, Rv};
use crate::limits::CONFIGURATIONS_MAX;
use keyway_client::{ClientError, Fault, KeyClient, environment, socket_path};
use once_cell::race::OnceBox;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};

/// Names of the only keys that a program is shown, with commas between them.
const KEYS_VARIABLE: &str = "KEYWAY_KEYS";
/// If it is set, errors are printed to standard error: PKCS #11 has numbers only.
const DEBUG_VARIABLE: &str = "KEYWAY_PKCS11_DEBUG";

/// A configuration, with a client of the daemon that it names.
pub struct Module {
    pub client: KeyClient,
    configuration: Configuration,
    /// Another one that the program had later.
    next: OnceBox<Module>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Configuration {
    socket: PathBuf,
    shown: Option<Vec<String>>,
    is_verbose: bool,
}

static FIRST: OnceBox<Module> = OnceBox::new();
/// The configuration in use, counted from 1, and above it the process that began to use it; 0 if none is in use. A
/// child goes on with its parent's, and may begin by itself.
static STATE: AtomicU64 = AtomicU64::new(0);

impl Configuration {
    fn read() -> Configuration {
        let shown = environment(KEYS_VARIABLE).and_then(|names| names.into_string().ok());
        let names = |list: String| list.split(',').map(|name| name.trim().to_owned()).collect();
        Configuration {
            socket: socket_path(None),
            shown: shown.map(names),
            is_verbose: environment(DEBUG_VARIABLE).is_some(),
        }
    }
}

impl Module {
    fn new(configuration: Configuration) -> Box<Module> {
        let client = KeyClient::new(configuration.socket.clone(), "pkcs11");
        Box::new(Module { client, configuration, next: OnceBox::new() })
    }

    /// Whether the program is shown a key of that name.
    pub fn shows(&self, key: &str) -> bool {
        self.configuration.shown.as_ref().is_none_or(|shown| shown.iter().any(|it| it == key))
    }

    /// The answer to a program for a failure; the reason goes to standard error if it was asked for. An error of the
    /// caller is `caller`.
    pub fn failed(&self, why: &ClientError, caller: Rv) -> Rv {
        if self.configuration.is_verbose {
            eprintln!("keyway-pkcs11: {why}");
        }
        match why.fault {
            Fault::Unreachable | Fault::Silent | Fault::Daemon | Fault::Busy => abi::DEVICE_ERROR,
            Fault::Refused => abi::KEY_FUNCTION_NOT_PERMITTED,
            Fault::Key => abi::FUNCTION_FAILED,
            Fault::Caller => caller,
        }
    }
}

fn process() -> u64 {
    u64::from(std::process::id())
}

/// Begins, with the configuration that the environment has now.
pub fn begin() -> Result<(), Rv> {
    let before = STATE.load(Ordering::Acquire);
    if before as u32 != 0 && before >> 32 == process() {
        return Err(abi::CRYPTOKI_ALREADY_INITIALIZED);
    }
    let number = number_of(Configuration::read())?;
    let after = process() << 32 | number;
    let begun = STATE.compare_exchange(before, after, Ordering::AcqRel, Ordering::Acquire);
    begun.map(drop).map_err(|_| abi::CRYPTOKI_ALREADY_INITIALIZED)
}

/// The number of a configuration, which is kept if it is new.
fn number_of(configuration: Configuration) -> Result<u64, Rv> {
    let mut module = FIRST.get_or_init(|| Module::new(configuration.clone()));
    for number in 1..CONFIGURATIONS_MAX {
        if module.configuration == configuration {
            return Ok(number);
        }
        module = module.next.get_or_init(|| Module::new(configuration.clone()));
    }
    Err(abi::GENERAL_ERROR)
}

/// The module in use.
pub fn current() -> Result<&'static Module, Rv> {
    let number = STATE.load(Ordering::Acquire) as u32;
    let mut module = FIRST.get().filter(|_| number != 0);
    for _ in 1..number {
        module = module.and_then(|module| module.next.get());
    }
    module.ok_or(abi::CRYPTOKI_NOT_INITIALIZED)
}

/// Ends. The connection of this process is closed.
pub fn end() -> Result<(), Rv> {
    let module = current()?;
    STATE.store(0, Ordering::Release);
    module.client.disconnect();
    Ok(())
}
