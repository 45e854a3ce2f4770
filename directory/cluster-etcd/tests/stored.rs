//! Rows as the directory's store makes them: they have the digest here that they have there.

use keyway_cluster_etcd::{Digest, Point, Row};
use keyway_store::{Options, Store};

#[test]
fn rows_of_the_store_have_the_digests_that_the_store_says() {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::open(folder.path(), Options::default()).unwrap();
    for number in 0..3u8 {
        let put = move |write: &mut keyway_store::Write<'_>| write.meta_put("row", &[number; 50]);
        store.write_now(put).unwrap();
    }
    let read = store.read().unwrap();
    let head = read.view().feed_head().unwrap().unwrap();
    let mut last = Point::START;
    for row in read.view().feed_after(0).unwrap().raw() {
        let row = row.unwrap();
        let ours = Row::new(row.position(), row.bytes().to_vec()).unwrap();
        assert_eq!(ours.before(), last);
        last = ours.point();
    }
    assert_eq!(last, Point { position: head.position, digest: Digest(head.digest.0) });
    assert!(last.position >= 3);
}
