//! Access rules, through other people's clients: the examples of the guide, and what `keyway acl` says.

use keyway_tests::{Finished, Server, available, finish, keyway, sample};
use rustix::process::Signal;
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

const PEOPLE: &str = "ou=People,dc=example,dc=com";
const GROUPS: &str = "ou=Groups,dc=example,dc=com";
const SECRET: &str = "a secret of theirs";

/// The examples of docs/guide/secure.md, with this machine as the mail server's network.
const RULES: &str = r#"
[[access]]
who = "administrator"
what = "everything"
rights = ["all"]

[[access]]
group = ["cn=admins,ou=Groups,dc=example,dc=com"]
over = "private"
what = "data"
rights = ["all"]

[[access]]
group = ["cn=helpdesk,ou=Groups,dc=example,dc=com"]
below = "ou=People,dc=example,dc=com"
filter = "(objectClass=person)"
no_member_of = [
  "cn=admins,ou=Groups,dc=example,dc=com",
  "cn=helpdesk,ou=Groups,dc=example,dc=com",
]
rights = ["reset"]

[[access]]
dn = ["uid=mailer,ou=People,dc=example,dc=com"]
from = ["127.0.0.0/8"]
over = "tls"
below = "ou=People,dc=example,dc=com"
attributes = ["uid", "mail", "objectClass"]
rights = ["read", "search"]

[[access]]
named_by = ["manager"]
attributes = ["title", "objectClass"]
rights = ["read", "search", "write"]
"#;

fn dn(uid: &str) -> String {
    format!("uid={uid},{PEOPLE}")
}

fn configuration(server: &Server) -> PathBuf {
    Path::new(server.text("data")).join("keyway.toml")
}

/// A server with some people, two groups and the guide's rules.
fn served() -> (tempfile::TempDir, Server) {
    let (folder, mut server) = sample(2);
    let mut ldif = String::new();
    for uid in ["root", "desk", "ann", "bob", "mailer"] {
        ldif.push_str(&format!(
            "dn: {}\nobjectClass: inetOrgPerson\nuid: {uid}\ncn: x\nsn: x\nmail: {uid}@example.com\n\
             manager: {}\nuserPassword: {SECRET}\n\n",
            dn(uid),
            dn("ann"),
        ));
    }
    for (cn, member) in [("admins", dn("root")), ("desks", dn("desk"))] {
        ldif.push_str(&format!(
            "dn: cn={cn},{GROUPS}\nobjectClass: groupOfNames\ncn: {cn}\nmember: {member}\n\n"
        ));
    }
    // The help desk is in a group of the group.
    ldif.push_str(&format!(
        "dn: cn=helpdesk,{GROUPS}\nobjectClass: groupOfNames\ncn: helpdesk\nmember: cn=desks,{GROUPS}\n"
    ));
    finish(&mut server.admin_tool("ldapadd"), &ldif).expect(0);
    let file = configuration(&server);
    let text = fs::read_to_string(&file).unwrap();
    let at = text.find("[[access]]").unwrap();
    fs::write(&file, format!("{}{RULES}", &text[..at])).unwrap();
    server.signal(Signal::HUP);
    let reloaded = server.next_event();
    assert_eq!(reloaded["event"], "reloaded", "{reloaded}");
    (folder, server)
}

fn as_user(server: &Server, program: &str, uid: &str, url: &str) -> Command {
    let mut command = server.tool(program, url);
    command.args(["-D", &dn(uid), "-w", SECRET]);
    command
}

fn reset(server: &Server, who: &str, whose: &str) -> Finished {
    let mut passwd = as_user(server, "ldappasswd", who, server.ldaps());
    finish(passwd.args(["-s", "another secret", &dn(whose)]), "")
}

fn replace(server: &Server, who: &str, whose: &str, attribute: &str) -> i32 {
    let ldif = format!(
        "dn: {}\nchangetype: modify\nreplace: {attribute}\n{attribute}: a new value\n",
        dn(whose)
    );
    finish(&mut as_user(server, "ldapmodify", who, server.ldaps()), &ldif).code
}

