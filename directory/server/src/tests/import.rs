//! Import: entries, changes, errors, and going on where one stopped.

use super::export::exported;
use super::*;
use crate::{ImportError, ImportOptions, ImportReport, Note, Unfinished};
use proptest::prelude::*;

fn import(
    fixture: &Fixture,
    text: &str,
    options: &ImportOptions,
) -> Result<ImportReport, ImportError> {
    fixture.directory.import(&mut text.as_bytes(), options, &mut |_| {})
}

fn keep_going() -> ImportOptions {
    ImportOptions { keep_going: true, ..ImportOptions::default() }
}

const TREE: &str = "\
dn: dc=example,dc=com
objectClass: domain
dc: example

dn: ou=people,dc=example,dc=com
objectClass: organizationalUnit
ou: people

";

fn person(uid: &str, more: &str) -> String {
    format!("dn: uid={uid},{PEOPLE}\nobjectClass: inetOrgPerson\ncn: {uid}\nsn: {uid}\n{more}\n")
}

#[test]
fn an_import_makes_its_naming_context() {
    let fixture = empty(&settings());
    let mut text = TREE.to_owned();
    (0..2_500).for_each(|number| text.push_str(&person(&format!("u{number}"), "")));
    let mut heard = Vec::new();
    let report = fixture
        .directory
        .import(&mut text.as_bytes(), &ImportOptions::default(), &mut |told| heard.push(told))
        .unwrap();
    assert_eq!((report.records, report.errors), (2_502, 0));
    assert_eq!(fixture.directory.naming_contexts(), [BASE]);
    assert_eq!(fixture.names("(uid=u1234)"), ["u1234"]);
    let last = heard.last().unwrap();
    assert_eq!((last.records, last.bytes, last.errors), (2_502, text.len() as u64, 0));
    assert!(heard.len() >= 3, "it tells of every commit");
    assert_eq!(fixture.directory.unfinished_import().unwrap(), None);
}

#[test]
fn what_another_server_noted_is_kept_or_left_out() {
    let fixture = empty(&settings());
    let text = format!(
        "{TREE}{}",
        person(
            "ada",
            "entryUUID: 597ae2f6-16a6-1027-98f4-d28b5365dc14\n\
             createTimestamp: 20200101000000Z\ncreatorsName: cn=manager,dc=example,dc=com\n\
             modifyTimestamp: 20210101000000Z\nstructuralObjectClass: inetOrgPerson\n\
             entryCSN: 20220527120000.000000Z#000000#000#000000\naci: (something)\n\
             nssizelimit: -1\nacI: (more)\n\
             entryDN: uid=else\nhasSubordinates: TRUE\nuserPassword: secret\n"
        )
    );
    let report = import(&fixture, &text, &ImportOptions::default()).unwrap();
    assert_eq!(report.records, 3);
    let noted: Vec<_> = report.notes.0.iter().map(|(note, noted)| (*note, noted.count)).collect();
    let expected = [
        (Note::NoEffect("aci"), 2),
        (Note::NoEffect("nsSizeLimit"), 1),
        (Note::LeftOut("entryCSN"), 1),
    ];
    assert_eq!(noted, expected);
    let found = fixture.read(&format!("uid=ada,{PEOPLE}"), &["*", "+"]);
    for (name, value) in [
        ("entryUUID", "597ae2f6-16a6-1027-98f4-d28b5365dc14"),
        ("createTimestamp", "20200101000000Z"),
        ("modifyTimestamp", "20210101000000Z"),
        ("creatorsName", "cn=manager,dc=example,dc=com"),
        ("modifiersName", crate::ADMINISTRATOR_DN),
        ("entryDN", "uid=ada,ou=people,dc=example,dc=com"),
        ("hasSubordinates", "FALSE"),
    ] {
        assert_eq!(found.values(name), [value], "{name}");
    }
    assert!(found.values("userPassword")[0].starts_with("{ARGON2}"));
    assert_eq!(found.values("entryCSN"), [""; 0]);
}

