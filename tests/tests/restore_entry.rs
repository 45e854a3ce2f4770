//! `keyway restore --entry` and `--subtree`: entries come back from a backup into the directory that goes on, in the
//! running server and without one.

use keyway_tests::{Finished, Server, available, finish, keyway, sample, secret};
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use tempfile::TempDir;

const BASE: &str = "dc=example,dc=com";
const PEOPLE: &str = "ou=People,dc=example,dc=com";
const GROUPS: &str = "ou=Groups,dc=example,dc=com";
const TOOLS: [&str; 6] =
    ["ldapadd", "ldapmodify", "ldapmodrdn", "ldapdelete", "ldapsearch", "ldapwhoami"];
const PASSWORD: &str = "a secret of ann";

/// A data folder, and the repository of its backups.
struct Backups {
    place: TempDir,
    data: PathBuf,
}

impl Backups {
    fn of(place: TempDir) -> Backups {
        let data = place.path().join("data");
        Backups { place, data }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.place.path().join(name)
    }

    fn command(&self, words: &[&str], key: &Path, flags: &[&str]) -> Command {
        let mut command = Command::new(keyway());
        command.args(words).arg(self.path("repository")).arg("--key-file").arg(key).args(flags);
        command
    }

    fn create(&self) {
        let mut create = self.command(&["backup", "create"], &self.path("backup.key"), &[]);
        finish(create.arg("--data").arg(&self.data), "").expect(0);
    }

    /// Restores entries into the directory.
    fn restore(&self, flags: &[&str]) -> Finished {
        let mut restore = self.command(&["restore"], &self.path("backup.key"), flags);
        restore.arg("--scratch").arg(self.place.path());
        finish(restore.arg("--data").arg(&self.data), "")
    }

    /// Does it, and says what was done.
    #[track_caller]
    fn restored(&self, flags: &[&str]) -> Value {
        let told = self.restore(&[flags, &["--json"]].concat()).expect(0).out;
        let told: Value = serde_json::from_str(&told).unwrap();
        assert_eq!(told["event"], "restored", "{told}");
        told
    }

    /// The last position of the feed.
    fn last(&self) -> u64 {
        let mut changes = Command::new(keyway());
        changes.args(["directory", "changes", "--json", "--data"]).arg(&self.data);
        let first = finish(&mut changes, "").expect(0).out;
        let first: Value = serde_json::from_str(first.lines().next().unwrap()).unwrap();
        first["last"].as_u64().unwrap()
    }
}

fn counts(told: &Value) -> [u64; 4] {
    ["added", "modified", "memberships", "untouched"].map(|name| told[name].as_u64().unwrap())
}

fn done(server: &Server, tool: &str, arguments: &[&str], input: &str) {
    finish(server.admin_tool(tool).args(arguments), input).expect(0);
}

fn modify(server: &Server, dn: &str, lines: &str) {
    done(server, "ldapmodify", &[], &format!("dn: {dn}\nchangetype: modify\n{lines}\n"));
}

/// All attributes of an entry, each value a line; none if it is not there.
fn whole(server: &Server, dn: &str) -> Vec<String> {
    let mut search = server.admin_tool("ldapsearch");
    search.args(["-LLL", "-o", "ldif-wrap=no", "-s", "base", "-b", dn, "*", "+"]);
    let mut lines: Vec<String> = finish(&mut search, "").out.lines().map(str::to_owned).collect();
    lines.sort();
    lines
}

/// As `whole`, but for the author and time of the last change.
fn entry(server: &Server, dn: &str) -> Vec<String> {
    let mut lines = whole(server, dn);
    lines.retain(|line| !line.starts_with("modif"));
    lines
}

fn has(server: &Server, dn: &str, line: &str) -> bool {
    entry(server, dn).iter().any(|one| one == line)
}

fn is_there(server: &Server, dn: &str) -> bool {
    !whole(server, dn).is_empty()
}

fn binds(server: &Server, dn: &str) -> bool {
    let mut bind = server.tool("ldapwhoami", server.ldaps());
    finish(bind.args(["-x", "-D", dn, "-w", PASSWORD]), "").code == 0
}