#[test]
fn administrators_help_desk_and_service_accounts_have_just_enough() {
    if !available(&["ldapsearch", "ldapmodify", "ldappasswd", "ldapwhoami"]) {
        return;
    }
    let (_folder, server) = served();
    // An administrator does it all, in the naming contexts of users.
    assert_eq!(replace(&server, "root", "bob", "description"), 0);
    finish(as_user(&server, "ldapsearch", "root", server.ldaps()).args(["-b", "cn=keyway"]), "")
        .expect(50);
    // The help desk gives bob a new password, no administrator one, and changes nothing else.
    reset(&server, "desk", "bob").expect(0);
    let mut who = server.tool("ldapwhoami", server.ldaps());
    finish(who.args(["-D", &dn("bob"), "-w", "another secret"]), "").expect(0);
    assert_ne!(reset(&server, "desk", "root").code, 0);
    assert_ne!(reset(&server, "desk", "desk").code, 0);
    assert_eq!(replace(&server, "desk", "bob", "description"), 50);
    assert_eq!(replace(&server, "desk", "ann", "userPassword"), 0);
    assert_ne!(reset(&server, "ann", "mailer").code, 0);
    // The mail server reads three attributes of the people, over TLS.
    let search = |url: &str| {
        let mut search = as_user(&server, "ldapsearch", "mailer", url);
        finish(search.args(["-LLL", "-b", "dc=example,dc=com", "(uid=bob)"]), "")
    };
    let seen = search(server.ldaps()).expect(0).out;
    let mut names: Vec<&str> =
        seen.lines().filter_map(|line| line.split_once(": ")).map(|(name, _)| name).collect();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names, ["dn", "mail", "objectClass", "uid"], "{seen}");
    // Without TLS no rule lets it know of an entry there, the base included.
    let seen = search(server.ldap()).expect(32).out;
    assert!(!seen.contains("dn: "), "{seen}");
    let mut compare = as_user(&server, "ldapcompare", "mailer", server.ldaps());
    finish(compare.args([&dn("bob"), "mail:bob@example.com"]), "").expect(50);
}

#[test]
fn an_entry_that_no_rule_lets_a_client_know_of_is_not_there() {
    if !available(&["ldapsearch", "ldapadd", "ldapmodify", "ldappasswd"]) {
        return;
    }
    let (_folder, server) = served();
    // Ann may know of the people that she manages, and of an alias of a group.
    let entry = |name: &str, class: &str, more: &str| {
        format!(
            "dn: {name},{GROUPS}\nobjectClass: {class}\nobjectClass: extensibleObject\n{more}\n\n"
        )
    };
    let managed = |target: &str| format!("aliasedObjectName: {target}\nmanager: {}", dn("ann"));
    let ldif = [
        entry("cn=referral", "referral", "ref: ldap://secret.example.com"),
        entry("cn=alias", "alias", &format!("aliasedObjectName: {}", dn("bob"))),
        entry("cn=to-group", "alias", &managed(&format!("cn=admins,{GROUPS}"))),
        entry("cn=to-referral", "alias", &managed(&format!("cn=x,cn=referral,{GROUPS}"))),
        entry("cn=to-none", "alias", &managed(&format!("cn=none,{GROUPS}"))),
        entry("cn=to-bob", "alias", &managed(&dn("bob"))),
    ];
    finish(&mut server.admin_tool("ldapadd"), &ldif.concat()).expect(0);
    let search = |name: &str, deref: &str, more: &[&str]| {
        let mut search = as_user(&server, "ldapsearch", "ann", server.ldaps());
        search.args(["-LLL", "-a", deref, "-b", &format!("{name},{GROUPS}")]);
        finish(search.args(more), "")
    };
    let answers = |name: &str| -> Vec<(i32, String)> {
        let mut all = Vec::new();
        for deref in ["never", "search", "find", "always"] {
            for more in [["-s", "base"], ["-s", "one"], ["-s", "sub"], ["-E", "!pr=2/noprompt"]] {
                all.push(search(name, deref, &more));
            }
            all.push(search(name, deref, &["-e", "!assert=(objectClass=*)"]));
        }
        let dn = format!("{name},{GROUPS}");
        let change = format!("dn: {dn}\nchangetype: modify\nreplace: title\ntitle: x\n");
        for more in [&["-v"][..], &["-e", "!assert=(objectClass=*)"]] {
            let mut modify = as_user(&server, "ldapmodify", "ann", server.ldaps());
            all.push(finish(modify.args(more), &change));
        }
        for new in ["another secret", "{SSHA}0goJVFx6/xSk9ZbduhkpbVj2wQE=", "{none}x"] {
            let mut passwd = as_user(&server, "ldappasswd", "ann", server.ldaps());
            all.push(finish(passwd.args(["-s", new, &dn]), ""));
        }
        let said = |one: Finished| (one.code, format!("{}{}", one.out, one.err).replace(&dn, "DN"));
        all.into_iter().map(said).collect()
    };
    let missing = answers("cn=none");
    assert_eq!(missing.first().map(|(code, _)| *code), Some(32));
    for name in ["cn=admins", "cn=referral", "cn=x,cn=referral", "cn=alias", "cn=x,cn=alias"] {
        assert_eq!(answers(name), missing, "{name}");
    }
    for deref in ["find", "always"] {
        for name in ["cn=to-none", "cn=to-group", "cn=to-referral", "cn=x,cn=to-group"] {
            search(name, deref, &[]).expect(33);
        }
        let found = search("cn=to-bob", deref, &["uid"]).expect(0);
        assert!(found.out.contains(&dn("bob")), "{}", found.out);
    }
}