/// Spelled as trees of other servers are: blanks in names, names in lower case, tags of languages,
/// an RDN that the attributes do not repeat.
#[test]
fn other_peoples_spelling() {
    let fixture = empty(&settings());
    let text = "\
# A comment
dn: o=\u{c7}\u{e9}lin\u{e9}
objectclass: top
objectclass: organization
aci: (target = \"ldap:///o=x\")(targetattr !=
  \"userPassword\")

dn: ou=Groups, o=\u{c7}\u{e9}lin\u{e9}
objectclass: organizationalunit

dn: cn=Directory Administrators, ou=Groups, o=\u{c7}\u{e9}lin\u{e9}
objectclass: groupofuniquenames
ou: Groups
cn: Administrators
uniquemember: uid=ada, ou=People, o=\u{c7}\u{e9}lin\u{e9}

dn: uid=ada, ou=GROUPS,  o=\u{e7}\u{e9}lin\u{e9}
objectclass: inetOrgPerson
cn: Ada
cn;lang-FR: Ad\u{e8}le
sn: Lovelace
telephonenumber: +1 408 555 4798
homephone: Z\u{fc}rich 17
facsimiletelephonenumber: +1 408 555 9751
roomnumber: 4612
nsSizeLimit: -1
";
    let report = import(&fixture, text, &ImportOptions::default()).unwrap();
    assert_eq!(report.records, 4);
    let everywhere = |filter: &'static str| {
        fixture.search(&SearchRequest { base: "", ..request(filter) }).names()
    };
    assert_eq!(everywhere("(cn=directory administrators)"), ["Directory Administrators"]);
    assert_eq!(everywhere("(cn=ad\u{c8}le)"), ["ada"]);
    assert_eq!(
        everywhere("(uniqueMember=UID=ada,ou=people,o=C\u{327}e\u{301}line\u{301})").len(),
        1
    );
    assert_eq!(everywhere("(telephoneNumber=+14085554798)"), ["ada"]);
    // Other servers take any text for one; a client may not.
    assert_eq!(everywhere("(homePhone=z\u{fc}rich17)"), ["ada"]);
}

#[test]
fn many_passwords_are_hashed_however_small_the_pool() {
    let fixture = empty(&settings());
    let mut text = TREE.to_owned();
    (0..100).for_each(|n| text.push_str(&person(&format!("u{n}"), "userPassword: secret\n")));
    let cheap = keyway_password::Argon2Cost { memory_kib: 8, passes: 1, lanes: 1 };
    let fast = empty(&Settings { password_cost: cheap, ..settings() });
    drop(fixture);
    import(&fast, &text, &ImportOptions::default()).unwrap();
    let found =
        fast.search(&SearchRequest { attributes: vec!["userPassword"], ..request("(uid=*)") });
    assert_eq!(found.entries.len(), 100);
    let hashed = |values: &Vec<String>| values[0].starts_with("{ARGON2}");
    assert!(found.entries.iter().all(|(_, attributes)| hashed(&attributes[0].1)));
}

#[test]
fn changes_are_carried_out() {
    let fixture = filled();
    let text = "\
dn: uid=new,ou=people,dc=example,dc=com
changetype: add
objectClass: inetOrgPerson
cn: New
sn: New

dn: uid=ada,ou=people,dc=example,dc=com
changetype: modify
add: title
title: Countess
-
replace: mail
mail: ada@example.org
-

dn: uid=alan,ou=people,dc=example,dc=com
changetype: modrdn
newrdn: uid=turing
deleteoldrdn: 1
newsuperior: ou=groups,dc=example,dc=com

dn: uid=barbara,ou=people,dc=example,dc=com
changetype: delete
";
    let report = import(&fixture, text, &ImportOptions::default()).unwrap();
    assert_eq!(report.records, 4);
    assert_eq!(
        fixture.names("(|(uid=new)(title=countess)(uid=turing)(uid=barbara))"),
        ["ada", "new", "turing"]
    );
    let found = fixture.read(&format!("uid=turing,{GROUPS}"), &["uid"]);
    assert_eq!(found.values("uid"), ["turing"]);
}

