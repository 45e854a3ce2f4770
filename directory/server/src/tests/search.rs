//! The results of searches.

use super::*;

fn all_people() -> usize {
    14
}

#[test]
fn every_form_of_filter() {
    let fixture = filled();
    for (filter, expected) in [
        ("(uid=ada)", &["ada"][..]),
        ("(UID=ADA)", &["ada"]),
        ("(0.9.2342.19200300.100.1.1=ada)", &["ada"]),
        ("(userid=ada)", &["ada"]),
        ("(cn=  ADA   lovelace )", &["ada"]),
        ("(cn~=grace hopper)", &["grace"]),
        ("(cn=l*)", &["leslie"]),
        ("(cn=*ma*)", &["hedy", "margaret"]),
        ("(cn=*n)", &["claude", "frances", "margaret"]),
        ("(cn=*l*l*)", &["ada", "all", "frances", "leslie"]),
        ("(cn=g*h*pper)", &["grace"]),
        ("(cn=*z*)", &[]),
        ("(sn=g\u{f6}del)", &["kurt"]),
        ("(sn=go\u{308}del)", &["kurt"]),
        ("(uidNumber>=1012)", &["leslie", "margaret"]),
        ("(uidNumber<=1001)", &["ada", "alan"]),
        ("(&(uidNumber>=1003)(uidNumber<=1004))", &["claude", "donald"]),
        ("(|(uid=ada)(uid=alan)(uid=absent))", &["ada", "alan"]),
        ("(&(objectClass=person)(!(cn=*a*)))", &["kurt"]),
        ("(name=hopper)", &["grace"]),
        ("(name=ada*)", &["ada"]),
        ("(objectClass=groupOfNames)", &["all", "few", "some"]),
        ("(objectClass=2.5.6.9)", &["all", "few", "some"]),
        ("(objectClass=organizationalUnit)", &["groups", "people"]),
        ("(member=UID=Ada, OU=People ,DC=example,DC=com)", &["all", "few", "some"]),
        ("(&(objectClass=groupOfNames)(member=uid=kurt,ou=people,dc=example,dc=com))", &["all"]),
        ("(dc=example)", &["example"]),
    ] {
        assert_eq!(fixture.names(filter), expected, "{filter}");
    }
    assert_eq!(fixture.names("(&)").len(), 20);
    assert_eq!(fixture.names("(|)").len(), 0);
    assert_eq!(fixture.names("(objectClass=person)").len(), all_people());
    assert_eq!(fixture.names("(objectClass=top)").len(), 20);
    assert_eq!(fixture.names("(uid=*)").len(), all_people());
}

#[test]
fn what_is_undefined_is_neither_true_nor_false() {
    let fixture = filled();
    for filter in [
        "(unheard-of=x)",
        "(!(unheard-of=x))",
        "(uidNumber=abc)",
        "(!(uidNumber=abc))",
        "(jpegPhoto=x)",
        "(!(jpegPhoto=x))",
        "(&(uid=ada)(unheard-of=x))",
        "(!(|(uid=ada)(uidNumber=abc)))",
        "(member>=x)",
        "(!(member>=x))",
        "(cn:unheardOfMatch:=x)",
        "(cn;unknown=Ada Lovelace)",
        "(member=not a name)",
    ] {
        assert_eq!(fixture.names(filter), [""; 0], "{filter}");
    }
    assert_eq!(fixture.names("(|(uid=ada)(unheard-of=x))"), ["ada"]);
    assert_eq!(fixture.names("(!(&(uid=absent)(unheard-of=x)))").len(), 20);
    // Absent is false, and so its negation true.
    assert_eq!(fixture.names("(!(uid=*))").len(), 6);
}

#[test]
fn extensible_matches() {
    let fixture = filled();
    for (filter, expected) in [
        ("(cn:caseExactMatch:=Ada Lovelace)", &["ada"][..]),
        ("(cn:caseExactMatch:=ada lovelace)", &[]),
        ("(cn:2.5.13.5:=Ada Lovelace)", &["ada"]),
        ("(cn:=ada lovelace)", &["ada"]),
        (":caseIgnoreMatch:=hopper", &["grace"]),
        ("(cn:caseIgnoreSubstringsMatch:=\\2aturing)", &["alan"]),
        ("(uidNumber:integerOrderingMatch:=1002)", &["ada", "alan"]),
        ("(ou:dn:=groups)", &["all", "few", "groups", "some"]),
        ("(&(ou:dn:=people)(cn=a*))", &["ada", "alan"]),
        ("(:dn:caseIgnoreMatch:=groups)", &["all", "few", "groups", "some"]),
        ("(uidNumber:caseIgnoreMatch:=1000)", &[]),
    ] {
        let filter = match filter.starts_with('(') {
            true => filter.to_owned(),
            false => format!("({filter})"),
        };
        assert_eq!(fixture.names(&filter), expected, "{filter}");
    }
}