#[test]
fn managers_and_changes_of_groups_count_at_once() {
    if !available(&["ldapsearch", "ldapmodify", "ldappasswd"]) {
        return;
    }
    let (_folder, server) = served();
    assert_eq!(replace(&server, "ann", "bob", "title"), 0);
    assert_eq!(replace(&server, "ann", "bob", "cn"), 50);
    // No rule lets bob do anything to this entry: its existence is not told.
    assert_eq!(replace(&server, "bob", "ann", "title"), 32);
    let member = |operation: &str| {
        let ldif = format!(
            "dn: cn=desks,{GROUPS}\nchangetype: modify\n{operation}: member\nmember: {}\n",
            dn("ann")
        );
        finish(&mut server.admin_tool("ldapmodify"), &ldif).expect(0);
    };
    assert_ne!(reset(&server, "ann", "mailer").code, 0);
    member("add");
    reset(&server, "ann", "mailer").expect(0);
    member("delete");
    assert_ne!(reset(&server, "ann", "mailer").code, 0);
}

fn acl(server: &Server, arguments: &[&str]) -> Finished {
    let mut command = Command::new(keyway());
    command.arg("acl").args(arguments);
    if arguments.first() != Some(&"diff") {
        command.args(["--data", server.text("data")]);
    }
    finish(&mut command, "")
}