#[test]
fn a_wrong_record_stops_it_or_is_told_and_left_out() {
    let text = format!(
        "{TREE}{}{}{}{}{}{}",
        person("ada", ""),
        person("ada", "description: another\n"),
        person("bad", "unheard-of: x\n"),
        "dn: uid=lost,ou=nowhere,dc=example,dc=com\nobjectClass: account\n\n",
        "dn: uid=url,ou=people,dc=example,dc=com\nobjectClass: account\ncn:< file:///etc/passwd\n\n",
        person("last", ""),
    );
    let fixture = empty(&settings());
    let options = ImportOptions { source: "people file.ldif".into(), ..ImportOptions::default() };
    let error = import(&fixture, &text, &options).unwrap_err();
    let ImportError::Record { error, records } = error else { panic!("{error}") };
    assert_eq!((error.line, records), (14, 3));
    assert!(error.to_string().contains("uid=ada,ou=people"), "{error}");
    let unfinished = || fixture.directory.unfinished_import().unwrap();
    let Some(Unfinished { source, records: 3, .. }) = unfinished() else { panic!("3 are in") };
    assert_eq!(source, "people file.ldif");
    // The rest of it, others, and too few are not what is in; and nothing is forgotten.
    let (at, _) = text.match_indices("dn: ").nth(3).unwrap();
    for other in [&text[at..], &text[..at].replace("ada", "eve"), &text[..40], ""] {
        let options = ImportOptions { skip_records: 3, ..ImportOptions::default() };
        let error = import(&fixture, other, &options).unwrap_err();
        assert!(matches!(error, ImportError::Another { records: 3 }), "{error}");
        assert!(unfinished().is_some_and(|unfinished| unfinished.records == 3));
    }

    let report =
        import(&fixture, &text, &ImportOptions { skip_records: 3, ..keep_going() }).unwrap();
    assert_eq!((report.records, report.errors), (1, 4));
    let lines: Vec<u64> = report.first_errors.iter().map(|error| error.line).collect();
    assert_eq!(lines, [14, 20, 26, 31]);
    let dns: Vec<bool> = report.first_errors.iter().map(|error| error.dn.is_some()).collect();
    assert_eq!(dns, [true; 4]);
    assert_eq!(fixture.names("(uid=*)"), ["ada", "last"]);
    assert_eq!(fixture.directory.unfinished_import().unwrap(), None);

    let other = empty(&settings());
    let report = import(&other, &text, &keep_going()).unwrap();
    assert_eq!((report.records, report.errors), (4, 4));
    assert_eq!(exported(&other, None).matches("dn: ").count(), 4);
}

#[test]
fn a_person_makes_no_naming_context() {
    let fixture = empty(&settings());
    let text = format!("{TREE}dn: uid=ada,dc=exmaple\nobjectClass: account\nuid: ada\n");
    assert!(import(&fixture, &text, &ImportOptions::default()).is_err());
    assert_eq!(fixture.directory.naming_contexts(), [BASE]);
    let more = "dn: o=other\nobjectClass: organization\no: other\n";
    import(&fixture, more, &ImportOptions::default()).unwrap();
    assert_eq!(fixture.directory.naming_contexts(), [BASE, "o=other"]);
}

#[test]
fn children_may_come_before_those_above_them() {
    let (people, tree) = (person("ada", "") + &person("bob", ""), TREE);
    let mut blocks: Vec<&str> = tree.trim_end().split("\n\n").collect();
    blocks.reverse();
    let reversed = format!("{people}{}\n\n", blocks.join("\n\n"));
    let fixture = empty(&settings());
    let report = import(&fixture, &reversed, &ImportOptions::default()).unwrap();
    assert_eq!((report.records, report.errors), (4, 0));
    assert_eq!(report.notes.0[&Note::BeforeParent].count, 3);
    assert_eq!(fixture.directory.naming_contexts(), [BASE]);
    assert_eq!(fixture.names("(uid=*)"), ["ada", "bob"]);
    assert_eq!(fixture.directory.unfinished_import().unwrap(), None);
    // Nothing above them ever comes.
    let stray = person("cyd", "").replace(PEOPLE, "ou=nowhere,dc=example,dc=com");
    let ImportError::Record { error, .. } =
        import(&fixture, &stray, &ImportOptions::default()).unwrap_err()
    else {
        panic!("the record is at fault")
    };
    let missing = "the entry above it, \"ou=nowhere,dc=example,dc=com\", is neither";
    assert!(error.why.contains(missing) && error.line == 1, "{error}");
    // Records that wait when an import is stopped are there when it goes on.
    let fixture = empty(&settings());
    let broken = format!("{people}{}", TREE.replace("ou: people", "shoe: 42"));
    import(&fixture, &broken, &ImportOptions::default()).unwrap_err();
    let unfinished = fixture.directory.unfinished_import().unwrap().unwrap();
    assert_eq!(unfinished.records, 3);
    let options = ImportOptions { skip_records: 3, ..ImportOptions::default() };
    import(&fixture, &format!("{people}{TREE}"), &options).unwrap();
    assert_eq!(fixture.names("(uid=*)"), ["ada", "bob"]);
}

