//! Arguments that make no sense, and help for those who ask.

use crate::support::keyway;

#[test]
fn bad_arguments_are_one_line_and_status_2() {
    let cases: &[(&[&str], &str)] = &[
        (&[], "a command is missing"),
        (&["directory"], "a command is missing"),
        (&["crypto"], "keyway crypto --help"),
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
    ] {
        let help = keyway(command.iter().chain(&["--help"])).well();
        assert!(help.out.contains("Examples:"), "{command:?}");
        assert!(help.out.contains(&format!("keyway {}", command.join(" "))), "{command:?}");
        assert_eq!(help.err, "");
    }
    assert!(keyway(["--version"]).well().out.starts_with("keyway 0."));
}
