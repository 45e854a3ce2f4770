//! `cn=config` and `cn=monitor`, with ldap-utils.

use keyway_tests::{Server, available, finish, sample};
use serde_json::json;
use std::fs;

const NEEDS: &[&str] = &["ldapsearch", "ldapmodify", "ldapcompare", "ldapadd", "ldapdelete"];

/// The entries that the administrator finds.
fn found(server: &Server, arguments: &[&str]) -> String {
    let mut search = server.admin_tool("ldapsearch");
    finish(search.args(["-LLL", "-o", "ldif-wrap=no"]).args(arguments), "").expect(0).out
}

fn dns(out: &str) -> Vec<&str> {
    out.lines().filter_map(|line| line.strip_prefix("dn: ")).collect()
}

/// A value of the one entry that was found.
fn value<'o>(out: &'o str, attribute: &str) -> Option<&'o str> {
    let of_it = |line: &'o str| line.strip_prefix(attribute)?.strip_prefix(": ");
    out.lines().find_map(of_it)
}

#[test]
fn settings_are_read_and_changed_over_ldap() {
    if !available(NEEDS) {
        return;
    }
    let (folder, mut server) = sample(3);
    let file = folder.path().join("data/keyway.toml");
    let root = found(&server, &["-b", "", "-s", "base", "configContext", "monitorContext"]);
    assert_eq!(value(&root, "configContext"), Some("cn=config"));
    assert_eq!(value(&root, "monitorContext"), Some("cn=monitor"));

    let all = found(&server, &["-b", "cn=config", "1.1"]);
    assert_eq!(dns(&all)[0], "cn=config");
    assert!(dns(&all).contains(&"cn=limits,cn=config"), "{all}");
    let one = found(&server, &["-b", "cn=config", "-s", "one", "(keywayIdleMaxS>=3600)"]);
    assert_eq!(dns(&one), ["cn=limits,cn=config"]);
    assert_eq!(value(&one, "keywayIdleMaxS"), Some("3600"));
    assert_eq!(value(&one, "objectClass"), Some("top"));
    let top = found(&server, &["-b", "CN=Config", "-s", "base", "*", "+"]);
    assert_eq!(value(&top, "hasSubordinates"), Some("TRUE"));
    let paged = found(&server, &["-b", "cn=config", "-E", "pr=3/noprompt", "1.1"]);
    assert_eq!(dns(&paged), dns(&all));
    let classes = found(&server, &["-b", "cn=schema", "-s", "base", "objectClasses"]);
    assert!(classes.contains("NAME 'keywayConfig'"));

    let before = fs::read_to_string(&file).unwrap();
    let modify = |server: &Server, ldif: &str| finish(&mut server.admin_tool("ldapmodify"), ldif);
    let change = |dn: &str, lines: &str| format!("dn: {dn}\nchangetype: modify\n{lines}\n");
    let limits = |lines: &str| change("cn=limits,cn=config", lines);
    let two = limits(
        "replace: keywaySearchEntriesMax\nkeywaySearchEntriesMax: 2\n-\nreplace: keywayIdleMaxS\nkeywayIdleMaxS: 600",
    );
    modify(&server, &two).expect(0);
    assert_eq!(server.next_event(), json!({ "event": "reloaded", "at_next_start": [] }));
    let after = fs::read_to_string(&file).unwrap();
    let other: Vec<_> = after.lines().filter(|line| !before.contains(line)).collect();
    assert_eq!(other.len(), 2, "{other:?}");
    assert!(
        other[1].starts_with("search_entries_max = 2             # of one search"),
        "{other:?}"
    );
    let mut compare = server.admin_tool("ldapcompare");
    finish(compare.args(["cn=limits,cn=config", "keywayIdleMaxS:600"]), "").expect(6);

    // A value that makes no sense is refused with its reason, and the file is as it was.
    let unwilling = 53;
    for (ldif, code, why) in [
        (limits("replace: keywayIdleMaxS\nkeywayIdleMaxS: 0"), unwilling, "idle_max_s: it must be"),
        (limits("replace: keywayIdleMaxS\nkeywayIdleMaxS: soon"), unwilling, "not a whole number"),
        (limits("replace: keywayListen\nkeywayListen: off"), unwilling, "it is no setting here"),
        (limits("replace: nonsense\nnonsense: 1"), 17, ""),
        (change("cn=none,cn=config", "replace: cn\ncn: a"), 32, "cn=config"),
        (
            change("cn=tls,cn=config", "replace: keywayClientCa\nkeywayClientCa: nowhere.pem"),
            unwilling,
            "nowhere.pem",
        ),
    ] {
        let done = modify(&server, &ldif).expect(code);
        assert!(done.err.contains(why), "{why}: {}", done.err);
    }
    assert_eq!(server.next_event()["event"], "not-reloaded");
    assert_eq!(fs::read_to_string(&file).unwrap(), after);

    // An index is a value; work that waits is said.
    let index =
        change("cn=indexes,cn=config", "add: keywayIndex\nkeywayIndex: carLicense equality");
    modify(&server, &index).expect(0);
    server.next_event();
    assert!(fs::read_to_string(&file).unwrap().contains("\ncarLicense = [\"equality\"]\n"));

    // No other user sees any of it.
    let password = fs::read_to_string(server.text("sample_password_file")).unwrap();
    let people = found(&server, &["-b", "dc=example,dc=com", "(uid=*)", "1.1"]);
    let person = dns(&people)[0];
    for base in ["cn=config", "cn=limits,cn=config", "cn=monitor"] {
        let mut search = server.tool("ldapsearch", server.ldaps());
        search.args(["-D", person, "-w", &password, "-b", base]);
        finish(&mut search, "").expect(50);
        finish(server.tool("ldapsearch", server.ldaps()).args(["-b", base]), "").expect(50);
    }
    let mut theirs = server.tool("ldapmodify", server.ldaps());
    finish(theirs.args(["-D", person, "-w", &password]), &two).expect(50);
    let add = "dn: cn=more,cn=config\nobjectClass: keywayConfig\ncn: more\n";
    finish(&mut server.admin_tool("ldapadd"), add).expect(unwilling);
    finish(server.admin_tool("ldapdelete").arg("cn=limits,cn=config"), "").expect(unwilling);

    let audit = fs::read_to_string(folder.path().join("data/log/audit.log")).unwrap();
    assert!(audit.contains("cn=limits,cn=config") && audit.contains("keywayIdleMaxS"), "{audit}");
    assert!(server.stop().success());
}

