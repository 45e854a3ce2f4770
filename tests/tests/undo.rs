//! `keyway undo`: what was done with clients is undone, in the running server and without one; a conflict changes
//! nothing.

use keyway_tests::{Finished, Server, available, finish, keyway, sample};
use serde_json::Value;
use std::path::Path;
use std::process::Command;

const BASE: &str = "dc=example,dc=com";
const PEOPLE: &str = "ou=People,dc=example,dc=com";
const GROUPS: &str = "ou=Groups,dc=example,dc=com";
const TOOLS: [&str; 6] =
    ["ldapadd", "ldapmodify", "ldapmodrdn", "ldapdelete", "ldapsearch", "ldapwhoami"];
const PASSWORD: &str = "a secret of ann";

fn ask(data: &Path, arguments: &[&str]) -> Finished {
    finish(Command::new(keyway()).args(arguments).arg("--data").arg(data), "")
}

fn undo(data: &Path, arguments: &[&str]) -> Finished {
    ask(data, &[&["undo"], arguments].concat())
}

/// The positions at which it was done.
fn undone(data: &Path, arguments: &[&str]) -> Vec<String> {
    let told = undo(data, &[arguments, &["--json"]].concat()).expect(0).out;
    let told: Value = serde_json::from_str(&told).unwrap();
    assert_eq!(told["event"], "undone", "{told}");
    told["positions"].as_array().unwrap().iter().map(Value::to_string).collect()
}

/// The changes that are kept, in `changes --json`.
fn changes(data: &Path) -> Vec<Value> {
    let shown = ask(data, &["directory", "changes", "--json"]).expect(0).out;
    let changes = shown.lines().map(|line| serde_json::from_str(line).unwrap());
    changes.filter(|one: &Value| one["event"] == "change").collect()
}

/// The last position that there is.
fn last(data: &Path) -> String {
    changes(data).last().unwrap()["position"].to_string()
}

fn done(server: &Server, tool: &str, arguments: &[&str], input: &str) {
    finish(server.admin_tool(tool).args(arguments), input).expect(0);
}

/// An entry with all attributes, but for when and by whom it was changed last.
fn entry(server: &Server, dn: &str) -> String {
    let mut search = server.admin_tool("ldapsearch");
    search.args(["-LLL", "-o", "ldif-wrap=no", "-s", "base", "-b", dn, "*", "+"]);
    let mut lines: Vec<String> =
        finish(&mut search, "").expect(0).out.lines().map(str::to_owned).collect();
    lines.retain(|line| !line.starts_with("modif"));
    lines.sort();
    lines.join("\n")
}

fn is_there(server: &Server, dn: &str) -> bool {
    let mut search = server.admin_tool("ldapsearch");
    finish(search.args(["-LLL", "-s", "base", "-b", dn, "1.1"]), "").code == 0
}

fn binds(server: &Server, dn: &str) -> bool {
    let mut bind = server.tool("ldapwhoami", server.ldaps());
    finish(bind.args(["-x", "-D", dn, "-w", PASSWORD]), "").code == 0
}

/// A server with Ann, who is in two groups and the manager of Bob.
fn with_ann() -> (tempfile::TempDir, Server, String) {
    let (folder, server) = sample(3);
    let ann = format!("uid=ann,{PEOPLE}");
    let person = |uid: &str, more: &str| {
        format!(
            "dn: uid={uid},{PEOPLE}\nobjectClass: inetOrgPerson\nuid: {uid}\ncn: {uid}\nsn: Test\n\
             description: one\ndescription: two\ntitle: before\n{more}\n"
        )
    };
    let group = |cn: &str| {
        format!(
            "dn: cn={cn},{GROUPS}\nobjectClass: groupOfNames\ncn: {cn}\nmember: uid=bob,{PEOPLE}\nmember: {ann}\n\n"
        )
    };
    let entries = [
        person("ann", &format!("userPassword: {PASSWORD}\njpegPhoto:: /9j/AA==\n")),
        person("bob", &format!("manager: {ann}\n")),
        group("one"),
        group("two"),
    ];
    done(&server, "ldapadd", &[], &entries.concat());
    (folder, server, ann)
}

