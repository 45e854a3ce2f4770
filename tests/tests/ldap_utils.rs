//! OpenLDAP's command-line clients do their work, over ldaps and StartTLS, against our own CA.

use keyway_tests::{Finished, Server, available, finish, sample};
use std::process::Command;

const PEOPLE: &str = "ou=People,dc=example,dc=com";

fn add(server: &Server, ldif: &str) -> Finished {
    finish(&mut server.admin_tool("ldapadd"), ldif)
}

fn person(uid: &str, extra: &str) -> String {
    format!(
        "dn: uid={uid},{PEOPLE}\nobjectClass: inetOrgPerson\nuid: {uid}\ncn: {uid}\nsn: Test\n{extra}\n"
    )
}

fn search(server: &Server, arguments: &[&str]) -> Finished {
    finish(server.admin_tool("ldapsearch").args(["-LLL", "-o", "ldif-wrap=no"]).args(arguments), "")
}

fn user(server: &Server, program: &str, dn: &str, password: &str) -> Command {
    let mut command = server.tool(program, server.ldaps());
    command.args(["-D", dn, "-w", password]);
    command
}

#[test]
fn the_eight_tools_do_their_work() {
    if !available(&["ldapsearch", "ldapadd", "ldapmodrdn", "ldappasswd"]) {
        return;
    }
    let (_folder, mut server) = sample(20);
    let found = search(&server, &["-b", "dc=example,dc=com", "(objectClass=inetOrgPerson)", "1.1"]);
    assert_eq!(found.expect(0).out.matches("dn: ").count(), 20);

    add(&server, &person("ann", "userPassword: first secret\nmail: ann@example.com\n")).expect(0);
    let ann = format!("uid=ann,{PEOPLE}");
    let shown = search(&server, &["-b", &ann, "-s", "base"]).expect(0).out;
    assert!(shown.contains("mail: ann@example.com"), "{shown}");
    assert!(!shown.contains("first secret"), "the password is stored as a hash: {shown}");

    let change = format!(
        "dn: {ann}\nchangetype: modify\nreplace: mail\nmail: ann@example.org\n-\nadd: title\ntitle: Engineer\n-\n"
    );
    finish(&mut server.admin_tool("ldapmodify"), &change).expect(0);
    let shown = search(&server, &["-b", &ann, "(mail=ANN@example.org)", "title"]).expect(0).out;
    assert!(shown.contains("title: Engineer"), "{shown}");

    finish(server.admin_tool("ldapcompare").args([&ann, "title:engineer"]), "").expect(6);
    finish(server.admin_tool("ldapcompare").args([&ann, "title:Director"]), "").expect(5);

    let me = finish(&mut user(&server, "ldapwhoami", &ann, "first secret"), "").expect(0);
    assert_eq!(me.out.trim(), format!("dn:{ann}"));
    finish(&mut user(&server, "ldapwhoami", &ann, "wrong secret"), "").expect(49);

    let mut passwd = user(&server, "ldappasswd", &ann, "first secret");
    finish(passwd.args(["-a", "first secret", "-s", "second secret"]), "").expect(0);
    finish(&mut user(&server, "ldapwhoami", &ann, "first secret"), "").expect(49);
    finish(&mut user(&server, "ldapwhoami", &ann, "second secret"), "").expect(0);
    let made = finish(server.admin_tool("ldappasswd").arg(&ann), "").expect(0).out;
    let generated = made.trim().strip_prefix("New password: ").expect(&made).to_owned();
    finish(&mut user(&server, "ldapwhoami", &ann, &generated), "").expect(0);

    finish(server.admin_tool("ldapmodrdn").args(["-r", &ann, "uid=anna"]), "").expect(0);
    search(&server, &["-b", &ann, "-s", "base"]).expect(32);
    let anna = format!("uid=anna,{PEOPLE}");
    search(&server, &["-b", &anna, "-s", "base"]).expect(0);

    finish(server.admin_tool("ldapdelete").arg(&anna), "").expect(0);
    search(&server, &["-b", &anna, "-s", "base"]).expect(32);
    assert!(server.is_up());
    assert!(server.stop().success());
}

