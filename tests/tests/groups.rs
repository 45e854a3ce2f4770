//! Groups and references, through other people's clients.

use keyway_tests::{Server, available, finish, sample};
use std::fs;
use std::path::Path;

const PEOPLE: &str = "ou=People,dc=example,dc=com";
const GROUPS: &str = "ou=Groups,dc=example,dc=com";

fn add(server: &Server, ldif: &str) {
    finish(&mut server.admin_tool("ldapadd"), ldif).expect(0);
}

fn search(server: &Server, arguments: &[&str]) -> String {
    finish(server.admin_tool("ldapsearch").args(["-LLL", "-o", "ldif-wrap=no"]).args(arguments), "")
        .expect(0)
        .out
}

fn person(uid: &str, more: &str) -> String {
    format!(
        "dn: uid={uid},{PEOPLE}\nobjectClass: inetOrgPerson\nuid: {uid}\ncn: x\nsn: x\n{more}\n"
    )
}

#[test]
fn groups_are_seen_from_their_members_and_follow_them() {
    if !available(&["ldapsearch", "ldapadd", "ldapmodrdn", "ldapdelete"]) {
        return;
    }
    let (_folder, server) = sample(3);
    add(&server, &person("ann", ""));
    add(&server, &person("bob", &format!("manager: uid=ann,{PEOPLE}\n")));
    let group = |cn: &str, member: &str| {
        format!("dn: cn={cn},{GROUPS}\nobjectClass: groupOfNames\ncn: {cn}\nmember: {member}\n\n")
    };
    add(&server, &group("inner", &format!("uid=ann,{PEOPLE}")));
    add(&server, &group("outer", &format!("cn=inner,{GROUPS}")));
    let ann = format!("uid=ann,{PEOPLE}");
    let shown = search(&server, &["-b", &ann, "-s", "base", "memberOf"]);
    assert!(shown.contains(&format!("memberOf: cn=inner,{GROUPS}")), "{shown}");
    assert!(shown.contains(&format!("memberOf: cn=outer,{GROUPS}")), "{shown}");
    assert!(search(&server, &["-b", &ann, "-s", "base", "+"]).contains("memberOf: "));
    assert!(!search(&server, &["-b", &ann, "-s", "base"]).contains("memberOf"));
    let filter = format!("(memberOf=cn=outer,{GROUPS})");
    let found = search(&server, &["-b", PEOPLE, &filter, "1.1"]);
    assert_eq!(found.trim(), format!("dn: {ann}"));

    finish(server.admin_tool("ldapmodrdn").args(["-r", &ann, "uid=anna"]), "").expect(0);
    let anna = format!("uid=anna,{PEOPLE}");
    let inner = format!("cn=inner,{GROUPS}");
    let members = search(&server, &["-b", &inner, "-s", "base", "member"]);
    assert!(members.contains(&format!("member: {anna}")), "{members}");
    let bob = format!("uid=bob,{PEOPLE}");
    let manager = || search(&server, &["-b", &bob, "-s", "base", "manager"]);
    assert!(manager().contains(&format!("manager: {anna}")));
    finish(server.admin_tool("ldapdelete").arg(&anna), "").expect(0);
    assert!(!search(&server, &["-b", &inner, "-s", "base", "member"]).contains("member: "));
    assert!(!manager().contains("manager: "));
}

#[test]
fn values_are_unique_and_numbers_are_given_out() {
    if !available(&["ldapadd", "ldapsearch"]) {
        return;
    }
    let (folder, server) = sample(1);
    let file = Path::new(server.text("data")).join("keyway.toml");
    let text = fs::read_to_string(&file).unwrap();
    let more = format!(
        "[[integrity.unique]]\nattributes = [\"mail\"]\nbelow = \"{PEOPLE}\"\n\
         [[integrity.allocate]]\nattribute = \"uidNumber\"\nclass = \"posixAccount\"\n\
         from = 20000\nto = 20001\n"
    );
    let at = text.find("[[access]]").unwrap();
    fs::write(&file, format!("{}{more}{}", &text[..at], &text[at..])).unwrap();
    assert!(server.stop().success());
    let server = Server::start(&folder.path().join("data"), &[]);
    add(&server, &person("ann", "mail: ann@example.org\n"));
    let twice = person("bob", "mail: ANN@example.org\n");
    let refused = finish(&mut server.admin_tool("ldapadd"), &twice);
    assert!(refused.err.contains("mail must be unique"), "{}", refused.err);
    assert!(refused.err.contains(&format!("uid=ann,{PEOPLE}")), "{}", refused.err);
    refused.expect(19);
    let account =
        |uid: &str| person(uid, "objectClass: posixAccount\ngidNumber: 1\nhomeDirectory: /\n");
    add(&server, &account("cat"));
    let cat = format!("uid=cat,{PEOPLE}");
    let shown = search(&server, &["-b", &cat, "-s", "base", "uidNumber"]);
    assert!(shown.contains("uidNumber: 20000"), "{shown}");
    add(&server, &account("dan"));
    let used_up = finish(&mut server.admin_tool("ldapadd"), &account("eve"));
    assert!(used_up.err.contains("larger range"), "{}", used_up.err);
    used_up.expect(11);
}