#[test]
fn a_deleted_person_comes_back_with_memberships_and_password() {
    if !available(&TOOLS) {
        return;
    }
    let (folder, server, ann) = with_ann();
    let data = &folder.path().join("data");
    let all = [
        ann.clone(),
        format!("uid=bob,{PEOPLE}"),
        format!("cn=one,{GROUPS}"),
        format!("cn=two,{GROUPS}"),
    ];
    let shown = |server: &Server| all.iter().map(|dn| entry(server, dn)).collect::<Vec<_>>();
    let before = shown(&server);
    assert!(before[2].contains(&format!("member: {ann}")) && binds(&server, &ann));
    done(&server, "ldapdelete", &[&ann], "");
    let position = last(data);
    assert!(!is_there(&server, &ann) && !shown_has_ann(&server, &all[2], &ann));

    // First it is shown, and nothing is changed.
    let planned = undo(data, &[&position, "--dry-run"]).expect(0).out;
    assert!(planned.contains(&format!("dn: {ann}\nchangetype: add\n")), "{planned}");
    assert!(planned.contains("entryUUID: ") && !planned.contains("{ARGON2"), "{planned}");
    assert!(planned.contains("# userPassword: 1 value, not shown"), "{planned}");
    assert!(planned.contains(&format!("add: member\nmember: {ann}\n")), "{planned}");
    let told = undo(data, &[&position, "--dry-run", "--json"]).expect(0).out;
    let kinds: Vec<Value> = told
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap())
        .map(|told| told["kind"].clone())
        .collect();
    assert_eq!(kinds.len(), 5, "an add, three changes of others, and their number: {told}");
    assert_eq!((last(data), is_there(&server, &ann)), (position.clone(), false));

    let made = undone(data, &[&position]);
    assert_eq!(made.len(), 4, "{made:?}");
    assert_eq!(shown(&server), before);
    assert!(binds(&server, &ann));
    // It is done already.
    assert_eq!(undone(data, &[&position]), [""; 0]);
    // The undoing is a change like others.
    let made: Vec<&str> = made.iter().map(String::as_str).collect();
    let again = undone(data, &made);
    assert!(!is_there(&server, &ann) && !shown_has_ann(&server, &all[2], &ann));
    let again: Vec<&str> = again.iter().map(String::as_str).collect();
    assert!(server.stop().success());

    // Without a server it is done in the folder.
    undone(data, &again);
    let server = Server::start(data, &[]);
    assert_eq!(shown(&server), before);
    assert!(binds(&server, &ann));
    assert!(server.stop().success());
}

fn shown_has_ann(server: &Server, group: &str, ann: &str) -> bool {
    entry(server, group).contains(ann)
}

#[test]
fn values_names_and_new_entries_are_undone() {
    if !available(&TOOLS) {
        return;
    }
    let (folder, server, ann) = with_ann();
    let data = &folder.path().join("data");
    let (one, bob) = (format!("cn=one,{GROUPS}"), format!("uid=bob,{PEOPLE}"));
    let state = || [&ann, &one, &bob].map(|dn| entry(&server, dn));
    let before = state();
    let change = format!(
        "dn: {ann}\nchangetype: modify\nreplace: title\ntitle: after\n-\ndelete: description\ndescription: one\n-\n\
         add: description\ndescription: three\n-\nadd: mail\nmail: ann@example.com\n-\ndelete: jpegPhoto\n-\n\
         replace: userPassword\nuserPassword: another\n-\n"
    );
    done(&server, "ldapmodify", &[], &change);
    assert!(!binds(&server, &ann));
    let modified = last(data);
    undone(data, &[&modified]);
    assert_eq!(state(), before);
    assert!(binds(&server, &ann), "the old password is right again");

    // A value of the new name was there before, and stays.
    for rename in
        [&["-r", &ann, "uid=anna"][..], &[&ann, "cn=ann"], &["-r", "-s", GROUPS, &ann, "uid=anna"]]
    {
        done(&server, "ldapmodrdn", rename, "");
        assert!(!is_there(&server, &ann));
        let renamed = last(data);
        // Later changes of other things are no conflict.
        let more = format!("dn: {bob}\nchangetype: modify\nreplace: title\ntitle: {renamed}\n-\n");
        done(&server, "ldapmodify", &[], &more);
        undone(data, &[&renamed]);
        undone(data, &[&(renamed.parse::<u64>().unwrap() + 1).to_string()]);
        assert_eq!(state(), before, "{rename:?}");
    }

    let unit = format!("dn: ou=Unit,{BASE}\nobjectClass: organizationalUnit\nou: Unit\n");
    done(&server, "ldapadd", &[], &unit);
    let added = last(data);
    undone(data, &[&added]);
    assert!(!is_there(&server, &format!("ou=Unit,{BASE}")));
    assert!(server.stop().success());
}

