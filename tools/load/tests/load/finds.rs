//! Searches for the knee: on this machine, on agents, ended early; and what is made of their results.

use crate::agents::{provider, with_two};
use crate::stub::{Answer, FINE, Stub};
use crate::{SEARCH, scenario};
use keyway_codec::Op;
use keyway_codec::message::ResultCode;
use keyway_load::{
    Error, Event, Find, Found, Hub, Interrupt, Scenario, Verdict, compare, find, report, result,
    run,
};
use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Mutex;

fn searching(url: &str, search: &str, settings: &str, steps: &str) -> (String, Scenario, Find) {
    let text = scenario(url, settings, &format!("find = {{ {search} }}"), steps);
    let scenario = Scenario::parse(&text, "test", Path::new("")).unwrap();
    let search = scenario.find.clone().unwrap();
    (text, scenario, search)
}

/// Searches here; events meanwhile are told.
fn found(
    url: &str,
    search: &str,
    interrupt: &Interrupt,
    said: &mut dyn FnMut(Event<'_>),
) -> (Scenario, Find, Result<Found, Error>) {
    let (_, mut scenario, search) = searching(url, search, "threads = 1", SEARCH);
    let found = find(
        &mut scenario,
        &search,
        interrupt,
        &mut |scenario| run(scenario, &provider(), interrupt, said),
        &mut |_| (),
    );
    (scenario, search, found)
}

#[test]
fn a_knee_is_found_between_what_was_good_and_what_was_not() {
    let stub = Stub::new(|_| FINE);
    let search = "rate = [100, 1000], until = \"rate > 150\", hold = \"400ms\"";
    let (scenario, search, found) = found(&stub.url, search, &Interrupt::default(), &mut |_| ());
    let found = found.unwrap();
    let (good, bad) = (found.good.unwrap(), found.bad.unwrap());
    assert!((130.0..165.0).contains(&good) && bad > good && bad < 1.06 * good, "{good} {bad}");
    assert!(found.is_confirmed.is_some() && found.is_good());
    let value = result::of_find(&scenario, &search, &found);
    let page = report::html(&value);
    for words in [
        "aria-label=\"response time over rate\"",
        "the knee",
        "class=\"knee\"",
        "until rate &gt; 150",
    ] {
        assert!(page.contains(words), "{words}: {page}");
    }
    assert!(!page.contains("NaN") && !page.contains("inf"), "{page}");
    // Held against itself there is no difference.
    let same = compare::table(&value, &value).unwrap();
    assert!(same.contains("100/s p99") && !same.contains("'s knee is higher"), "{same}");
}

/// Results of the form that searches write, to be compared.
fn written(good: f64, bad: f64) -> serde_json::Value {
    serde_json::json!({
        "keyway_load": 1, "kind": "find", "until": "p99 > 20ms", "hold_s": 1.0, "good": good, "bad": bad,
        "confirmed": true, "interrupted": false, "verdict": "", "probes": [],
    })
}

#[test]
fn searches_are_compared_if_that_can_be_done() {
    let said = |one: &serde_json::Value, other: &serde_json::Value| match compare::table(one, other)
    {
        Ok(text) | Err(text) => text,
    };
    let (low, high) = (written(400.0, 420.0), written(800.0, 830.0));
    assert!(said(&low, &high).contains("B's knee is higher by 100 %: 800/s against 400/s"));
    assert!(said(&high, &low).contains("A's knee is higher by 100 %"));
    assert!(said(&low, &written(410.0, 430.0)).contains("too near"));
    let mut other = high.clone();
    other["until"] = "p99 > 5ms".into();
    assert!(said(&low, &other).contains("looked for different things"));
    let mut cut = high.clone();
    cut["ended_by"] = "an agent was lost".into();
    assert!(said(&low, &cut).contains("B did not find one for sure"));
    let mut endless = high.clone();
    endless["bad"] = serde_json::Value::Null;
    assert!(said(&low, &endless).contains("B's knee is higher: it found no limit"));
    let mut limited = low.clone();
    limited["probes"] =
        serde_json::json!([{ "rate": 420.0, "good": false, "client_limit": "busy" }]);
    assert!(said(&limited, &high).contains("in A the client may have been the limit"));
    assert!(said(&low, &serde_json::json!({ "keyway_load": 1 })).contains("A is a search"));
}

#[test]
fn an_end_that_is_asked_for_keeps_what_was_found() {
    let stub = Stub::new(|_| FINE);
    let search = "rate = [50, 1000], until = \"errors > 0\", hold = \"200ms\"";
    let (interrupt, mut begun) = (Interrupt::default(), 0);
    let (scenario, search, found) = found(&stub.url, search, &interrupt, &mut |event| {
        if let Event::Begun { .. } = event {
            begun += 1;
            if begun == 2 {
                interrupt.end();
            }
        }
    });
    let found = found.unwrap();
    assert_eq!((found.good, found.bad, found.is_confirmed), (Some(50.0), None, None));
    let verdicts: Vec<Verdict> = found.probes.iter().map(|probe| probe.verdict).collect();
    assert_eq!(verdicts, [Verdict::Good, Verdict::Cut]);
    assert!(!found.is_good());
    assert_eq!(found.words(), "50/s was good, and was not tried again (interrupted)");
    assert!(report::html(&result::of_find(&scenario, &search, &found)).contains("(interrupted)"));
    // Before anything was measured there is nothing to keep.
    let early =
        self::found(&stub.url, "rate = [50, 100], until = \"errors > 0\"", &interrupt, &mut |_| ());
    let early = early.2;
    assert!(early.as_ref().is_ok_and(|found| found.good.is_none()) || early.is_err(), "{early:?}");
}

#[test]
fn a_server_that_is_gone_ends_the_search_with_what_was_found() {
    let stub = Stub::new(|_| FINE);
    let search = "rate = [50, 1000], until = \"errors > 0\", hold = \"200ms\"";
    let (_, mut scenario, search) = searching(&stub.url, search, "threads = 1", SEARCH);
    let interrupt = Interrupt::default();
    let mut runs = 0;
    let found = find(
        &mut scenario,
        &search,
        &interrupt,
        &mut |scenario| {
            runs += 1;
            match runs {
                1 => run(scenario, &provider(), &interrupt, &mut |_| ()),
                _ => Err(Error::Server("ldap://x: cannot connect".into())),
            }
        },
        &mut |_| (),
    );
    let found = found.unwrap();
    assert_eq!((found.good, found.is_good()), (Some(50.0), false));
    assert!(found.words().ends_with("ended early: ldap://x: cannot connect"), "{}", found.words());
}

const ADD: &str =
    "{ add = { dn = \"uid={fresh},dc=a\", attributes = { objectClass = \"account\" } } }";

/// Agents hold one rate after the other, and what comes once comes once over all of them.
#[test]
fn agents_search_together() {
    let added = Mutex::new(BTreeSet::new());
    let stub = Stub::new(move |op| match op {
        Op::AddRequest(add) if !added.lock().unwrap().insert(add.dn.to_string()) => {
            Answer::Code(ResultCode::EntryAlreadyExists, 0)
        }
        _ => FINE,
    });
    let search = "rate = [100, 200], until = \"errors > 0\", hold = \"200ms\"";
    let (text, ..) = searching(&stub.url, search, "threads = 1", ADD_PLACE);
    let text = text
        .replace("user = { range = [0, 99] }", "fresh = { counter = 5 }")
        .replace(ADD_PLACE, ADD);
    let mut scenario = Scenario::parse(&text, "test", Path::new("")).unwrap();
    let search = scenario.find.clone().unwrap();
    let found = with_two(|called, _| {
        let interrupt = Interrupt::default();
        find(
            &mut scenario,
            &search,
            &interrupt,
            &mut |scenario| Hub::run(scenario, &text, called, &provider(), &interrupt, &mut |_| ()),
            &mut |_| (),
        )
        .unwrap()
    });
    let verdicts: Vec<_> = found.probes.iter().map(|probe| (probe.rate, probe.verdict)).collect();
    let good = Verdict::Good;
    assert_eq!(verdicts, [(100.0, good), (200.0, good), (200.0, good)]);
    assert!(found.probes.iter().all(|probe| probe.outcome.agents.len() == 2));
    assert!(report::html(&result::of_find(&scenario, &search, &found)).contains("Agent "));
}

/// Stands where a step is to be.
const ADD_PLACE: &str = "{ whoami = {} }";

#[test]
fn a_lost_agent_ends_the_search_and_says_nothing_of_its_rate() {
    let stub = Stub::new(|_| FINE);
    let search = "rate = [100, 1000], until = \"errors > 0\", hold = \"300ms\"";
    let (text, mut scenario, search) = searching(&stub.url, search, "threads = 1", SEARCH);
    let found = with_two(|called, ends| {
        let (interrupt, mut runs) = (Interrupt::default(), 0);
        find(
            &mut scenario,
            &search,
            &interrupt,
            &mut |scenario| {
                runs += 1;
                let is_second = runs == 2;
                Hub::run(scenario, &text, called, &provider(), &interrupt, &mut |event| {
                    if let (true, Event::Begun { .. }) = (is_second, event) {
                        ends[1].end();
                    }
                })
            },
            &mut |_| (),
        )
        .unwrap()
    });
    assert_eq!((found.good, found.bad, found.is_good()), (Some(100.0), None, false));
    assert_eq!(found.probes.last().unwrap().verdict, Verdict::Cut);
    assert!(found.words().contains("was lost after"), "{}", found.words());
}
