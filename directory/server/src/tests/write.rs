//! Add, modify, delete and modify DN: what they do, and every code by which they refuse.

use super::*;
use crate::IndexKind::{Approximate, Equality, Presence, Substring};
use ResultCode::*;
use keyway_codec::message::ChangeOperation as Do;

fn ada() -> String {
    format!("uid=ada,{PEOPLE}")
}

#[test]
fn an_add_completes_the_entry() {
    let fixture = filled();
    let dn = "uid=Eve+CN=Eve Adams, OU=People, dc=example,dc=com";
    fixture.add(dn, &[("SN", &["Adams"]), ("objectclass", &["InetOrgPerson"])]);
    let found = fixture.read(dn, &["*", "structuralObjectClass"]);
    assert_eq!(found.entries[0].0, format!("uid=Eve+cn=Eve Adams,{PEOPLE}"));
    let mut classes = found.values("objectClass");
    assert_eq!(classes.remove(0), "InetOrgPerson");
    classes.sort();
    assert_eq!(classes, ["organizationalPerson", "person", "top"]);
    assert_eq!(found.values("uid"), ["Eve"]);
    assert_eq!(found.values("cn"), ["Eve Adams"]);
    assert_eq!(found.values("structuralObjectClass"), ["inetOrgPerson"]);
    assert_eq!(fixture.names("(&(objectClass=person)(uid=eve))"), ["Eve+cn=Eve Adams"]);
    let other_order = "cn=eve  adams+uid=EVE,ou=people,dc=example,dc=com";
    assert_eq!(fixture.read(other_order, &["1.1"]).entries.len(), 1);
}

