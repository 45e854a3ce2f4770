//! A process of a guest that signs on and on: this test's own program, which the host puts there.

use keyway_drivers::remote::{Remote, RemoteOptions};
use keyway_engine::{Algorithm, Engine, Key, Operation, Parameters, Session, Task};
use std::collections::BTreeSet;
use std::io::Write;
use std::path::Path;
use std::thread;
use std::time::Duration;

/// The variable that names the key.
pub const KEY: &str = "KEYWAY_TEST_KEY";
/// The variable that says how many requests are in flight; 0 for one after the other, each waited for.
pub const DEPTH: &str = "KEYWAY_TEST_DEPTH";
/// It ends when this file is there.
pub const STOP: &str = "/run/stop";

/// Signs messages with numbers until it is stopped, again and again if need be. Writes a line of the number and the
/// signature for each, a line of errors for each attempt that fails, and at the end how many messages there were.
#[test]
fn a_process_of_a_guest() {
    let Ok(key) = std::env::var(KEY) else { return };
    let depth = std::env::var(DEPTH).map_or(0, |depth| depth.parse().unwrap());
    let engine = keyway_drivers::engine();
    let _remote = Remote::connect(&engine, RemoteOptions::of_this_machine("test")).unwrap();
    let parameters = Parameters::new(Algorithm::EcdsaP256Sha256, Key::Named(&key));
    let session = engine.session(parameters).unwrap();
    // The harness has begun a line.
    println!();
    let count = if depth == 0 { one_by_one(&session) } else { many(&engine, &session, depth) };
    println!("of {count}");
}

/// The message with a number.
pub fn message(number: u64) -> Vec<u8> {
    format!("the message with the number {number}").into_bytes()
}

fn is_stopped() -> bool {
    Path::new(STOP).exists()
}

fn one_by_one(session: &Session) -> u64 {
    let mut number = 0;
    while !is_stopped() {
        let signed = session.sign(&message(number));
        number += u64::from(tell(number, signed.as_deref().map_err(ToString::to_string)));
    }
    number
}

fn many(engine: &Engine, session: &Session, depth: usize) -> u64 {
    let (mut queue, mut done) = (engine.queue(depth), Vec::new());
    let (mut under_way, mut again) = (BTreeSet::new(), Vec::new());
    let mut count = 0;
    loop {
        while under_way.len() < depth {
            let number = match again.pop() {
                Some(number) => number,
                None if is_stopped() => break,
                None => {
                    count += 1;
                    count - 1
                }
            };
            let task = Task::tagged(session, Operation::sign(session, message(number)), number);
            assert!(under_way.insert(number) && queue.submit_one(task, false).is_ok());
        }
        if under_way.is_empty() {
            return count;
        }
        queue.wait(&mut done, Duration::from_secs(1));
        for task in done.drain(..) {
            assert!(under_way.remove(&task.user), "{} came back twice", task.user);
            if !tell(task.user, task.output().map_err(|why| why.to_string())) {
                again.push(task.user);
            }
        }
    }
}

/// Whether there is a signature.
fn tell(number: u64, signed: Result<&[u8], String>) -> bool {
    // With one write, so that the line is whole when the guest moves.
    let mut line = format!("{number} ");
    match &signed {
        Ok(signature) => signature.iter().for_each(|byte| line += &format!("{byte:02x}")),
        Err(why) => line = format!("{number} failed: {why}"),
    }
    line.push('\n');
    std::io::stdout().write_all(line.as_bytes()).unwrap();
    if signed.is_err() {
        thread::sleep(Duration::from_millis(10));
    }
    signed.is_ok()
}
