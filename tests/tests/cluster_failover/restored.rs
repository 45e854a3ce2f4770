//! etcd is set back to an older copy of its data.

use crate::load::under_load;
use crate::site::{Site, until};
use keyway_tests::etcd;
use std::fs;
use std::path::Path;
use std::time::Instant;

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for file in fs::read_dir(from).unwrap() {
        let file = file.unwrap();
        let to = to.join(file.file_name());
        match file.file_type().unwrap().is_dir() {
            true => copy(&file.path(), &to),
            false => fs::copy(file.path(), to).map(drop).unwrap(),
        }
    }
}

#[test]
fn nothing_is_lost_where_etcd_is_restored_from_an_older_copy() {
    if !etcd::available() {
        return;
    }
    // With the writer of the copy; with another one; with servers that are started anew.
    for case in ["the writer of the copy", "another writer", "servers started anew"] {
        eprintln!("{case}");
        let mut site = Site::new(3, 1, 3);
        let kept = tempfile::tempdir().unwrap();
        let ((), done) = under_load(&mut site, |site, load| {
            until("some changes", || (load.count() > 20).then_some(()));
            site.etcd.kill(0);
            copy(&site.etcd.data(0), &kept.path().join("old"));
            site.etcd.begin(0);
            if case == "another writer" {
                let writer = site.writer();
                site.kill(writer);
                let killed = Instant::now();
                until("changes go on", || load.acknowledged_after(killed));
                site.places[writer].start(&[]);
            }
            let enough = load.count() + 60;
            until("more changes", || (load.count() > enough).then_some(()));
            if case == "servers started anew" {
                (0..3).for_each(|place| site.kill(place));
            }
            site.etcd.kill(0);
            fs::remove_dir_all(site.etcd.data(0)).unwrap();
            copy(&kept.path().join("old"), &site.etcd.data(0));
            site.etcd.begin(0);
            if case == "servers started anew" {
                site.places.iter_mut().for_each(|place| place.start(&[]));
            }
            let restored = Instant::now();
            let answered = until("changes go on", || load.acknowledged_after(restored));
            eprintln!("changes go on after {:?}", answered - restored);
            let enough = load.count() + 20;
            until("more changes", || (load.count() > enough).then_some(()));
        });
        done.check(&site.end());
    }
}
