//! Each tag, in the ways that both dialects write it.

use super::{compile, entries, ldif, value, values};
use keyway_data::tags::TAGS;
use keyway_data::{CompileOptions, Plan, Table};
use std::collections::BTreeSet;
use std::sync::Arc;

#[test]
fn slamds_dialect() {
    let text = "\
define suffix=dc=example,dc=com
define n=3

branch: [suffix]
aci: (targetattr!=\"userPassword\")(userdn=\"ldap:///anyone\";)

branch: ou=People,[suffix]
subordinateTemplate: admin:[n]

template: user
rdnAttr: uid
objectClass: top
objectClass: person
givenName: <first>
sn: <last>
uid: user.<sequential:1>
loginShell: <list:/bin/sh,/bin/ksh:0>
userCertificate:: <random:base64:975>

template: admin
rdnAttr: uid+sn
extends: user
objectClass: posixAccount
unicodePwd:: <base64:UnicodeLittleUnmarked:\"{uid}\">
postalAddress: {uid}${loginShell}
";
    let all = entries(text);
    assert_eq!(all.len(), 5);
    let (dn, branch) = &all[0];
    assert_eq!(dn, "dc=example,dc=com");
    let pairs: Vec<_> = branch.iter().map(|(a, b)| (a.as_str(), b.as_str())).collect();
    assert_eq!(pairs[..3], [("objectClass", "top"), ("objectClass", "domain"), ("dc", "example")]);
    let (dn, admin) = &all[2];
    assert_eq!(dn, "uid=user.1+sn=Weber,ou=People,dc=example,dc=com");
    let find = |name: &str| &admin.iter().find(|(it, _)| it == name).unwrap().1;
    assert_eq!(find("loginShell"), "/bin/sh");
    assert_eq!(find("postalAddress"), "user.1$/bin/sh");
    assert_eq!(find("unicodePwd"), "\"\0u\0s\0e\0r\0.\x001\0\"\0");
    let classes = admin.iter().filter(|(name, _)| name == "objectClass").count();
    assert_eq!(classes, 3);
    assert!(ldif(text).contains("\nunicodePwd:: IgB1AHMAZQByAC4AMQAiAA==\n"));
}

#[test]
fn opendjs_dialect() {
    let text = "\
define suffix=dc=example,dc=com

branch: [suffix]
objectClass: top
objectClass: domain
subordinateTemplate: ous:2

template: ous
subordinateTemplate: People:1
rdnAttr: ou
objectclass: organizationalUnit
ou: Organization_<sequential:1>
description: This is {ou}

template: People
rdnAttr: ou
subordinateTemplate: person:2
objectclass: organizationalUnit
ou: People

template: person
rdnAttr: uid
objectClass: inetOrgPerson
cn: <FIRST> <Last>
uid: user.<sequential:0:true>
employeeNumber: <Sequential:7:false>
x: \\{\"a\": \\[\"{uid}\"\\]\\} \\<b\\>
title: <List:bronze;2:silver;0>
seeAlso: <DN:-2> <dn:1> <parentDN> <_DN> <rdn> <ancestordn:2> <ancestordn:4> <underscoreparentdn>
";
    let all = entries(text);
    let names: Vec<&str> = all.iter().map(|(dn, _)| dn.as_str()).collect();
    assert_eq!(
        names,
        [
            "dc=example,dc=com",
            "ou=Organization_1,dc=example,dc=com",
            "ou=People,ou=Organization_1,dc=example,dc=com",
            "uid=user.0,ou=People,ou=Organization_1,dc=example,dc=com",
            "uid=user.1,ou=People,ou=Organization_1,dc=example,dc=com",
            "ou=Organization_2,dc=example,dc=com",
            "ou=People,ou=Organization_2,dc=example,dc=com",
            "uid=user.0,ou=People,ou=Organization_2,dc=example,dc=com",
            "uid=user.1,ou=People,ou=Organization_2,dc=example,dc=com",
        ]
    );
    let find = |entry: usize, name: &str| {
        all[entry].1.iter().find(|(it, _)| it == name).unwrap().1.clone()
    };
    assert_eq!(find(7, "employeeNumber"), "9");
    assert_eq!(find(3, "x"), "{\"a\": [\"user.0\"]} <b>");
    assert_eq!(find(3, "title"), "bronze");
    assert_eq!(
        find(4, "seeAlso"),
        "dc=example,dc=com uid=user.1 ou=People,ou=Organization_1,dc=example,dc=com \
         uid=user.1_ou=People_ou=Organization_1_dc=example_dc=com uid=user.1 \
         ou=Organization_1,dc=example,dc=com dc=com ou=People_ou=Organization_1_dc=example_dc=com"
    );
}

#[test]
fn random_values_are_what_they_are_called() {
    let all = |tag: &str| value(300, &format!("x: {tag}"));
    let lengths = |tag: &str| -> BTreeSet<usize> { all(tag).iter().map(String::len).collect() };
    assert_eq!(lengths("<random:alpha:7>"), [7].into());
    assert_eq!(lengths("<random:hex:2:4>"), [2, 3, 4].into());
    assert_eq!(lengths("<random:numeric:25>"), [25].into());
    assert_eq!(lengths("<random:numeric:1:99999:5>"), [5].into());
    assert_eq!(lengths("<random:numeric:1:99:00000>"), [5].into());
    assert_eq!(lengths("<random:month:3>"), [3].into());
    assert_eq!(lengths("<guid>"), [36].into());
    let signs = |tag: &str| -> BTreeSet<char> { all(tag).concat().chars().collect() };
    assert_eq!(signs("<random:chars:aé§:5>"), ['a', 'é', '§'].into());
    assert_eq!(signs("<random:numeric:5>"), ('0'..='9').collect());
    assert_eq!(signs("<random:alphanumeric:9>"), ('a'..='z').chain('0'..='9').collect());
    let months: BTreeSet<String> = all("<random:month>").into_iter().collect();
    assert_eq!(months.len(), 12);
    assert!(all("<random:telephone>").iter().all(|it| it.starts_with("+1 ") && it.len() == 15));
    let numbers = all("<random:numeric:-5:5>");
    assert!(numbers.iter().all(|it| (-5..=5).contains(&it.parse::<i64>().unwrap())));
    let guids: BTreeSet<String> = all("<guid>").into_iter().collect();
    assert_eq!(guids.len(), 300);
    assert!(guids.iter().all(|it| &it[14..15] == "4" && "89ab".contains(&it[19..20])));
}

#[test]
fn ours() {
    let all = |tag: &str| value(2_000, &format!("x: {tag}"));
    let unique: BTreeSet<String> = all("<unique:alpha:3>").into_iter().collect();
    assert_eq!(unique.len(), 2_000);
    let zipf = all("<zipf:10>");
    let of = |text: &str| zipf.iter().filter(|it| *it == text).count();
    // 1 / (1 + 1/2 + .. + 1/10) = 0.341
    assert!((600..770).contains(&of("1")) && of("1") > of("2") && of("2") > of("9"));
    let normal: Vec<i64> = all("<normal:100:15>").iter().map(|it| it.parse().unwrap()).collect();
    let mean = normal.iter().sum::<i64>() as f64 / 2_000.0;
    assert!((98.5..101.5).contains(&mean), "{mean}");
    assert!(all("<normal:0:100:1:9>").iter().all(|it| it.len() == 1));
    let moments = all("<timestamp:2024-02-28:2024-02-29>");
    assert!(moments.iter().all(|it| it.starts_with("2024022") && it.ends_with('Z')));
    assert!(moments.iter().any(|it| it.starts_with("20240229")));
    let lengths: BTreeSet<usize> =
        value(200, "x:: <bytes:2:5>").iter().map(|it| it.chars().count()).collect();
    assert!(lengths.iter().all(|it| *it <= 5));
    let colours = value(7, "x: <file:colours:sequential>");
    assert_eq!(colours, ["red", "green", "blue", "red", "green", "blue", "red"]);
    let mut zipf = value(1_000, "x: <file:colours:zipf>");
    zipf.sort();
    assert!(zipf.iter().filter(|it| *it == "red").count() > 450);
}

#[test]
fn lines_that_are_not_always_there() {
    let lines = "pager: <presence:30>7\nx: <ifpresent:pager>has\nx: <ifabsent:pager>not";
    let all = values(1_000, lines);
    assert!(all.iter().all(|it| it.len() == 1));
    let has = all.iter().filter(|it| it[0] == "has").count();
    assert!((250..350).contains(&has), "{has}");
    let by_value = "l: <list:a,b>\nx: <ifpresent:l:A>is a\nx: <ifabsent:l:a>is {l}";
    let all: BTreeSet<String> = value(100, by_value).into_iter().collect();
    assert_eq!(all, ["is a".to_owned(), "is b".to_owned()].into());
    assert_eq!(values(1, "x: <presence:0>a\nx: <ifpresent:nothing>b"), [Vec::<String>::new()]);
}

#[test]
fn lines_that_are_there_often() {
    assert_eq!(values(1, "x: a<loop:3:5>b"), [["a3b", "a4b", "a5b"]]);
    assert_eq!(values(1, "x: <loop:1:2> <loop:8:9>"), [["1 8", "2 9"]]);
}

#[test]
fn attributes_are_taken_from_wherever_they_are() {
    assert_eq!(value(1, "x: {cn:3}.{CN}\ncn: Łódź {uid}"), ["Łód.Łódź u0"]);
    // The first of several lines counts, as MakeLDIF has it.
    assert_eq!(value(1, "cn: a\ncn: b\nx: {cn}"), ["a"]);
    // A missing line is empty, and an empty value is none.
    assert_eq!(values(1, "cn: <presence:0>a\nx: {cn}"), [Vec::<String>::new()]);
}

#[test]
fn values_of_the_parent() {
    let text = "branch: dc=x\nsubordinateTemplate: a:2\n\ntemplate: a\nrdnAttr: ou\n\
        ou: ou<sequential>\nl: <file:cities>\nst: {l}!\nsubordinateTemplate: b:3\n\n\
        template: b\nrdnAttr: cn\ncn: <parent:ou>.<sequential>\nx: <parent:st>\n";
    let all = entries(text);
    let of = |at: usize, name: &str| all[at].1.iter().find(|(it, _)| it == name).unwrap().1.clone();
    for (parent, kids) in [(1, 2..5), (5, 6..9)] {
        for (number, kid) in kids.enumerate() {
            assert_eq!(of(kid, "x"), of(parent, "st"));
            assert_eq!(of(kid, "cn"), format!("{}.{number}", of(parent, "ou")));
        }
    }
}

#[test]
fn names_are_pairs_that_do_not_repeat() {
    let pairs: BTreeSet<String> = value(82_000, "x: <first> <last>").into_iter().collect();
    assert_eq!(pairs.len(), 82_000);
    assert!(pairs.iter().any(|it| it.ends_with('2')));
    let options = CompileOptions { utf8_names: true, ..CompileOptions::default() };
    let text = "branch: dc=x\nsubordinateTemplate: t:9\n\ntemplate: t\nrdnAttr: cn\ncn: <first>\n";
    compile(text, &options);
}

#[test]
fn a_table() {
    let table = Arc::new(Table::read("t.csv", "a,b\n\"c,d\"\n", ',', false));
    let options = CompileOptions { table: Some(table), ..CompileOptions::default() };
    let text = "branch: dc=x\nsubordinateTemplate: t\n\ntemplate: t\nrdnAttr: uid\n\
        uid: <csvfield:0>\nx: <csvfield:1>\n";
    let plan = compile(text, &options);
    assert_eq!(plan.entries(), 3);
    let text = String::from_utf8(super::bytes(super::job(plan))).unwrap();
    assert!(text.contains("dn: uid=a,dc=x\nuid: a\nx: b\n"), "{text}");
    assert!(text.contains("dn: uid=c\\,d,dc=x\nuid: c,d\n\n"), "{text}");
}

#[test]
fn other_programs() {
    let options = CompileOptions { allow_exec: true, ..CompileOptions::default() };
    let text = "branch: dc=x\ndescription: <exec:echo,a b,c>\n";
    let text = super::bytes(super::job(compile(text, &options)));
    assert!(String::from_utf8(text).unwrap().contains("description: a b c\n"));
    let bad = super::job(compile("branch: dc=x\nx: <exec:false>\n", &options));
    let why = std::io::read_to_string(bad.start().unwrap()).unwrap_err();
    assert!(why.to_string().contains("<exec:false>"), "{why}");
}

#[test]
fn files_are_included() {
    let text = "include more.template\n\nbranch: dc=x\nsubordinateTemplate: other:1\n";
    assert!(ldif(text).contains("dn: cn=other 0,dc=x\n"));
}

#[test]
fn branches_come_after_those_above_them() {
    let text = "branch: ou=b,ou=a,dc=x\n\nbranch: ou=a,dc=x\n\nbranch: dc=x\n";
    let names: Vec<String> = entries(text).into_iter().map(|(dn, _)| dn).collect();
    assert_eq!(names, ["dc=x", "ou=a,dc=x", "ou=b,ou=a,dc=x"]);
}

#[test]
fn values_that_ldif_must_encode() {
    let lines = "x: é\ny: \\<\nz: \\\ncn: <list: a,b>";
    let text =
        format!("branch: dc=x\nsubordinateTemplate: t:2\n\ntemplate: t\nrdnAttr: cn\n{lines}\n");
    assert!(entries(&text).len() == 3);
    assert!(ldif(&text).contains("\nx:: w6k=\n"));
}

#[test]
fn every_template_that_is_built_in_compiles() {
    for (name, text) in keyway_data::TEMPLATES {
        let plan =
            Plan::compile(name, text, &CompileOptions::default(), &mut super::files).unwrap();
        assert_eq!(plan.warnings(), [""; 0]);
        assert!(plan.entries() > 1_000);
    }
}

/// The examples of `keyway data tags` work.
#[test]
fn the_examples_of_the_tags() {
    let table = Arc::new(Table::read("t.csv", "a,b,c\n", ',', false));
    for tag in TAGS {
        let options = CompileOptions {
            allow_exec: true,
            table: Some(table.clone()),
            ..CompileOptions::default()
        };
        let text = format!(
            "define suffix=dc=x\n\nbranch: [suffix]\nsubordinateTemplate: person:1\n\n\
             template: person\nrdnAttr: cn\ncn: c\nou: o\npager: 1\n{}\n",
            tag.example.replace("uid: <_", "x: <_")
        );
        let plan = Plan::compile("t", &text, &options, &mut super::files)
            .unwrap_or_else(|why| panic!("{}: {why}", tag.name));
        super::bytes(super::job(plan));
        assert!(tag.forms.iter().all(|form| form.starts_with(&format!("<{}", tag.name))));
    }
}

#[test]
fn a_backslash_is_written_twice() {
    assert_eq!(value(1, r"x: \\\\server\\share"), [r"\\server\share"]);
    assert_eq!(value(1, r"x: C:\\<list:a>\\"), [r"C:\a\"]);
    assert_eq!(value(1, r"x: <list:\\>"), [r"\"]);
    assert_eq!(value(1, r"x: a\nb\,c"), [r"a\nb\,c"], "others stay as they are");
    let text = "define c=value\n\nbranch: dc=x\ndescription: \\[c] \\\\[c] \\\\\\[c]\n";
    assert!(ldif(text).contains("description: [c] \\value \\[c]\n"), "{}", ldif(text));
    // A branch has its name as it is.
    let text = "branch: ou=a\\\\b,dc=x\n\nbranch: dc=x\n";
    assert!(ldif(text).contains("ou: a\\b\n"), "{}", ldif(text));
}

#[test]
fn numbers_with_commas() {
    for value in value(50, "x: <random:numeric:1000:9999999:#,##0>") {
        let (plain, parts) = (value.replace(',', ""), value.split(',').collect::<Vec<_>>());
        assert!((1_000..=9_999_999).contains(&plain.parse::<u64>().unwrap()), "{value}");
        assert!(parts.len() > 1 && parts[1..].iter().all(|part| part.len() == 3), "{value}");
    }
    assert_eq!(value(1, "x: <random:numeric:7:7:0,000.00>"), ["0,007.00"]);
}