#[test]
fn the_rules_explain_themselves_while_the_server_runs() {
    let (folder, server) = served();
    let file = configuration(&server);
    let text = fs::read_to_string(&file).unwrap();
    let line = |what: &str| {
        let at = text[..text.find(what).unwrap()].rfind("[[access]]").unwrap();
        text[..at].matches('\n').count() + 1
    };
    let desk = line("group = [\"cn=helpdesk");
    let explain = |who: &str, whose: &str| {
        acl(&server, &["explain", who, &dn(whose), "--right", "reset"]).expect(0).out
    };
    let allowed = explain("desk", "bob");
    assert!(allowed.contains("reset     yes"), "{allowed}");
    assert!(allowed.contains(&format!("keyway.toml, line {desk}: ")), "{allowed}");
    assert!(allowed.contains("no_member_of = ["), "{allowed}");
    let refused = explain("desk", "root");
    assert!(refused.contains("reset     no"), "{refused}");
    assert!(refused.contains("the entry is a member of cn=admins"), "{refused}");
    let refused = explain("bob", "ann");
    assert!(refused.contains("the client is not in group cn=helpdesk"), "{refused}");
    let json = acl(&server, &["explain", "anonymous", "", "--json"]).expect(0).out;
    let json: Value = serde_json::from_str(&json).unwrap();
    assert_eq!(json["rights"].as_array().unwrap().len(), 9);
    assert_eq!(json["rights"][0]["allowed"], false);

    let who = acl(&server, &["who-can", "reset", "userPassword"]).expect(0).out;
    assert!(who.contains(&format!("in group cn=helpdesk,{GROUPS} (2 members)")), "{who}");
    let root = dn("root");
    let who = acl(&server, &["who-can", "reset", "userPassword", "--at", &root]).expect(0).out;
    assert!(!who.contains("helpdesk") && who.contains("cn=admins"), "{who}");

    let old = folder.path().join("old.toml");
    let new = folder.path().join("new.toml");
    fs::write(&old, RULES).unwrap();
    fs::write(&new, RULES.replace("\"title\", ", "").replace("\"mail\",", "\"mail\", \"cn\","))
        .unwrap();
    let (old, new) = (old.to_str().unwrap(), new.to_str().unwrap());
    assert_eq!(
        acl(&server, &["diff", old, old]).expect(0).out,
        "no client gains or loses access\n"
    );
    let diff = acl(&server, &["diff", old, new]).expect(0).out;
    assert!(diff.contains("gained: users, being uid=mailer"), "{diff}");
    assert!(diff.contains("read, search cn ("), "{diff}");
    assert!(diff.contains("lost: users, named by manager: read, search, write title ("), "{diff}");

    for (arguments, why) in [
        (&["explain", "absent", ""][..], "no one entry has the uid"),
        (&["explain", "ann", "uid=gone,dc=example,dc=com"], "there is no such entry"),
        (&["explain", "ann", "not a dn"], "not a valid DN"),
        (&["explain", "ann", "", "--attribute", "shoe"], "shoe"),
        (&["who-can", "own", "cn"], "it is not one of read"),
        (&["diff", old, "/nowhere.toml"], "/nowhere.toml"),
    ] {
        let failed = acl(&server, arguments);
        assert_ne!(failed.code, 0, "{arguments:?}");
        assert!(failed.err.contains(why), "{arguments:?}: {}", failed.err);
    }
    assert!(server.stop().success());
}

#[test]
fn a_rule_that_makes_no_sense_is_told_with_its_line_and_changes_nothing() {
    let (_folder, mut server) = sample(1);
    let file = configuration(&server);
    let text = fs::read_to_string(&file).unwrap();
    let lines = text.lines().count();
    for (rule, why) in [
        ("group = [\"no dn\"]", "is not a DN"),
        ("dn = [\"shoe=1\"]", "shoe"),
        ("named_by = [\"cn\"]", "are no DNs"),
        ("who = \"users\"\nfilter = \"(\"", "filter"),
        ("who = \"users\"\nfilter = \"(shoe=1)\"", "(shoe=1)"),
        ("who = \"users\"\nfrom = [\"10.0.0.1/8\"]", "10.0.0.1/8"),
        ("who = \"users\"\nscope = \"sub\"", "below"),
        ("who = \"users\"\nover = \"radio\"", "radio"),
        ("what = \"data\"", "which users it is for"),
    ] {
        fs::write(&file, format!("{text}\n[[access]]\n{rule}\nrights = [\"read\"]\n")).unwrap();
        server.signal(Signal::HUP);
        let refused = server.next_event();
        assert_eq!(refused["event"], "not-reloaded", "{rule}");
        let error = refused["error"].as_str().unwrap();
        let at = error.split_once("line ").and_then(|(_, rest)| rest.split_once(':')).unwrap().0;
        assert!(at.parse::<usize>().unwrap() > lines, "{error}");
        assert!(error.contains(why), "{error}");
    }
    assert!(server.is_up());
}
