//! Monitors: one that sees nothing is an event, and a server's page is looked at.

use crate::stub::{FINE, Stub};
use crate::{SEARCH, outcome, scenario, with};
use keyway_load::{Event, Interrupt};

fn monitored(url: &str, phase: &str, monitor: &str) -> String {
    format!("{}\n[[monitor]]\n{monitor}\n", scenario(url, "threads = 1", phase, SEARCH))
}

#[test]
fn a_monitor_that_reaches_no_server_is_an_event() {
    let stub = Stub::new(|_| FINE);
    let mut said = Vec::new();
    let monitor =
        "kind = \"entry\"\nname = \"far\"\nattributes = [\"x\"]\nurl = \"ldap://127.0.0.1:1\"";
    let text = monitored(&stub.url, "for = \"300ms\"\nrate = 100", monitor);
    let outcome = with(&text, &Interrupt::default(), &mut |event| {
        if let Event::Monitor(words) = event {
            said.push(words.to_owned());
        }
    });
    let outcome = outcome.unwrap();
    assert_eq!(outcome.recorded.done(), 30);
    assert!(outcome.is_good(), "a run is what it is without");
    assert!(said[0].starts_with("monitor far: not reached: ldap://127.0.0.1:1"), "{said:?}");
    assert!(outcome.unseen[0].starts_with("far: not reached: "), "{:?}", outcome.unseen);
    // Unless it is not to be without.
    let text = monitored(&stub.url, "for = \"300ms\"", &format!("{monitor}\nrequired = true"));
    let why = self::outcome(&text).unwrap_err().to_string();
    assert!(why.starts_with("monitor far: not reached: "), "{why}");
}

/// A page that comes while a run goes on is seen from then on, by the names that `keyway top` has.
#[test]
fn a_page_is_looked_at_from_when_it_is_there() {
    let folder = tempfile::tempdir().unwrap();
    let page = folder.path().join("meter");
    let stub = Stub::new(|_| FINE);
    let monitor = format!(
        "kind = \"keyway\"\ndata = \"{}\"\nname = \"ds1\"\nfigures = [\"search\", \"total\", \"queue\"]",
        folder.path().display()
    );
    let text = monitored(&stub.url, "for = \"60s\"\nrate = 100", &monitor);
    let (mut said, interrupt) = (Vec::new(), Interrupt::default());
    let outcome = with(&text, &interrupt, &mut |event| match event {
        Event::Monitor(words) => {
            if said.is_empty() {
                keyway_meter::open(Some(&page)).unwrap();
            }
            said.push(words.to_owned());
        }
        Event::Second(second) => {
            keyway_meter::counter("ldap.search").add(5_000);
            if second.monitors.iter().any(|(_, value)| *value > Some(0.0)) {
                interrupt.end();
            }
        }
        _ => {}
    });
    let outcome = outcome.unwrap();
    assert!(said[0].contains("monitor ds1 search: not reached: "), "{said:?}");
    assert!(said[1].ends_with("ds1 search: it is seen now"), "{said:?}");
    let names = |second: &keyway_load::Second| {
        second.monitors.iter().map(|(name, _)| name.to_string()).collect::<Vec<_>>()
    };
    assert_eq!(names(&outcome.seconds[0]), ["ds1 search", "ds1 total", "ds1 queue"]);
    let value = |place: usize| {
        outcome.seconds.iter().filter_map(|it| it.monitors[place].1).fold(0.0, f64::max)
    };
    assert!(value(0) > 0.0 && value(0) == value(1) && value(2) == 0.0, "{:?}", outcome.seconds);
}
