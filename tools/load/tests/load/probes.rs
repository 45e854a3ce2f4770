//! The trial before a run, and the end of a run that comes to nothing.

use crate::stub::{Answer, FINE, Stub};
use crate::{SEARCH, outcome, scenario};
use keyway_codec::Op;
use keyway_codec::message::ResultCode;
use keyway_load::{Error, Interrupt, Options, Scenario, Users, probe, survey};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// The outcome of the trial of a scenario's text.
fn tried(text: &str) -> Result<Option<String>, Error> {
    let mut scenario = Scenario::parse(text, "test", Path::new("")).unwrap();
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let said = probe(&mut scenario, &provider, &Interrupt::default());
    // All is as it was.
    assert_eq!(scenario.phases.len(), 1);
    assert!(scenario.phases[0].most.is_none() && scenario.threads.is_none());
    assert_eq!(scenario.connections(), 8);
    said
}

#[test]
fn each_job_is_tried_once_and_advice_names_flags() {
    let served = Arc::new(AtomicUsize::new(0));
    let asked = served.clone();
    let stub = Stub::new(move |op| match op {
        Op::BindRequest(_) => FINE,
        Op::ModifyRequest(_) => Answer::Code(ResultCode::InsufficientAccessRights, 0),
        _ => {
            asked.fetch_add(1, Ordering::Relaxed);
            FINE
        }
    });
    let text = scenario(&stub.url, "", "for = \"10s\"", SEARCH);
    assert_eq!(tried(&text).unwrap(), None);
    assert_eq!(served.load(Ordering::Relaxed), 1);
    let modify = "{ modify = { dn = \"cn=x\", replace = { description = \"y\" } } }";
    let two =
        format!("{text}[[job]]\nname = \"change\"\nweight = 0.1\nsteps = [{SEARCH}, {modify}]\n");
    let said = tried(&two).unwrap().unwrap();
    assert!(said.contains("change, step 2 (modify)"), "{said}");
    assert!(said.contains("insufficientAccessRights") && said.contains("--bind-dn"), "{said}");

    let stub = Stub::new(|_| Answer::Code(ResultCode::Success, 0));
    let said = tried(&scenario(&stub.url, "", "for = \"10s\"", SEARCH)).unwrap().unwrap();
    assert!(said.contains("--users, --filter") && said.contains("--bind-dn"), "{said}");
}

/// However many connections there are to be, an account that is not taken is asked about once.
#[test]
fn a_wrong_password_is_said_once_and_not_tried_again() {
    let binds = Arc::new(AtomicUsize::new(0));
    let counted = binds.clone();
    let stub = Stub::new(move |_| {
        counted.fetch_add(1, Ordering::Relaxed);
        Answer::Code(ResultCode::InvalidCredentials, 0)
    });
    for settings in ["threads = 4", "threads = 1"] {
        let bind = "connections = { count = 40, bind = { dn = \"cn=a\", password = \"b\" } }";
        let text = scenario(&stub.url, &format!("{settings}\n{bind}"), "for = \"5s\"", SEARCH);
        let why = outcome(&text).unwrap_err().to_string();
        assert!(why.contains("--bind-dn") && why.contains("not tried again"), "{why}");
        assert_eq!(binds.swap(0, Ordering::Relaxed), 1, "{settings}");
    }
}

/// A password that is changed while a run goes on ends it, with what there is by then.
#[test]
fn an_account_that_is_no_longer_taken_ends_the_run() {
    let binds = Arc::new(AtomicUsize::new(0));
    let counted = binds.clone();
    let stub = Stub::new(move |op| match op {
        Op::BindRequest(_) if counted.fetch_add(1, Ordering::Relaxed) > 3 => {
            Answer::Code(ResultCode::InvalidCredentials, 0)
        }
        _ => FINE,
    });
    let settings = "threads = 1\nconnections = { count = 1, kind = { reconnect_after = 2 }, \
                    bind = { dn = \"cn=a\", password = \"b\" } }";
    let text = scenario(&stub.url, settings, "for = \"60s\"\nrate = 50", SEARCH);
    let outcome = outcome(&text).unwrap();
    assert!(!outcome.is_good() && outcome.recorded.done() >= 6);
    let why = outcome.ended_by.unwrap();
    assert!(why.contains("does not take the account"), "{why}");
    assert_eq!(binds.load(Ordering::Relaxed), 5);
}

#[test]
fn a_run_that_comes_to_nothing_is_ended() {
    let stub = Stub::new(|_| Answer::Code(ResultCode::NoSuchObject, 0));
    let text = scenario(&stub.url, "threads = 1", "for = \"60s\"\nrate = 20", SEARCH);
    let outcome = outcome(&text).unwrap();
    let why = outcome.ended_by.as_deref().unwrap_or_default();
    assert!(why.contains("100.0 %") && why.contains("noSuchObject"), "{why}");
    assert!(why.contains("--base") && !outcome.is_good(), "{why}");
    assert!(outcome.elapsed.as_secs() < 60);
}

/// A server that closes every connection is not flooded with new ones.
#[test]
fn connections_that_come_to_nothing_are_opened_ever_more_slowly() {
    let stub = Stub::new(|_| Answer::Close);
    let settings = "threads = 1\nconnections = { count = 1 }";
    let text = scenario(&stub.url, settings, "for = \"1s\"", SEARCH);
    let outcome = outcome(&text).unwrap();
    let failed = outcome.recorded.errors();
    assert!((1..=12).contains(&failed), "{failed}");
}

#[test]
fn a_run_may_have_a_number_of_operations() {
    let stub = Stub::new(|_| FINE);
    for (phase, threads) in [("operations = 137", 3), ("operations = 137\nrate = 2000", 2)] {
        let text = scenario(&stub.url, &format!("threads = {threads}"), phase, SEARCH);
        let outcome = outcome(&text).unwrap();
        assert_eq!((outcome.recorded.due(), outcome.recorded.done()), (137, 137), "{phase}");
        assert!(outcome.is_good() && outcome.rate() > 0.0);
        assert!(outcome.recorded_s <= outcome.elapsed.as_secs_f64() + 1e-9);
    }
    let two = "operations = 3\n[[phase]]\nfor = \"1s\"";
    let why = outcome(&scenario(&stub.url, "", two, SEARCH)).unwrap_err().to_string();
    assert!(why.contains("last phase"), "{why}");
}

/// Options that are not given are taken from what the server shows.
#[test]
fn users_are_those_that_the_server_shows() {
    let stub = Stub::new(|_| FINE);
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let mut options =
        Options { urls: vec![stub.url.clone()], base: Some("o=x".into()), ..Options::default() };
    let said = survey(&mut options, &provider).unwrap();
    // The stub's entries have no name to log in by.
    assert_eq!((said, options.users.clone()), (None, None));
    options.users = Some(Users::Range(0, 1));
    let requests = stub.state.requests.load(Ordering::Relaxed);
    assert_eq!(survey(&mut options, &provider).unwrap(), None);
    assert_eq!(stub.state.requests.load(Ordering::Relaxed), requests, "nothing is left to ask");
}
