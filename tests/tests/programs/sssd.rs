//! sssd: name service, PAM over StartTLS, sudo, SSH keys.

use super::site::{BASE, HOST, OTHER_HOST, SECRET, Site, free_port};
use keyway_tests::debian::sssd::{self, IN, login};

/// So that a test sees what has changed. In use this would only make work.
const IMPATIENT: &str = "\
entry_cache_timeout = 1
enumerate = true
ldap_enumeration_refresh_timeout = 1
ldap_enumeration_refresh_offset = 0
ldap_purge_cache_timeout = 1
ldap_purge_cache_offset = 0

[nss]
memcache_timeout = 0
entry_negative_timeout = 0
enum_cache_timeout = 0
";

pub fn begin(site: &Site, change: impl Fn(String) -> String) {
    let lines = change(site.configuration("/etc/sssd/sssd.conf")) + IMPATIENT;
    sssd::start(site, &lines);
}

fn configured(change: impl Fn(String) -> String) -> Option<Site> {
    let site = Site::new()?;
    begin(&site, change);
    Some(site)
}

fn served() -> Option<Site> {
    let site = configured(|lines| lines)?;
    site.until("getent passwd ann");
    Some(site)
}

#[test]
fn users_and_groups_by_dn() {
    let Some(site) = served() else { return };
    assert_eq!(site.out("getent passwd ann"), "ann:*:20001:20001:Ann:/home/ann:/bin/sh\n");
    assert_eq!(site.out("getent passwd 20002"), "bob:*:20002:20001:Bob:/home/bob:/bin/sh\n");
    site.sh("getent passwd absent-user", "").expect(2);
    let members = site.out("getent group employees | cut -d: -f4 | tr , '\\n' | sort | xargs");
    assert_eq!(members, "ann bob\n");
    let groups = |user: &str| site.out(&format!("id -Gn {user} | tr ' ' '\\n' | sort | xargs"));
    assert_eq!(groups("ann"), "core employees staff\n");
    assert_eq!(groups("bob"), "employees staff\n");
}

/// The other kind of groups, by the other port.
#[test]
fn groups_by_name_over_ldaps() {
    let Some(site) = Site::new() else { return };
    begin(&site, |lines| {
        let ldap = format!("ldap://{HOST}:{}", site.port());
        let ldaps = format!("ldaps://{HOST}:{}", site.tls_port());
        lines
            .replace("rfc2307bis", "rfc2307")
            .replace(&ldap, &ldaps)
            .replace("ldap_id_use_start_tls = true\n", "")
    });
    site.until("getent passwd ann");
    let groups = |user: &str| site.out(&format!("id -Gn {user} | tr ' ' '\\n' | sort | xargs"));
    assert_eq!(groups("ann"), "admins staff\n");
    assert_eq!(groups("bob"), "staff\n");
    assert_eq!(site.out("getent group admins | cut -d: -f3-"), "20010:ann\n");
}

#[test]
fn logins_and_what_the_policy_says() {
    let Some(site) = served() else { return };
    assert!(login(&site, "ann", SECRET).contains(IN));
    assert!(login(&site, "ann", "wrong horse").contains("Authentication failure"));
    let old = login(&site, "old", SECRET);
    assert!(
        old.contains("expired. You have 8 grace login(s) remaining") && old.contains(IN),
        "{old}"
    );
    assert!(login(&site, "gone", SECRET).contains("Authentication failure"));
    // Without a password, as after an SSH key.
    let account = |user: &str| site.sh(&format!("pamtester keyway {user} acct_mgmt 2>&1"), "");
    account("ann").expect(0);
    let gone = account("gone").expect(1).out;
    assert!(gone.contains("locked") || gone.contains("Permission denied"), "{gone}");
}

#[test]
fn only_members_of_a_group_get_in() {
    let filter = format!("filter\nldap_access_filter = memberOf=cn=core,ou=Teams,{BASE}");
    let only_core = |lines: String| lines.replace("ppolicy", &filter);
    let Some(site) = configured(only_core) else { return };
    site.until("getent passwd ann");
    let ann = login(&site, "ann", SECRET);
    assert!(ann.contains(IN), "{ann}");
    let bob = login(&site, "bob", SECRET);
    assert!(bob.contains("Permission denied") && !bob.contains(IN), "{bob}");
}

#[test]
fn a_user_changes_the_own_password() {
    let Some(site) = served() else { return };
    let passwd = |user: &str, old: &str, new: &str| {
        let done = site
            .sh(&format!("runuser -u {user} -- passwd 2>&1"), &format!("{old}\n{new}\n{new}\n"));
        (done.code, done.out)
    };
    let fresh = login(&site, "fresh", SECRET);
    assert!(fresh.contains("Password expired. Change your password now."), "{fresh}");
    assert!(!fresh.contains(IN), "{fresh}");
    let new = "battery staple 7";
    let (code, said) = passwd("fresh", SECRET, new);
    assert_eq!(code, 0, "{said}");
    assert!(login(&site, "fresh", new).contains(IN));
    assert!(!login(&site, "fresh", SECRET).contains(IN));
    assert_eq!(site.logged(&["access password ", "uid=fresh,", "name=success"]), 1);
    let (code, said) = passwd("bob", "wrong horse", new);
    assert_ne!(code, 0, "{said}");
    let (code, said) = passwd("fresh", new, "9X-tested-once");
    assert!(code != 0 && said.contains("does not contain a name of its owner"), "{said}");
}

