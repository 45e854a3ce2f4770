//! etcd does not answer for a while.

use crate::load::under_load;
use crate::site::{Site, add, until};
use keyway_tests::{available, etcd, finish, nightly};
use std::thread::sleep;
use std::time::{Duration, Instant};

#[test]
fn while_etcd_is_stopped_reads_go_on_and_changes_are_unavailable() {
    if !etcd::available() || !available(&["ldapmodify"]) {
        return;
    }
    let pause = Duration::from_secs(if nightly() { 30 } else { 10 });
    let mut site = Site::new(3, 3, 4);
    let ((), done) = under_load(&mut site, |site, load| {
        until("some changes", || (load.count() > 30).then_some(()));
        (0..3).for_each(|member| site.etcd.pause(member, true));
        let begun = Instant::now();
        for place in 0..3 {
            assert_eq!(site.client(place).read("dc=example,dc=com").unwrap(), 1);
            assert_eq!(site.client(place).search("dc=example,dc=com", "uid", "counter1"), Ok(1));
            let refused = add(&mut site.client(place), &format!("no{place}")).unwrap_err();
            assert!(refused.contains("unavailable"), "{refused}");
            let mut add = site.places[place].server().admin_tool("ldapmodify");
            let ldif =
                "dn: dc=example,dc=com\nchangetype: modify\nreplace: description\ndescription: x\n";
            let refused = finish(&mut add, ldif);
            eprintln!("{place}: {}", refused.err.trim_end());
            // unavailable
            assert_eq!(refused.code, 52, "{}", refused.err);
            assert!(refused.err.contains("etcd"), "{}", refused.err);
            let trouble = site.places[place].trouble();
            assert!(trouble.contains("etcd"), "{place}: {trouble}");
        }
        // The length of the pause is what is tried here.
        sleep(pause.saturating_sub(begun.elapsed()));
        (0..3).for_each(|member| site.etcd.pause(member, false));
        let begun = Instant::now();
        let answered = until("changes go on", || load.acknowledged_after(begun));
        eprintln!("after a pause of etcd changes go on in {:?}", answered - begun);
        let enough = load.count() + 30;
        until("more changes", || (load.count() > enough).then_some(()));
    });
    done.check(&site.end());
}
