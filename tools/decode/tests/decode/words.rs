//! Operations in other words, read back by those whose words they are.

use super::wire::*;
use keyway_codec::ldif::Reader;
use keyway_codec::message::*;
use keyway_codec::{Filter, Op};
use keyway_decode::say::{Changes, Commands, Packets, Python, Scenario};
use keyway_decode::view::{Full, Json, Line, Printer, View};
use keyway_decode::{Options, Report, Secrets};

pub fn conversation() -> Conversation {
    let modify = ModifyRequest {
        dn: "uid=o'neil,dc=example,dc=com",
        changes: vec![
            Change {
                operation: ChangeOperation::Replace,
                attribute: attribute("userPassword", b"hunter2-of-modify"),
            },
            Change {
                operation: ChangeOperation::Add,
                attribute: attribute("mail", b"o@example.com"),
            },
        ],
    };
    let rename = ModifyDnRequest {
        dn: "uid=a,dc=example,dc=com",
        new_rdn: "uid=b",
        delete_old_rdn: true,
        new_superior: None,
    };
    let no = LdapResult::new(ResultCode::NoSuchObject, "");
    let secret = vec![attribute("sn", b"\xff"), attribute("userPassword", b"hunter2-of-add")];
    let mut says = searches(false, 20).says;
    says.pop();
    says.extend([
        (End::Client, encode(50, Op::ModifyRequest(modify))),
        (End::Server, encode(50, Op::ModifyResponse(LdapResult::success()))),
        (End::Client, add(51, "uid=a,dc=example,dc=com", secret)),
        (End::Server, added(51)),
        (End::Client, encode(52, Op::ModifyDnRequest(rename))),
        (End::Server, encode(52, Op::ModifyDnResponse(LdapResult::success()))),
        (End::Client, encode(53, Op::DeleteRequest("uid=none"))),
        (End::Server, encode(53, Op::DeleteResponse(no))),
        (End::Client, encode(54, Op::UnbindRequest)),
    ]);
    Conversation::new(false, says)
}

fn said(view: impl View, secrets: Secrets) -> Vec<u8> {
    said_of(&conversation(), view, secrets)
}

fn said_of(conversation: &Conversation, view: impl View, secrets: Secrets) -> Vec<u8> {
    let mut printer = Printer::new(view, None, Vec::new());
    let options = Options { secrets, keep_answers: true };
    into(&capture(&conversation.segments(1000)), options, &mut printer);
    printer.end().unwrap();
    printer.into_output()
}

#[test]
fn ldif_is_read_back_and_sets_no_password() {
    let out = said(Changes::default(), Secrets::Hidden);
    let text = String::from_utf8(out.clone()).unwrap();
    assert!(!text.contains("hunter2"), "{text}");
    let (mut reader, mut rest, mut records) = (Reader::new(), out.as_slice(), 0);
    while let Some(record) = reader.read(&mut rest).or_else(|| reader.finish()) {
        record.unwrap_or_else(|why| panic!("{why}: {text}"));
        records += 1;
    }
    assert_eq!(records, 3, "{text}");
    assert!(text.contains("add: mail\nmail: o@example.com\n-\n"), "{text}");
    assert!(!text.contains("replace: userPassword"), "{text}");
    assert!(text.contains("# userPassword: *  (--show-secrets)"), "{text}");
    let out = said(Changes::default(), Secrets::Shown);
    assert!(String::from_utf8(out).unwrap().contains("userPassword: hunter2-of-modify"));
}

#[test]
fn commands_are_those_of_a_shell() {
    let out = said(Commands, Secrets::Hidden);
    let text = String::from_utf8(out.clone()).unwrap();
    assert!(!text.contains("hunter2"), "{text}");
    let search = "ldapsearch -x -H ldap://192.0.2.2:389 -LLL -D cn=admin,dc=example,dc=com -W \
                  -b dc=example,dc=com -s sub '(uid=user.2)' cn mail\n";
    assert!(text.contains(search), "{text}");
    assert!(text.contains("ldapmodrdn -x -H ldap://192.0.2.2:389 -D"), "{text}");
    let file = std::env::temp_dir().join(format!("keyway-commands-{}.sh", std::process::id()));
    std::fs::write(&file, &out).unwrap();
    let checked = std::process::Command::new("sh").arg("-n").arg(&file).output().unwrap();
    std::fs::remove_file(&file).unwrap();
    assert!(checked.status.success(), "{}{text}", String::from_utf8_lossy(&checked.stderr));
}