#[test]
fn a_later_change_is_a_conflict_and_nothing_is_changed() {
    if !available(&TOOLS) {
        return;
    }
    let (folder, server, ann) = with_ann();
    let data = &folder.path().join("data");
    let title = |title: &str| {
        let change = format!(
            "dn: {ann}\nchangetype: modify\nreplace: title\ntitle: {title}\n-\nadd: mail\nmail: {title}@example.com\n-\n"
        );
        done(&server, "ldapmodify", &[], &change);
        last(data)
    };
    let refused = |position: &str, by: &str, why: &str| {
        let before = (last(data), entry(&server, PEOPLE));
        let refused = undo(data, &[position]).expect(1).err;
        assert!(refused.contains(why) && refused.contains("Nothing was changed"), "{refused}");
        assert!(refused.contains(&format!("Position {by} ")), "by {by}: {refused}");
        assert_eq!((last(data), entry(&server, PEOPLE)), before);
    };
    let first = title("one");
    let second = title("two");
    refused(&first, &second, "title of");
    done(&server, "ldapmodrdn", &["-r", &ann, "uid=anna"], "");
    let renamed = last(data);
    let anna = format!("uid=anna,{PEOPLE}");
    // By whatever name, it is the entry that was changed.
    undone(data, &[&second, &first]);
    assert!(entry(&server, &anna).contains("title: before"));
    let person = format!("dn: {ann}\nobjectClass: inetOrgPerson\nuid: ann\ncn: ann\nsn: Other\n");
    done(&server, "ldapadd", &[], &person);
    let added = last(data);
    refused(&renamed, &added, "another entry is");
    let child = format!("dn: ou=Below,{ann}\nobjectClass: organizationalUnit\nou: Below\n");
    done(&server, "ldapadd", &[], &child);
    refused(&added, &last(data), "below");
    done(&server, "ldapdelete", &[&format!("ou=Below,{ann}")], "");
    done(&server, "ldapdelete", &[&ann], "");
    done(&server, "ldapadd", &[], &person);
    let again = last(data);
    let deleted = (again.parse::<u64>().unwrap() - 1).to_string();
    refused(&deleted, &again, "another entry is");
    done(&server, "ldapdelete", &[&anna], "");
    refused(&second, &last(data), "is gone");

    undo(data, &["0"]).expect(2);
    let beyond = (last(data).parse::<u64>().unwrap() + 2).to_string();
    undo(data, &[&beyond]).expect(1);
    undo(data, &["1"]).expect(1);
    let wrong = folder.path().join("wrong");
    keyway_tests::secret(&wrong, "not it");
    let wrong = wrong.to_str().unwrap();
    let refused = undo(data, &[&last(data), "--password-file", wrong]).expect(1);
    assert!(refused.err.contains("does not let us in"), "{}", refused.err);
    assert!(!is_there(&server, &anna));
    assert!(server.stop().success());
}

/// Numbers that look random, and are the same each time.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, end: usize) -> usize {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % end
    }

    fn one<'a>(&mut self, of: &[&'a str]) -> &'a str {
        of[self.below(of.len())]
    }
}

/// A change of a few entries as a change record, which may be refused.
fn some_change(numbers: &mut Numbers) -> String {
    let (uid, place) = (numbers.one(&["a", "A", "b", "c"]), numbers.one(&[PEOPLE, PEOPLE, GROUPS]));
    let dn = format!("uid={uid},{place}");
    let group = format!("cn={},{GROUPS}", numbers.one(&["g", "h"]));
    let value = numbers.one(&["one", "two", "three"]);
    let modify = |dn: &str, lines: &str| format!("dn: {dn}\nchangetype: modify\n{lines}\n\n");
    match numbers.below(10) {
        0 | 1 => format!(
            "dn: {dn}\nchangetype: add\nobjectClass: inetOrgPerson\nuid: {uid}\nuid: {value}\ncn: {uid}\nsn: x\n\n"
        ),
        2 => format!("dn: {dn}\nchangetype: delete\n\n"),
        3 => modify(&dn, &format!("replace: title\ntitle: {value}\n-")),
        4 => modify(&dn, &format!("add: description\ndescription: {value}\n-")),
        5 => modify(
            &dn,
            &format!("delete: description\n-\nreplace: mail\nmail: {value}\nmail: {uid}\n-"),
        ),
        6 => modify(&group, &format!("add: member\nmember: {dn}\n-")),
        7 => modify(&group, &format!("delete: member\nmember: {dn}\n-")),
        8 => format!(
            "dn: {dn}\nchangetype: modrdn\nnewrdn: uid={}\ndeleteoldrdn: {}\n\n",
            numbers.one(&["a", "A", "b", "c", "one"]),
            numbers.below(2)
        ),
        _ => format!(
            "dn: {dn}\nchangetype: modrdn\nnewrdn: uid={}\ndeleteoldrdn: {}\nnewsuperior: {}\n\n",
            numbers.one(&["a", "b", "two"]),
            numbers.below(2),
            numbers.one(&[PEOPLE, GROUPS])
        ),
    }
}

