//! A writer that was stopped for longer than its lease lasts, and does not know it.

use crate::load::under_load;
use crate::site::{Site, add, dn};
use keyway_tests::etcd;
use rustix::process::Signal;
use std::thread;
use std::time::Instant;

#[test]
fn a_writer_that_was_stopped_beyond_its_lease_changes_nothing_and_follows() {
    if !etcd::available() {
        return;
    }
    let mut site = Site::new(3, 3, 2);
    let (early, done) = under_load(&mut site, |site, load| {
        let mut early = Vec::new();
        for round in 0..3 {
            let writer = site.writer();
            let epoch = site.until("its epoch", || site.places[writer].status()?["epoch"].as_u64());
            let mut clients: Vec<_> = (0..8).map(|_| site.client(writer)).collect();
            site.places[writer].signal(Signal::STOP);
            let stopped = Instant::now();
            // They are the first that it has to do when it goes on.
            let waiting = thread::spawn(move || {
                let all = clients.iter_mut().zip(0..);
                let add = |(client, n)| {
                    let uid = format!("early{round}-{n}");
                    add(client, &uid).map(|()| uid)
                };
                all.map(add).collect::<Vec<_>>()
            });
            let next = site.until("another one writes", || load.acknowledged_after(stopped));
            eprintln!("another one writes after {:?}", next - stopped);
            site.places[writer].signal(Signal::CONT);
            early.extend(waiting.join().unwrap());
            site.until("it follows, or has a lease of its own again", || {
                let status = site.places[writer].status()?;
                let is_later = status["epoch"].as_u64() > Some(epoch);
                (is_later && status["last_error"].is_null()).then_some(())
            });
        }
        early
    });
    let refused: Vec<_> = early.iter().filter_map(|it| it.as_ref().err()).collect();
    eprintln!("{} of {} early changes refused: {refused:?}", refused.len(), early.len());
    let export = site.end();
    for uid in early.iter().flatten() {
        assert!(export.contains(&format!("dn: {}\n", dn(uid))), "{uid} was acknowledged");
    }
    done.check(&export);
}