#[test]
fn options_are_subtypes() {
    let fixture = filled();
    let dn = &format!("uid=ada,{PEOPLE}");
    let german = change(ChangeOperation::Add, "cn;lang-de", &["Ada von L\u{f6}ffelholz"]);
    fixture.modify(dn, vec![german]).unwrap();
    for (filter, expected) in [
        ("(cn=*l\u{f6}ffel*)", &["ada"][..]),
        ("(cn;LANG-de=*l\u{f6}ffel*)", &["ada"]),
        ("(cn;lang-de=ada lovelace)", &[]),
        ("(cn;lang-fr=*)", &[]),
        ("(name;lang-de=*)", &["ada"]),
    ] {
        assert_eq!(fixture.names(filter), expected, "{filter}");
    }
    assert_eq!(fixture.read(dn, &["cn;lang-de"]).descriptions(), ["cn;lang-de"]);
    assert_eq!(fixture.read(dn, &["cn"]).descriptions(), ["cn", "cn;lang-de"]);
    assert_eq!(fixture.read(dn, &["CommonName"]).descriptions(), ["cn", "cn;lang-de"]);
}

#[test]
fn scopes() {
    let fixture = filled();
    let count = |base, scope| {
        let request = SearchRequest { base, scope, ..request("(objectClass=*)") };
        fixture.search(&request).entries.len()
    };
    for (base, base_only, one, subtree, subordinate) in [
        (BASE, 1, 2, 20, 19),
        (PEOPLE, 1, 14, 15, 14),
        ("OU=Groups, DC=Example, DC=COM", 1, 3, 4, 3),
        ("uid=ada,ou=people,dc=example,dc=com", 1, 0, 1, 0),
        ("", 1, 1, 20, 20),
        ("cn=keyway", 1, 1, 2, 1),
        ("cn=schema", 1, 0, 1, 0),
    ] {
        let counts = [Scope::Base, Scope::One, Scope::Subtree, Scope::Subordinate]
            .map(|scope| count(base, scope));
        assert_eq!(counts, [base_only, one, subtree, subordinate], "{base}");
    }
    // An index leads to entries outside of the scope as well.
    let inside = |base, scope| {
        let request = SearchRequest { base, scope, ..request("(uid=ada)") };
        fixture.search(&request).entries.len()
    };
    assert_eq!(inside(GROUPS, Scope::Subtree), 0);
    assert_eq!(inside(BASE, Scope::One), 0);
    assert_eq!(inside(PEOPLE, Scope::One), 1);
    assert_eq!(inside("", Scope::Subtree), 1);
    assert_eq!(inside("", Scope::One), 0);
    assert_eq!(inside("uid=ada,ou=people,dc=example,dc=com", Scope::Subordinate), 0);
}

#[test]
fn bases_that_are_not_there() {
    let fixture = filled();
    let refused = |base: &str| {
        let request = SearchRequest { base, ..request("(objectClass=*)") };
        let search = fixture.directory.search(
            &fixture.administrator(),
            &request,
            &RequestControls::default(),
            ANNOUNCED,
        );
        let failure = search.err().unwrap();
        (failure.code, failure.matched_dn)
    };
    let none = |matched: &str| (ResultCode::NoSuchObject, matched.to_owned());
    assert_eq!(refused("uid=absent,ou=people,dc=example,dc=com"), none(PEOPLE));
    assert_eq!(refused("uid=x,ou=nowhere,dc=example,dc=com"), none(BASE));
    assert_eq!(refused("unheard-of=x,dc=example,dc=com"), none(BASE));
    assert_eq!(refused("dc=elsewhere"), none(""));
    assert_eq!(refused("dc=com"), none(""));
    for malformed in ["absent", "dc=example,", "uid=ada+,dc=example,dc=com", "uidNumber=abc,dc=x"] {
        let (code, _) = refused(malformed);
        assert_eq!(code, ResultCode::InvalidDnSyntax, "{malformed}");
    }
}