#[test]
fn sudo_rules() {
    let Some(site) = served() else { return };
    let allowed = site.out("sudo -l -U ann");
    assert!(allowed.contains("(root) NOPASSWD: /usr/bin/id"), "{allowed}");
    assert!(site.out("sudo -l -U bob").contains("not allowed"));
    assert_eq!(site.out("runuser -u ann -- sudo -n /usr/bin/id -un"), "root\n");
    site.sh("runuser -u bob -- sudo -n /usr/bin/id -un", "").expect(1);
}

#[test]
fn a_login_by_ssh_with_a_key_of_the_directory() {
    let Some(site) = served() else { return };
    site.write(
        "/etc/ssh/sshd_config.d/keyway.conf",
        &site.configuration("/etc/ssh/sshd_config.d/keyway.conf"),
    );
    let key = site.out("ssh-keygen -q -t ed25519 -N '' -f /run/key && cat /run/key.pub");
    for user in ["ann", "gone"] {
        let dn = format!("uid={user},ou=People,{BASE}");
        site.modify(&format!(
            "dn: {dn}\nchangetype: modify\nadd: sshPublicKey\nsshPublicKey: {key}"
        ));
    }
    site.until("test \"$(sss_ssh_authorizedkeys ann)\" = \"$(cat /run/key.pub)\"");
    let port = free_port();
    site.out("mkdir -p /run/sshd");
    site.daemon(&format!("/usr/sbin/sshd -D -e -o ListenAddress=127.0.0.1:{port}"));
    let ssh = format!(
        "ssh -p {port} -i /run/key -o BatchMode=yes -o StrictHostKeyChecking=no \
         -o UserKnownHostsFile=/dev/null"
    );
    site.until(&format!("{ssh} ann@127.0.0.1 true"));
    assert_eq!(site.out(&format!("{ssh} ann@127.0.0.1 id -un")), "ann\n");
    site.sh(&format!("{ssh} gone@127.0.0.1 true"), "").expect(255);
    site.sh(&format!("{ssh} bob@127.0.0.1 true"), "").expect(255);
}

#[test]
fn what_has_changed_since() {
    let Some(site) = served() else { return };
    let dn = |uid: &str| format!("uid={uid},ou=People,{BASE}");
    site.until("getent passwd | grep -q ^old:");
    site.modify(&format!(
        "dn: {}\nchangetype: add\nobjectClass: inetOrgPerson\nobjectClass: posixAccount\n\
         uid: carl\ncn: Carl\nsn: Test\nuidNumber: 20009\ngidNumber: 20001\n\
         homeDirectory: /home/carl\n",
        dn("carl")
    ));
    site.until("getent passwd | grep -q ^carl:");
    // sssd misses the second of two changes within a second.
    site.modify(&format!(
        "dn: {}\nchangetype: modify\nreplace: loginShell\nloginShell: /bin/dash\n",
        dn("bob")
    ));
    site.until("getent passwd | grep -q ^bob:.*:/bin/dash");
    assert!(site.logged(&["modifyTimestamp>=", "name=success"]) > 0);
    site.modify(&format!("dn: {}\nchangetype: delete\n", dn("carl")));
    site.until("! getent passwd carl");
}

/// If it asks just while the server is away, it tries again after a while.
#[test]
fn a_restart_of_the_server() {
    let soon = "offline_timeout = 1\noffline_timeout_random_offset = 0\n";
    let Some(mut site) = configured(|lines| lines + soon) else { return };
    site.until("getent passwd ann");
    assert!(login(&site, "ann", SECRET).contains(IN));
    site.restart();
    site.until(&format!("echo {SECRET} | pamtester keyway ann authenticate 2>/dev/null"));
    site.until("getent passwd bob");
}

/// Neither another authority's certificate nor one for another name is taken.
#[test]
fn certificates_are_checked() {
    let refuses = |site: &Site| {
        site.until(&format!(
            "grep -q 'ldap_install_tls failed: .Connect error' {}",
            site.log().display()
        ));
        site.sh("getent passwd ann", "").expect(2);
    };
    let Some(site) = configured(|lines| lines.replace("ldap.example.com", OTHER_HOST)) else {
        return;
    };
    refuses(&site);
    drop(site);
    let Some(site) = Site::new() else { return };
    site.distrust();
    begin(&site, |lines| lines);
    refuses(&site);
}