fn person(uid: &str, place: &str, more: &str) -> String {
    format!(
        "dn: uid={uid},{place}\nobjectClass: inetOrgPerson\nuid: {uid}\ncn: {uid}\nsn: Test\n\
         description: one\ndescription: two\ntitle: before\n{more}\n"
    )
}

fn unit(ou: &str, place: &str) -> String {
    format!("dn: ou={ou},{place}\nobjectClass: organizationalUnit\nou: {ou}\n\n")
}

fn group(cn: &str, members: &[&str], more: &str) -> String {
    let members: String = members.iter().map(|dn| format!("member: {dn}\n")).collect();
    format!("dn: cn={cn},{GROUPS}\nobjectClass: groupOfNames\ncn: {cn}\n{members}{more}\n")
}

fn dn(uid: &str) -> String {
    format!("uid={uid},{PEOPLE}")
}

fn group_dn(cn: &str) -> String {
    format!("cn={cn},{GROUPS}")
}

/// A server with Ann, who is in groups, the owner of one and the manager of Bob; and a backup of it.
fn with_ann() -> (Backups, Server) {
    let (place, server) = sample(3);
    let (ann, bob) = (dn("ann"), dn("bob"));
    let unique = format!(
        "dn: cn=unique,{GROUPS}\nobjectClass: groupOfUniqueNames\ncn: unique\nuniqueMember: {bob}\nuniqueMember: {ann}\n\n"
    );
    let entries = [
        person("ann", PEOPLE, &format!("userPassword: {PASSWORD}\njpegPhoto:: /9j/AA==\n")),
        person("bob", PEOPLE, &format!("manager: {ann}\n")),
        group("one", &[&bob, &ann], ""),
        group("two", &[&ann, &bob], &format!("owner: {ann}\n")),
        group("three", &[&ann], ""),
        unique,
    ];
    done(&server, "ldapadd", &[], &entries.concat());
    let backups = Backups::of(place);
    backups.create();
    (backups, server)
}

#[test]
fn a_deleted_person_comes_back_with_memberships_and_password() {
    if !available(&TOOLS) {
        return;
    }
    let (backups, server) = with_ann();
    let ann = &dn("ann");
    let others = [dn("bob"), group_dn("one"), group_dn("two"), group_dn("unique")];
    let before = others.each_ref().map(|dn| entry(&server, dn));
    let person = whole(&server, ann);
    assert!(binds(&server, ann) && person.iter().any(|line| line.starts_with("memberOf: ")));
    done(&server, "ldapdelete", &[ann], "");
    // Later changes stay, and a group with another name now is the one that it was.
    done(&server, "ldapmodrdn", &["-r", &group_dn("two"), "cn=second"], "");
    done(&server, "ldapdelete", &[&group_dn("three")], "");
    let member = format!("member: {ann}");
    assert!(!is_there(&server, ann) && !has(&server, &group_dn("one"), &member));

    let position = backups.last();
    let planned = backups.restore(&["--entry", ann, "--dry-run"]).expect(0).out;
    assert!(planned.contains(&format!("dn: {ann}\nchangetype: add\n")), "{planned}");
    assert!(planned.contains("entryUUID: ") && !planned.contains("{ARGON2"), "{planned}");
    assert!(planned.contains("# userPassword: 1 value, not shown"), "{planned}");
    assert!(planned.contains(&format!("add: member\nmember: {ann}\n")), "{planned}");
    assert!(planned.contains("# would be restored from backup 00000001-"), "{planned}");
    assert!(planned.contains("1 entry added, 0 modified, 5 references to them"), "{planned}");
    let told = backups.restore(&["--entry", ann, "--dry-run", "--json"]).expect(0).out;
    let told: Vec<Value> = told.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let kinds: Vec<&str> = told.iter().filter_map(|one| one["kind"].as_str()).collect();
    assert_eq!(kinds, ["add", "modify", "modify", "modify", "modify"]);
    assert_eq!(told.last().unwrap()["event"], "planned_all");
    assert_eq!((backups.last(), is_there(&server, ann)), (position, false));

    let told = backups.restored(&["--entry", ann]);
    assert_eq!(counts(&told), [1, 0, 5, 0], "{told}");
    let second = entry(&server, &group_dn("second"));
    done(&server, "ldapmodrdn", &["-r", &group_dn("second"), "cn=two"], "");
    assert_eq!(others.each_ref().map(|dn| entry(&server, dn)), before);
    assert!(second.contains(&member) && second.contains(&format!("owner: {ann}")), "{second:?}");
    // But for one group, which is gone.
    let now = whole(&server, ann);
    let gone = format!("memberOf: {}", group_dn("three"));
    let person: Vec<String> = person.into_iter().filter(|line| *line != gone).collect();
    assert_eq!(now, person);
    assert!(binds(&server, ann));
    let last = backups.last();
    let again = backups.restore(&["--entry", ann]).expect(0).out;
    assert!(again.contains("all is as it was in backup"), "{again}");
    // It comes back later, and names her by itself.
    let told = backups.restored(&["--entry", &group_dn("three")]);
    assert_eq!(counts(&told), [1, 0, 0, 0], "{told}");
    assert!(has(&server, &group_dn("three"), &member) && has(&server, ann, &gone));
    assert_eq!(backups.last(), last + 1);

    // Memberships that went otherwise come back where that is asked for.
    modify(&server, &group_dn("one"), &format!("delete: member\nmember: {ann}\n-"));
    assert_eq!(counts(&backups.restored(&["--entry", ann])), [0, 0, 0, 1]);
    assert!(!has(&server, &group_dn("one"), &member));
    assert_eq!(counts(&backups.restored(&["--entry", ann, "--memberships"])), [0, 0, 1, 1]);
    assert_eq!(entry(&server, &group_dn("one")), before[1]);
    assert!(server.stop().success());
}

