//! HAProxy in front of three servers, one of which is made the writer in the place of another: clients that know only
//! HAProxy notice nothing that they could not try again.

use crate::balancer::{Balancer, HAPROXY, Way};
use crate::clients::BELOW;
use crate::three::Three;
use keyway_tests::{Finished, PYTHON, available, finish};
use std::process::{Command, Stdio};
use std::time::Duration;

const SETTLED_WITHIN: Duration = Duration::from_secs(120);

/// Whether the outcome is one that a client tries again: it was not reached, or told that this is not the time.
fn may_pass(finished: &Finished) -> bool {
    // Unwilling is a server that was replaced and has not been given the writer's contents yet.
    [51, 52, 53, 81, 254, 255, -1, 1].contains(&finished.code)
        && ["Can't contact", "Busy", "unavailable", "unwilling", "Server is"]
            .iter()
            .any(|it| finished.err.contains(it))
}

/// Runs a command until it succeeds; what may pass is tried again.
pub fn until_done(mut command: impl FnMut() -> Finished) -> Finished {
    for _ in 0..600 {
        let finished = command();
        if finished.code == 0 {
            return finished;
        }
        assert!(may_pass(&finished), "{}: {}{}", finished.code, finished.out, finished.err);
    }
    panic!("it is never done");
}

/// A program that keeps one connection and opens it again when that is lost.
const PROGRAM: &str = r#"
import ldap, ldap.ldapobject, sys
url, password, base, count = sys.argv[1:5]
c = ldap.ldapobject.ReconnectLDAPObject(url, retry_max=200, retry_delay=0.05)
c.set_option(ldap.OPT_NETWORK_TIMEOUT, 5)
c.set_option(ldap.OPT_TIMEOUT, 40)
c.simple_bind_s("cn=admin,cn=keyway", password)
again = (ldap.SERVER_DOWN, ldap.UNAVAILABLE, ldap.BUSY, ldap.UNWILLING_TO_PERFORM, ldap.TIMEOUT)
def until(what):
    while True:
        try:
            return what()
        except again:
            try:
                c.reconnect(url, retry_max=200, retry_delay=0.05)
            except again:
                pass
for i in range(int(count)):
    dn = "cn=python-%d,%s" % (i, base)
    def add():
        try:
            c.add_s(dn, [("objectClass", [b"organizationalRole"]), ("cn", [b"python-%d" % i])])
        except ldap.ALREADY_EXISTS:
            pass
    until(add)
    print(dn, flush=True)
print("done")
"#;

#[test]
fn clients_of_haproxy_go_on_while_the_writer_is_changed() {
    if !available(&[HAPROXY, "ldapsearch", "ldapmodify", "python:ldap"]) {
        return;
    }
    let mut three = Three::new();
    let place = tempfile::tempdir().unwrap();
    let balancer = Balancer::start(&three, place.path(), Way::InTurn);
    let password = three.password();
    let mut python = Command::new(PYTHON);
    python.args([
        "-c",
        PROGRAM,
        &format!("ldap://{}", balancer.address()),
        &password,
        BELOW,
        "400",
    ]);
    let python = python.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let write = |number: usize| {
        let ldif = format!(
            "dn: {BELOW}\nchangetype: modify\nreplace: description\ndescription: {number}\n"
        );
        until_done(|| finish(&mut balancer.tool(&password, "ldapmodify"), &ldif));
        // The user is found before the change of the writer, during it and after it.
        let mut search = balancer.tool(&password, "ldapsearch");
        search.args(["-LLL", "-b", "dc=example,dc=com", "(uid=anna.weber)", "cn"]);
        let found = until_done(|| finish(&mut search, ""));
        assert!(found.out.contains("dn: uid=anna.weber,"), "{}", found.out);
    };
    (0..5).for_each(write);
    // The writer goes on purpose: it is stopped, and another one promoted.
    three.stop(0);
    three.asked(1, "promote").unwrap();
    (5..10).for_each(write);
    three.start(0);
    three.settle(SETTLED_WITHIN);
    (10..15).for_each(write);
    // It is killed.
    three.kill(1);
    three.asked(2, "promote").unwrap();
    (15..20).for_each(write);
    three.start(1);
    three.settle(SETTLED_WITHIN);
    (20..25).for_each(write);
    let done = python.wait_with_output().unwrap();
    let (out, err) = (String::from_utf8_lossy(&done.stdout), String::from_utf8_lossy(&done.stderr));
    assert!(done.status.success() && out.ends_with("done\n"), "{out}{err}");
    three.settle(SETTLED_WITHIN);
    assert_eq!(three.status(2).unwrap()["role"], "writer");
}