/// Other servers have databases whose suffix is a container; what is made here has its trees whole.
#[test]
fn a_container_begins_a_tree_unless_trees_are_to_be_whole() {
    let (_, below) = TREE.split_once("\n\n").unwrap();
    let text = format!("{below}{}{}", person("ada", ""), person("bob", ""));
    let fixture = empty(&settings());
    let report = import(&fixture, &text, &ImportOptions::default()).unwrap();
    assert_eq!((report.records, report.errors), (3, 0));
    assert_eq!(report.notes.0[&Note::Top].first, [PEOPLE]);
    assert!(!report.notes.0.contains_key(&Note::BeforeParent), "{:?}", report.notes);
    assert_eq!(fixture.directory.naming_contexts(), [PEOPLE]);

    let fixture = empty(&settings());
    let whole = ImportOptions { whole_trees: true, ..ImportOptions::default() };
    let why = import(&fixture, &text, &whole).unwrap_err().to_string();
    assert!(why.contains("the entry above it, \"dc=example,dc=com\", is neither"), "{why}");
    assert!(fixture.directory.naming_contexts().is_empty());
    let report = import(&fixture, &text, &ImportOptions { keep_going: true, ..whole }).unwrap();
    assert_eq!((report.records, report.errors), (0, 3));
    assert!(report.notes.0.is_empty(), "{:?}", report.notes);
    let missing = "\"dc=example,dc=com\"";
    assert!(report.first_errors.iter().all(|one| one.why.contains(missing)));
}

#[test]
fn what_is_there_twice_is_kept_once() {
    let fixture = empty(&settings());
    let ada = person("ada", "cn: ADA\ndescription: a\ndescription: b\ndescription: A\n");
    let text = format!("{TREE}{ada}{ada}");
    let report = import(&fixture, &text, &ImportOptions::default()).unwrap();
    assert_eq!((report.records, report.errors), (3, 0));
    // Twice in each of the two.
    assert_eq!(report.notes.0[&Note::ValueTwice].count, 4);
    assert_eq!(report.notes.0[&Note::EntryTwice].first, [format!("uid=ada,{PEOPLE}")]);
    let found = fixture.read(&format!("uid=ada,{PEOPLE}"), &["*"]);
    assert_eq!(found.values("description"), ["a", "b"]);
    // Another entry of the name is a loss, also one that has less.
    for other in ["cn: ADA\ndescription: c\n", "cn: ADA\ndescription: a\n", "cn: ADA\n"] {
        import(&fixture, &person("ada", other), &ImportOptions::default()).unwrap_err();
    }
}

#[test]
fn what_389_directory_server_lets_in_is_kept_and_can_be_changed() {
    let fixture = empty(&settings());
    let text = format!(
        "{TREE}dn: cn=\"cn=x,{BASE}\",{BASE}\nobjectClass: top\nobjectClass: ldapSubEntry\n\
         objectClass: cosTemplate\ncn: \"cn=x,{BASE}\"\ncosPriority: 1\n\n\
         dn: nsuniqueid=1,cn=gone,{BASE}\nobjectClass: person\nobjectClass: nsTombstone\n\
         cn: gone\nsn: gone\n\n"
    );
    let report = import(&fixture, &text, &ImportOptions::default()).unwrap();
    assert_eq!((report.records, report.errors), (3, 0));
    assert_eq!(report.notes.0[&Note::Structural].count, 1);
    assert_eq!(report.notes.0[&Note::Tombstone].count, 1);
    let dn = format!("cn=cn\\3Dx\\2C{},{BASE}", BASE.replace(',', "\\2C").replace('=', "\\3D"));
    let change = vec![change(ChangeOperation::Replace, "cosPriority", &["2"])];
    fixture.modify(&dn, change).unwrap();
    assert_eq!(fixture.read(&dn, &["cosPriority"]).values("cosPriority"), ["2"]);
}

/// slapcat writes structuralObjectClass, which must not hide what is wrong.
#[test]
fn a_class_that_is_not_known_is_named_whatever_else_is_there() {
    let fixture = empty(&settings());
    let odd = "dn: cn=odd,dc=example,dc=com\nobjectClass: oddThing\ncn: odd\n\
        structuralObjectClass: oddThing\n";
    let refused = import(&fixture, &format!("{TREE}{odd}"), &ImportOptions::default());
    let why = refused.unwrap_err().to_string();
    assert!(why.contains("object class oddThing is not known"), "{why}");
}

