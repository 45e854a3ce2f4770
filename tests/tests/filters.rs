//! Filters beyond equality, as ldapsearch asks them: chains of names, bits, words, prepared strings,
//! and lists of attributes by class.

use keyway_tests::{Server, available, finish, sample};

const BASE: &str = "dc=example,dc=com";
const PEOPLE: &str = "ou=People,dc=example,dc=com";
const GROUPS: &str = "ou=Groups,dc=example,dc=com";

/// The entries of an LDIF that a filter finds, as their first RDNs.
fn found(server: &Server, filter: &str) -> Vec<String> {
    let mut command = server.admin_tool("ldapsearch");
    command.args(["-LLL", "-o", "ldif-wrap=no", "-b", BASE, filter, "1.1"]);
    let out = finish(&mut command, "").expect(0).out;
    let mut names: Vec<String> = out
        .lines()
        .filter_map(|line| line.strip_prefix("dn: "))
        .filter_map(|dn| Some(dn.split(',').next()?.split_once('=')?.1.to_owned()))
        .collect();
    names.sort_unstable();
    names
}

fn add(server: &Server, ldif: &str) {
    finish(&mut server.admin_tool("ldapadd"), ldif).expect(0);
}

fn person(uid: &str, more: &str) -> String {
    format!(
        "dn: uid={uid},{PEOPLE}\nobjectClass: inetOrgPerson\nuid: {uid}\ncn: x\nsn: x\n{more}\n"
    )
}

fn group(cn: &str, members: &[String]) -> String {
    let mut ldif = format!("dn: cn={cn},{GROUPS}\nobjectClass: groupOfNames\ncn: {cn}\n");
    members.iter().for_each(|member| ldif.push_str(&format!("member: {member}\n")));
    ldif + "\n"
}

#[test]
fn names_lead_from_one_to_the_next() {
    if !available(&["ldapsearch", "ldapadd", "ldapmodify"]) {
        return;
    }
    let (_folder, server) = sample(1);
    let (user, of) =
        (|uid: &str| format!("uid={uid},{PEOPLE}"), |cn: &str| format!("cn={cn},{GROUPS}"));
    // boss <- ann <- bob; ann is in inner, that in middle, that in outer, and round is in itself.
    add(&server, &person("boss", ""));
    add(&server, &person("ann", &format!("manager: {}\n", user("boss"))));
    add(&server, &person("bob", &format!("manager: {}\n", user("ann"))));
    add(&server, &group("inner", &[user("ann")]));
    add(&server, &group("middle", &[of("inner"), user("bob")]));
    add(&server, &group("outer", &[of("middle")]));
    add(&server, &group("ring1", &[of("ring2"), user("boss")]));
    add(&server, &group("ring2", &[of("ring1")]));
    let chain = |attribute: &str, dn: String| {
        found(&server, &format!("({attribute}:1.2.840.113556.1.4.1941:={dn})"))
    };
    assert_eq!(chain("member", user("ann")), ["inner", "middle", "outer"]);
    assert_eq!(chain("member", user("bob").to_uppercase()), ["middle", "outer"]);
    assert_eq!(chain("member", user("boss")), ["ring1", "ring2"]);
    assert_eq!(chain("memberOf", of("outer")), ["ann", "bob", "inner", "middle"]);
    assert_eq!(chain("memberOf", of("inner")), ["ann"]);
    assert_eq!(chain("memberOf", of("ring1")), ["boss", "ring1", "ring2"]);
    assert_eq!(chain("manager", user("boss")), ["ann", "bob"]);
    assert_eq!(chain("manager", user("absent")), [""; 0]);
    let both = format!(
        "(&(objectClass=inetOrgPerson)(memberOf:1.2.840.113556.1.4.1941:={})\
         (!(manager:inChainMatch:={})))",
        of("outer"),
        user("ann")
    );
    assert_eq!(found(&server, &both), ["ann"]);
    // An assertion that cannot be followed is undefined, and an error for no client.
    for filter in [
        "(cn:1.2.840.113556.1.4.1941:=dc=example)",
        "(:1.2.840.113556.1.4.1941:=dc=example)",
        "(member:dn:1.2.840.113556.1.4.1941:=dc=example)",
        "(member:1.2.840.113556.1.4.1941:=no name)",
        "(!(member:1.2.840.113556.1.4.1941:=no name))",
    ] {
        assert_eq!(found(&server, filter), [""; 0], "{filter}");
    }
    // A chain of 300 groups, the last in a circle with the first.
    let deep: Vec<String> = (0..300)
        .map(|at| group(&format!("deep{at:03}"), &[of(&format!("deep{:03}", (at + 299) % 300))]))
        .collect();
    add(&server, &deep.concat());
    assert_eq!(chain("member", of("deep000")).len(), 300);
    let leave = format!(
        "dn: {}\nchangetype: modify\nreplace: member\nmember: {}\n",
        of("deep000"),
        user("bob")
    );
    finish(&mut server.admin_tool("ldapmodify"), &leave).expect(0);
    assert_eq!(chain("member", user("bob")).len(), 302);
    assert_eq!(chain("member", of("deep290")).len(), 9);
    assert_eq!(chain("memberOf", of("deep009")).len(), 10);
}