#[test]
fn the_monitor_shows_connections_operations_and_counters() {
    if !available(NEEDS) {
        return;
    }
    let (folder, mut server) = sample(3);
    let all = found(&server, &["-b", "cn=Monitor", "*", "+"]);
    for dn in ["cn=monitor", "cn=Connections,cn=monitor", "cn=Start,cn=Time,cn=monitor"] {
        assert!(dns(&all).contains(&dn), "{dn} is not in\n{all}");
    }
    let top = found(&server, &["-b", "cn=monitor", "-s", "base", "+"]);
    assert!(value(&top, "monitoredInfo").unwrap().starts_with("Keyway "), "{top}");
    let one = found(&server, &["-b", "cn=Operations,cn=monitor", "-s", "one", "(cn=Search)", "+"]);
    assert_eq!(dns(&one), ["cn=Search,cn=Operations,cn=monitor"]);
    assert!(value(&one, "monitorOpCompleted").unwrap().parse::<u64>().unwrap() >= 2, "{one}");
    let filter = "(monitorConnectionAuthzDN=cn=admin,cn=keyway)";
    let mine = found(&server, &["-b", "cn=Connections,cn=monitor", filter, "+"]);
    assert_eq!(dns(&mine).len(), 1, "{mine}");
    assert!(value(&mine, "monitorConnectionPeerAddress").unwrap().starts_with("127.0.0.1:"));
    assert_eq!(value(&mine, "monitoredInfo"), Some("over tls"));
    assert_eq!(value(&mine, "monitorConnectionOpsReceived"), Some("2"));
    // An attribute that is not asked for is not made, and counted all the same.
    let number = |base: &str, scope: &str, filter: &str| {
        let found = found(&server, &["-b", base, "-s", scope, filter, "numSubordinates"]);
        value(&found, "numSubordinates").and_then(|number| number.parse::<usize>().ok())
    };
    let connections = "cn=Connections,cn=monitor";
    let of_class = "(!(objectClass=monitorConnection))";
    for (base, scope, filter) in [
        (connections, "base", "(objectClass=*)"),
        (connections, "base", of_class),
        ("cn=monitor", "one", "(cn=Connections)"),
        ("cn=monitor", "sub", "(&(cn=Connections)(!(objectClass=monitorConnection)))"),
    ] {
        // Two numbers, and ourselves; a client that has just gone may be there still.
        let below = number(base, scope, filter);
        assert!(below.is_some_and(|below| below > 2), "{base} {scope} {filter}: {below:?}");
    }
    let branches = found(&server, &["-b", "cn=monitor", "-s", "one", "1.1"]);
    assert_eq!(number("cn=monitor", "base", "(objectClass=*)"), Some(dns(&branches).len()));
    let total = found(&server, &["-b", "cn=total, CN=connections ,cn=monitor", "-s", "base"]);
    assert_eq!(dns(&total), ["cn=Total,cn=Connections,cn=monitor"]);
    let counter = "cn=ldap.search,cn=Counters,cn=monitor";
    let counted = found(&server, &["-b", counter, "-s", "base", "*", "+"]);
    assert!(value(&counted, "description").unwrap().contains("search requests answered"));
    let listeners = found(&server, &["-b", "cn=Listeners,cn=monitor", "-s", "one", "+"]);
    assert!(listeners.contains(server.ldaps()), "{listeners}");

    let change =
        format!("dn: {counter}\nchangetype: modify\nreplace: description\ndescription: x\n");
    let done = finish(&mut server.admin_tool("ldapmodify"), &change).expect(53);
    assert!(done.err.contains("can only be read"), "{}", done.err);

    // A rule lets another user look.
    let file = folder.path().join("data/keyway.toml");
    let rule =
        "\n[[access]]\nwho = \"users\"\nwhat = \"monitor\"\nrights = [\"read\", \"search\"]\n";
    let text = fs::read_to_string(&file).unwrap() + rule;
    fs::write(&file, text).unwrap();
    server.signal(rustix::process::Signal::HUP);
    assert_eq!(server.next_event()["event"], "reloaded");
    let password = fs::read_to_string(server.text("sample_password_file")).unwrap();
    let people = found(&server, &["-b", "dc=example,dc=com", "(uid=*)", "1.1"]);
    let mut search = server.tool("ldapsearch", server.ldaps());
    search.args(["-D", dns(&people)[0], "-w", &password]);
    let theirs = finish(search.args(["-b", "cn=Time,cn=monitor", "+"]), "").expect(0).out;
    assert!(theirs.contains("monitorTimestamp: 20"), "{theirs}");
}
