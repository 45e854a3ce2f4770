//! Running other programs from the root of the checkout.

use std::path::PathBuf;
use std::process::{Command, Stdio};

/// The root of the checkout.
pub fn root() -> PathBuf {
    let here = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    here.parent().map(PathBuf::from).unwrap_or(here)
}

/// The cargo that runs us.
pub fn cargo() -> Command {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.current_dir(root());
    command
}

/// Runs it, shows the line and its output, and makes a failure an error.
pub fn run(command: &mut Command) -> Result<(), String> {
    let line = describe(command);
    eprintln!("$ {line}");
    match command.status() {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(format!("{line}: {status}")),
        Err(why) => Err(format!("{line}: {why}")),
    }
}

/// Whether it runs and succeeds; its output is dropped.
pub fn succeeds(program: &str, arguments: &[&str]) -> bool {
    Command::new(program)
        .args(arguments)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .is_ok_and(|status| status.success())
}

/// Whether nothing may be skipped.
pub fn strict() -> bool {
    std::env::var("CI").is_ok_and(|value| value == "true" || value == "1")
}

fn describe(command: &Command) -> String {
    let mut words = vec![command.get_program().to_string_lossy().into_owned()];
    if words[0].ends_with("/cargo") {
        words[0] = "cargo".into();
    }
    words.extend(command.get_args().map(|word| word.to_string_lossy().into_owned()));
    words.join(" ")
}
