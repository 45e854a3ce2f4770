//! Rules that entries hold.

use super::*;
use crate::access::{Origin, Place, Question, Rights, Rule, What, Who};

/// No subject but the administrator may do anything, but for what entries say.
fn closed() -> Fixture {
    filled_with(&Settings { rules: Vec::new(), ..settings() })
}

fn put(fixture: &Fixture, dn: &str, rules: &[&str]) -> Result<WriteDone, Failure> {
    fixture.modify(dn, vec![change(ChangeOperation::Replace, "keywayAccessRule", rules)])
}

fn sees(fixture: &Fixture, subject: &Subject) -> Vec<String> {
    match fixture.run(subject, &request("(objectClass=*)"), &RequestControls::default()) {
        Ok(found) => found.names(),
        Err(failure) => {
            assert_eq!(failure.code, ResultCode::InsufficientAccessRights);
            Vec::new()
        }
    }
}

const READ: &str = r#"who = "users", rights = ["read", "search"]"#;

#[test]
fn a_rule_holds_from_its_entry_down_and_at_once() {
    let fixture = closed();
    let ada = fixture.user("ada");
    assert_eq!(sees(&fixture, &ada), [""; 0]);
    put(&fixture, PEOPLE, &[READ]).unwrap();
    assert_eq!(sees(&fixture, &ada).len(), 15);
    for (scope, count) in [("base", 1), ("one", 14), ("children", 14), ("sub", 15)] {
        put(&fixture, PEOPLE, &[&format!("{READ}, scope = \"{scope}\"")]).unwrap();
        assert_eq!(sees(&fixture, &ada).len(), count, "{scope}");
    }
    // It goes with its entry.
    let people = "ou=humans,dc=example,dc=com";
    fixture.rename(PEOPLE, "ou=humans", true, None).unwrap();
    let ada = fixture.directory.credentials(&format!("uid=ada,{people}")).unwrap().unwrap().subject;
    assert_eq!(sees(&fixture, &ada).len(), 15);
    let device: [(&str, &[&str]); 2] =
        [("objectClass", &["device"]), ("keywayAccessRule", &[READ])];
    fixture.add(&format!("cn=x,{GROUPS}"), &device);
    assert_eq!(sees(&fixture, &ada).len(), 16);
    fixture.delete(&format!("cn=x,{GROUPS}")).unwrap();
    assert_eq!(sees(&fixture, &ada).len(), 15);
    put(&fixture, people, &[]).unwrap();
    assert_eq!(sees(&fixture, &ada), [""; 0]);
}

#[test]
fn rules_outlast_a_restart_other_settings_and_an_export() {
    let fixture = closed();
    put(&fixture, PEOPLE, &[READ]).unwrap();
    let mut ldif = Vec::new();
    fixture.directory.export(None, &mut ldif, &mut |_| ()).unwrap();
    let Fixture { directory, folder } = fixture;
    directory.close().unwrap();
    let settings = Settings { rules: Vec::new(), ..settings() };
    let directory = Directory::open(store(&folder), &settings, engine()).unwrap();
    let fixture = Fixture { directory, folder };
    let ada = fixture.user("ada");
    assert_eq!(sees(&fixture, &ada).len(), 15);
    let look = Rights::READ | Rights::SEARCH;
    let all = crate::access::Attributes::All;
    let rules = vec![Rule::new(Who::Owner, What::Only(Place::Data), all, look)];
    fixture.directory.reconfigure(&Settings { rules, ..settings.clone() }).unwrap();
    assert_eq!(sees(&fixture, &ada).len(), 15);

    let other = empty(&settings);
    let options = crate::ImportOptions::default();
    other.directory.import(&mut ldif.as_slice(), &options, &mut |_| ()).unwrap();
    let ada = other.user("ada");
    assert_eq!(sees(&other, &ada).len(), 15);
}

