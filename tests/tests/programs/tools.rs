//! Tools at a terminal: ldapvi, shelldap, ldap-utils.

use super::site::{BASE, CA, HOST, Site};

/// A terminal, for programs that do otherwise without one.
fn at_a_terminal(site: &Site, command: &str, typed: &str) -> String {
    site.write("/run/command", command);
    let script = format!("LDAPTLS_CACERT={CA} script -qec 'sh /run/command' /dev/null 2>&1");
    site.sh(&script, typed).out
}

fn title(site: &Site, uid: &str) -> String {
    let (port, admin, password) =
        (site.port(), site.server().administrator(), site.server().password());
    site.out(&format!(
        "LDAPTLS_CACERT={CA} ldapsearch -x -ZZ -LLL -H ldap://{HOST}:{port} -D {admin} \
         -w {password} -b {BASE} -E pr=3/noprompt '(uid={uid})' title"
    ))
}

#[test]
fn ldapvi_edits_an_entry() {
    let Some(site) = Site::new() else { return };
    let (port, admin, password) =
        (site.port(), site.server().administrator(), site.server().password());
    // It gives its editor a line to begin at, and then the file.
    site.write(
        "/run/editor",
        "#!/bin/sh\nfor file; do :; done\n\
         sed -i 's/^sn: Test/sn: Test\\ntitle: Engineer/' \"$file\"\n",
    );
    site.out("chmod +x /run/editor");
    let said = at_a_terminal(
        &site,
        &format!(
            "EDITOR=/run/editor ldapvi -h ldap://{HOST}:{port} -Z --bind simple -D {admin} \
             -w {password} -b {BASE} --noquestions '(uid=bob)'"
        ),
        "",
    );
    assert!(title(&site, "bob").contains("title: Engineer"), "{said}");
}

#[test]
fn shelldap_walks_the_tree() {
    let Some(site) = Site::new() else { return };
    let (port, admin, password) =
        (site.port(), site.server().administrator(), site.server().password());
    site.write(
        "/run/home/.shelldap.rc",
        &format!(
            "server: ldap://{HOST}:{port}\ntls: yes\ntls_cacert: {CA}\nbasedn: {BASE}\n\
             binddn: {admin}\nbindpass: {password}\n"
        ),
    );
    site.out("chmod 600 /run/home/.shelldap.rc");
    let typed = "cd ou=People\nls\nmkdir ou=New\ncp uid=bob uid=bill\nmv uid=bill uid=will\n\
                 cat uid=will\nexit\n";
    let said = at_a_terminal(&site, "HOME=/run/home shelldap", typed);
    for text in ["uid=ann", "mail: bob@example.com", "uid: will"] {
        assert!(said.contains(text), "{text}: {said}");
    }
    assert!(title(&site, "will").contains("dn: uid=will,"), "{said}");
}
