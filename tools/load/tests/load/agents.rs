//! A run on several agents: whole sums, and a lost one that is seen.

use crate::stub::{FINE, Stub};
use crate::{SEARCH, scenario};
use keyway_load::{Called, Error, Hub, Identity, Interrupt, Outcome, Scenario, answer};
use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
use rustls::crypto::CryptoProvider;
use std::fs;
use std::net::TcpStream;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread;
use tempfile::TempDir;

pub fn provider() -> Arc<CryptoProvider> {
    Arc::new(rustls::crypto::aws_lc_rs::default_provider())
}

/// An authority's certificate, and one for 127.0.0.1 by it.
fn identity() -> (TempDir, Identity) {
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str, text: String| {
        let path = folder.path().join(name);
        fs::write(&path, text).unwrap();
        path
    };
    let key = KeyPair::generate().unwrap();
    let mut params = CertificateParams::new(Vec::new()).unwrap();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let ca = file("ca.pem", params.self_signed(&key).unwrap().pem());
    let issuer = Issuer::new(params, key);
    let own = KeyPair::generate().unwrap();
    let params = CertificateParams::new(vec!["127.0.0.1".to_owned()]).unwrap();
    let certificate = file("own.pem", params.signed_by(&own, &issuer).unwrap().pem());
    let key = file("own.key", own.serialize_pem());
    (folder, Identity { certificate, key, ca })
}

/// Does something with two agents, which end when their interrupts say so.
pub fn with_two<T>(work: impl FnOnce(&mut [Called], &[Interrupt; 2]) -> T) -> T {
    let (folder, identity) = identity();
    let hub = Hub::new("127.0.0.1:0".parse().unwrap(), &identity, &provider()).unwrap();
    let address = hub.address().unwrap().to_string();
    let ends = [Interrupt::default(), Interrupt::default()];
    thread::scope(|scope| {
        for end in &ends {
            let (address, identity, folder) = (&address, &identity, folder.path());
            scope.spawn(move || {
                let _ = answer(address, identity, folder, &provider(), end, &mut |_| ());
            });
        }
        let mut called = Vec::new();
        for _ in &ends {
            let agent = hub.called(&Interrupt::default(), &mut |why| panic!("{why}")).unwrap();
            called.push(agent.unwrap());
        }
        let done = work(&mut called, &ends);
        ends.iter().for_each(Interrupt::end);
        done
    })
}

/// Runs a scenario on two agents; the second ends when its interrupt says so.
pub fn run(text: &str, end_second: impl Fn(&Interrupt)) -> Result<Outcome, Error> {
    with_two(|called, ends| {
        let scenario = Scenario::parse(text, "test", Path::new(""))?;
        Hub::run(&scenario, text, called, &provider(), &Interrupt::default(), &mut |_| {
            end_second(&ends[1]);
        })
    })
}

/// Agents stay connected for another run, and callers that stay silent do not keep the others waiting.
#[test]
fn agents_do_one_run_after_the_other() {
    let stub = Stub::new(|_| FINE);
    let text = scenario(&stub.url, "threads = 1", "for = \"200ms\"\nrate = 100", SEARCH);
    let parsed = Scenario::parse(&text, "test", Path::new("")).unwrap();
    with_two(|called, _| {
        for _ in 0..2 {
            let interrupt = Interrupt::default();
            let outcome =
                Hub::run(&parsed, &text, called, &provider(), &interrupt, &mut |_| ()).unwrap();
            assert_eq!((outcome.recorded.done(), outcome.recorded.errors()), (20, 0));
        }
    });
}

#[test]
fn who_says_nothing_keeps_no_agent_waiting() {
    let (folder, identity) = identity();
    let hub = Hub::new("127.0.0.1:0".parse().unwrap(), &identity, &provider()).unwrap();
    let address = hub.address().unwrap();
    let _silent: Vec<_> = (0..3).map(|_| TcpStream::connect(address).unwrap()).collect();
    let end = Interrupt::default();
    thread::scope(|scope| {
        scope.spawn(|| {
            answer(&address.to_string(), &identity, folder.path(), &provider(), &end, &mut |_| ())
        });
        let agent = hub.called(&Interrupt::default(), &mut |why| panic!("{why}")).unwrap();
        assert!(agent.is_some());
        end.end();
    });
}

/// A hub that waits for agents that are not ready can be told to stop.
#[test]
fn an_end_is_heard_while_agents_open_their_connections() {
    let stub = Stub::new(|_| FINE);
    stub.state.shut();
    let settings =
        "threads = 1\nconnections = { count = 2, bind = { dn = \"cn=a\", password = \"b\" } }";
    let text = scenario(&stub.url, settings, "for = \"1s\"", SEARCH);
    let parsed = Scenario::parse(&text, "test", Path::new("")).unwrap();
    let why = with_two(|called, _| {
        let interrupt = Interrupt::default();
        interrupt.end();
        let run = Hub::run(&parsed, &text, called, &provider(), &interrupt, &mut |_| ());
        stub.state.open();
        run.unwrap_err().to_string()
    });
    assert!(why.contains("interrupted"), "{why}");
}

#[test]
fn two_agents_are_one_run() {
    let stub = Stub::new(|_| FINE);
    let settings = "threads = 1\nconnections = { count = 5 }";
    let text = scenario(&stub.url, settings, "for = \"1500ms\"\nrate = 200", SEARCH);
    let outcome = run(&text, |_| ()).unwrap();
    assert_eq!((outcome.recorded.due(), outcome.recorded.done()), (300, 300));
    assert_eq!(outcome.recorded.errors(), 0);
    assert_eq!(outcome.open, (5, 5));
    assert_eq!(stub.state.connections.load(Ordering::Relaxed), 5);
    let threads: Vec<_> = outcome.agents.iter().map(|agent| agent.threads.clone()).collect();
    assert_eq!(threads, [0..1, 1..2]);
    assert!(outcome.agents.iter().all(|agent| agent.lost.is_none()));
    assert!(outcome.is_good());
}

#[test]
fn a_lost_agent_is_an_event_and_no_wrong_sum() {
    let stub = Stub::new(|_| FINE);
    let settings = "threads = 1\nconnections = { count = 2 }";
    let text = scenario(&stub.url, settings, "for = \"2s\"\nrate = 100", SEARCH);
    let outcome = run(&text, Interrupt::end).unwrap();
    assert!(outcome.agents[0].lost.is_none() != outcome.agents[1].lost.is_none());
    assert!(!outcome.is_good());
    // The other agent's results are complete.
    let (due, done) = (outcome.recorded.due(), outcome.recorded.done());
    assert!((100..200).contains(&due) && done == due, "{done} of {due}");
}

#[test]
fn agents_do_not_do_everything() {
    let stub = Stub::new(|_| FINE);
    let text = scenario(&stub.url, "connections = { count = 1 }", "for = \"1s\"", SEARCH);
    let why = run(&text, |_| ()).unwrap_err().to_string();
    assert!(why.contains("each agent needs a connection"), "{why}");
    let text = scenario(&stub.url, "", "for = \"1s\"", SEARCH);
    let secret = "user = { range = [0, 99] }\nsecret = { file = \"/etc/hostname\" }";
    let why = run(&text.replace("user = { range = [0, 99] }", secret), |_| ()).unwrap_err();
    assert!(why.to_string().contains("below its folder only"), "{why}");
}