#[test]
fn attributes_that_are_returned() {
    let fixture = filled();
    let dn = &format!("uid=ada,{PEOPLE}");
    let user = [
        "cn",
        "gidNumber",
        "givenName",
        "homeDirectory",
        "mail",
        "objectClass",
        "sn",
        "uid",
        "uidNumber",
    ];
    let operational = [
        "createTimestamp",
        "creatorsName",
        "entryDN",
        "entryUUID",
        "hasSubordinates",
        "memberOf",
        "modifiersName",
        "modifyTimestamp",
        "numSubordinates",
        "structuralObjectClass",
        "subschemaSubentry",
    ];
    let mut both: Vec<&str> = user.iter().chain(&operational).copied().collect();
    both.sort_unstable();
    assert_eq!(fixture.read(dn, &[]).descriptions(), user);
    assert_eq!(fixture.read(dn, &["*"]).descriptions(), user);
    assert_eq!(fixture.read(dn, &["+"]).descriptions(), operational);
    assert_eq!(fixture.read(dn, &["*", "+"]).descriptions(), both);
    assert_eq!(fixture.read(dn, &["1.1"]).descriptions(), [""; 0]);
    assert_eq!(fixture.read(dn, &["1.1", "sn"]).descriptions(), ["sn"]);
    assert_eq!(fixture.read(dn, &["SN", "entryuuid"]).descriptions(), ["entryUUID", "sn"]);
    assert_eq!(fixture.read(dn, &["name"]).descriptions(), ["cn", "givenName", "sn"]);
    assert_eq!(fixture.read(dn, &["2.5.4.4"]).descriptions(), ["sn"]);
    assert_eq!(fixture.read(dn, &["unheard-of"]).descriptions(), [""; 0]);
    let types = SearchRequest {
        types_only: true,
        attributes: vec!["sn", "entryDN"],
        ..request("(uid=ada)")
    };
    let found = fixture.search(&types);
    assert_eq!(found.descriptions(), ["entryDN", "sn"]);
    assert_eq!(found.values("sn"), [""; 0]);
}

#[test]
fn operational_attributes() {
    let fixture = filled();
    let found = fixture.read(PEOPLE, &["+"]);
    for (name, value) in [
        ("createTimestamp", "20231114221320Z"),
        ("modifyTimestamp", "20231114221320Z"),
        ("creatorsName", crate::ADMINISTRATOR_DN),
        ("modifiersName", crate::ADMINISTRATOR_DN),
        ("entryDN", PEOPLE),
        ("hasSubordinates", "TRUE"),
        ("numSubordinates", "14"),
        ("structuralObjectClass", "organizationalUnit"),
        ("subschemaSubentry", "cn=schema"),
    ] {
        assert_eq!(found.values(name), [value], "{name}");
    }
    assert_eq!(found.values("entryUUID")[0].len(), 36);
    for (filter, expected) in [
        ("(entryDN=OU=people,DC=example,DC=com)", &["people"][..]),
        ("(numSubordinates>=3)", &["groups", "people"]),
        ("(&(hasSubordinates=TRUE)(!(ou=*)))", &["example"]),
        ("(&(structuralObjectClass=organizationalUnit)(ou=p*))", &["people"]),
        ("(createTimestamp>=20240101000000Z)", &[]),
    ] {
        assert_eq!(fixture.names(filter), expected, "{filter}");
    }
    assert_eq!(fixture.names("(createTimestamp>=20231114221320Z)").len(), 20);
    assert_eq!(fixture.names("(subschemaSubentry=cn=schema)").len(), 20);
}

#[test]
fn size_limits() {
    let fixture = filled();
    let limited = |size_limit| SearchRequest { size_limit, ..request("(objectClass=person)") };
    let found = fixture.search(&limited(5));
    assert_eq!((found.entries.len(), found.code()), (5, ResultCode::SizeLimitExceeded));
    let found = fixture.search(&limited(14));
    assert_eq!((found.entries.len(), found.code()), (14, ResultCode::Success));

    let strict = filled_with(&Settings { search_entries_max: 3, ..settings() });
    let controls = RequestControls::default();
    let found = strict.run(&strict.user("ada"), &limited(0), &controls).unwrap();
    assert_eq!((found.entries.len(), found.code()), (3, ResultCode::SizeLimitExceeded));
    let found = strict.run(&strict.user("ada"), &limited(2), &controls).unwrap();
    assert_eq!((found.entries.len(), found.code()), (2, ResultCode::SizeLimitExceeded));
    assert_eq!(strict.search(&limited(0)).entries.len(), 14);
}