#[test]
fn without_a_server_it_is_done_in_the_folder() {
    if !available(&TOOLS) {
        return;
    }
    let (backups, server) = with_ann();
    let (ann, group) = (dn("ann"), group_dn("one"));
    let before = (whole(&server, &ann), entry(&server, &group));
    done(&server, "ldapdelete", &[&ann], "");
    assert!(server.stop().success());
    let position = backups.last();
    assert_eq!(counts(&backups.restored(&["--entry", &ann])), [1, 0, 6, 0]);
    let made: Vec<String> = (position + 1..=backups.last()).map(|one| one.to_string()).collect();
    let server = Server::start(&backups.data, &[]);
    assert_eq!((whole(&server, &ann), entry(&server, &group)), before);
    assert!(binds(&server, &ann));
    // They are changes like others.
    let mut undo = Command::new(keyway());
    finish(undo.arg("undo").args(&made).arg("--data").arg(&backups.data), "").expect(0);
    assert!(!is_there(&server, &ann) && !has(&server, &group, &format!("member: {ann}")));
    assert!(server.stop().success());
}

#[test]
fn a_changed_entry_is_changed_back() {
    if !available(&TOOLS) {
        return;
    }
    let (backups, server) = with_ann();
    let ann = &dn("ann");
    let before = entry(&server, ann);
    modify(
        &server,
        ann,
        "replace: title\ntitle: after\n-\ndelete: description\ndescription: one\n-\nadd: mail\n\
         mail: ann@example.com\n-\ndelete: jpegPhoto\n-\nreplace: userPassword\nuserPassword: another\n-\n\
         replace: cn\ncn: ANN\n-",
    );
    assert!(!binds(&server, ann));
    let planned = backups.restore(&["--entry", ann, "--dry-run"]).expect(0).out;
    assert!(planned.contains("replace: title\ntitle: before\n"), "{planned}");
    assert!(planned.contains("add: description\ndescription: one\n"), "{planned}");
    assert!(planned.contains("# userPassword: 1 value, not shown"), "{planned}");
    assert!(!planned.contains("replace: userPassword"), "{planned}");
    assert_eq!(counts(&backups.restored(&["--entry", ann])), [0, 1, 0, 0]);
    assert_eq!(entry(&server, ann), before);
    assert!(binds(&server, ann), "the old password is right again");
    assert_eq!(counts(&backups.restored(&["--entry", ann])), [0, 0, 0, 1]);

    // A group names what its members are called by now, and none that is gone for good.
    let group = &group_dn("one");
    done(&server, "ldapadd", &[], &person("eve", PEOPLE, ""));
    modify(&server, group, &format!("add: member\nmember: {}\n-", dn("eve")));
    done(&server, "ldapmodrdn", &["-r", &dn("bob"), "uid=robert"], "");
    done(&server, "ldapdelete", &[ann], "");
    let told = backups.restored(&["--entry", group]);
    assert_eq!((counts(&told), &told["references_left_out"]), ([0, 1, 0, 0], &1.into()), "{told}");
    let now = entry(&server, group);
    let members: Vec<&String> = now.iter().filter(|line| line.starts_with("member:")).collect();
    assert_eq!(members, [&format!("member: {}", dn("robert"))]);
    assert!(server.stop().success());
}

