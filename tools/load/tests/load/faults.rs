//! Each thing that a server can do wrong is counted as what it is.

use crate::stub::{Answer, FINE, Stub};
use crate::{SEARCH, outcome, scenario};
use keyway_codec::Op;
use keyway_codec::message::ResultCode;
use keyway_load::{Error, Fault};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Faults of a run whose searches get this answer.
fn faults(answer: Answer, steps: &str) -> (BTreeMap<Fault, u64>, u64) {
    let stub = Stub::new(move |_| answer.clone());
    let settings = "timeout = \"100ms\"\nconnections = { count = 2 }";
    let outcome =
        outcome(&scenario(&stub.url, settings, "for = \"200ms\"\nrate = 100", steps)).unwrap();
    let job = &outcome.recorded.jobs[0];
    assert_eq!(job.due, 20);
    let failed = job.failed.iter().map(|((_, fault), failed)| (*fault, failed.count));
    (failed.collect(), job.response.len())
}

#[test]
fn each_fault_has_its_own_count() {
    let value = "{ search = { expect = { value = { mail = \"c@d\" } } } }";
    let all = |fault: Fault| (BTreeMap::from([(fault, 20)]), 0);
    let code = |code, entries| Answer::Code(code, entries);
    assert_eq!(faults(FINE, SEARCH), (BTreeMap::new(), 20));
    assert_eq!(faults(code(ResultCode::Busy, 0), SEARCH), all(Fault::Code(51)));
    assert_eq!(faults(code(ResultCode::Success, 0), SEARCH), all(Fault::Empty));
    assert_eq!(faults(code(ResultCode::Success, 2), SEARCH), all(Fault::WrongEntries));
    assert_eq!(faults(FINE, value), all(Fault::WrongValue));
    assert_eq!(faults(Answer::Close, SEARCH), all(Fault::Disconnected));
    assert_eq!(
        faults(Answer::Bytes(b"HTTP/1.1 400 Bad Request\r\n\r\n"), SEARCH),
        all(Fault::Malformed)
    );
    assert_eq!(faults(Answer::Bytes(&[0x30, 0x80, 0]), SEARCH), all(Fault::Malformed));
    let (silent, done) = faults(Answer::Silence, SEARCH);
    assert_eq!((silent.values().sum::<u64>(), done), (20, 0));
    assert!(silent.contains_key(&Fault::TimedOut), "{silent:?}");
}

/// The answer to another operation, and an answer to no request.
#[test]
fn answers_must_fit() {
    // BindResponse to message 8, whatever was asked: ids of two connections begin so.
    const BOUND: &[u8] = &[0x30, 0x0c, 2, 1, 1, 0x61, 7, 10, 1, 0, 4, 0, 4, 0];
    let (failed, done) = faults(Answer::Bytes(BOUND), SEARCH);
    assert_eq!(done, 0, "{failed:?}");
    assert_eq!(failed.values().sum::<u64>(), 20);
    assert!(failed.contains_key(&Fault::Malformed) || failed.contains_key(&Fault::TimedOut));
}

#[test]
fn what_the_connection_begins_with_may_be_refused() {
    let bind = "connections = { count = 2, bind = { dn = \"cn=admin\", password = \"wrong\" } }";
    let stub = Stub::new(|_| Answer::Code(ResultCode::InvalidCredentials, 0));
    let error = outcome(&scenario(&stub.url, bind, "for = \"100ms\"", SEARCH)).unwrap_err();
    assert!(matches!(&error, Error::Server(why) if why.contains("invalidCredentials")), "{error}");

    let gone = Stub::new(|_| FINE).url.replace("127.0.0.1", "localhost.invalid");
    let error = outcome(&scenario(&gone, "", "for = \"100ms\"", SEARCH)).unwrap_err();
    assert!(error.to_string().contains("localhost.invalid"), "{error}");
}

/// A server that takes no connection any more: connections that were to start there have failed as
/// that.
#[test]
fn a_server_that_goes_away_is_seen() {
    let served = AtomicUsize::new(0);
    let stub = Stub::new(move |op| match op {
        Op::BindRequest(_) if served.fetch_add(1, Ordering::Relaxed) >= 2 => Answer::Close,
        Op::BindRequest(_) => FINE,
        _ => Answer::Close,
    });
    let settings = "threads = 1\nconnections = { count = 2, bind = { dn = \"cn=a\", password = \"b\" } }\n\
                    drain = \"300ms\"";
    let outcome =
        outcome(&scenario(&stub.url, settings, "for = \"300ms\"\nrate = 100", SEARCH)).unwrap();
    let job = &outcome.recorded.jobs[0];
    assert_eq!((job.due, job.errors(), job.response.len()), (30, 30, 0));
    assert_eq!(outcome.connections.lost, 2);
    assert!(outcome.connections.not_opened > 0);
    assert!(!outcome.is_good());
}
