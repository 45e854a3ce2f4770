//! When requests start: whatever the server does, in an open loop.

use crate::stub::{FINE, Stub};
use crate::{SEARCH, outcome, scenario, with};
use keyway_codec::Op;
use keyway_load::{Event, Interrupt};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

/// A server that stalls cannot hide it: those that were to start meanwhile have waited, also on
/// connections that are few (coordinated omission).
#[test]
fn a_stall_is_in_the_percentiles() {
    const RATE: f64 = 500.0;
    for connections in [1, 16] {
        let stub = Stub::new(|_| FINE);
        let settings = format!("connections = {{ count = {connections} }}\nthreads = 1");
        let text = scenario(&stub.url, &settings, "for = \"3s\"\nrate = 500", SEARCH);
        let state = stub.state.clone();
        let stall: Arc<Mutex<Option<Duration>>> = Arc::default();
        let length = stall.clone();
        let staller = thread::spawn(move || {
            while state.requests.load(Ordering::Relaxed) < 300 {
                thread::yield_now();
            }
            state.shut();
            let began = Instant::now();
            thread::sleep(Duration::from_secs(1));
            *length.lock().unwrap() = Some(began.elapsed());
            state.open();
        });
        let outcome = outcome(&text).unwrap();
        staller.join().unwrap();
        let stall = stall.lock().unwrap().unwrap().as_secs_f64();
        let job = &outcome.recorded.jobs[0];
        assert_eq!((job.due, job.response.len(), job.errors()), (1_500, 1_500, 0));
        // Those of the last hundredth were to start in the first (1500 / 100) / RATE of the stall.
        let p99 = job.response.value_at_quantile(0.99) as f64 / 1e9;
        let expected = stall - 15.0 / RATE;
        assert!(p99 > 0.95 * expected, "{connections}: {p99} instead of {expected}");
        // A third of all were to start in the stall, and half of these waited for half of it.
        let p83 = job.response.value_at_quantile(0.834) as f64 / 1e9;
        assert!(p83 > 0.4 * stall, "{connections}: {p83} instead of {}", stall / 2.0);
        // Only as many as there are connections were under way meanwhile.
        let service = job.service[0].value_at_quantile(0.9) as f64;
        assert!(service < job.response.value_at_quantile(0.9) as f64);
    }
}

#[test]
fn a_closed_loop_goes_as_fast_as_answers_come() {
    let stub = Stub::new(|_| FINE);
    let outcome = outcome(&scenario(&stub.url, "", "for = \"300ms\"", SEARCH)).unwrap();
    let job = &outcome.recorded.jobs[0];
    assert!(job.response.len() > 8, "{}", job.response.len());
    assert_eq!((job.errors(), job.due), (0, job.response.len()));
    assert_eq!(stub.state.connections.load(Ordering::Relaxed), 8);
    assert_eq!(outcome.connections.entries, job.response.len());
}

#[test]
fn many_in_flight_go_together() {
    let stub = Stub::new(|_| FINE);
    let settings = "threads = 1\nconnections = { count = 1, in_flight = 16 }";
    let outcome = outcome(&scenario(&stub.url, settings, "for = \"300ms\"", SEARCH)).unwrap();
    assert_eq!(outcome.recorded.errors(), 0);
    let together = stub.state.together.load(Ordering::Relaxed);
    assert!((2..=16).contains(&together), "{together}");
}

#[test]
fn what_warms_up_does_not_count() {
    let stub = Stub::new(|_| FINE);
    let phases = "for = \"200ms\"\nrate = 500\nrecord = false\n[[phase]]\nfor = \"200ms\"\nrate = { steps = [100, 200] }";
    let outcome = outcome(&scenario(&stub.url, "", phases, SEARCH)).unwrap();
    assert_eq!(outcome.phases.iter().map(|phase| phase.due()).collect::<Vec<_>>(), [100, 20, 40]);
    assert_eq!(outcome.recorded.done(), 60);
    assert!((outcome.recorded_s - 0.4).abs() < 1e-9);
}

#[test]
fn connections_live_as_long_as_they_are_told() {
    for (kind, connections) in [("\"per-operation\"", 51), ("{ reconnect_after = 10 }", 5)] {
        let stub = Stub::new(|_| FINE);
        let settings = format!("threads = 1\nconnections = {{ count = 1, kind = {kind} }}");
        let text = scenario(&stub.url, &settings, "for = \"500ms\"\nrate = 100", SEARCH);
        let outcome = outcome(&text).unwrap();
        assert_eq!((outcome.recorded.done(), outcome.recorded.errors()), (50, 0), "{kind}");
        assert_eq!(outcome.connections.opening.len(), connections, "{kind}");
        assert_eq!(outcome.connections.lost, 0);
    }
}

#[test]
fn a_sequence_uses_what_its_steps_have_found() {
    let stub = Stub::new(|op| {
        if let Op::BindRequest(bind) = op {
            assert_eq!(bind.name, "uid=employee,dc=example,dc=com");
        }
        FINE
    });
    let steps = "{ search = { filter = \"(uid={user})\", take = \"dn\", expect = { value = { mail = \"a@b\" } } } }, \
                 { wait = \"1ms\" }, { bind = { dn = \"{dn}\", password = \"secret\" }, on = \"second\" }";
    let settings = "threads = 1\nconnections = { count = 1, in_flight = 4 }";
    let outcome =
        outcome(&scenario(&stub.url, settings, "for = \"200ms\"\nrate = 200", steps)).unwrap();
    let job = &outcome.recorded.jobs[0];
    assert_eq!((job.response.len(), job.errors()), (40, 0));
    assert_eq!((job.service[0].len(), job.service[1].len(), job.service[2].len()), (40, 0, 40));
}

#[test]
fn an_end_that_is_asked_for_comes_with_results() {
    let stub = Stub::new(|_| FINE);
    let text = scenario(&stub.url, "", "for = \"1h\"\nrate = 500", SEARCH);
    let interrupt = Interrupt::default();
    let mut seconds = 0;
    let outcome = with(&text, &interrupt, &mut |event| {
        if let Event::Second(_) = event {
            seconds += 1;
            interrupt.end();
        }
    })
    .unwrap();
    assert!(outcome.was_interrupted && seconds >= 1);
    assert!(outcome.recorded.done() > 0 && outcome.recorded_s < 3_600.0);
    assert_eq!(outcome.recorded.errors(), 0);
}

#[test]
fn a_broken_threshold_ends_a_run() {
    let stub = Stub::new(|_| FINE);
    let settings =
        "threshold = [{ that = \"errors > 0\", abort = true }, { that = \"job rate > 1\" }]";
    let text = scenario(&stub.url, settings, "for = \"1h\"\nrate = 200", SEARCH);
    let outcome = outcome(&text).unwrap();
    assert_eq!(outcome.aborted_by.as_deref(), Some("errors > 0"));
    assert!(!outcome.verdicts[0].1);
    assert!(outcome.verdicts[1].1);
    assert!(!outcome.is_good());
}