#[test]
fn a_subtree_comes_back_and_what_is_new_stays() {
    if !available(&TOOLS) {
        return;
    }
    let (place, server) = sample(3);
    let backups = Backups::of(place);
    let (team, inner) = (format!("ou=Team,{PEOPLE}"), format!("ou=Inner,ou=Team,{PEOPLE}"));
    let at = |uid: &str, place: &str| format!("uid={uid},{place}");
    let entries = [
        unit("Team", PEOPLE),
        unit("Inner", &team),
        person("a", &team, ""),
        person("b", &inner, &format!("manager: {}\n", at("a", &team))),
        person("c", &inner, ""),
        person("d", &inner, ""),
        group("g", &[&at("a", &team), &at("b", &inner), &at("d", &inner)], ""),
    ];
    done(&server, "ldapadd", &[], &entries.concat());
    backups.create();
    let all = [
        team.clone(),
        inner.clone(),
        at("a", &team),
        at("b", &inner),
        at("c", &inner),
        at("d", &inner),
        group_dn("g"),
    ];
    let state = || all.each_ref().map(|dn| entry(&server, dn));
    let before = state();

    // A part is gone, a part is changed, one is new.
    done(&server, "ldapdelete", &[&at("b", &inner), &at("d", &inner)], "");
    modify(&server, &at("c", &inner), "replace: title\ntitle: after\n-");
    done(&server, "ldapadd", &[], &person("new", &inner, ""));
    let told = backups.restored(&["--subtree", &team]);
    assert_eq!((counts(&told), &told["not_in_backup"]), ([2, 1, 2, 3], &1.into()), "{told}");
    done(&server, "ldapdelete", &[&at("new", &inner)], "");
    assert_eq!(state(), before);

    // All of it is gone: an entry in it needs those above, which come first.
    done(&server, "ldapdelete", &["-r", &team], "");
    assert!(!is_there(&server, &team));
    let refused = backups.restore(&["--entry", &at("b", &inner)]).expect(1).err;
    assert!(refused.contains(&format!("--subtree {team}")), "{refused}");
    assert!(refused.contains("Nothing was changed"), "{refused}");
    backups.restore(&["--subtree", &inner]).expect(1);
    let told = backups.restored(&["--subtree", &team]);
    assert_eq!(counts(&told), [6, 0, 3, 0], "{told}");
    assert_eq!(state(), before);
    let again = backups.restore(&["--subtree", &team]).expect(0).out;
    assert!(again.contains("all is as it was in backup"), "{again}");
    assert!(again.contains("6 entries compared"), "{again}");

    // Another moment.
    let position = backups.last();
    modify(&server, &at("c", &inner), "replace: title\ntitle: later\n-");
    backups.create();
    modify(&server, &at("c", &inner), "replace: title\ntitle: last\n-");
    let title = |title: &str| has(&server, &at("c", &inner), &format!("title: {title}"));
    backups.restored(&["--subtree", &team]);
    assert!(title("later"));
    let first =
        backups.restore(&["--entry", &at("c", &inner), "--position", &position.to_string()]);
    assert!(first.expect(1).err.contains("up to position"), "no changes were saved in between");
    let listed = backups.command(&["backup", "list"], &backups.path("backup.key"), &["--json"]);
    let listed = finish(&mut { listed }, "").expect(0).out;
    let listed: Value = serde_json::from_str(listed.lines().next().unwrap()).unwrap();
    backups.restored(&["--subtree", &team, "--backup", listed["backup"].as_str().unwrap()]);
    assert!(title("before"));
    assert!(server.stop().success());
}

