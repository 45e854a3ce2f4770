//! Postfix: maps.

use super::site::Site;

#[test]
fn addresses_and_lists() {
    let Some(mut site) = Site::new() else { return };
    for map in ["users", "lists"] {
        let path = format!("/etc/postfix/{map}.cf");
        site.write(&path, &site.configuration(&path));
    }
    site.write("/etc/postfix/main.cf", "compatibility_level = 3.6\n");
    let ask = |site: &Site, map: &str, what: &str| {
        let done = site.sh(&format!("postmap -q '{what}' ldap:/etc/postfix/{map}.cf"), "");
        (done.code, done.out, done.err)
    };
    let found = |site: &Site, map: &str, what: &str| ask(site, map, what).1;
    assert_eq!(found(&site, "users", "ann@example.com"), "ann\n");
    assert_eq!(found(&site, "users", "ANN@EXAMPLE.COM"), "ann\n");
    assert_eq!(ask(&site, "users", "absent@example.com"), (1, String::new(), String::new()));
    // Characters that mean something in a filter are quoted by Postfix, and mean nothing to us.
    assert_eq!(ask(&site, "users", "*@example.com").1, "");
    assert_eq!(ask(&site, "users", "(a\\*)@example.com").1, "");
    let list = found(&site, "lists", "employees@example.com");
    let mut members: Vec<_> = list.trim().split(',').collect();
    members.sort_unstable();
    assert_eq!(members, ["ann@example.com", "bob@example.com"]);
    site.restart();
    assert_eq!(found(&site, "users", "bob@example.com"), "bob\n");
    site.distrust();
    let (code, _, said) = ask(&site, "users", "ann@example.com");
    assert!(code == 1 && said.contains("Unable to set STARTTLS"), "{said}");
}
