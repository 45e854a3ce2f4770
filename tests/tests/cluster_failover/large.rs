//! Much at once, and large values, through etcd; and how much of it in a second.

use crate::site::{PEOPLE, Site, add, dn, until};
use keyway_tests::{available, etcd, finish, nightly};
use std::fmt::Write as _;
use std::fs;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::scope;
use std::time::{Duration, Instant};

const ENTRIES: usize = 2000;
const WRITERS: usize = 32;

#[test]
fn many_entries_and_large_values_go_through_etcd_and_too_large_ones_are_refused() {
    if !etcd::available() || !available(&["ldapadd", "ldapmodify"]) {
        return;
    }
    let site = Site::new(3, 3, 4);
    let writer = site.writer();
    let follower = (writer + 1) % 3;
    let mut ldif = String::new();
    for n in 0..ENTRIES {
        let entry = format!("objectClass: inetOrgPerson\nuid: many{n}\ncn: Many {n}\nsn: {n}\n");
        writeln!(ldif, "dn: uid=many{n},{PEOPLE}\n{entry}").unwrap();
    }
    let begun = Instant::now();
    finish(&mut site.places[follower].server().admin_tool("ldapadd"), &ldif).expect(0);
    eprintln!("{ENTRIES} entries by way of a follower in {:?}", begun.elapsed());
    // 400 KiB are one row; what is larger than etcd takes is refused, and so is what is larger than a message.
    let mut client = site.client(follower);
    let value = |kib: usize| "v".repeat(kib << 10);
    client.replace_values(&dn("many1"), "description", &[&value(400)]).unwrap();
    assert_eq!(client.compare(&dn("many1"), "description", &value(400)), Ok(true));
    for place in [writer, follower] {
        let file = site.places[place].folder.with_file_name(format!("large{place}.ldif"));
        let change = "changetype: modify\nreplace: description\ndescription:";
        fs::write(&file, format!("dn: {}\n{change} {}\n", dn("many2"), value(2048))).unwrap();
        let mut modify = site.places[place].server().admin_tool("ldapmodify");
        let refused = finish(modify.arg("-f").arg(&file), "");
        eprintln!("{}: {}", refused.code, refused.err.trim_end());
        assert!(refused.code != 0 && refused.err.contains("etcd takes no"), "{}", refused.err);
        // The one that writes is not changed by it, and goes on.
        add(&mut site.client(place), &format!("after{place}")).unwrap();
        assert_eq!(site.writer(), writer);
    }
    site.settle();
    let export = site.end();
    assert_eq!(export.matches("\ndn: uid=many").count(), ENTRIES);
}

/// Printed, not judged.
#[test]
fn the_rate_of_writes_through_etcd_is_printed() {
    if !etcd::available() {
        return;
    }
    let time = Duration::from_secs(if nightly() { 20 } else { 4 });
    let site = Site::new(3, 3, 6);
    let writer = site.writer();
    for place in [writer, (writer + 1) % 3] {
        let done = AtomicUsize::new(0);
        let begun = Instant::now();
        scope(|scope| {
            for number in 0..WRITERS {
                let (done, site) = (&done, &site);
                scope.spawn(move || {
                    let mut client = site.client(place);
                    for n in 0.. {
                        if begun.elapsed() > time {
                            return;
                        }
                        add(&mut client, &format!("p{place}w{number}n{n}")).unwrap();
                        done.fetch_add(1, Ordering::Relaxed);
                    }
                });
            }
        });
        let rate = done.load(Ordering::Relaxed) as f64 / begun.elapsed().as_secs_f64();
        let by = if place == writer { "the writer" } else { "a follower" };
        eprintln!("{WRITERS} clients of {by}: {rate:.0} writes/s through three members of etcd");
    }
    until("followers have all", || Some(site.settle()));
}