/// Definitions may go when no entry needs them any more: what was of them cannot come back, and all else does.
#[test]
fn an_entry_that_the_schema_does_not_know_any_more_is_skipped() {
    if !available(&TOOLS) {
        return;
    }
    let (place, server) = sample(3);
    let backups = Backups::of(place);
    let define = |operation: &str| {
        format!(
            "dn: cn=schema\nchangetype: modify\n{operation}: objectClasses\nobjectClasses: ( 2.25.1 NAME 'badge' \
             SUP top AUXILIARY MAY l )\n\n"
        )
    };
    done(&server, "ldapmodify", &[], &define("add"));
    let team = format!("ou=Team,{PEOPLE}");
    let at = |uid: &str| format!("uid={uid},{team}");
    let entries = [
        unit("Team", PEOPLE),
        person("a", &team, ""),
        person("b", &team, "objectClass: badge\n"),
        person("c", &team, &format!("manager: {}\n", at("b"))),
        group("g", &[&at("a"), &at("b")], ""),
    ];
    done(&server, "ldapadd", &[], &entries.concat());
    backups.create();
    done(&server, "ldapdelete", &["-r", &team], "");
    done(&server, "ldapmodify", &[], &define("delete"));
    let refused = backups.restore(&["--entry", &at("b"), "--dry-run"]).expect(1).err;
    let shown = backups.restore(&["--subtree", &team, "--dry-run"]).expect(0).out;
    assert!(shown.contains(&format!("skipped {}: it does not fit the schema", at("b"))), "{shown}");
    assert!(refused.contains("ou=Team") && refused.contains("Nothing was changed"), "{refused}");
    let told = backups.restored(&["--subtree", &team]);
    assert_eq!(counts(&told), [3, 0, 1, 0], "{told}");
    assert_eq!(told["skipped"][0]["dn"], at("b"), "{told}");
    assert!(is_there(&server, &at("a")) && is_there(&server, &at("c")));
    assert!(!has(&server, &at("c"), &format!("manager: {}", at("b"))));
    assert!(!has(&server, &group_dn("g"), &format!("member: {}", at("b"))));
    let alone = backups.restore(&["--entry", &at("b")]).expect(1).err;
    assert!(alone.contains("does not fit the schema") && alone.contains("badge"), "{alone}");
    assert!(server.stop().success());
}

#[test]
fn what_was_renamed_or_replaced_since_is_left_where_it_is() {
    if !available(&TOOLS) {
        return;
    }
    let (backups, server) = with_ann();
    let (ann, anna) = (&dn("ann"), &dn("anna"));
    done(&server, "ldapmodrdn", &["-r", ann, "uid=anna"], "");
    let position = backups.last();
    let refused = backups.restore(&["--entry", ann]).expect(1).err;
    assert!(refused.contains(&format!("is {anna} now")), "{refused}");
    assert!(
        refused.contains("keyway undo") && refused.contains("Nothing was changed"),
        "{refused}"
    );
    done(&server, "ldapdelete", &[&dn("bob")], "");
    let told = backups.restored(&["--subtree", PEOPLE]);
    // Bob is in three groups, and has her new name as his manager's.
    assert_eq!(counts(&told)[..3], [1, 0, 3], "{told}");
    assert_eq!(told["skipped"][0]["dn"], **ann, "{told}");
    assert!(has(&server, &dn("bob"), &format!("manager: {anna}")));
    assert!(is_there(&server, anna) && !is_there(&server, ann));
    assert!(backups.last() > position);

    // Another entry has the name now: it is not touched, and gets no memberships of the old one.
    done(&server, "ldapdelete", &[anna], "");
    done(&server, "ldapadd", &[], &person("ann", PEOPLE, "mail: another@example.com\n"));
    let other = whole(&server, ann);
    let refused = backups.restore(&["--entry", ann]).expect(1).err;
    assert!(refused.contains("another entry has its name"), "{refused}");
    let told = backups.restore(&["--subtree", PEOPLE]).expect(0).out;
    assert!(told.contains(&format!("skipped {ann}: it is gone, and another entry")), "{told}");
    assert!(told.contains("1 skipped") && told.contains("1 entry not in it"), "{told}");
    let told = backups.restored(&["--entry", &group_dn("one")]);
    assert_eq!(told["references_left_out"], 1, "{told}");
    assert_eq!(whole(&server, ann), other);
    assert!(server.stop().success());
}

