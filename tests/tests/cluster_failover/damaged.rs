//! Keys of etcd that are lost, or have what another program has put there; and a member that etcd contradicts.

use crate::site::{Place, SILENCE_MAX, Site, add, add_in_time, connect, until};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use keyway_tests::etcd;
use serde_json::{Value, json};

/// What no member has put there, in base64.
const SENSELESS: &str = "c2Vuc2VsZXNz";

#[test]
fn an_end_of_the_feed_that_is_lost_is_put_again() {
    if !etcd::available() {
        return;
    }
    let mut site = Site::new(3, 1, 4);
    add_in_time("before", || site.client(1));
    site.settle();
    site.etcd.call("/v3/kv/deleterange", &json!({ "key": site.key("head") }));
    add_in_time("lost", || site.client(1));
    site.settle();
    (0..3).for_each(|place| site.kill(place));
    site.etcd.call("/v3/kv/put", &json!({ "key": site.key("head"), "value": SENSELESS }));
    site.places.iter_mut().for_each(|place| place.start(&[]));
    site.writer();
    add_in_time("senseless", || site.client(2));
    // Set back, with the rows behind it still there.
    let head = site.etcd.call("/v3/kv/range", &json!({ "key": site.key("head") }));
    let head = head["kvs"][0]["value"].clone();
    (0..2).for_each(|n| add_in_time(&format!("set-back{n}"), || site.client(0)));
    site.settle();
    site.etcd.call("/v3/kv/put", &json!({ "key": site.key("head"), "value": head }));
    add_in_time("after", || site.client(1));
    // No process keeps these alive, so that they are none of another one.
    let members = site.places[0].cluster(&["members", "--json"]).expect(0).out;
    let members: Value = serde_json::from_str(&members).unwrap();
    for member in members["members"].as_array().unwrap() {
        let key = site.key(&format!("members/{}", member["id"].as_str().unwrap()));
        site.etcd.call("/v3/kv/put", &json!({ "key": key, "value": SENSELESS }));
    }
    let writer = site.writer();
    site.kill(writer);
    add_in_time("no-members", || site.client((writer + 1) % 3));
    site.places[writer].start(&[]);
    let export = site.end();
    let names = ["before", "lost", "senseless", "set-back0", "set-back1", "after", "no-members"];
    for uid in names {
        assert!(export.contains(&format!("\ndn: uid={uid},")), "{uid}");
    }
}

/// As the texts say.
fn begin_anew(site: &mut Site) {
    let all = json!({ "key": site.key(""), "range_end": site.key("~") });
    for place in &mut site.places {
        assert!(place.server.take().unwrap().stop().success());
    }
    site.etcd.call("/v3/kv/deleterange", &all);
    site.places.iter_mut().for_each(|place| place.start(&[]));
    site.writer();
}

#[test]
fn a_row_that_is_damaged_is_said_and_the_way_out_is_one() {
    if !etcd::available() {
        return;
    }
    let mut site = Site::new(3, 1, 4);
    let writer = site.writer();
    let away = (writer + 1) % 3;
    let before = site.settle();
    site.kill(away);
    (0..3).for_each(|n| add_in_time(&format!("missed{n}"), || site.client(writer)));
    let row = site.key(&format!("feed/{:016x}", before + 2));
    site.etcd.call("/v3/kv/put", &json!({ "key": row, "value": SENSELESS }));
    site.places[away].start(&[]);
    let said = until("its status says so", || {
        let trouble = site.places[away].trouble();
        trouble.contains("etcdctl del --prefix").then_some(trouble)
    });
    assert!(said.contains(&format!("position {}", before + 2)), "{said}");
    add_in_time("meanwhile", || site.client(writer));
    begin_anew(&mut site);
    add_in_time("anew", || site.client(writer));
    site.settle();
    // An end of the feed where there is no row.
    let head = site.etcd.call("/v3/kv/range", &json!({ "key": site.key("head") }));
    let mut head = STANDARD.decode(head["kvs"][0]["value"].as_str().unwrap()).unwrap();
    head[6] += 1;
    let head = json!({ "key": site.key("head"), "value": STANDARD.encode(&head) });
    site.etcd.call("/v3/kv/put", &head);
    add(&mut site.client(writer), "refused").unwrap_err();
    until("all say so", || {
        let says = |place: &Place| place.trouble().contains("etcdctl del --prefix");
        site.places.iter().all(says).then_some(())
    });
    begin_anew(&mut site);
    add_in_time("again", || site.client(writer));
    let export = site.end();
    for uid in ["missed0", "missed2", "meanwhile", "anew", "again"] {
        assert!(export.contains(&format!("\ndn: uid={uid},")), "{uid}");
    }
}

#[test]
fn a_member_that_etcd_contradicts_keeps_no_other_from_writing() {
    if !etcd::available() {
        return;
    }
    let mut site = Site::new(3, 1, 4);
    site.settle();
    let setting = format!("etcd = [\"http://{}\"]\n", site.etcd.addresses()[0]);
    for place in &mut site.places {
        assert!(place.server.take().unwrap().stop().success());
    }
    // It begins without etcd by force, and so makes changes that the others do not have.
    let apart = &mut site.places[2];
    apart.set(&setting, "");
    apart.start(&[]);
    apart.cluster(&["promote", "--force"]).expect(0);
    let password = site.password().to_owned();
    let apart = &mut site.places[2];
    let mut client = connect(&apart.addresses[0], &password, SILENCE_MAX).unwrap();
    (0..9).for_each(|n| add(&mut client, &format!("apart{n}")).unwrap());
    apart.set("[cluster]\n", &format!("[cluster]\n{setting}"));
    (0..2).for_each(|place| site.places[place].start(&[]));
    add_in_time("together", || site.client(0));
    (0..2).for_each(|place| site.kill(place));
    site.places.iter_mut().for_each(|place| place.start(&[]));
    add_in_time("after", || site.client(0));
    let said = until("its status says so", || {
        let trouble = site.places[2].trouble();
        trouble.contains("keyway cluster rejoin").then_some(trouble)
    });
    assert!(said.contains("what is in etcd is not what this server has"), "{said}");
    assert!(site.places[2].server.take().unwrap().stop().success());
    let rejoined = site.places[2].cluster(&["rejoin"]).expect(0);
    assert!(
        rejoined.err.contains("9 changes of entries that only this server had"),
        "{}",
        rejoined.err
    );
    site.places[2].start(&[]);
    let export = site.end();
    assert!(export.contains("uid=together,") && export.contains("uid=after,"));
}
