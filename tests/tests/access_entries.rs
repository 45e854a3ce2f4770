//! Access rules in entries, and the control that says which rule decided, through other people's
//! clients.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use keyway_tests::{Finished, Server, available, finish, keyway, sample};
use std::process::Command;

const BASE: &str = "dc=example,dc=com";
const PEOPLE: &str = "ou=People,dc=example,dc=com";
const SECRET: &str = "a secret of theirs";
const CONTROL: &str = "2.25.15936739705580567830054646219924409936.2.1";

fn dn(uid: &str) -> String {
    format!("uid={uid},{PEOPLE}")
}

/// A server with three more people.
fn served() -> (tempfile::TempDir, Server) {
    let (folder, server) = sample(2);
    let mut ldif = String::new();
    for uid in ["ann", "bob", "cat"] {
        ldif.push_str(&format!(
            "dn: {}\nobjectClass: inetOrgPerson\nuid: {uid}\ncn: {uid}\nsn: x\n\
             userPassword: {SECRET}\naci: (targetattr=\"*\")(version 3.0; acl \"x\"; allow(all))\n\n",
            dn(uid)
        ));
    }
    finish(&mut server.admin_tool("ldapadd"), &ldif).expect(0);
    (folder, server)
}

fn as_user(server: &Server, program: &str, uid: &str) -> Command {
    let mut command = server.tool(program, server.ldaps());
    command.args(["-D", &dn(uid), "-w", SECRET]);
    command
}

/// The change that gives an entry these rules.
fn rules(at: &str, rules: &[&str]) -> String {
    let mut ldif = format!("dn: {at}\nchangetype: modify\nreplace: keywayAccessRule\n");
    rules.iter().for_each(|rule| ldif.push_str(&format!("keywayAccessRule: {rule}\n")));
    ldif
}

fn title(server: &Server, who: &str, whose: &str) -> i32 {
    let dn = dn(whose);
    let ldif = format!("dn: {dn}\nchangetype: modify\nreplace: title\ntitle: something new\n");
    finish(&mut as_user(server, "ldapmodify", who), &ldif).code
}

fn acl(server: &Server, arguments: &[&str]) -> String {
    let mut command = Command::new(keyway());
    command.arg("acl").args(arguments).args(["--data", server.text("data")]);
    finish(&mut command, "").expect(0).out
}

#[test]
fn rules_are_changed_with_ldapmodify_and_count_at_once() {
    if !available(&["ldapsearch", "ldapmodify", "ldapadd"]) {
        return;
    }
    let (folder, server) = served();
    let administrator = |ldif: &str| finish(&mut server.admin_tool("ldapmodify"), ldif);
    assert_eq!(title(&server, "ann", "bob"), 50);
    let titles =
        format!("dn = [\"{}\"], attributes = [\"title\"], rights = [\"write\"]", dn("ann"));
    administrator(&rules(BASE, &[&titles])).expect(0);
    assert_eq!((title(&server, "ann", "bob"), title(&server, "bob", "ann")), (0, 50));

    let refused = administrator(&rules(BASE, &["who = \"me\", rights = [\"read\"]"])).expect(21);
    let why = "value 0 of attribute keywayAccessRule is no access rule: character 7: \"me\"";
    assert!(refused.err.contains(why), "{}", refused.err);
    let shoe = "who = \"users\", rights = [\"read\"], attributes = [\"shoe\"]";
    assert!(administrator(&rules(BASE, &[shoe])).expect(53).err.contains("shoe is not known"));
    assert_eq!(title(&server, "ann", "bob"), 0, "it is as it was");

    // One who may write rules in a part of the tree says who may do what there, and nowhere else.
    let delegated = format!(
        "dn = [\"{}\"], attributes = [\"keywayAccessRule\"], rights = [\"read\", \"write\"]",
        dn("ann")
    );
    administrator(&rules(PEOPLE, &[&delegated])).expect(0);
    let ann = |at: &str, own: &[&str]| {
        finish(&mut as_user(&server, "ldapmodify", "ann"), &rules(at, own))
    };
    let cat = format!("dn = [\"{}\"], attributes = [\"title\"], rights = [\"write\"]", dn("cat"));
    ann(BASE, &[&cat]).expect(50);
    ann(PEOPLE, &[&delegated, &cat]).expect(0);
    assert_eq!(title(&server, "cat", "bob"), 0);

    let explained =
        acl(&server, &["explain", "cat", &dn("bob"), "--attribute", "title", "--right", "write"]);
    assert!(explained.contains(&format!("write     yes  entry \"{PEOPLE}\": ")), "{explained}");
    assert!(explained.contains(&cat), "{explained}");
    let who = acl(&server, &["who-can", "write", "title"]);
    assert!(who.contains(&format!("being {} on", dn("cat"))) || who.contains(&dn("cat")), "{who}");
    assert!(who.contains(&format!("entry \"{PEOPLE}\"")), "{who}");

    // They go with the tree.
    let data = server.text("data").to_owned();
    let exported = folder.path().join("exported.ldif");
    let exported = exported.to_str().unwrap();
    let run = |arguments: &[&str]| finish(Command::new(keyway()).args(arguments), "");
    assert!(server.stop().success());
    run(&["directory", "export", exported, "--data", &data]).expect(0);
    let other = folder.path().join("other");
    let other = other.to_str().unwrap();
    run(&["directory", "import", exported, "--data", other]).expect(0);
    let explain = ["acl", "explain", "cat", &dn("bob"), "--attribute", "title", "--right", "write"];
    let explained = run(&[&explain[..], &["--data", other]].concat()).expect(0).out;
    assert!(explained.contains(&format!("write     yes  entry \"{PEOPLE}\": ")), "{explained}");
}