#[test]
fn adds_that_are_refused() {
    let fixture = filled();
    let person = |more: &[(&'static str, &'static [&'static str])]| {
        let mut all: Vec<(&str, &[&str])> =
            vec![("objectClass", &["inetOrgPerson"]), ("cn", &["x"]), ("sn", &["x"])];
        all.extend(more);
        all
    };
    let refused = |dn: &str, attributes: &[(&str, &[&str])]| {
        let result = fixture.try_add(dn, attributes);
        assert!(result.is_err(), "{dn} {attributes:?}");
        code(result)
    };
    let new = &format!("uid=new,{PEOPLE}");
    assert_eq!(refused(&ada(), &person(&[])), EntryAlreadyExists);
    assert_eq!(refused("UID = Ada, OU=PEOPLE,dc=example,dc=com", &person(&[])), EntryAlreadyExists);
    assert_eq!(refused("uid=x,ou=nowhere,dc=example,dc=com", &person(&[])), NoSuchObject);
    assert_eq!(refused("dc=elsewhere", &person(&[])), NoSuchObject);
    assert_eq!(refused("", &person(&[])), UnwillingToPerform);
    assert_eq!(refused("cn=schema", &person(&[])), UnwillingToPerform);
    assert_eq!(refused("uid=new,,dc=x", &person(&[])), InvalidDnSyntax);
    assert_eq!(refused(&format!("unheard-of=x,{PEOPLE}"), &person(&[])), UndefinedAttributeType);
    assert_eq!(refused(&format!("uid=a+uid=b,{PEOPLE}"), &person(&[])), NamingViolation);
    assert_eq!(refused(&format!("jpegPhoto=a,{PEOPLE}"), &person(&[])), NamingViolation);
    assert_eq!(refused(&format!("userPassword=a,{PEOPLE}"), &person(&[])), NamingViolation);
    let uuid = "entryUUID=597ae2f6-16a6-1027-98f4-d28b5365dc14";
    assert_eq!(refused(&format!("{uuid},{PEOPLE}"), &person(&[])), ConstraintViolation);
    assert_eq!(refused(new, &person(&[("unheard-of", &["x"])])), UndefinedAttributeType);
    assert_eq!(refused(new, &person(&[("mail;option", &["x"])])), UndefinedAttributeType);
    assert_eq!(refused(new, &person(&[("dc", &["x"])])), ObjectClassViolation);
    assert_eq!(refused(new, &person(&[("mail", &["a@b", "A@B"])])), AttributeOrValueExists);
    assert_eq!(refused(new, &person(&[("manager", &["absent"])])), InvalidAttributeSyntax);
    let two_languages: &[&str] = &["de", "en"];
    assert_eq!(refused(new, &person(&[("preferredLanguage", two_languages)])), ConstraintViolation);
    let stamps: [(&str, &[&str]); 4] = [
        ("createTimestamp", &["20200101000000Z"]),
        ("creatorsName", &["cn=me"]),
        ("entryUUID", &["597ae2f6-16a6-1027-98f4-d28b5365dc14"]),
        ("numSubordinates", &["3"]),
    ];
    for stamp in stamps {
        let mut attributes = person(&[]);
        attributes.push(stamp);
        assert_eq!(refused(new, &attributes), ConstraintViolation, "{stamp:?}");
    }
    assert_eq!(
        refused(new, &[("objectClass", &["inetOrgPerson"]), ("sn", &["x"])]),
        ObjectClassViolation
    );
    assert_eq!(refused(new, &[("cn", &["x"]), ("sn", &["x"])]), ObjectClassViolation);
    let classes = |names: &'static [&'static str]| -> [(&str, &[&str]); 3] {
        [("objectClass", names), ("cn", &["x"]), ("sn", &["x"])]
    };
    assert_eq!(refused(new, &classes(&["person", "unheardOf"])), ObjectClassViolation);
    assert_eq!(refused(new, &classes(&["top"])), ObjectClassViolation);
    assert_eq!(refused(new, &classes(&["posixAccount"])), ObjectClassViolation);
    assert_eq!(refused(new, &classes(&["person", "device"])), ObjectClassViolation);
    assert_eq!(fixture.names("(objectClass=*)").len(), 20, "nothing was added");
    let matched = fixture.try_add("uid=x,ou=nowhere,dc=example,dc=com", &person(&[])).unwrap_err();
    assert_eq!(matched.matched_dn, BASE);
}

#[test]
fn modifies_in_their_order_or_not_at_all() {
    let fixture = filled();
    let dn = &ada();
    fixture
        .modify(
            dn,
            vec![
                change(Do::Add, "description", &["one", "two"]),
                change(Do::Delete, "Description", &["ONE"]),
                change(Do::Add, "2.5.4.13", &["three"]),
                change(Do::Replace, "mail", &["ada@example.org"]),
                change(Do::Delete, "givenName", &[]),
                change(Do::Replace, "title", &[]),
                change(Do::Increment, "uidNumber", &["41"]),
            ],
        )
        .unwrap();
    let found = fixture.read(dn, &["*", "modifiersName"]);
    assert_eq!(found.values("description"), ["two", "three"]);
    assert_eq!(found.values("mail"), ["ada@example.org"]);
    assert_eq!(found.values("givenName"), [""; 0]);
    assert_eq!(found.values("uidNumber"), ["1041"]);
    for (filter, expected) in [
        ("(mail=ada@example.org)", &["ada"][..]),
        ("(mail=ada@example.com)", &[]),
        ("(givenName=ada)", &[]),
        ("(givenName=*d*)", &["claude", "donald", "edsger", "hedy"]),
        ("(uidNumber=1041)", &["ada"]),
        ("(uidNumber=1000)", &[]),
    ] {
        assert_eq!(fixture.names(filter), expected, "{filter}");
    }
    let half = vec![
        change(Do::Replace, "mail", &["else@example.org"]),
        change(Do::Delete, "description", &["four"]),
    ];
    assert_eq!(code(fixture.modify(dn, half)), NoSuchAttribute);
    assert_eq!(fixture.read(dn, &["mail"]).values("mail"), ["ada@example.org"]);
}

#[test]
fn modifies_that_are_refused() {
    let fixture = filled();
    // Without a change there is nothing that a right could be for.
    for dn in [&*ada(), "cn=schema", "cn=nowhere"] {
        let refused = fixture.modify(dn, Vec::new()).err().map(|failure| failure.code);
        assert_eq!(refused, Some(ResultCode::ProtocolError), "{dn}");
    }
    let dn = &ada();
    let refused = |operation, name: &str, values: &[&str]| {
        let result = fixture.modify(dn, vec![change(operation, name, values)]);
        assert!(result.is_err(), "{operation:?} {name} {values:?}");
        code(result)
    };
    assert_eq!(refused(Do::Add, "mail", &["ADA@example.com"]), AttributeOrValueExists);
    assert_eq!(refused(Do::Add, "mail", &["a@b", "A@b"]), AttributeOrValueExists);
    assert_eq!(refused(Do::Replace, "mail", &["a@b", "A@b"]), AttributeOrValueExists);
    assert_eq!(refused(Do::Add, "mail", &[]), ProtocolError);
    assert_eq!(refused(Do::Delete, "mail", &["absent@example.com"]), NoSuchAttribute);
    assert_eq!(refused(Do::Delete, "mail", &["ada@example.com"; 2]), NoSuchAttribute);
    assert_eq!(refused(Do::Delete, "title", &[]), NoSuchAttribute);
    assert_eq!(refused(Do::Delete, "title", &["x"]), NoSuchAttribute);
    assert_eq!(refused(Do::Delete, "uid", &[]), NotAllowedOnRdn);
    assert_eq!(refused(Do::Delete, "uid", &["Ada"]), NotAllowedOnRdn);
    assert_eq!(refused(Do::Replace, "uid", &["other"]), NotAllowedOnRdn);
    assert_eq!(refused(Do::Delete, "sn", &[]), ObjectClassViolation);
    assert_eq!(refused(Do::Add, "dc", &["x"]), ObjectClassViolation);
    assert_eq!(refused(Do::Delete, "objectClass", &[]), ObjectClassViolation);
    assert_eq!(refused(Do::Delete, "objectClass", &["posixAccount"]), ObjectClassViolation);
    assert_eq!(refused(Do::Add, "objectClass", &["unheardOf"]), ObjectClassViolation);
    assert_eq!(refused(Do::Add, "objectClass", &["device"]), ObjectClassViolation);
    let classes = ["person", "posixAccount", "uidObject", "extensibleObject"];
    assert_eq!(refused(Do::Replace, "objectClass", &classes), ObjectClassModsProhibited);
    assert_eq!(refused(Do::Add, "unheard-of", &["x"]), UndefinedAttributeType);
    assert_eq!(refused(Do::Add, "manager", &["x"]), InvalidAttributeSyntax);
    assert_eq!(refused(Do::Replace, "uidNumber", &["x"]), InvalidAttributeSyntax);
    assert_eq!(refused(Do::Add, "uidNumber", &["7"]), ConstraintViolation);
    assert_eq!(refused(Do::Replace, "modifyTimestamp", &["20200101000000Z"]), ConstraintViolation);
    assert_eq!(refused(Do::Delete, "entryUUID", &[]), ConstraintViolation);
    assert_eq!(refused(Do::Increment, "uidNumber", &[]), ProtocolError);
    assert_eq!(refused(Do::Increment, "uidNumber", &["1", "2"]), ProtocolError);
    assert_eq!(refused(Do::Increment, "uidNumber", &["x"]), ConstraintViolation);
    assert_eq!(refused(Do::Increment, "cn", &["1"]), ConstraintViolation);
    let most = i128::MAX.to_string();
    assert_eq!(refused(Do::Increment, "uidNumber", &[&most]), ConstraintViolation);
    fixture.modify(dn, vec![change(Do::Replace, "jpegPhoto", &["\u{7f}", "y"])]).unwrap();
    assert_eq!(refused(Do::Add, "jpegPhoto", &["z"]), InappropriateMatching);
    assert_eq!(refused(Do::Delete, "jpegPhoto", &["y"]), InappropriateMatching);
    fixture.modify(dn, vec![change(Do::Delete, "jpegPhoto", &[])]).unwrap();

    let elsewhere =
        |dn: &str| code(fixture.modify(dn, vec![change(Do::Replace, "description", &["x"])]));
    assert_eq!(elsewhere("uid=absent,ou=people,dc=example,dc=com"), NoSuchObject);
    assert_eq!(elsewhere("dc=elsewhere"), NoSuchObject);
    assert_eq!(elsewhere(""), UnwillingToPerform);
    assert_eq!(elsewhere("cn=schema"), UnwillingToPerform);
    assert_eq!(elsewhere("x"), InvalidDnSyntax);
    let absent = change(Do::Increment, "gidNumber", &["1"]);
    assert_eq!(code(fixture.modify(PEOPLE, vec![absent])), NoSuchAttribute);
}

#[test]
fn classes_can_be_added_and_taken_away() {
    let fixture = filled();
    let dn = &ada();
    let add = vec![
        change(Do::Add, "objectClass", &["shadowAccount"]),
        change(Do::Add, "shadowMax", &["90"]),
    ];
    fixture.modify(dn, add).unwrap();
    assert_eq!(fixture.names("(objectClass=shadowAccount)"), ["ada"]);
    let class_only = vec![change(Do::Delete, "objectClass", &["shadowAccount"])];
    assert_eq!(code(fixture.modify(dn, class_only.clone())), ObjectClassViolation);
    let both = class_only.into_iter().chain([change(Do::Delete, "shadowMax", &[])]).collect();
    fixture.modify(dn, both).unwrap();
    assert_eq!(fixture.names("(objectClass=shadowAccount)"), [""; 0]);
    // A superclass comes back as long as a class derives from it.
    fixture.modify(dn, vec![change(Do::Delete, "objectClass", &["person", "top"])]).unwrap();
    assert!(fixture.names("(objectClass=person)").contains(&"ada".to_owned()));
}

#[test]
fn a_key_that_two_values_give_stays_with_the_other() {
    let fixture = filled_with(&Settings {
        indexes: vec![crate::IndexSetting::new(
            "name",
            &[Equality, Presence, Substring, Approximate],
        )],
        ..settings()
    });
    let dn = &ada();
    fixture.modify(dn, vec![change(Do::Add, "givenName", &["Lovelace"])]).unwrap();
    fixture.modify(dn, vec![change(Do::Delete, "givenName", &["Lovelace"])]).unwrap();
    assert_eq!(fixture.names("(name=lovelace)"), ["ada"]);
    assert_eq!(fixture.names("(name=*vela*)"), ["ada"]);
    assert_eq!(fixture.names("(name~=lovelase)"), ["ada"]);
    fixture.modify(dn, vec![change(Do::Replace, "sn", &["King"])]).unwrap();
    fixture.modify(dn, vec![change(Do::Replace, "cn", &["Ada King"])]).unwrap();
    assert_eq!(fixture.names("(name=*vela*)"), [""; 0]);
    assert_eq!(fixture.names("(name=king)"), ["ada"]);
    fixture.directory.check(&mut |_, _| {}).unwrap();
}

#[test]
fn deletes() {
    let fixture = filled();
    assert_eq!(code(fixture.delete(PEOPLE)), NotAllowedOnNonLeaf);
    assert_eq!(code(fixture.delete(BASE)), NotAllowedOnNonLeaf);
    let missing = fixture.delete("uid=absent,ou=people,dc=example,dc=com").unwrap_err();
    assert_eq!((missing.code, missing.matched_dn.as_str()), (NoSuchObject, PEOPLE));
    assert_eq!(code(fixture.delete("x")), InvalidDnSyntax);
    for own in ["", "cn=schema", "cn=keyway", "CN=Admin,cn=Keyway"] {
        assert_eq!(code(fixture.delete(own)), UnwillingToPerform, "{own}");
    }
    fixture.delete("UID=ada, OU=people,dc=example,dc=com").unwrap();
    assert_eq!(code(fixture.delete(&ada())), NoSuchObject);
    assert_eq!(fixture.names("(uid=ada)"), [""; 0]);
    assert_eq!(fixture.read(PEOPLE, &["+"]).values("numSubordinates"), ["13"]);
    let names = fixture.names("(objectClass=person)");
    for uid in names {
        fixture.delete(&format!("uid={uid},{PEOPLE}")).unwrap();
    }
    for dn in ["few", "some", "all"].map(|cn| format!("cn={cn},{GROUPS}")) {
        fixture.delete(&dn).unwrap();
    }
    for dn in [PEOPLE, GROUPS, BASE] {
        fixture.delete(dn).unwrap();
    }
    // The naming context is still ours, and its top can be added again.
    assert_eq!(fixture.directory.naming_contexts(), [BASE]);
    assert_eq!(fixture.directory.export(None, &mut Vec::new(), &mut |_| {}).unwrap(), 0);
    fixture.add(BASE, &[("objectClass", &["domain"])]);
}

#[test]
fn certificates_are_one_set_of_values_with_binary_and_without() {
    let fixture = filled();
    let certificate = "\u{30}\u{02}\u{05}\u{00}";
    let stored = ["userCertificate;binary"];
    for (given, otherwise) in
        [("userCertificate", "usercertificate;BINARY"), ("2.5.4.36;binary", "2.5.4.36")]
    {
        fixture.modify(&ada(), vec![change(Do::Add, given, &[certificate])]).unwrap();
        let again = fixture.modify(&ada(), vec![change(Do::Add, otherwise, &[certificate])]);
        assert_eq!(code(again), AttributeOrValueExists);
        for asked in ["userCertificate", "userCertificate;binary"] {
            assert_eq!(fixture.read(&ada(), &[asked]).descriptions(), stored);
            assert_eq!(fixture.names(&format!("({asked}=*)")), ["ada"]);
        }
        fixture.modify(&ada(), vec![change(Do::Delete, otherwise, &[])]).unwrap();
        assert_eq!(fixture.names("(userCertificate=*)"), [""; 0]);
    }
    let unknown = fixture.modify(&ada(), vec![change(Do::Replace, "cn;binary", &["x"])]);
    assert_eq!(code(unknown), UndefinedAttributeType);
}

#[test]
fn renames() {
    let fixture = filled();
    fixture.rename(&ada(), "UID=countess", true, None).unwrap();
    assert_eq!(fixture.names("(uid=countess)"), ["countess"]);
    assert_eq!(fixture.names("(uid=ada)"), [""; 0]);
    let countess = &format!("uid=countess,{PEOPLE}");
    assert_eq!(fixture.read(countess, &["uid"]).values("uid"), ["countess"]);
    fixture.rename(countess, "cn=Ada King", false, Some(GROUPS)).unwrap();
    let king = &format!("cn=Ada King,{GROUPS}");
    let found = fixture.read(king, &["uid", "cn", "entryDN"]);
    assert_eq!(found.values("uid"), ["countess"]);
    assert_eq!(found.values("cn"), ["Ada Lovelace", "Ada King"]);
    assert_eq!(found.values("entryDN"), [king.as_str()]);
    // The same name, spelled otherwise: the value is spelled as the name unless the old one is
    // kept.
    fixture.rename(king, "cn=Ada KING", false, None).unwrap();
    let found = fixture.read(king, &["cn"]);
    assert_eq!(found.entries[0].0, format!("cn=Ada KING,{GROUPS}"));
    assert_eq!(found.values("cn"), ["Ada Lovelace", "Ada King"]);
    fixture.rename(king, "cn=ADA  KING", true, None).unwrap();
    let found = fixture.read(king, &["cn"]);
    assert_eq!(found.entries[0].0, format!("cn=ADA  KING,{GROUPS}"));
    assert_eq!(found.values("cn"), ["Ada Lovelace", "ADA  KING"]);
    fixture.rename(GROUPS, "ou=teams", true, Some(PEOPLE)).unwrap();
    let moved = &format!("ou=teams,{PEOPLE}");
    assert_eq!(fixture.read(moved, &["+"]).values("numSubordinates"), ["4"]);
    let request = SearchRequest { base: PEOPLE, ..request("(cn=ada king)") };
    assert_eq!(fixture.search(&request).entries[0].0, format!("cn=ADA  KING,{moved}"));
    fixture.directory.check(&mut |_, _| {}).unwrap();
    assert_eq!(fixture.names("(objectClass=*)").len(), 20);
    assert_eq!(fixture.read(BASE, &["+"]).values("numSubordinates"), ["1"]);
}

#[test]
fn renames_that_are_refused() {
    let fixture = filled();
    let refused = |dn: &str, rdn: &str, superior: Option<&str>| {
        let result = fixture.rename(dn, rdn, true, superior);
        assert!(result.is_err(), "{dn} {rdn} {superior:?}");
        code(result)
    };
    let dn = &ada();
    assert_eq!(refused(dn, "uid=ALAN", None), EntryAlreadyExists);
    assert_eq!(refused(dn, "uid=a,dc=b", None), InvalidDnSyntax);
    assert_eq!(refused(dn, "", None), InvalidDnSyntax);
    assert_eq!(refused(dn, "unheard-of=x", None), UndefinedAttributeType);
    assert_eq!(refused(dn, "uid=a+uid=b", None), NamingViolation);
    assert_eq!(refused(dn, "jpegPhoto=x", None), NamingViolation);
    assert_eq!(refused(dn, "userPassword=x", None), NamingViolation);
    assert_eq!(refused(dn, "dc=x", None), ObjectClassViolation);
    let uuid = "entryUUID=597ae2f6-16a6-1027-98f4-d28b5365dc14";
    assert_eq!(refused(dn, uuid, None), ConstraintViolation);
    assert_eq!(refused(dn, "uidNumber=7", None), ObjectClassViolation, "posixAccount needs uid");
    assert_eq!(refused(dn, "uid=x", Some("ou=nowhere,dc=example,dc=com")), NoSuchObject);
    assert_eq!(refused(dn, "uid=x", Some("dc=elsewhere")), NoSuchObject);
    assert_eq!(refused(dn, "uid=x", Some("x")), InvalidDnSyntax);
    assert_eq!(refused(dn, "uid=x", Some("")), NamingViolation);
    assert_eq!(refused(dn, "uid=x", Some("cn=schema")), NamingViolation);
    assert_eq!(refused(dn, "uid=x", Some("cn=keyway")), AffectsMultipleDsas);
    assert_eq!(refused(dn, "uid=x", Some(dn)), UnwillingToPerform);
    assert_eq!(refused(PEOPLE, "ou=people", Some(dn)), UnwillingToPerform);
    assert_eq!(refused(BASE, "dc=other", None), UnwillingToPerform);
    assert_eq!(refused("cn=admin,cn=keyway", "cn=x", None), UnwillingToPerform);
    assert_eq!(refused("uid=absent,ou=people,dc=example,dc=com", "uid=x", None), NoSuchObject);
    assert_eq!(fixture.names("(uid=ada)"), ["ada"]);
    // The old value stays if it is asked to, and a single-valued attribute cannot have both.
    fixture.modify(dn, vec![change(Do::Add, "employeeNumber", &["1"])]).unwrap();
    assert_eq!(code(fixture.rename(dn, "employeeNumber=2", false, None)), ConstraintViolation);
}

#[test]
fn long_and_strange_names() {
    let fixture = filled();
    let long = "x".repeat(5_000);
    let names = [
        format!("cn={long}"),
        format!("cn={long}y"),
        "cn=comma\\, plus\\+ quote\\\" sharp\\#".to_owned(),
        "cn=\\ blank at both ends\\ ".to_owned(),
        "cn=#0403414243".to_owned(),
        "cn=STRASSE".to_owned(),
        "cn=\u{65e5}\u{672c}".to_owned(),
    ];
    for name in &names {
        let dn = format!("{name},{GROUPS}");
        fixture.add(&dn, &[("objectClass", &["device"])]);
        let found = fixture.read(&dn, &["cn"]);
        assert_eq!(found.entries.len(), 1, "{name}");
        // The name that is returned names the same entry.
        let returned = found.entries[0].0.clone();
        assert_eq!(fixture.read(&returned, &["cn"]).entries[0].0, returned);
        let twice = fixture.try_add(&returned, &[("objectClass", &["device"])]);
        assert_eq!(code(twice), EntryAlreadyExists);
    }
    let sharp = format!("cn=stra\u{df}e,{GROUPS}");
    assert_eq!(fixture.read(&sharp, &["cn"]).values("cn"), ["STRASSE"]);
    let abc = format!("cn=abc,{GROUPS}");
    assert_eq!(fixture.read(&abc, &["cn"]).values("cn"), ["ABC"]);
    assert_eq!(fixture.names(&format!("(cn={long})")).len(), 1);
    assert_eq!(fixture.names("(cn=xxx*)").len(), 2);
    assert_eq!(fixture.names("(cn=*xxy)").len(), 1);
}

#[test]
fn a_member_of_a_large_group_comes_and_goes() {
    let fixture = filled();
    let members: Vec<String> = (0..300).map(|n| format!("uid=m{n},{PEOPLE}")).collect();
    let mut members: Vec<&str> = members.iter().map(String::as_str).collect();
    let dn = &format!("cn=large,{GROUPS}");
    fixture.add(dn, &[("objectClass", &["groupOfNames"]), ("member", &members)]);
    let edit = |operation, value: &str| {
        code(fixture.modify(dn, vec![change(operation, "member", &[value])]))
    };
    let new = format!("uid=new,{PEOPLE}");
    assert_eq!(edit(Do::Add, &new), Success);
    assert_eq!(edit(Do::Add, &new.to_uppercase()), AttributeOrValueExists);
    assert_eq!(edit(Do::Add, "UID=M17,ou=people, dc=example,dc=com"), AttributeOrValueExists);
    assert_eq!(edit(Do::Delete, members[5]), Success);
    assert_eq!(edit(Do::Delete, members[5]), NoSuchAttribute);
    assert_eq!(edit(Do::Delete, &members[6].to_uppercase()), Success);
    assert_eq!(edit(Do::Add, members[6]), Success);
    // An index speaks of the entry as it was before the first of these.
    let twice = vec![
        change(Do::Add, "member", &["uid=twice,dc=example"]),
        change(Do::Add, "member", &["uid=TWICE,dc=example"]),
    ];
    assert_eq!(code(fixture.modify(dn, twice)), AttributeOrValueExists);
    let both = change(Do::Add, "member", &["uid=two,dc=example", "uid=TWO,dc=example"]);
    assert_eq!(code(fixture.modify(dn, vec![both])), AttributeOrValueExists);
    members.remove(5);
    members.push(&new);
    members.sort_unstable();
    let mut held = fixture.read(dn, &["member"]).values("member");
    held.sort();
    assert_eq!(held, members);
    let groups = |member: &str| fixture.names(&format!("(member={member})"));
    assert_eq!(groups(&new), ["large"]);
    assert_eq!(groups(&format!("uid=m5,{PEOPLE}")), [""; 0]);
    assert_eq!(groups(&format!("uid=m6,{PEOPLE}")), ["large"]);
    fixture.directory.check(&mut |_, _| {}).unwrap();
}
