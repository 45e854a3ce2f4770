//! All of it is gone at once, and is started again; and one member of etcd alone.

use crate::load::under_load;
use crate::site::{NAMES, SILENCE_MAX, Site, add_until_taken, connect, until};
use keyway_tests::etcd;
use std::time::Instant;

#[test]
fn a_power_cut_of_all_servers_and_all_of_etcd_loses_nothing() {
    if !etcd::available() {
        return;
    }
    let mut site = Site::new(3, 3, 4);
    let ((), done) = under_load(&mut site, |site, load| {
        for enough in [50, 120] {
            until("some changes", || (load.count() > enough).then_some(()));
            (0..3).for_each(|member| site.etcd.kill(member));
            (0..3).for_each(|place| site.kill(place));
            (0..3).for_each(|member| site.etcd.begin(member));
            site.places.iter_mut().for_each(|place| place.start(&[]));
            let begun = Instant::now();
            let answered = until("changes go on", || load.acknowledged_after(begun));
            eprintln!("after a power cut changes go on in {:?}", answered - begun);
        }
    });
    done.check(&site.end());
}

#[test]
fn that_a_member_of_etcd_is_down_is_noticed_by_no_client() {
    if !etcd::available() {
        return;
    }
    let mut site = Site::new(3, 3, 4);
    let epoch = |site: &Site| site.places[site.writer()].status().unwrap()["epoch"].clone();
    let before = epoch(&site);
    let ((), done) = under_load(&mut site, |site, load| {
        for member in 0..3 {
            site.etcd.kill(member);
            let enough = load.count() + 30;
            until("changes go on", || (load.count() > enough).then_some(()));
            site.etcd.begin(member);
            site.etcd.wait(member);
        }
    });
    let failures = done.failures();
    assert!(failures.is_empty(), "{failures:?}");
    assert_eq!(epoch(&site), before, "it is one writer all the time");
    done.check(&site.end());
}

/// What is started without its etcd answers reads, and says why it takes no changes.
#[test]
fn servers_that_start_before_their_etcd_begin_to_write_with_it() {
    if !etcd::available() {
        return;
    }
    let mut site = Site::new(2, 1, 2);
    site.settle();
    (0..2).for_each(|place| site.kill(place));
    site.etcd.kill(0);
    site.places.iter_mut().for_each(|place| place.start(&[]));
    for (place, name) in NAMES.iter().enumerate().take(2) {
        assert_eq!(site.client(place).read("dc=example,dc=com").unwrap(), 1);
        let refused = crate::site::add(&mut site.client(place), "early").unwrap_err();
        assert!(refused.contains("unavailable"), "{name}: {refused}");
        until("its status says why", || {
            site.places[place].trouble().contains("etcd does not answer").then_some(())
        });
    }
    site.etcd.begin(0);
    let (address, password) = (site.places[1].addresses[0].clone(), site.password().to_owned());
    add_until_taken("changes are taken", "late", || connect(&address, &password, SILENCE_MAX).ok());
    site.end();
}
