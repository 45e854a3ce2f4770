//! Running other programs from the root of the checkout: each is a step, with its seconds and its
//! deadline.

use crate::processes;
use serde_json::Value;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::Mutex;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::{Duration, Instant};

/// How long a step may take where nothing may be skipped.
const STEP_MAX: Duration = Duration::from_secs(60 * 60);

/// The steps of this command, in order.
static STEPS: Mutex<Steps> = Mutex::new(Steps { end: None, done: Vec::new() });

struct Steps {
    /// When the whole command has to be done, for a step's time may not be added to another's.
    end: Option<Instant>,
    done: Vec<(String, Duration)>,
}

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

/// Cargo's metadata about the workspace's own packages.
pub fn metadata() -> Result<Value, String> {
    let mut command = cargo();
    command.args(["metadata", "--no-deps", "--format-version", "1"]);
    let output = command.output().map_err(|why| format!("cargo metadata: {why}"))?;
    if !output.status.success() {
        return Err(format!("cargo metadata: {}", String::from_utf8_lossy(&output.stderr)));
    }
    serde_json::from_slice(&output.stdout).map_err(|why| format!("cargo metadata: {why}"))
}

/// All steps from here on have to end before this time has passed, where nothing may be skipped.
pub fn end_within(minutes: u64) {
    if strict()
        && let Ok(mut steps) = STEPS.lock()
    {
        steps.end = Some(Instant::now() + Duration::from_secs(minutes * 60));
    }
}

/// The folder where cargo puts what it builds in this form (`debug`, `release`).
pub fn built(form: &str) -> Result<PathBuf, String> {
    let metadata = metadata()?;
    let target = metadata["target_directory"].as_str().ok_or("cargo names no target folder")?;
    Ok(PathBuf::from(target).join(form))
}

/// Runs it, shows the line, its output and its seconds, and makes a failure an error. Where nothing
/// may be skipped, it is killed at its deadline with all that it started.
pub fn run(command: &mut Command) -> Result<(), String> {
    let line = describe(command);
    eprintln!("$ {line}");
    let end = STEPS.lock().ok().and_then(|steps| steps.end);
    let limit = strict().then(|| {
        let left = end.map(|end| end.saturating_duration_since(Instant::now()));
        left.map_or(STEP_MAX, |left| left.min(STEP_MAX))
    });
    let start = Instant::now();
    let result = match limit {
        Some(limit) => run_within(command, limit),
        None => command.status().map_err(|why| why.to_string()),
    };
    let took = start.elapsed();
    eprintln!("# {:.1} s: {line}", took.as_secs_f64());
    if let Ok(mut steps) = STEPS.lock() {
        steps.done.push((line.clone(), took));
    }
    match result {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(format!("{line}: {status}")),
        Err(why) => Err(format!("{line}: {why}")),
    }
}

/// The seconds of all steps.
pub fn report() {
    let Ok(steps) = STEPS.lock() else { return };
    if steps.done.is_empty() {
        return;
    }
    eprintln!("\n  seconds  step");
    for (line, took) in &steps.done {
        eprintln!("{:9.1}  {line}", took.as_secs_f64());
    }
    let all: Duration = steps.done.iter().map(|(_, took)| *took).sum();
    eprintln!("{:9.1}  all steps", all.as_secs_f64());
}

/// Runs it in a process group of its own; at the deadline says what still runs, and kills that.
fn run_within(command: &mut Command, limit: Duration) -> Result<ExitStatus, String> {
    let mut child = command.process_group(0).spawn().map_err(|why| why.to_string())?;
    let group = child.id();
    let (sender, ended) = channel();
    std::thread::scope(|scope| {
        scope.spawn(move || wait(&mut child).map(|status| sender.send(status)));
        match ended.recv_timeout(limit) {
            Ok(status) => Ok(status),
            Err(RecvTimeoutError::Disconnected) => Err("it could not be waited for".into()),
            Err(RecvTimeoutError::Timeout) => {
                // Not waited for yet, so its number is still its own.
                let alive = processes::below(group);
                processes::kill(group, &alive);
                let lines: Vec<String> = alive.iter().map(|one| format!("\n  {one}")).collect();
                let seconds = limit.as_secs();
                Err(format!("killed at its deadline of {seconds} s; still ran:{}", lines.concat()))
            }
        }
    })
}

fn wait(child: &mut Child) -> Option<ExitStatus> {
    child.wait().ok()
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_step_that_does_not_end_is_killed_and_named() {
        // The second sleeper left the group.
        let mut step = Command::new("sh");
        step.args(["-c", "sleep 1001 & setsid sleep 1002 & wait"]);
        let start = Instant::now();
        let why = run_within(&mut step, Duration::from_secs(1)).unwrap_err();
        assert!(why.contains("sleep 1001") && why.contains("sleep 1002"), "{why}");
        assert!(start.elapsed() < Duration::from_secs(1000));
    }

    #[test]
    fn a_step_that_ends_says_how() {
        let mut step = Command::new("sh");
        let status = run_within(step.args(["-c", "exit 7"]), STEP_MAX).unwrap();
        assert_eq!(status.code(), Some(7));
    }
}