#[test]
fn start_tls_is_checked_against_the_ca() {
    if !available(&["ldapwhoami"]) {
        return;
    }
    let (_folder, server) = sample(1);
    let admin = ["-D", server.administrator(), "-y", server.text("administrator_password_file")];
    let mut command = server.tool("ldapwhoami", server.ldap());
    let out = finish(command.args(admin).arg("-ZZ"), "").expect(0).out;
    assert_eq!(out.trim(), format!("dn:{}", server.administrator()));
    // Without our CA the client must refuse us.
    let mut stranger = server.tool("ldapwhoami", server.ldap());
    stranger.env("LDAPTLS_CACERT", "/dev/null");
    assert_ne!(finish(stranger.args(admin).arg("-ZZ"), "").code, 0);
    let mut stranger = server.tool("ldapwhoami", server.ldaps());
    stranger.env("LDAPTLS_CACERT", "/dev/null");
    assert_ne!(finish(stranger.args(admin), "").code, 0);
}

#[test]
fn what_is_wrong_gets_its_result_code() {
    if !available(&["ldapsearch", "ldapadd"]) {
        return;
    }
    let (_folder, mut server) = sample(3);
    let s = &server;
    let cases: &[(&str, String, i32)] = &[
        ("no parent", person("x", "").replace("ou=People", "ou=Nowhere"), 32),
        ("again", person("twice", ""), 0),
        ("again", person("twice", ""), 68),
        ("unknown attribute", person("u1", "noSuchThing: 1\n"), 17),
        ("not allowed by class", person("u2", "uidNumber: 7\n"), 65),
        (
            "missing required",
            format!("dn: uid=u3,{PEOPLE}\nobjectClass: inetOrgPerson\nuid: u3\ncn: x\n\n"),
            65,
        ),
        ("bad syntax", person("u4", "jpegPhoto:\nmanager: not a dn\n"), 21),
        ("fax with a star", person("u11", "facsimileTelephoneNumber: *1$fineResolution\n"), 21),
        ("number with a star", person("u12", "telephoneNumber: *100#\n"), 21),
        ("mobile with an umlaut", person("u13", "mobile: J\u{fc}rgen\n"), 21),
        ("value twice", person("u5", "mail: a@b\nmail: A@B\n"), 20),
        ("bad DN", person("u7", "").replace("uid=u7,", "uid=u7,,"), 34),
        ("operational", person("u8", "createTimestamp: 20200101000000Z\n"), 19),
        ("no structural class", format!("dn: uid=u9,{PEOPLE}\nobjectClass: top\nuid: u9\n\n"), 65),
        ("single value", person("u10", "preferredLanguage: en\npreferredLanguage: de\n"), 19),
    ];
    for (what, ldif, code) in cases {
        let done = add(s, ldif);
        assert_eq!(done.code, *code, "{what}: {}", done.err);
    }
    let not_leaf = finish(s.admin_tool("ldapdelete").arg(PEOPLE), "");
    assert_eq!(not_leaf.code, 66, "{}", not_leaf.err);
    let missing = search(s, &["-b", &format!("cn=a,cn=b,{PEOPLE}"), "-s", "base"]);
    assert_eq!(missing.code, 32);
    assert!(missing.err.contains(&format!("Matched DN: {PEOPLE}")), "{}", missing.err);
    let limited = search(s, &["-z", "2", "-b", "dc=example,dc=com", "(objectClass=*)", "1.1"]);
    assert_eq!(limited.code, 4);
    assert_eq!(limited.out.matches("dn: ").count(), 2);
    let mut critical = s.admin_tool("ldapsearch");
    let refused = finish(critical.args(["-b", "", "-s", "base", "-e", "!1.2.3.4"]), "");
    assert_eq!(refused.code, 12, "{}", refused.err);
    assert!(server.is_up());
}