/// A client names itself, and what it asks for, as it likes: a terminal gets no commands, and a program no
/// options.
#[test]
fn text_from_clients_commands_no_terminal() {
    let evil = "uid=x\u{1b}[31m\u{202e}\u{9b},dc=example";
    let sasl =
        Authentication::Sasl { mechanism: "DIGEST-MD5\u{1b}[31m\nevil\n#", credentials: None };
    let search = SearchRequest {
        base: evil,
        scope: Scope::Subtree,
        deref: Deref::Never,
        size_limit: 0,
        time_limit_s: 0,
        types_only: false,
        filter: Filter::parse("(cn=*)").unwrap(),
        attributes: vec!["-y/etc/passwd", "-Z", "cn\u{7}"],
    };
    let named = vec![attribute("cn\u{1b}[1m", b"x")];
    let ends = Change {
        operation: ChangeOperation::Replace,
        attribute: attribute("title\nEOF\nevil\ncat <<'EOF'", b"x"),
    };
    let modify = ModifyRequest { dn: "uid=z,dc=example", changes: vec![ends] };
    let done = LdapResult::success;
    let says = vec![
        (
            End::Client,
            encode(1, Op::BindRequest(BindRequest { version: 3, name: "", authentication: sasl })),
        ),
        (End::Server, bound(1)),
        (End::Client, encode(2, Op::SearchRequest(search))),
        (End::Server, encode(2, Op::SearchResultDone(done()))),
        (End::Client, add(3, evil, vec![attribute("title", b"\x1b]0;T\x07")])),
        (End::Server, added(3)),
        (End::Client, add(4, "uid=y,dc=example", named)),
        (End::Server, added(4)),
        (End::Client, encode(5, Op::ModifyRequest(modify))),
        (End::Server, encode(5, Op::ModifyResponse(done()))),
    ];
    let conversation = Conversation::new(false, says);
    let harmless = |text: &str| {
        assert!(!text.lines().any(|line| line == "evil"), "{text}");
        assert!(text.chars().all(|c| c == '\n' || !keyway_host::text::misleads(c)), "{text:?}");
    };
    let text = |out| String::from_utf8(out).unwrap();
    let commands = text(said_of(&conversation, Commands, Secrets::Hidden));
    harmless(&commands);
    assert!(commands.contains(" -- '(cn=*)' -y/etc/passwd -Z "), "{commands}");
    let ldif = text(said_of(&conversation, Changes::default(), Secrets::Hidden));
    harmless(&ldif);
    assert!(ldif.contains("\ndn:: ") && ldif.contains("\ntitle:: "), "{ldif}");
    assert!(!ldif.contains("dn: uid=y"), "{ldif}");
    for out in [
        said_of(&conversation, Python::default(), Secrets::Hidden),
        said_of(&conversation, Scenario::default(), Secrets::Hidden),
        said_of(&conversation, Line, Secrets::Hidden),
        said_of(&conversation, Full, Secrets::Hidden),
        said_of(&conversation, Json, Secrets::Hidden),
    ] {
        harmless(&text(out));
    }
}

#[test]
fn python_is_python() {
    let out = said(Python::default(), Secrets::Hidden);
    let text = String::from_utf8(out).unwrap();
    assert!(!text.contains("hunter2"), "{text}");
    assert!(
        text.contains("run(c1.rename_s, 'uid=a,dc=example,dc=com', 'uid=b', delold=1)"),
        "{text}"
    );
    assert!(text.contains("('sn', [b'\\xff'])"), "{text}");
    assert!(text.contains("run(c1.modify_s, 'uid=o\\'neil,dc=example,dc=com', ["), "{text}");
    let check = "import ast, sys; ast.parse(sys.stdin.read())";
    let python = std::process::Command::new("python3")
        .args(["-c", check])
        .stdin(std::process::Stdio::piped())
        .spawn();
    // Where there is none, the end-to-end tests have it.
    let Ok(mut python) = python else { return };
    let mut input = python.stdin.take().unwrap();
    std::io::Write::write_all(&mut input, text.as_bytes()).unwrap();
    drop(input);
    assert!(python.wait().unwrap().success(), "{text}");
}

#[test]
fn a_capture_that_was_written_says_the_same() {
    for secrets in [Secrets::Hidden, Secrets::Shown] {
        let out = said(Packets::default(), secrets);
        let has = |needle: &[u8]| out.windows(needle.len()).any(|window| window == needle);
        assert_eq!(has(b"hunter2"), secrets == Secrets::Shown);
        let told = decode(&out);
        let expected = decode(&capture(&conversation().segments(1000)));
        assert_eq!(told.operations, expected.operations);
        assert_eq!(told.gap_bytes, 0);
    }
}

#[test]
fn a_scenario_has_the_values_that_vary_as_data() {
    let mut printer = Printer::new(Scenario::default(), None, std::io::sink());
    into(&capture(&conversation().segments(1000)), Options::default(), &mut printer);
    let files = printer.view().files();
    let (name, text) = &files[0];
    assert_eq!(name, "scenario.toml");
    let toml: toml::Table = text.parse().unwrap_or_else(|why| panic!("{why}\n{text}"));
    let search = &toml["job"][0];
    assert_eq!(search["weight"].as_integer(), Some(20), "{text}");
    let step = &search["steps"][0]["search"];
    assert_eq!(step["filter"].as_str(), Some("(uid=user.{search1_2})"), "{text}");
    assert_eq!(toml["data"]["search1_2"]["range"][1].as_integer(), Some(21), "{text}");
    assert!(text.contains("# left out: 1 of modrdn"), "{text}");
    assert!(files.iter().all(|(_, text)| !text.contains("hunter2")), "{files:?}");
}

#[test]
fn a_report_counts() {
    for json in [false, true] {
        let mut printer = Printer::new(Report::new(10, json), None, Vec::new());
        into(&capture(&conversation().segments(1000)), Options::default(), &mut printer);
        printer.end().unwrap();
        let text = String::from_utf8(printer.into_output()).unwrap();
        let wanted: &[&str] = match json {
            false => &[
                "26 operations in",
                "  (uid=?)\n",
                "1  noSuchObject (32)",
                "       20       0        20",
            ],
            true => &["\"noSuchObject (32)\":1", "\"name\":\"(uid=?)\"", "\"count\":20"],
        };
        wanted.iter().for_each(|wanted| assert!(text.contains(wanted), "{wanted}: {text}"));
    }
}
