//! Seals and opens a text three ways: by a call, through a queue, and with a future.

use keyway_engine::{Algorithm, Error, Key, Operation, Parameters, Task};
use std::time::Duration;

fn main() -> Result<(), Error> {
    let engine = keyway_drivers::engine();
    let session = engine.session(Parameters::new(Algorithm::Aes128Gcm, Key::Secret(&[7; 16])))?;

    // By a call. It returns when the work is done. A nonce is never used twice.
    let mut text = *b"attack at dawn";
    let tag = session.seal(&[0; 12], b"header", &mut text)?;
    let mut sealed = [&text[..], &tag].concat();
    let length = session.open_in_place(&[0; 12], b"header", &mut sealed)?;
    assert_eq!(&sealed[..length], b"attack at dawn");

    // Through a queue. It belongs to this thread and takes many tasks at once.
    let mut queue = engine.queue(64);
    let seal = |number: u8| Operation::seal([number; 12], b"header", b"attack at dawn");
    let mut tasks: Vec<_> = (1..=64).map(|number| Task::new(&session, seal(number))).collect();
    assert_eq!(queue.submit(&mut tasks, false), 64);
    let mut done = Vec::new();
    while queue.in_flight() > 0 {
        queue.wait(&mut done, Duration::from_secs(1));
    }
    assert!(done.iter().all(|task| task.result().is_ok()));

    // With a future, for any async executor. The task brings its buffers back.
    let Operation::Seal { nonce, aad, data, tag } = &done[0].operation else { return Ok(()) };
    let sealed = [&data[..], tag].concat();
    let task = Task::new(&session, Operation::open(*nonce, &aad[..], sealed));
    let task = futures_executor::block_on(engine.start(task)?);
    assert_eq!(task.output()?, b"attack at dawn");
    Ok(())
}
