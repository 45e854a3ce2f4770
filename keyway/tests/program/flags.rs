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
    ];
    for (arguments, part) in cases {
        keyway(*arguments).refused(2, &[part]);
    }
}

#[test]
fn help_teaches_with_examples() {
    let overview = keyway(["--help"]).well();
    for command in ["up", "directory", "admin", "top", "crypto"] {
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
    ] {
        let help = keyway(command.iter().chain(&["--help"])).well();
        assert!(help.out.contains("Examples:"), "{command:?}");
        assert!(help.out.contains(&format!("keyway {}", command.join(" "))), "{command:?}");
        assert_eq!(help.err, "");
    }
    assert!(keyway(["--version"]).well().out.starts_with("keyway 0."));
}
