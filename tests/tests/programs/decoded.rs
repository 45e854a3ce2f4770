//! Messages of programs, captured on their way and decoded, beside what tshark finds in them.

use super::site::{HOST, Site};
use super::sssd;
use keyway_tests::capture::{
    Capture, Messages, can_capture, messages_of_ours, messages_of_tshark, told, without_a_packet,
};
use std::path::Path;

const JNDI: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/programs/Jndi.java");

fn number(messages: &Messages) -> u64 {
    messages.values().sum()
}

/// tshark gives up a connection where a packet is missing; we go on.
fn with_a_hole(file: &Path, folder: &Path, port: &str) {
    let holed = folder.join("holed.pcap");
    without_a_packet(file, &holed, |length| length > 16 + 66 + 100);
    let ours = messages_of_ours(&told(&holed, port));
    let theirs = messages_of_tshark(&holed, port);
    let all = messages_of_tshark(file, port);
    assert!(number(&ours) >= number(&theirs), "{ours:?} {theirs:?}");
    assert!(number(&ours) * 10 >= number(&all) * 9, "{ours:?} of {all:?}");
}

#[test]
fn jndi_is_decoded_as_tshark_does() {
    let Some(site) = Site::new().filter(|_| can_capture()) else { return };
    let folder = tempfile::tempdir().unwrap();
    let capture = Capture::start(folder.path(), site.port());
    let mut java = site.inside("java");
    java.arg(JNDI).arg(format!("ldap://{HOST}:{}", site.port()));
    java.args([site.server().administrator(), &site.server().password()]);
    let done = keyway_tests::finish(&mut java, "").expect(0);
    assert!(done.out.ends_with("all well\n"), "{}{}", done.out, done.err);
    let (told, file) = capture.end(1);
    assert_eq!(messages_of_ours(&told), messages_of_tshark(&file, site.port()));
    assert!(told.iter().all(|one| one["event"] != "gap"), "{told:#?}");
    let operations = told.iter().filter(|one| one["event"] == "operation").count();
    assert!(operations > 20, "{told:#?}");
    with_a_hole(&file, folder.path(), site.port());
}

#[test]
fn sssd_is_decoded_as_tshark_does() {
    let Some(site) = Site::new().filter(|_| can_capture()) else { return };
    let folder = tempfile::tempdir().unwrap();
    let capture = Capture::start(folder.path(), site.port());
    // It wants TLS for passwords of users only.
    sssd::begin(&site, |lines| lines.replace("start_tls = true", "start_tls = false"));
    site.until("getent passwd ann");
    site.until("getent group employees");
    site.out("id ann; id bob");
    site.until("! getent passwd absent-user");
    site.out("pkill -TERM -o sssd");
    let (told, file) = capture.end(1);
    let (ours, theirs) = (messages_of_ours(&told), messages_of_tshark(&file, site.port()));
    assert_eq!(ours, theirs);
    assert!(ours.get(&3).is_some_and(|searches| *searches > 5), "{ours:?}");
    with_a_hole(&file, folder.path(), site.port());
}
