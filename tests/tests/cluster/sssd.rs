//! sssd, which knows only HAProxy: no login fails, and no user is unknown, while the writer is changed.

use crate::applications::{Applications, Front, USERS, known, user};
use crate::balancer::HAPROXY;
use crate::haproxy::until_done;
use keyway_tests::debian::sssd::{self, IN};
use keyway_tests::debian::{self, HOST, Machine, SECRET, port_of};
use keyway_tests::{available, finish};

/// sssd does not remember, so that each look-up is one in the directory, and a machine may be slow.
const FORGETFUL: &str = "\
ldap_opt_timeout = 60
ldap_search_timeout = 60
ldap_network_timeout = 60

[nss]
memcache_timeout = 0
entry_negative_timeout = 0
";

/// A user is found and gets in.
fn uses(machine: &Machine, name: &str) -> Result<(), String> {
    let found = machine.sh(&format!("getent passwd {name}"), "");
    if !found.out.starts_with(&format!("{name}:")) {
        return Err(format!("{name} is not found ({})", found.code));
    }
    let login = sssd::login(machine, name, SECRET);
    if login.contains(IN) { Ok(()) } else { Err(format!("{name} does not get in: {login}")) }
}

/// Adds a user through HAProxy, however often that has to be tried.
fn add(front: &Front, name: &str, number: usize) {
    let _creating = front.creating();
    let ldif = user(name, number);
    until_done(|| {
        let mut added = finish(&mut front.balancer.tool(&front.password, "ldapadd"), &ldif);
        // An attempt before this one had no answer.
        if added.code == 68 {
            added.code = 0;
        }
        added
    });
}

#[test]
fn users_of_sssd_get_in_while_the_writer_is_changed() {
    let Some(machine) = Machine::new() else { return };
    if !available(&[HAPROXY, "ldapadd"]) {
        return;
    }
    let mut applications = Applications::new(&machine);
    let balancer = &applications.front().balancer;
    let (ldap, ldaps) = (balancer.address(), balancer.tls_address());
    let lines = debian::configuration("/etc/sssd/sssd.conf", ldap, ldaps);
    // A login that is cut off is tried again at the next URI only.
    let [first, second] =
        [ldap, balancer.second_address()].map(|at| format!("ldap://{HOST}:{}", port_of(at)));
    let lines = lines.replace(&first, &format!("{first}, {second}"));
    sssd::start(&machine, &(lines + FORGETFUL));
    machine.until("getent passwd ann");
    applications.change_the_writer(
        0,
        |round| {
            machine.out("sss_cache -E");
            uses(&machine, &known(round))
        },
        |front, round| {
            let name = format!("new-{round}");
            add(front, &name, USERS + round);
            uses(&machine, &name)
        },
    );
    // It did ask.
    machine.sh("getent passwd absent-user", "").expect(2);
    let refused = sssd::login(&machine, "ann", "wrong horse");
    assert!(refused.contains("Authentication failure"), "{refused}");
}