#[test]
fn what_cannot_be_is_said_and_changes_nothing() {
    if !available(&TOOLS) {
        return;
    }
    let (backups, server) = with_ann();
    let ann = &dn("ann");
    done(&server, "ldapdelete", &[ann], "");
    let position = backups.last();
    let refused = |flags: &[&str], code: i32, why: &str| {
        let refused = backups.restore(flags).expect(code).err;
        assert!(refused.contains(why), "{flags:?}: {refused}");
    };
    let nobody = format!("uid=nobody,ou=Nowhere,{PEOPLE}");
    refused(&["--entry", &nobody], 1, &format!("nearest one above it is {PEOPLE}"));
    refused(&["--entry", "dc=elsewhere"], 1, "and none above it");
    refused(&["--entry", "no name"], 2, "not a valid DN");
    refused(&["--entry", ann, "--to", "x"], 2, "--to");
    refused(&["--entry", ann, "--subtree", ann], 2, "--subtree");
    refused(&[], 2, "--entry");
    refused(&["--entry", ann, "--backup", "00000009-20260101T000000Z"], 1, "00000009");
    let wrong = backups.path("wrong");
    secret(&wrong, "not it");
    let login = ["--password-file", wrong.to_str().unwrap()];
    refused(&[&["--entry", ann][..], &login].concat(), 1, "does not let us in");
    let mut to = backups.command(&["restore"], &backups.path("backup.key"), &["--to", "x"]);
    finish(to.arg("--dry-run"), "").expect(2);
    let mut to = backups.command(&["restore"], &backups.path("backup.key"), &["--to", "x"]);
    finish(to.arg("--data").arg(&backups.data), "").expect(2);
    // A key of others.
    let other = backups.path("other.key");
    secret(&other, &format!("{}\n", "0b".repeat(32)));
    let mut restore = backups.command(&["restore"], &other, &["--entry", ann]);
    let told = finish(restore.arg("--data").arg(&backups.data), "").expect(1).err;
    assert!(told.contains("not that of"), "{told}");
    let mut nowhere = backups.command(&["restore"], &backups.path("backup.key"), &["--entry", ann]);
    let told = finish(nowhere.arg("--data").arg(backups.path("none")), "").expect(1).err;
    assert!(told.contains("holds no directory"), "{told}");
    assert_eq!((backups.last(), is_there(&server, ann)), (position, false));
    assert!(server.stop().success());

    // Without LDAPS the running server cannot be told.
    let mut up = Command::new(keyway());
    up.args(["up", "--json", "--listen", "127.0.0.1:0", "--listen-tls", "off", "--data"]);
    let server = Server::spawn(up.arg(&backups.data));
    refused(&["--entry", ann], 1, "listen_tls");
    assert!(server.stop().success());
    assert_eq!(backups.last(), position);

    // A damaged backup.
    for folder in fs::read_dir(backups.path("repository/chunks")).unwrap() {
        for piece in fs::read_dir(folder.unwrap().path()).unwrap() {
            let piece = piece.unwrap().path();
            let mut bytes = fs::read(&piece).unwrap();
            let middle = bytes.len() / 2;
            bytes[middle] ^= 1;
            fs::write(&piece, bytes).unwrap();
        }
    }
    backups.restore(&["--entry", ann]).expect(1);
    assert_eq!(backups.last(), position);
    assert!(!backups.path(".keyway-restore").exists());
}

