//! Arguments that make no sense, and help for those who ask.

use crate::support::keyway;

#[test]
fn bad_arguments_are_one_line_and_status_2() {
    let cases: &[(&[&str], &str)] = &[
        (&["serve"], "serve"),
        (&["up", "--prot", "1"], "--prot"),
        (&["up", "--listen", "here"], "127.0.0.1:1389"),
        (&["up", "--listen-tls", "127.0.0.1"], "an address and a port"),
        (&["up", "--sample", "many"], "many"),
        (&["up", "--sample", "-1"], "-1"),
        (&["up", "--sample", "1", "--import", "x.ldif"], "cannot be used with"),
        (&["directory", "import"], "<FILE>"),
        (&["top", "--interval", "0"], "0.01"),
        (&["top", "--interval", "soon"], "soon"),
        (&["top", "--count", "0"], "0"),
        (&["up", "extra"], "extra"),
        (&["cryptod", "--pumps", "many"], "many"),
        (&["cryptod", "extra"], "extra"),
    ];
    for (arguments, part) in cases {
        keyway(*arguments).refused(2, &[part]);
    }
}

/// Every command that has others shows them, and says that one is missing.
#[test]
fn without_arguments_there_is_help() {
    let names = [
        "directory", "admin", "config", "acl", "crypto", "key", "esp", "quic", "data", "decode",
    ];
    let all = names.iter().map(|name| vec![*name]).chain([vec![]]);
    for arguments in all {
        let done = keyway(&arguments);
        assert_eq!((done.code, done.out.as_str()), (Some(2), ""), "{arguments:?}");
        assert!(done.err.contains("Usage: keyway"), "{arguments:?}: {}", done.err);
        let last = done.err.lines().last().unwrap_or_default();
        assert!(last.contains("a command is missing"), "{arguments:?}: {last}");
    }
}

#[test]
fn times_and_numbers_are_the_same_everywhere() {
    for (arguments, part) in [
        (&["top", "--interval", "1m30x"][..], "1m30s"),
        (&["load", "search", "ldap://127.0.0.1:1", "--duration", "90x"], "1m30s"),
        (&["load", "search", "ldap://127.0.0.1:1", "--clients", "5x"], "5M"),
        (&["data", "make", "--count", "5x"], "5M"),
        (&["up", "--sample", "5x"], "5M"),
        (&["quic", "perf", "--seconds", "1x"], "1m30s"),
        (&["crypto", "bench", "--seconds", "1x"], "1m30s"),
        (&["log", "--since", "1x"], "1h30m"),
        (&["decode", "report", "x.pcap", "--every", "1x"], "1m30s"),
        (&["metrics", "--otlp", "http://127.0.0.1:1", "--interval", "1x"], "1m30s"),
        (&["log", "--slow", "abc"], "5M"),
        (&["log", "--top", "abc"], "5M"),
        (&["data", "make", "--threads", "0"], "from 1 to 1024"),
        (&["data", "make", "--generation", "x"], "5M"),
        (&["crypto", "test", "--threads", "x"], "5M"),
        (&["quic", "perf", "--streams", "0"], "from 1 to 100"),
        (&["quic", "perf", "--mtu", "x"], "5M"),
        (&["load", "serve", "x.toml", "--agents", "0"], "from 1 to 256"),
        (&["decode", "report", "x.pcap", "--rows", "x"], "5M"),
        (&["directory", "history", "--lines", "x"], "5M"),
        (&["admin", "certificate", "cn=a", "--days", "0"], "from 1 to 3650"),
        (&["cryptod", "--pumps", "0"], "from 1 to 256"),
    ] {
        keyway(arguments).refused(2, &[part]);
    }
    // One that is right gets further.
    keyway(["load", "search", "ldap://127.0.0.1:1", "--duration", "1m30s", "--clients", "1k"])
        .refused(1, &["127.0.0.1:1"]);
}

