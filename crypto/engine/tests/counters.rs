//! The counts for a driver are of work that it has done: nothing is counted that is taken back
//! later.

use keyway_engine::*;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

const TASKS: usize = 8;
const BYTES: usize = 64;
const GCM: Parameters<'static> = Parameters::new(Algorithm::Aes128Gcm, Key::Secret(&[0; 16]));

/// A driver on the caller's processor, with a queue that works when it is polled. Once it is dead, it gives back
/// what it has not done.
struct Mortal {
    name: &'static str,
    dead: Arc<AtomicBool>,
}

impl Driver for Mortal {
    fn name(&self) -> &str {
        self.name
    }
    fn supports(&self, steps: &[Algorithm]) -> bool {
        steps == [Algorithm::Aes128Gcm]
    }
    fn open(&self, _: &[Step<'_>]) -> Result<Box<dyn DriverSession>, Error> {
        match self.dead.load(Ordering::Relaxed) {
            true => Err(Error::Gone),
            false => Ok(Box::new(Sealing)),
        }
    }
    fn queue(&self, _: &Waker) -> Option<Box<dyn DriverQueue>> {
        Some(Box::new(MortalQueue { dead: self.dead.clone(), tasks: Vec::new() }))
    }
}

struct Sealing;

impl DriverSession for Sealing {
    fn run(&self, request: &mut Request<'_>) -> Result<usize, Error> {
        match request {
            Request::Seal { data, .. } => Ok(data.len()),
            _ => Err(Error::invalid_request("it only seals")),
        }
    }
}

struct MortalQueue {
    dead: Arc<AtomicBool>,
    tasks: Vec<Box<Task>>,
}

impl DriverQueue for MortalQueue {
    fn submit(&mut self, tasks: &mut Vec<Box<Task>>, _: bool) -> Flow {
        if self.dead.load(Ordering::Relaxed) {
            return Flow::Gone;
        }
        self.tasks.append(tasks);
        Flow::Open
    }
    fn poll(&mut self, done: &mut Vec<Box<Task>>) {
        for mut task in self.tasks.drain(..) {
            match self.dead.load(Ordering::Relaxed) {
                true => task.give_back(),
                false => task.run(),
            }
            done.push(task);
        }
    }
}

/// Operations and bytes that are counted for a driver.
fn counted(driver: &str) -> [u64; 2] {
    ["operations", "bytes"]
        .map(|what| keyway_meter::counter(&format!("engine.{driver}.aes-128-gcm.{what}")).value())
}

fn seals(session: &Session) -> Vec<Box<Task>> {
    let seal = || Task::new(session, Operation::seal([0; 12], [], [1; BYTES]));
    (0..TASKS).map(|_| seal()).collect()
}

fn of(tasks: usize) -> [u64; 2] {
    [tasks as u64, (tasks * BYTES) as u64]
}

#[test]
fn a_counter_does_not_decrease_when_a_driver_dies_with_requests_that_it_has_not_done() {
    let (first, second) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicBool::new(false)));
    let driver = |name, dead| Arc::new(Mortal { name, dead });
    let engine = Engine::builder().sample(0).driver(driver("counted-first", first.clone())).build();
    let session = engine.session(GCM).unwrap();
    let mut queue = engine.queue(4 * TASKS);
    let mut done = Vec::new();
    // The first batch makes the route that the second one takes.
    for batches in 1..=2 {
        queue.submit(&mut seals(&session), false);
        assert_eq!(queue.poll(&mut done), TASKS);
        assert_eq!(counted("counted-first"), of(batches * TASKS));
    }
    queue.submit(&mut seals(&session), false);
    let before = counted("counted-first");
    assert_eq!(before, of(2 * TASKS), "what is under way is not done");
    engine.register(driver("counted-second", second)).unwrap();
    first.store(true, Ordering::Relaxed);
    done.clear();
    while queue.in_flight() > 0 {
        queue.poll(&mut done);
        assert_eq!(counted("counted-first"), before);
    }
    assert!(done.len() == TASKS && done.iter().all(|task| task.result() == Ok(BYTES)));
    assert_eq!(counted("counted-second"), of(TASKS));
}

#[test]
fn requests_that_take_a_route_are_counted_by_session_where_completions_are_handed_over() {
    let name = "counted-third";
    let dead = Arc::new(AtomicBool::new(false));
    let engine = Engine::builder().sample(0).driver(Arc::new(Mortal { name, dead })).build();
    let sessions = [engine.session(GCM).unwrap(), engine.session(GCM).unwrap()];
    let mut queue = engine.queue(4 * TASKS);
    let in_time = move |task: Box<Task>| {
        assert!(counted(name)[0] > 0, "{:?} is counted before it is handed over", task.result());
    };
    queue.on_completion(in_time);
    for batches in 1..=3 {
        let mut mixed: Vec<_> = sessions.iter().flat_map(seals).collect();
        mixed.sort_by_key(|task| std::ptr::from_ref(&**task).addr());
        queue.submit(&mut mixed, false);
        while queue.in_flight() > 0 {
            queue.poll(&mut Vec::new());
        }
        assert_eq!(counted(name), of(2 * batches * TASKS));
    }
}