#[test]
fn who_may_see_what() {
    if !available(&["ldapsearch", "ldapmodify"]) {
        return;
    }
    let (_folder, server) = sample(3);
    add(&server, &person("bob", "userPassword: bobs own secret\n")).expect(0);
    let bob = format!("uid=bob,{PEOPLE}");
    // Anonymous: the root DSE and the schema, no entry.
    let anonymous = |arguments: &[&str]| {
        finish(server.tool("ldapsearch", server.ldaps()).args(["-LLL"]).args(arguments), "")
    };
    let root = anonymous(&["-b", "", "-s", "base", "+"]).expect(0).out;
    assert!(root.contains("namingContexts: dc=example,dc=com"), "{root}");
    assert!(root.contains("supportedExtension: 1.3.6.1.4.1.1466.20037"), "{root}");
    assert!(root.contains("2.16.840.1.113730.3.4.2"), "referral objects can be managed: {root}");
    anonymous(&["-MM", "-b", "", "-s", "base"]).expect(0);
    let schema = anonymous(&["-b", "cn=schema", "-s", "base", "+"]).expect(0).out;
    assert!(schema.contains("inetOrgPerson"), "{schema}");
    assert!(schema.contains("\nmodifyTimestamp: 20"), "{schema}");
    let time = ["-b", "cn=schema", "-s", "base", "modifyTimestamp"];
    assert_eq!(anonymous(&time).expect(0).out, anonymous(&time).expect(0).out);
    assert!(!anonymous(&["-b", "dc=example,dc=com"]).out.contains("dn: "));
    // A user: entries without passwords, not even as a filter; writes only the user's own password.
    let as_bob = |program: &str| user(&server, program, &bob, "bobs own secret");
    let all = finish(as_bob("ldapsearch").args(["-LLL", "-b", "dc=example,dc=com"]), "").expect(0);
    assert!(all.out.contains("dn: uid=bob"), "{}", all.out);
    assert!(!all.out.to_lowercase().contains("userpassword"), "{}", all.out);
    let filter = ["-LLL", "-b", "dc=example,dc=com", "(userPassword=*)", "1.1"];
    assert!(!finish(as_bob("ldapsearch").args(filter), "").expect(0).out.contains("dn: "));
    let title = format!("dn: {bob}\nchangetype: modify\nadd: title\ntitle: King\n\n");
    finish(&mut as_bob("ldapmodify"), &title).expect(50);
    let own = format!(
        "dn: {bob}\nchangetype: modify\nreplace: userPassword\nuserPassword: next secret\n\n"
    );
    finish(&mut as_bob("ldapmodify"), &own).expect(0);
    finish(&mut user(&server, "ldapwhoami", &bob, "next secret"), "").expect(0);
    // An empty password is no authentication (RFC 4513 § 5.1.2).
    assert_eq!(finish(&mut user(&server, "ldapwhoami", &bob, ""), "").code, 53);
}

#[test]
fn paging_sees_every_entry_once() {
    if !available(&["ldapsearch"]) {
        return;
    }
    let (_folder, server) = sample(57);
    let paged = ["-E", "pr=10/noprompt", "-b", "dc=example,dc=com", "(objectClass=person)", "1.1"];
    let out = search(&server, &paged).expect(0).out;
    let mut names: Vec<&str> = out.lines().filter(|line| line.starts_with("dn: ")).collect();
    assert_eq!(names.len(), 57);
    names.sort();
    names.dedup();
    assert_eq!(names.len(), 57);
}

#[test]
fn controls_assert_and_read_around_a_write() {
    if !available(&["ldapmodify"]) {
        return;
    }
    let (_folder, server) = sample(1);
    add(&server, &person("eve", "title: one\n")).expect(0);
    let eve = format!("uid=eve,{PEOPLE}");
    let change =
        |title: &str| format!("dn: {eve}\nchangetype: modify\nreplace: title\ntitle: {title}\n\n");
    let mut modify = server.admin_tool("ldapmodify");
    let read = finish(modify.args(["-e", "preread=title", "-e", "postread=title"]), &change("two"));
    let out = read.expect(0).out;
    assert!(out.contains("title: one") && out.contains("title: two"), "{out}");
    let mut modify = server.admin_tool("ldapmodify");
    finish(modify.args(["-e", "!assert=(title=one)"]), &change("three")).expect(122);
    let mut modify = server.admin_tool("ldapmodify");
    finish(modify.args(["-e", "!assert=(title=two)"]), &change("three")).expect(0);
}

/// A hash that a user made could cost a guesser nothing, or be matched by many passwords.
#[test]
fn a_user_stores_no_ready_hash() {
    if !available(&["ldapmodify", "ldappasswd", "ldapwhoami"]) {
        return;
    }
    let (_folder, server) = sample(1);
    add(&server, &person("eve", "userPassword: first secret\n")).expect(0);
    let eve = format!("uid=eve,{PEOPLE}");
    let hash = "{SSHA}rXRAgYm9GAhAdEmNcfET0e07O0LT+WHV";
    let change =
        format!("dn: {eve}\nchangetype: modify\nreplace: userPassword\nuserPassword: {hash}\n");
    let refused = finish(&mut user(&server, "ldapmodify", &eve, "first secret"), &change);
    assert!(refused.err.contains("hashed already"), "{}", refused.err);
    refused.expect(19);
    let mut passwd = user(&server, "ldappasswd", &eve, "first secret");
    let refused = finish(passwd.args(["-s", hash]), "");
    assert!(refused.out.contains("hashed already") && refused.code != 0, "{}", refused.err);
    finish(&mut user(&server, "ldapwhoami", &eve, "first secret"), "").expect(0);
    // The administrator may bring what another server stored.
    finish(&mut server.admin_tool("ldapmodify"), &change).expect(0);
    finish(&mut user(&server, "ldapwhoami", &eve, "secret password"), "").expect(0);
}
