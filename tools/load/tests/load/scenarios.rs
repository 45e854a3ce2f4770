//! Scenarios that make no sense, each refused with its line.

use keyway_load::Scenario;
use std::path::Path;

const GOOD: &str = "\
[target]
urls = [\"ldap://localhost\"]
[data]
user = { range = [0, 9] }
[[phase]]
for = \"5s\"
rate = 10
[[job]]
steps = [{ search = { filter = \"(uid={user})\" } }]
";

fn why(from: &str, to: &str) -> String {
    assert!(GOOD.contains(from), "{from}");
    let text = GOOD.replacen(from, to, 1);
    match Scenario::parse(&text, "file", Path::new("")) {
        Ok(_) => panic!("it is taken: {text}"),
        Err(error) => error.to_string(),
    }
}

#[test]
fn what_is_wrong_is_named_with_its_line() {
    assert!(Scenario::parse(GOOD, "file", Path::new("")).is_ok());
    let mut wrong = Vec::new();
    for (from, to, line, words) in [
        ("urls", "ulrs", 2, "there is no key 'ulrs'; did you mean 'urls'?"),
        ("urls", "zzz = 1\nurls", 2, "known are urls, ca, certificate"),
        ("\"ldap://localhost\"", "\"http://localhost\"", 2, "unknown scheme"),
        ("range = [0, 9]", "range = [9, 0]", 4, "FIRST <= LAST"),
        ("range = [0, 9]", "range = [0, 9], file = \"x\"", 4, "exactly one of"),
        ("range = [0, 9]", "range = [0, 9], pick = { zipf = 0 }", 4, "pick should be"),
        ("user = ", "\"a b\" = ", 4, "'a b' is not a name"),
        ("for = \"5s\"", "for = \"5 parsecs\"", 6, "should be a time"),
        ("for = \"5s\"", "for = 0", 6, "a time above 0"),
        ("rate = 10", "rate = -1", 7, "rate should be"),
        ("rate = 10", "rate = { from = 1 }", 7, "either from and to"),
        ("rate = 10", "rate = { from = 1, to = 2, through = 3 }", 7, "'through'"),
        ("(uid={user})", "(uid={usr})", 9, "did you mean {user}?"),
        ("(uid={user})", "(uid=", 9, "filter (uid="),
        ("search", "serch", 9, "did you mean 'search'?"),
        ("filter", "filtr", 9, "did you mean 'filter'?"),
        ("[{ search", "[{ bind = { dn = \"a\", password = \"b\" }, search", 9, "one operation"),
        ("steps", "connections = { count = 0 }\nsteps", 9, "from 1 to"),
        ("steps", "connections = { bind = \"admin\" }\nsteps", 9, "needs target.admin"),
        (
            "steps",
            "connections = { kind = \"kept\", in_flight = 2 }\nweight = -1\nsteps",
            10,
            "weight",
        ),
        ("[[job]]\n", "[[job]]\nname = \"a b\"\n", 9, "one word"),
        ("[target]", "[[threshold]]\nthat = \"p98 < 5\"\n[target]", 1, "not a duration"),
        (
            "[{ search",
            "[{ bind = { sasl = \"GSSAPI\" } }, { search",
            9,
            "\"PLAIN\" and \"EXTERNAL\"",
        ),
        ("[{ search", "[{ bind = { dn = \"a\", sasl = \"PLAIN\" } }, { search", 9, "dn or sasl"),
        ("[{ search", "[{ passmod = { password = \"a\" } }, { search", 9, "'password'"),
        ("urls", "certificate = \"a.pem\"\nurls", 1, "go together"),
        ("[target]", "[[monitor]]\nkind = \"disk\"\n[target]", 2, "\"replication\" or"),
        ("[target]", "[[monitor]]\nkind = \"entry\"\n[target]", 1, "attributes"),
        ("[target]", "[[monitor]]\nkind = \"replication\"\ndn = \"a\"\n[target]", 1, "read ="),
        (
            "[target]",
            "[[monitor]]\nkind = \"keyway\"\ndata = \"d\"\nfigures = [\"serch\"]\n[target]",
            4,
            "did you mean 'search'?",
        ),
        ("[target]", "[[monitor]]\nkind = \"keyway\"\n[target]", 1, "either data"),
        (
            "[target]",
            "[[monitor]]\nkind = \"keyway\"\ndata = \"d\"\n[[monitor]]\nkind = \"keyway\"\n\
             page = \"p\"\n[target]",
            4,
            "two monitors are called 'total'",
        ),
        ("[target]", "arrivals = \"odd\"\n[target]", 1, "\"even\" or \"random\""),
        ("[target]", "[target", 1, ""),
    ] {
        let why = why(from, to);
        if !why.contains(words) || !why.starts_with(&format!("file, line {line}: ")) {
            wrong.push(format!("{to:?}: {why}"));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn what_is_missing_is_named() {
    let start = GOOD.find("[[job]]").unwrap();
    let parse = |text: &str| Scenario::parse(text, "file", Path::new("")).unwrap_err().to_string();
    assert!(parse(&GOOD[..start]).contains("there is no [[job]]"));
    assert!(parse("").contains("there is no [target]"));
    let two = "[[job]]\nsteps = [{ delete = {} }]\n";
    assert!(parse(&format!("{GOOD}{two}")).contains("dn is missing"));
    let binds = "[connections]\nin_flight = 2\n[[job]]\nsteps = [{ bind = { dn = \"a\", password = \"b\" } }]\n";
    assert!(parse(&format!("{GOOD}{binds}")).contains("on = \"second\""));
}