#[test]
fn a_bad_rule_is_refused_with_the_place_of_its_fault() {
    let fixture = filled();
    let refused = |rule: &str| {
        let failure = put(&fixture, PEOPLE, &[READ, rule]).unwrap_err();
        (failure.code, failure.diagnostic)
    };
    for (rule, expected) in [
        ("", "it is empty"),
        (r#"who = "users""#, "character 1: missing field `rights`"),
        (
            r#"who = "me", rights = ["read"]"#,
            "value 1 of attribute keywayAccessRule is no access rule: character 7: \"me\" is not one of",
        ),
        (r#"who = "users", rights = ["rule"]"#, "character 26: \"rule\" is not one of"),
        (r#"who = "users", rigths = ["read"]"#, "character 16: unknown field `rigths`"),
        (r#"who = "users", rights = ["read"], below = "dc=x""#, "put it into the one"),
        (r#"who = "users", rights = ["read"], what = "system""#, "others go into keyway.toml"),
        (r#"who = "users", rights = ["read"], scope = "all""#, "\"all\" is not one of base, one"),
        (r#"who = "users", rights = ["read"], filter = "(cn""#, "character 44: "),
        (r#"rights = ["read"]"#, "say which users it is for"),
        ("who = \"users\", rights = [\"read\"] }\nother = { x = 1", "unknown field `other`"),
        ("who = \"users\", rights = [\"read\"] # all", "character "),
        (&format!("{READ}, over = \"{}\"", "x".repeat(16 << 10)), "longer than 16384 bytes"),
        (&format!("x = {}", "[".repeat(4096)), "character "),
    ] {
        let (code, why) = refused(rule);
        assert_eq!(code, ResultCode::InvalidAttributeSyntax, "{rule}: {why}");
        assert!(why.contains(expected), "{rule}: {why}");
    }
    for (rule, expected) in [
        (
            r#"who = "users", rights = ["read"], attributes = ["shoe"]"#,
            "attribute shoe is not known",
        ),
        (r#"who = "users", rights = ["read"], filter = "(shoe=1)""#, "filter (shoe=1)"),
        (r#"named_by = ["cn"], rights = ["read"]"#, "cn are no DNs"),
        (
            r#"who = "users", rights = ["read"], filter = "(!(manager:inChainMatch:=cn=x))""#,
            "it follows names",
        ),
    ] {
        let (code, why) = refused(rule);
        assert_eq!(code, ResultCode::UnwillingToPerform, "{rule}: {why}");
        assert!(why.contains(expected), "{rule}: {why}");
    }
    let system = put(&fixture, "cn=admin,cn=keyway", &[READ]);
    assert_eq!(code(system), ResultCode::UnwillingToPerform);
    let named = fixture.try_add(
        &format!("keywayAccessRule=x,{PEOPLE}"),
        &[("objectClass", &["device"]), ("cn", &["x"])],
    );
    assert_eq!(code(named), ResultCode::NamingViolation);
    let many: Vec<String> = (0..257).map(|at| format!("{READ}, filter = \"(uid={at})\"")).collect();
    let many: Vec<&str> = many.iter().map(String::as_str).collect();
    let (code, why) =
        put(&fixture, PEOPLE, &many).map_err(|why| (why.code, why.diagnostic)).unwrap_err();
    assert_eq!(code, ResultCode::UnwillingToPerform);
    assert!(why.contains("more than 256 access rules in entries"), "{why}");
    put(&fixture, PEOPLE, &many[..256]).unwrap();
}

#[test]
fn only_subjects_of_a_rule_that_names_it_write_and_read_rules() {
    let rule = |text: &str| Rule::of_value(keyway_store::EntryId::ROOT, text.as_bytes()).unwrap();
    let plain = |text: &str| Rule { origin: Origin::BuiltIn, ..rule(text) };
    let rules = vec![
        plain(r#"who = "users", rights = ["read", "search", "write", "add", "delete"]"#),
        plain(
            r#"dn = ["uid=kurt,ou=people,dc=example,dc=com"], attributes = ["keywayAccessRule"], rights = ["read", "write"]"#,
        ),
    ];
    let fixture = filled_with(&Settings { rules, ..settings() });
    put(&fixture, PEOPLE, &[READ]).unwrap();
    let (ada, kurt) = (fixture.user("ada"), fixture.user("kurt"));
    let shown = |subject: &Subject| {
        fixture.read_as(subject, PEOPLE, &["*", "+"]).values("keywayAccessRule").len()
    };
    assert_eq!((shown(&ada), shown(&kurt)), (0, 1));
    let controls = RequestControls::default();
    let write = |subject: &Subject| {
        let all = r#"who = "users", rights = ["all"]"#;
        let replace = vec![change(ChangeOperation::Replace, "keywayAccessRule", &[all])];
        code(fixture.modify_as(subject, GROUPS, replace, &controls))
    };
    let add = |subject: &Subject, cn: &str| {
        let device: [(&str, &[&str]); 2] =
            [("objectClass", &["device"]), ("keywayAccessRule", &[READ])];
        code(fixture.add_as(subject, &format!("cn={cn},{PEOPLE}"), &device, &controls))
    };
    let denied = ResultCode::InsufficientAccessRights;
    assert_eq!((write(&ada), add(&ada, "a")), (denied, denied));
    assert_eq!((add(&kurt, "b"), write(&kurt)), (ResultCode::Success, ResultCode::Success));
}

#[test]
fn an_explanation_names_the_entry() {
    let fixture = closed();
    put(&fixture, PEOPLE, &[READ]).unwrap();
    let ada = format!("uid=ada,{PEOPLE}");
    let question = Question { dn: &ada, right: Rights::READ, attribute: Some("cn") };
    let found = fixture.directory.explain(&fixture.user("kurt"), &question).unwrap();
    let granting = found.iter().find(|one| one.grants()).unwrap();
    assert_eq!(granting.entry.as_deref(), Some(PEOPLE));
    assert_eq!(
        granting.rule.to_string(),
        "users: read, search all attributes (data, from the rule's entry)"
    );
    let question = Question { dn: &ada, right: Rights::READ, attribute: Some("userPassword") };
    let found = fixture.directory.explain(&fixture.user("kurt"), &question).unwrap();
    assert!(
        found.iter().any(|one| one.why_not == ["userPassword is secret, and it does not name it"])
    );
    assert_eq!(fixture.directory.who_can(&question, true).unwrap().len(), 1);
}

#[test]
fn no_user_reads_secrets_whatever_the_sets() {
    let fixture = filled();
    let snapshot = fixture.directory.snapshot();
    let ada = fixture.user("ada");
    let dn = format!("uid=alan,{PEOPLE}");
    fixture.modify(&dn, vec![change(ChangeOperation::Add, "aci", &["(targetattr=*)"])]).unwrap();
    assert_eq!(fixture.read_as(&ada, &dn, &["+"]).values("aci"), [""; 0]);
    assert_eq!(fixture.read_as(&ada, &dn, &["aci"]).values("aci"), [""; 0]);
    assert_eq!(fixture.read(&dn, &["+"]).values("aci").len(), 1);
    let secret = [
        "userPassword",
        "pwdHistory",
        "aci",
        "keywayAccessRule",
        "krbPrincipalKey",
        "sambaNTPassword",
        "userPKCS12",
    ];
    for name in secret {
        assert!(snapshot.schema.attribute(name).is_some(), "{name}");
        for right in [Rights::READ, Rights::SEARCH, Rights::COMPARE] {
            let question = Question { dn: &dn, right, attribute: Some(name) };
            let found = fixture.directory.explain(&ada, &question).unwrap();
            assert!(!found.iter().any(|one| one.grants()), "{name}");
        }
    }
}