#[test]
fn who_may_do_what_is_shown_to_those_who_are_named() {
    if !available(&["ldapsearch", "ldapmodify", "ldapadd"]) {
        return;
    }
    let (_folder, server) = served();
    let readers = format!("dn = [\"{}\"], attributes = [\"aci\"], rights = [\"read\"]", dn("ann"));
    finish(&mut server.admin_tool("ldapmodify"), &rules(BASE, &[&readers])).expect(0);
    let seen = |mut command: Command| {
        command.args(["-LLL", "-o", "ldif-wrap=no", "-b", BASE, "(objectClass=*)", "*", "+"]);
        finish(&mut command, "").expect(0).out
    };
    let all = seen(server.admin_tool("ldapsearch"));
    let bobs = seen(as_user(&server, "ldapsearch", "bob"));
    let anns = seen(as_user(&server, "ldapsearch", "ann"));
    for name in ["\naci: ", "\nkeywayAccessRule: ", "\nuserPassword:: "] {
        assert!(all.contains(name), "{name}: {all}");
        assert!(!bobs.contains(name), "{name}: {bobs}");
        assert_eq!(anns.contains(name), name == "\naci: ", "{name}: {anns}");
    }
    assert!(bobs.contains("\nentryUUID: "), "{bobs}");
}

/// The lines of the control that came with an answer.
fn decisions(finished: &Finished) -> Option<String> {
    let text = finished.out.replace("\n ", "");
    let line = text.lines().find(|line| line.contains(CONTROL))?;
    let value = line.rsplit(' ').next().unwrap();
    Some(String::from_utf8(STANDARD.decode(value).unwrap()).unwrap())
}

#[test]
fn a_control_says_which_rule_decided() {
    if !available(&["ldapsearch", "ldapmodify", "ldapadd"]) {
        return;
    }
    let (_folder, server) = served();
    let known = finish(
        server.tool("ldapsearch", server.ldap()).args([
            "-LLL",
            "-sbase",
            "-b",
            "",
            "supportedControl",
        ]),
        "",
    );
    assert!(known.expect(0).out.contains(CONTROL));
    let asking = format!("!{CONTROL}");
    let search = |mut command: Command, control: &str, wanted: &str| {
        command.args(["-e", control, "-o", "ldif-wrap=no", "-b", &dn("bob"), "(uid=bob)", wanted]);
        finish(&mut command, "")
    };
    let all = search(server.admin_tool("ldapsearch"), &asking, "mail").expect(0);
    let text = decisions(&all).unwrap_or_else(|| panic!("{}", all.out));
    assert!(text.contains("search uid: line "), "{text}");
    assert!(text.contains("of the configuration: administrator: read, "), "{text}");

    // A user who may read rules may ask; from others they are kept, and a request to tell them is
    // refused.
    search(as_user(&server, "ldapsearch", "ann"), &asking, "cn").expect(50);
    let quiet = search(as_user(&server, "ldapsearch", "ann"), CONTROL, "cn").expect(0);
    assert_eq!(decisions(&quiet), None, "{}", quiet.out);
    let own = [
        "who = \"users\", attributes = [\"keywayAccessRule\"], rights = [\"read\"]".to_owned(),
        format!("dn = [\"{}\"], attributes = [\"title\"], rights = [\"write\"]", dn("ann")),
    ];
    finish(&mut server.admin_tool("ldapmodify"), &rules(BASE, &[&own[0], &own[1]])).expect(0);
    let seen = search(as_user(&server, "ldapsearch", "ann"), &asking, "*").expect(0);
    let text = decisions(&seen).unwrap();
    assert!(
        text.contains("read cn: line ") && text.contains("read userPassword: no rule"),
        "{text}"
    );
    let modify = |who: &str| {
        let ldif = format!("dn: {}\nchangetype: modify\nreplace: title\ntitle: new\n", dn("bob"));
        let mut command = as_user(&server, "ldapmodify", who);
        finish(command.args(["-v", "-e", &asking, "-o", "ldif-wrap=no"]), &ldif)
    };
    let allowed = modify("ann").expect(0);
    let text = decisions(&allowed).unwrap_or_else(|| panic!("{}", allowed.out));
    assert!(text.starts_with(&format!("write title: entry \"{BASE}\": users, being ")), "{text}");
    let refused = modify("cat").expect(50);
    let text = decisions(&refused).unwrap_or_else(|| panic!("{}", refused.out));
    assert_eq!(text, "write title: no rule\n");
}
