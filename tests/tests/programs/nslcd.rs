//! nslcd: name service and PAM over StartTLS.

use super::site::{OTHER_HOST, SECRET, Site};

const SERVICE: &str = "@include common-auth\n@include common-account\n@include common-password\n";

fn begin(site: &Site, lines: &str) {
    site.write("/etc/nslcd.conf", lines);
    site.write("/etc/pam.d/keyway", SERVICE);
    site.out(
        "chgrp nslcd /etc/nslcd.conf; chmod 640 /etc/nslcd.conf
         sed -i -E 's/^(passwd|group|shadow):.*/\\1: files ldap/' /etc/nsswitch.conf
         pam-auth-update --package --remove sss
         mkdir -p /run/nslcd && chown nslcd: /run/nslcd",
    );
    site.daemon("nslcd -d");
    site.until("test -S /run/nslcd/socket");
}

fn served() -> Option<Site> {
    let site = Site::new()?;
    begin(&site, &site.configuration("/etc/nslcd.conf"));
    Some(site)
}

fn login(site: &Site, user: &str, password: &str) -> String {
    let script = format!("pamtester keyway {user} authenticate acct_mgmt 2>&1");
    site.sh(&script, &format!("{password}\n")).out
}

const IN: &str = "account management done";

#[test]
fn users_and_groups() {
    let Some(site) = served() else { return };
    assert_eq!(site.out("getent passwd ann"), "ann:x:20001:20001:Ann:/home/ann:/bin/sh\n");
    let all = site.out("getent passwd | grep -c ':200[0-9][0-9]:.*:/bin/sh'");
    assert_eq!(all, "5\n");
    assert!(site.out("getent shadow ann").starts_with("ann:*:"));
    let groups = |user: &str| site.out(&format!("id -Gn {user} | tr ' ' '\\n' | sort | xargs"));
    assert_eq!(groups("ann"), "admins core employees staff\n");
    assert_eq!(groups("bob"), "employees staff\n");
    let members = site.out("getent group employees | cut -d: -f4 | tr , '\\n' | sort | xargs");
    assert_eq!(members, "ann bob\n");
}

#[test]
fn enumeration_takes_more_than_a_page() {
    let Some(site) = served() else { return };
    let mut ldif = String::new();
    for number in 0..1100 {
        ldif.push_str(&format!(
            "dn: uid=u{number},ou=People,dc=example,dc=com\nchangetype: add\n\
             objectClass: inetOrgPerson\nobjectClass: posixAccount\nuid: u{number}\ncn: U\nsn: U\n\
             uidNumber: {}\ngidNumber: 20001\nhomeDirectory: /home/u\n\n",
            30_000 + number
        ));
    }
    site.modify(&ldif);
    assert_eq!(site.out("getent passwd | grep -c '^u[0-9]*:'"), "1100\n");
}

#[test]
fn logins_and_what_the_policy_says() {
    let Some(mut site) = served() else { return };
    assert!(login(&site, "ann", SECRET).contains(IN));
    assert!(login(&site, "ann", "wrong horse").contains("Authentication failure"));
    let old = login(&site, "old", SECRET);
    assert!(old.contains("8 grace logins left") && old.contains(IN), "{old}");
    let gone = login(&site, "gone", SECRET);
    assert!(!gone.contains(IN), "{gone}");
    // Without a password, as after an SSH key.
    let account = |user: &str| site.sh(&format!("pamtester keyway {user} acct_mgmt 2>&1"), "");
    account("ann").expect(0);
    account("gone").expect(1);
    let fresh = login(&site, "fresh", SECRET);
    assert!(fresh.contains("Password must be changed") && !fresh.contains(IN), "{fresh}");
    let new = "battery staple 7";
    let passwd = "runuser -u fresh -- passwd 2>&1";
    site.sh(passwd, &format!("{SECRET}\n{new}\n{new}\n")).expect(0);
    assert!(login(&site, "fresh", new).contains(IN));
    site.restart();
    assert!(login(&site, "fresh", new).contains(IN));
    assert_eq!(site.out("id -un bob"), "bob\n");
}

/// Neither another authority's certificate nor one for another name is taken.
#[test]
fn certificates_are_checked() {
    let refuses = |site: &Site, lines: &str| {
        // It goes on trying for ten seconds otherwise.
        begin(site, &format!("{lines}reconnect_retrytime 1\n"));
        site.sh("getent passwd ann", "").expect(2);
        site.out(&format!("grep -q 'ldap_start_tls_s() failed' {}", site.log().display()));
    };
    let Some(site) = Site::new() else { return };
    let lines = site.configuration("/etc/nslcd.conf");
    refuses(&site, &lines.replace("ldap.example.com", OTHER_HOST));
    drop(site);
    let Some(site) = Site::new() else { return };
    site.distrust();
    refuses(&site, &site.configuration("/etc/nslcd.conf"));
}