/// Numbers that look random, and are equal each time.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, end: usize) -> usize {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % end
    }
}

/// A model that cannot be wrong: the directory as it was when it was backed up. Whatever was changed or deleted since,
/// all of that is there again, and what is new stays.
#[test]
fn whatever_was_changed_is_as_it_was() {
    if !available(&TOOLS) {
        return;
    }
    let (place, server) = sample(3);
    let backups = Backups::of(place);
    let names: Vec<String> = (0..12).map(|number| format!("p{number}")).collect();
    let dns: Vec<String> = names.iter().map(|name| dn(name)).collect();
    let mut entries = String::new();
    for (number, name) in names.iter().enumerate() {
        let manager = &dns[(number + 1) % dns.len()];
        entries += &person(name, PEOPLE, &format!("manager: {manager}\n"));
    }
    for number in 0..6 {
        let members = [&dns[number], &dns[number + 1], &dns[number * 2]];
        let mut members: Vec<&str> = members.iter().map(|dn| dn.as_str()).collect();
        members.sort_unstable();
        members.dedup();
        entries += &group(&format!("g{number}"), &members, "");
    }
    done(&server, "ldapadd", &[], &entries);
    backups.create();
    let all = || {
        let mut search = server.admin_tool("ldapsearch");
        search.args(["-LLL", "-o", "ldif-wrap=no", "-b", BASE, "*", "+"]);
        let found = finish(&mut search, "").expect(0).out;
        let entry = |text: &str| {
            let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
            lines.retain(|line| !line.starts_with("modif") && !line.starts_with("numSub"));
            lines.sort();
            lines
        };
        let mut all: Vec<Vec<String>> = found.split("\n\n").map(entry).collect();
        all.sort();
        all
    };
    let before = all();
    for seed in 0..4 {
        let mut numbers = Numbers(seed);
        let mut changes = String::new();
        for number in 0..60 {
            let person = &dns[numbers.below(dns.len())];
            let group = group_dn(&format!("g{}", numbers.below(6)));
            let word = ["one", "two", "three"][numbers.below(3)];
            let mut modify = |dn: &str, lines: &str| {
                changes += &format!("dn: {dn}\nchangetype: modify\n{lines}\n-\n\n");
            };
            match numbers.below(8) {
                0 => changes += &format!("dn: {person}\nchangetype: delete\n\n"),
                1 if number % 3 == 0 => changes += &format!("dn: {group}\nchangetype: delete\n\n"),
                2 => modify(person, &format!("replace: title\ntitle: {word}")),
                3 => modify(person, &format!("add: mail\nmail: {word}@example.com")),
                4 => modify(person, "delete: description"),
                5 => modify(&group, &format!("add: member\nmember: {person}")),
                6 => modify(&group, &format!("delete: member\nmember: {person}")),
                _ => modify(person, "delete: manager"),
            }
        }
        let new = format!("new{seed}");
        let new =
            group(&new, &[&dns[0]], "").replacen("objectClass", "changetype: add\nobjectClass", 1);
        finish(server.admin_tool("ldapmodify").arg("-c"), &(changes + &new));
        assert_ne!(all(), before);
        let told = backups.restored(&["--subtree", BASE]);
        assert_eq!(told["not_in_backup"], 1, "{told}");
        assert!(told["added"].as_u64() > Some(0) && told["modified"].as_u64() > Some(0), "{told}");
        assert_eq!(told["skipped"], serde_json::json!([]), "{told}");
        done(&server, "ldapdelete", &[&group_dn(&format!("new{seed}"))], "");
        let now = all();
        let less: Vec<_> = before.iter().filter(|entry| !now.contains(entry)).collect();
        let more: Vec<_> = now.iter().filter(|entry| !before.contains(entry)).collect();
        assert!(less.is_empty() && more.is_empty(), "seed {seed}: {less:#?} and not {more:#?}");
        assert_eq!(backups.restored(&["--subtree", BASE])["changes"], 0);
    }
    assert!(server.stop().success());
}
