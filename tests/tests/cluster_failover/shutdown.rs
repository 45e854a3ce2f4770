//! A server that is stopped in order.

use crate::load::under_load;
use crate::site::Site;
use crate::site::until;
use keyway_tests::etcd;
use serde_json::json;
use std::time::{Duration, Instant};

/// A server that waits for etcd without end would take longer than this.
const STOP_MAX: Duration = Duration::from_secs(30);

#[test]
fn a_writer_that_is_stopped_gives_its_lease_back() {
    if !etcd::available() {
        return;
    }
    // Nothing would go on in this test by the end of such a lease.
    let mut site = Site::new(3, 3, 300);
    let ((), done) = under_load(&mut site, |site, load| {
        for _ in 0..3 {
            let writer = site.writer();
            let id = site.places[writer].status().unwrap()["member"].clone();
            let stopped = Instant::now();
            assert!(site.places[writer].server.take().unwrap().stop().success());
            let ended = Instant::now();
            let held = site.etcd.call("/v3/kv/range", &json!({ "key": site.key("writer") }));
            let held = held["kvs"][0]["value"].clone();
            assert!(held.is_null() || held != id, "{held}");
            let answered = until("another one writes", || load.acknowledged_after(stopped));
            eprintln!(
                "stopped in {:?}; another one writes after {:?}",
                ended - stopped,
                answered - stopped
            );
            site.places[writer].start(&[]);
        }
    });
    done.check(&site.end());
}

#[test]
fn servers_stop_in_time_while_etcd_does_not_answer() {
    if !etcd::available() {
        return;
    }
    let mut site = Site::new(2, 1, 4);
    site.settle();
    site.etcd.pause(0, true);
    for place in &mut site.places {
        let begun = Instant::now();
        assert!(place.server.take().unwrap().stop().success());
        eprintln!("stopped in {:?}", begun.elapsed());
        assert!(begun.elapsed() < STOP_MAX);
    }
    site.etcd.pause(0, false);
    site.places.iter_mut().for_each(|place| place.start(&[]));
    site.writer();
    site.end();
}
