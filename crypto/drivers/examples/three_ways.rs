//! Seals and opens a text in each of the three ways: on this stack, through a queue, awaited.

use futures_executor::block_on;
use keyway_engine::{Algorithm, Error, Key, Nonces, Operation, Parameters, Task};

fn main() -> Result<(), Error> {
    let engine = keyway_drivers::engine();
    let mut key = [0; 32];
    engine.random(&mut key)?;
    let parameters = Parameters::new(Algorithm::Aes256Gcm, Key::Secret(&key));
    // It makes its nonces, each once.
    let session = engine.session(parameters.nonces(Nonces::Salted))?;

    let mut text = *b"attack at dawn";
    let (nonce, tag) = session.seal_next(b"header", &mut text)?;
    let mut sealed = [&text[..], &tag].concat();
    let bytes = session.open_in_place(&nonce, b"header", &mut sealed)?;
    println!("on this stack:   {}", sealed[..bytes].escape_ascii());

    let mut queue = engine.queue(8);
    let seal = Operation::seal([0; 12], "header", "attack at noon");
    queue.submit(&mut vec![Task::new(&session, seal)], false);
    let mut done = Vec::new();
    queue.poll(&mut done);
    let operation = &done[0].operation;
    let (Some(nonce), Some(tag)) = (operation.nonce(), operation.tag()) else {
        return done[0].result().map(drop);
    };
    let sealed = [done[0].output()?, tag].concat();

    let open = Task::new(&session, Operation::open(*nonce, "header", sealed));
    let opened = block_on(engine.start(open)?);
    println!("queued, awaited: {}", opened.output()?.escape_ascii());
    Ok(())
}
