//! A naming context that is configured later, where a lease says which server writes.

use crate::site::{Site, until};
use keyway_tests::{available, etcd, finish, keyway};
use std::process::Command;

#[test]
fn a_naming_context_that_is_configured_later_is_added_by_the_holder_of_the_lease() {
    if !etcd::available() || !available(&["ldapadd"]) {
        return;
    }
    let mut site = Site::new(2, 1, 4);
    site.settle();
    for place in &mut site.places {
        let mut set = Command::new(keyway());
        let contexts = "[\"dc=example,dc=com\", \"o=other\"]";
        set.args(["config", "set", "naming_contexts", contexts, "--data"]).arg(&place.folder);
        finish(&mut set, "").expect(0);
        assert!(place.server.take().unwrap().stop().success());
    }
    site.places.iter_mut().for_each(|place| place.start(&[]));
    let ldif = "dn: o=other\nobjectClass: organization\no: other\n";
    until("it is there", || {
        let added = finish(&mut site.places[0].server().admin_tool("ldapadd"), ldif);
        // alreadyExists: one that was unavailable was done.
        matches!(added.code, 0 | 68).then_some(())
    });
    assert!(site.end().contains("dn: o=other"));
}