#[test]
fn time_limits() {
    let clock = Clock { monotonic: a_second_a_look, ..settings().clock };
    let fixture = filled_with(&Settings { clock, ..settings() });
    let limited = SearchRequest { time_limit_s: 1, ..request("(objectClass=person)") };
    assert_eq!(fixture.search(&limited).code(), ResultCode::TimeLimitExceeded);
    let patient = SearchRequest { time_limit_s: 1_000, ..request("(objectClass=person)") };
    assert_eq!(fixture.search(&patient).code(), ResultCode::Success);
}

#[test]
fn a_step_of_the_wall_clock_ends_no_search() {
    use std::sync::atomic::{AtomicU64, Ordering};
    /// Each look is a day later than the one before.
    fn stepping() -> SystemTime {
        static DAYS: AtomicU64 = AtomicU64::new(0);
        now() + Duration::from_secs(86_400 * DAYS.fetch_add(1, Ordering::Relaxed))
    }
    let clock = Clock { wall: stepping, ..settings().clock };
    let fixture = filled_with(&Settings { clock, ..settings() });
    let limited = SearchRequest { time_limit_s: 3_600, ..request("(objectClass=person)") };
    let found = fixture.search(&limited);
    assert_eq!((found.code(), found.entries.len()), (ResultCode::Success, 14));
}

#[test]
fn a_step_keeps_to_its_budget() {
    let fixture = filled();
    let request = SearchRequest { attributes: vec!["*"], ..request("(objectClass=person)") };
    let controls = RequestControls::default();
    let mut search =
        fixture.directory.search(&fixture.administrator(), &request, &controls, ANNOUNCED).unwrap();
    let (mut seen, mut steps) = (0, 0);
    loop {
        let mut out = Vec::new();
        let step = search.step(&fixture.directory, 1, &mut out, 1);
        let entries = if out.is_empty() { 0 } else { decode(&out).len() };
        assert!(entries <= 1, "one entry fills the budget");
        seen += entries;
        steps += 1;
        if let Step::Done(result, _) = step {
            assert_eq!(result.code, ResultCode::Success);
            break;
        }
    }
    assert_eq!(seen, 14);
    assert!(steps >= 14);
}

#[test]
fn a_search_goes_on_while_the_tree_changes() {
    let fixture = filled();
    let request = request("(objectClass=person)");
    let controls = RequestControls::default();
    let mut search =
        fixture.directory.search(&fixture.administrator(), &request, &controls, ANNOUNCED).unwrap();
    let mut out = Vec::new();
    assert!(matches!(search.step(&fixture.directory, 1, &mut out, 1), Step::More));
    fixture.delete(&format!("uid=ada,{PEOPLE}")).unwrap();
    fixture.delete(&format!("uid=alan,{PEOPLE}")).unwrap();
    fixture.rename(&format!("uid=barbara,{PEOPLE}"), "uid=babs", true, Some(GROUPS)).unwrap();
    while let Step::More = search.step(&fixture.directory, 1, &mut out, 1) {}
    let names: Vec<_> = decode(&out).into_iter().map(|(dn, _)| dn).collect();
    assert_eq!(names.len(), 13, "{names:?}");
    assert!(names.contains(&format!("uid=babs,{GROUPS}")));
}

#[test]
fn the_root_dse_says_what_there_is() {
    let fixture = filled();
    let found = fixture.read_as(&Subject::anonymous(), "", &["+", "*"]);
    assert_eq!(found.values("namingContexts"), [BASE]);
    assert_eq!(found.values("supportedLDAPVersion"), ["3"]);
    assert_eq!(found.values("subschemaSubentry"), ["cn=schema"]);
    assert_eq!(found.values("vendorName"), ["Keyway"]);
    assert_eq!(found.values("supportedSASLMechanisms"), ["PLAIN"]);
    assert_eq!(found.values("supportedExtension"), ["1.2.3"]);
    assert_eq!(found.values("supportedControl").len(), crate::controls::SUPPORTED.len());
    assert!(found.values("supportedFeatures").contains(&"1.3.6.1.1.14".to_owned()));
    assert_eq!(fixture.read_as(&Subject::anonymous(), "", &[]).descriptions(), ["objectClass"]);
    for (filter, count) in
        [("(objectClass=*)", 1), ("(vendorName=keyway)", 0), ("(vendorName=Keyway)", 1)]
    {
        let root = SearchRequest { base: "", scope: Scope::Base, ..request(filter) };
        assert_eq!(fixture.search(&root).entries.len(), count, "{filter}");
    }
}