/// All entries, but for when and by whom they were changed last, and the order of values.
fn all_entries(server: &Server) -> Vec<Vec<String>> {
    let mut search = server.admin_tool("ldapsearch");
    search.args(["-LLL", "-o", "ldif-wrap=no", "-b", BASE, "*", "+"]);
    let found = finish(&mut search, "").expect(0).out;
    let entry = |text: &str| {
        let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
        lines.retain(|line| !line.starts_with("modif"));
        lines.sort();
        lines
    };
    let mut all: Vec<Vec<String>> = found.split("\n\n").map(entry).collect();
    all.sort();
    all
}

fn assert_same(one: &[Vec<String>], other: &[Vec<String>], seed: u64) {
    let less = one.iter().filter(|entry| !other.contains(entry)).collect::<Vec<_>>();
    let more = other.iter().filter(|entry| !one.contains(entry)).collect::<Vec<_>>();
    assert!(less.is_empty() && more.is_empty(), "seed {seed}: {less:#?} and not {more:#?}");
}

/// A model that cannot be wrong: the directory as it was at the beginning.
#[test]
fn many_changes_are_undone_together_and_one_by_one() {
    if !available(&TOOLS) {
        return;
    }
    let (folder, server, _) = with_ann();
    let data = &folder.path().join("data");
    let group = |cn: &str| {
        format!(
            "dn: cn={cn},{GROUPS}\nobjectClass: groupOfNames\ncn: {cn}\nmember: uid=bob,{PEOPLE}\n\n"
        )
    };
    done(&server, "ldapadd", &[], &(group("g") + &group("h")));
    for seed in 0..6 {
        let mut numbers = Numbers(seed);
        // A reference that is older than the entry which it names goes with that entry, and is not known to be older.
        for cn in ["g", "h"] {
            let change = format!(
                "dn: cn={cn},{GROUPS}\nchangetype: modify\nreplace: member\nmember: uid=bob,{PEOPLE}\n-\n"
            );
            done(&server, "ldapmodify", &[], &change);
        }
        let before = all_entries(&server);
        let from = last(data).parse::<u64>().unwrap();
        let records: String = (0..120).map(|_| some_change(&mut numbers)).collect();
        finish(server.admin_tool("ldapmodify").arg("-c"), &records);
        let to = last(data).parse::<u64>().unwrap();
        assert!(to > from + 30, "most are refused: {from} to {to}");
        let positions: Vec<String> = (from + 1..=to).map(|position| position.to_string()).collect();
        let after = all_entries(&server);
        if seed % 2 == 0 {
            let positions: Vec<&str> = positions.iter().map(String::as_str).collect();
            undone(data, &positions);
        } else {
            positions.iter().rev().for_each(|position| drop(undone(data, &[position])));
        }
        assert_same(&all_entries(&server), &before, seed);
        // And there again.
        let back: Vec<String> = (to + 1..=last(data).parse::<u64>().unwrap())
            .map(|position| position.to_string())
            .collect();
        let back: Vec<&str> = back.iter().map(String::as_str).collect();
        undone(data, &back);
        assert_same(&all_entries(&server), &after, seed);
    }
    assert!(server.stop().success());
}

#[test]
fn relaxed_rules_take_what_only_the_server_sets() {
    if !available(&TOOLS) {
        return;
    }
    let (_folder, server, ann) = with_ann();
    let uuid = "01234567-89ab-4def-8123-456789abcdef";
    let zoe = format!("uid=zoe,{PEOPLE}");
    let add = format!(
        "dn: {zoe}\nobjectClass: inetOrgPerson\nuid: zoe\ncn: zoe\nsn: Z\nentryUUID: {uuid}\n\
         createTimestamp: 20010203040506Z\ncreatorsName: cn=another\n"
    );
    let control = ["-e", "!1.3.6.1.4.1.4203.666.5.12"];
    finish(&mut server.admin_tool("ldapadd"), &add).expect(19);
    let mut by_ann = server.tool("ldapadd", server.ldaps());
    by_ann.args(["-x", "-D", &ann, "-w", PASSWORD]).args(control);
    finish(&mut by_ann, &add).expect(50);
    done(&server, "ldapadd", &control, &add);
    let shown = entry(&server, &zoe);
    for line in [
        &format!("entryUUID: {uuid}"),
        "createTimestamp: 20010203040506Z",
        "creatorsName: cn=another",
    ] {
        assert!(shown.contains(line), "{shown}");
    }
    let other = add.replace("zoe", "other");
    finish(server.admin_tool("ldapadd").args(control), &other).expect(19);
    let mut dse = server.tool("ldapsearch", server.ldaps());
    dse.args(["-x", "-LLL", "-s", "base", "-b", "", "supportedControl"]);
    assert!(finish(&mut dse, "").expect(0).out.contains("1.3.6.1.4.1.4203.666.5.12"));
    assert!(server.stop().success());
}