/// Also where the first connection comes later.
#[test]
fn files_of_flags_are_looked_at_before_anything_else() {
    let place = tempfile::tempdir().unwrap();
    let file = |name: &str| place.path().join(name).to_str().unwrap().to_owned();
    let (missing, empty, data) = (file("missing.pem"), file("empty.pem"), file("data"));
    std::fs::write(&empty, "").unwrap();
    let web = ["web", "ldaps://127.0.0.1:1", "--listen", "127.0.0.1:0", "--data", &data];
    let top = ["top", "ldaps://127.0.0.1:1", "--count", "1"];
    let here = place.path().to_str().unwrap();
    let metrics = ["metrics", "--otlp", "https://127.0.0.1:1", "--data", here];
    let wait = ["load", "wait", "ldaps://127.0.0.1:1", "--at-most", "0s"];
    for command in [&web[..], &top, &metrics, &wait] {
        keyway(command.iter().chain(&["--ca", &missing])).refused(1, &["missing.pem"]);
        keyway(command.iter().chain(&["--ca", &empty])).refused(1, &["empty.pem", "PEM"]);
    }
    let account = ["--load-bind-dn", "cn=x", "--load-password-file", &missing];
    keyway(web.iter().chain(&account)).refused(1, &["missing.pem"]);
    keyway(web.iter().chain(&["--users", &missing])).refused(1, &["missing.pem"]);
}

#[test]
fn with_json_a_failure_is_json() {
    let place = tempfile::tempdir().unwrap();
    let missing = place.path().join("missing");
    let missing = missing.to_str().unwrap();
    let cases: &[(&[&str], i32, &str)] = &[
        (&["up", "--json", "--prot", "1"], 2, "--prot"),
        (&["up", "--sample", "many", "--json"], 2, "many"),
        (&["directory", "import", "--json"], 2, "<FILE>"),
        (&["directory", "import", "--json", "/no/such.ldif", "--data", missing], 1, "such.ldif"),
        (&["directory", "check", "--json", "--data", missing], 1, missing),
        (&["directory", "export", "--json", "x.ldif", "--data", missing], 1, missing),
        (&["admin", "password", "--json", "--data", missing], 1, missing),
        (&["top", "--json", "--data", missing], 1, missing),
        (&["crypto", "bench", "--json", "--algorithm", "rot13"], 2, "rot13"),
        (&["quic", "get", "--json", "ftp://x"], 2, "ftp://x"),
        (&["cryptod", "--json", "--allow-user", "no such"], 2, "no such"),
    ];
    for (arguments, status, part) in cases {
        let done = keyway(*arguments);
        assert_eq!(done.code, Some(*status), "{arguments:?}: {}{}", done.out, done.err);
        assert_eq!(done.err, "", "{arguments:?}");
        let value = done.json();
        assert_eq!(value["event"], "failed", "{arguments:?}");
        assert_eq!(value["status"], *status, "{arguments:?}");
        assert!(value["error"].as_str().unwrap().contains(part), "{value}");
    }
    // Where standard output is the LDIF, it is on standard error.
    for arguments in [&["--data", missing][..], &["--bsae", "dc=x"]] {
        let done = keyway(["directory", "export", "--json"].iter().chain(arguments));
        assert_eq!(done.out, "");
        let value: serde_json::Value = serde_json::from_str(&done.err).unwrap();
        assert_eq!(value["event"], "failed");
    }
    // It is a file's name there.
    keyway(["directory", "import", "--data", missing, "--", "--json"]).refused(1, &["--json"]);
}

#[test]
fn help_teaches_with_examples() {
    let overview = keyway(["--help"]).well();
    for command in ["up", "directory", "admin", "top", "crypto", "cryptod"] {
        assert!(overview.out.contains(command), "{command}");
    }
    for command in [
        &["up"][..],
        &["directory", "import"],
        &["directory", "export"],
        &["directory", "check"],
        &["admin", "password"],
        &["top"],
        &["crypto", "list"],
        &["crypto", "test"],
        &["crypto", "bench"],
        &["cryptod"],
        &["esp", "up"],
        &["esp", "check"],
        &["esp", "status"],
        &["esp", "reload"],
    ] {
        let help = keyway(command.iter().chain(&["--help"])).well();
        assert!(help.out.contains("Examples:"), "{command:?}");
        assert!(help.out.contains(&format!("keyway {}", command.join(" "))), "{command:?}");
        assert_eq!(help.err, "");
    }
    assert!(keyway(["--version"]).well().out.starts_with("keyway 0."));
}