#[test]
fn bits_words_and_prepared_strings() {
    if !available(&["ldapsearch", "ldapadd"]) {
        return;
    }
    let (_folder, server) = sample(1);
    let account = |uid: &str, number: i64| {
        format!(
            "dn: uid={uid},{PEOPLE}\nobjectClass: account\nobjectClass: posixAccount\nuid: {uid}\n\
             cn: {uid}\nuidNumber: {number}\ngidNumber: 7\nhomeDirectory: /\n\n"
        )
    };
    add(&server, &[account("six", 6), account("two", 2), account("big", 1 << 40)].concat());
    let bits = |rule: &str, value: &str| {
        found(&server, &format!("(&(objectClass=account)(uidNumber:{rule}:={value}))"))
    };
    assert_eq!(bits("1.2.840.113556.1.4.803", "6"), ["six"]);
    assert_eq!(bits("1.2.840.113556.1.4.803", "2"), ["six", "two"]);
    assert_eq!(bits("1.2.840.113556.1.4.804", "5"), ["six"]);
    assert_eq!(bits("1.2.840.113556.1.4.804", "1099511627776"), ["big"]);
    assert_eq!(bits("1.2.840.113556.1.4.803", "0").len(), 3);
    assert_eq!(bits("1.2.840.113556.1.4.804", "0"), [""; 0]);
    assert_eq!(bits("1.2.840.113556.1.4.803", "six"), [""; 0]);

    add(&server, &person("word", "description: An Administrator  of many hosts\n"));
    // Fullwidth letters, a soft hyphen, a composed and a decomposed character.
    add(
        &server,
        &person("prep", "description: \u{ff21}\u{ff22}\u{ff23} net\u{ad}work caf\u{e9}\n"),
    );
    let described =
        |rule: &str, value: &str| found(&server, &format!("(description{rule}={value})"));
    assert_eq!(described(":wordMatch:", "many"), ["word"]);
    assert_eq!(described(":2.5.13.32:", "MANY"), ["word"]);
    assert_eq!(described(":wordMatch:", "man"), [""; 0]);
    assert_eq!(described(":keywordMatch:", "of many"), ["word"]);
    assert_eq!(described(":2.5.13.33:", "many of"), [""; 0]);
    assert_eq!(described("", "  an   ADMINISTRATOR of many hosts "), ["word"]);
    assert_eq!(described("", "abc network cafe\u{301}"), ["prep"]);
    assert_eq!(described("", "*net*CAFE\u{301}"), ["prep"]);
    assert_eq!(described(":caseExactMatch:", "abc network caf\u{e9}"), [""; 0]);
    assert_eq!(described(":caseExactMatch:", "ABC network cafe\u{301}"), ["prep"]);

    let mut command = server.admin_tool("ldapsearch");
    command.args(["-LLL", "-b", BASE, "(uid=six)", "@posixAccount"]);
    let out = finish(&mut command, "").expect(0).out;
    for (name, is_there) in [("uidNumber: 6", true), ("homeDirectory: /", true), ("host: ", false)]
    {
        assert_eq!(out.contains(name), is_there, "{name}: {out}");
    }
    let mut command = server.admin_tool("ldapsearch");
    command.args([
        "-LLL",
        "-b",
        &format!("uid=word,{PEOPLE}"),
        "-s",
        "base",
        "(objectClass=*)",
        "@person",
        "@no-such",
    ]);
    let out = finish(&mut command, "").expect(0).out;
    assert!(out.contains("sn: x") && !out.contains("uid: "), "{out}");
}