/// As 389 Directory Server has them.
#[test]
fn an_extensible_object_may_have_attributes_that_have_no_definition() {
    let fixture = empty(&settings());
    let mut text = TREE.to_owned();
    (0..30).for_each(|number| text.push_str(&person(&format!("u{number}"), "")));
    text.push_str(
        "dn: cn=free,dc=example,dc=com\nobjectClass: extensibleObject\nobjectClass: device\ncn: free\n\
         shoeSize: 42\nshoesize;lang-de: 42\nrawThing:: /w==\nnsUniqueId: 1-2\n\n\
         dn: cn=again,dc=example,dc=com\nobjectClass: extensibleObject\nobjectClass: device\n\
         cn: again\nShoeSize: 43\n\n",
    );
    text.push_str(&person("last", "shoeSize: 1\n"));
    let report = import(&fixture, &text, &keep_going()).unwrap();
    assert_eq!((report.records, report.errors), (34, 1));
    assert!(report.first_errors[0].why.contains("no object class"), "{:?}", report.first_errors);
    let defined = &report.notes.0[&Note::Defined];
    assert_eq!(
        (defined.count, defined.first.as_slice()),
        (2, &["rawThing".into(), "shoeSize".into()][..])
    );
    assert_eq!(fixture.names("(shoeSize=43)"), ["again"]);
    assert_eq!(fixture.names("(shoeSize=4*)").len(), 2);
    // They are the same wherever they are made, and go with an export.
    let first = exported(&fixture, None);
    let second = empty(&settings());
    assert_eq!(import(&second, &text, &keep_going()).unwrap().errors, 1);
    let definitions = |text: &str| {
        text.lines()
            .filter(|line| line.starts_with("# keyway: attr"))
            .collect::<Vec<_>>()
            .join("\n")
    };
    let made = definitions(&first);
    assert!(made.contains("( 2.25.") && made.contains("NAME 'shoeSize'"), "{made}");
    assert_eq!(definitions(&exported(&second, None)), made);
}

/// Many passwords are stored in no time, if that is wanted, and are verified.
#[test]
fn passwords_can_be_hashed_fast() {
    let fixture = empty(&settings());
    let text = format!("{TREE}{}{}", person("ada", "userPassword: secret\n"), person("bob", ""));
    let options = ImportOptions { fast_passwords: true, ..ImportOptions::default() };
    let report = import(&fixture, &text, &options).unwrap();
    assert_eq!((report.records, report.passwords_hashed), (4, 1));
    let credentials = fixture.directory.credentials(&format!("uid=ada,{PEOPLE}")).unwrap().unwrap();
    let [stored] = &credentials.passwords[..] else { panic!() };
    assert!(stored.starts_with(b"{SSHA512}") && stored.len() > 100);
    let exported = exported(&fixture, None);
    assert!(!exported.contains("secret"));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, max_shrink_iters: 100, ..Default::default() })]

    /// Groups of an import are at the committer together. Wherever it stops, and whatever waits for the entry above it
    /// then, nothing behind that place is in, and the rest follows when it goes on.
    #[test]
    fn an_import_that_stops_anywhere_goes_on_there(
        order in Just((0..60_usize).collect::<Vec<_>>()).prop_shuffle(),
        place in 0..60_usize,
        is_read in any::<bool>(),
    ) {
        // Units, each with people, in any order: many come before those above them.
        let record = |at: usize| match at % 6 {
            0 => format!("dn: ou=u{at},{BASE}\nobjectClass: organizationalUnit\n\n"),
            _ => person(&format!("p{at}"), "").replace(PEOPLE, &format!("ou=u{},{BASE}", at - at % 6)),
        };
        let top = format!("dn: {BASE}\nobjectClass: domain\n\n");
        let (before, behind) = order.split_at(place);
        let text = |ats: &[usize]| ats.iter().map(|at| record(*at)).collect::<String>();
        // One is wrong when it is read, the other when it is done.
        let wrong = match is_read {
            true => person("wrong", "shoe: 42\n"),
            false => format!("dn: {BASE}\nobjectClass: domain\ndescription: another\n\n"),
        };
        let (first, last) = (format!("{top}{}", text(before)), text(behind));
        let fixture = empty(&settings());
        import(&fixture, &format!("{first}{wrong}{last}"), &ImportOptions::default()).unwrap_err();
        let reached = fixture.directory.unfinished_import().unwrap().unwrap().records;
        prop_assert_eq!(reached, 1 + place as u64);
        let name = |at: &usize| format!("p{at}");
        let early: Vec<String> = before.iter().map(name).collect();
        let is_early = |found: &String| early.contains(found);
        prop_assert!(fixture.names("(uid=*)").iter().all(is_early));
        let options = ImportOptions { skip_records: reached, ..ImportOptions::default() };
        import(&fixture, &format!("{first}{last}"), &options).unwrap();
        let mut all: Vec<String> = (0..60).filter(|at| at % 6 != 0).map(|at| name(&at)).collect();
        all.sort();
        prop_assert_eq!(fixture.names("(uid=*)"), all);
        prop_assert_eq!(fixture.directory.unfinished_import().unwrap(), None);
    }
}