#[test]
fn the_subschema_is_one_that_can_be_read_back() {
    let fixture = filled();
    let found = fixture.read_as(&Subject::anonymous(), "cn=schema", &["+", "*"]);
    let types = found.values("attributeTypes");
    let classes = found.values("objectClasses");
    assert!(types.len() > 100 && classes.len() > 40);
    let types: Vec<&str> = types.iter().map(String::as_str).collect();
    let classes: Vec<&str> = classes.iter().map(String::as_str).collect();
    let schema = keyway_schema::Schema::new(&types, &classes).unwrap();
    assert_eq!(schema.attribute("cn").unwrap().oid(), "2.5.4.3");
    for time in ["createTimestamp", "modifyTimestamp"] {
        assert_eq!(found.values(time), ["20231114221320Z"]);
    }
    assert!(found.values("matchingRules").len() > 25);
    assert!(found.values("ldapSyntaxes").len() > 25);
    let cn = found.values("objectClasses").into_iter().find(|one| one.contains("'person'"));
    assert!(cn.unwrap().contains("2.5.6.6"));
    let by_rule = SearchRequest {
        base: "cn=schema",
        scope: Scope::Base,
        ..request("(attributeTypes=2.5.4.3)")
    };
    assert_eq!(fixture.search(&by_rule).entries.len(), 1);
}

#[test]
fn a_filter_of_thousands_of_terms_lets_others_run() {
    let fixture = filled();
    let terms: String = (0..4_000).map(|number| format!("(description=x{number})")).collect();
    let mut search = {
        let filter = format!("(|{terms}(objectClass=*))");
        let (subject, controls) = (fixture.administrator(), RequestControls::default());
        fixture.directory.search(&subject, &request(&filter), &controls, ANNOUNCED).unwrap()
    };
    let (mut out, mut steps) = (Vec::new(), 1);
    while let Step::More = search.step(&fixture.directory, 7, &mut out, usize::MAX) {
        // Others end with a large entry.
        steps += usize::from(search.is_long());
    }
    assert_eq!(decode(&out).len(), 20);
    // Far fewer entries than a step may look at are far more tests than it may make.
    assert!(steps >= 20 * 4_000 / crate::limits::STEP_TESTS_MAX);
}

#[test]
fn a_piece_of_megabytes_is_looked_up_by_a_few_of_its_parts() {
    let fixture = filled();
    let piece = "ab".repeat(1 << 20);
    let keys = fixture.directory.snapshot().indexes.containing("cn", piece.as_bytes(), 16);
    assert_eq!(keys.len(), 16);
    assert_eq!(fixture.names(&format!("(cn=*{piece}*)")), [""; 0]);
}

#[test]
fn attributes_are_asked_for_by_class() {
    let fixture = filled();
    let found = |wanted: &'static [&'static str]| {
        let mut names = fixture.read(&format!("uid=ada,{PEOPLE}"), wanted).descriptions();
        names.sort();
        names
    };
    let posix = ["cn", "gidNumber", "homeDirectory", "objectClass", "uid", "uidNumber"];
    assert_eq!(found(&["@posixAccount"]), posix);
    assert_eq!(found(&["@person", "uidNumber"]), ["cn", "objectClass", "sn", "uidNumber"]);
    assert_eq!(found(&["@unheardOf"]), [""; 0]);
    assert_eq!(found(&["@extensibleObject"]), found(&["*"]));
}

#[test]
fn rules_of_bits_and_words() {
    let fixture = filled();
    // uidNumber 1000 is 1111101000 in binary.
    for (filter, expected) in [
        (
            "(&(uidNumber<=1002)(uidNumber:1.2.840.113556.1.4.803:=1000))",
            &["ada", "alan", "barbara"][..],
        ),
        ("(&(uidNumber<=1002)(uidNumber:1.2.840.113556.1.4.803:=1))", &["alan"]),
        ("(&(uidNumber<=1002)(uidNumber:1.2.840.113556.1.4.804:=3))", &["alan", "barbara"]),
        ("(&(uidNumber<=1002)(!(uidNumber:integerBitOrMatch:=3)))", &["ada"]),
        ("(uidNumber:1.2.840.113556.1.4.803:=x)", &[]),
        ("(cn:1.2.840.113556.1.4.803:=1)", &[]),
        ("(cn:wordMatch:=LOVELACE)", &["ada"]),
        ("(cn:wordMatch:=love)", &[]),
        ("(cn:wordMatch:=ada lovelace)", &[]),
        ("(cn:keywordMatch:=ada lovelace)", &["ada"]),
        ("(mail:keywordMatch:=ada)", &["ada"]),
    ] {
        assert_eq!(fixture.names(filter), expected, "{filter}");
    }
}
