//! Constraints of an agent: its user confirms each signature, and it has an end.

use keyway_host::failure::Failure;
use keyway_lock::Unpoisoned;
use rustix::time::{ClockId, clock_gettime};
use std::env;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::time::Duration;

/// The variable that names the program which asks, and the one that tells it how (as OpenSSH's).
const ASKPASS: &str = "SSH_ASKPASS";
const ASKPASS_PROMPT: &str = "SSH_ASKPASS_PROMPT";
/// The program that asks where the variable names none.
const ASKPASS_DEFAULT: &str = "/usr/bin/ssh-askpass";

/// Asks the user for each signature. One question at a time.
pub struct Confirmation {
    program: PathBuf,
    asking: Mutex<()>,
}

impl Confirmation {
    /// By the program of `SSH_ASKPASS`.
    ///
    /// # Errors
    /// If there is no such program.
    pub fn new() -> Result<Confirmation, Failure> {
        let named = env::var_os(ASKPASS).filter(|program| !program.is_empty());
        let program = named.map_or_else(|| ASKPASS_DEFAULT.into(), PathBuf::from);
        if !program.is_file() {
            return Err(Failure::new(format!(
                "no program asks for confirmation: {} is none; install ssh-askpass, or name one in {ASKPASS}",
                program.display()
            )));
        }
        Ok(Confirmation { program, asking: Mutex::new(()) })
    }

    /// Whether the user allows a signature with a key. Waits for the user.
    pub fn allows(&self, key: &str) -> bool {
        let _one = self.asking.lock().unpoisoned();
        let asked = Command::new(&self.program)
            .arg(format!("Allow use of the key {key}?"))
            .env(ASKPASS_PROMPT, "confirm")
            .stdin(Stdio::null())
            .output();
        let Ok(answer) = asked else { return false };
        // A program that knows only how to ask for a line gets one.
        let said = answer.stdout.trim_ascii().to_ascii_lowercase();
        answer.status.success() && (said.is_empty() || said == b"yes")
    }
}

/// The end of an agent, by a clock that goes on while the machine sleeps.
#[derive(Clone, Copy)]
pub struct Expiry(Duration);

impl Expiry {
    /// In so much time from now.
    pub fn after(lifetime: Duration) -> Expiry {
        Expiry(now().saturating_add(lifetime))
    }

    /// How long it is until then; nothing afterwards.
    pub fn left(self) -> Duration {
        self.0.saturating_sub(now())
    }
}

fn now() -> Duration {
    let now = clock_gettime(ClockId::Boottime);
    Duration::new(now.tv_sec.unsigned_abs(), now.tv_nsec.unsigned_abs() as u32)
}
