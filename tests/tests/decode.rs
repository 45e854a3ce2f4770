//! `keyway decode` on what tcpdump captures of other people's clients, beside tshark.

use keyway_tests::capture::{
    Capture, can_capture, messages_of_ours, messages_of_tshark, port, without_a_packet,
};
use keyway_tests::proxy::Proxy;
use keyway_tests::{PYTHON, available, finish, keyway, sample};
use serde_json::Value;
use std::fs;
use std::path::Path;
use std::process::Command;

const PEOPLE: &str = "ou=People,dc=example,dc=com";

#[test]
fn ldap_utils_are_decoded_as_tshark_does() {
    if !can_capture() {
        return;
    }
    let (folder, server) = sample(20);
    let capture = Capture::start(folder.path(), port(&server));
    let tool = |program: &str, arguments: &[&str], input: &str| {
        let mut command = server.tool(program, server.ldap());
        command.args(["-D", server.administrator()]);
        command.args(["-y", server.text("administrator_password_file")]);
        finish(command.args(arguments), input)
    };
    tool("ldapsearch", &["-b", PEOPLE, "(uid=*)", "cn", "mail"], "").expect(0);
    tool("ldapsearch", &["-b", PEOPLE, "-E", "pr=3/noprompt", "(uid=*)"], "").expect(0);
    tool("ldapsearch", &["-b", "dc=nowhere", "(uid=a)"], "").expect(32);
    let person = format!(
        "dn: uid=ann,{PEOPLE}\nobjectClass: inetOrgPerson\nuid: ann\ncn: Ann\nsn: Test\n\
         userPassword: first secret\n"
    );
    tool("ldapadd", &[], &person).expect(0);
    let ann = format!("uid=ann,{PEOPLE}");
    let change = format!("dn: {ann}\nchangetype: modify\nreplace: title\ntitle: Engineer\n");
    tool("ldapmodify", &[], &change).expect(0);
    tool("ldapcompare", &[&ann, "title:engineer"], "").expect(6);
    tool("ldappasswd", &["-s", "second secret", &ann], "").expect(0);
    tool("ldapmodrdn", &["-r", &ann, "uid=anna"], "").expect(0);
    tool("ldapdelete", &[&format!("uid=anna,{PEOPLE}")], "").expect(0);
    tool("ldapwhoami", &[], "").expect(0);
    let (told, file) = capture.end(10);
    assert_eq!(messages_of_ours(&told), messages_of_tshark(&file, port(&server)));
    let text = format!("{told:?}");
    assert!(!text.contains("secret") && !text.contains(&server.password()), "{text}");
    let find = |op: &str| told.iter().find(|one| one["op"] == op).unwrap_or_else(|| panic!("{op}"));
    assert_eq!(find("compare")["code"], 6);
    assert_eq!(find("passwd")["request"]["user"], ann.as_str());
    assert_eq!(find("add")["request"]["attributes"]["userPassword"][0], "*");
    assert_eq!(find("whoami")["bound"], server.administrator());
    assert!(told.iter().all(|one| one["event"] != "gap"), "{text}");
    views(&file, port(&server));
}

/// The views of a file, and what ends early.
fn views(file: &Path, port: &str) {
    let decode = |arguments: &[&str]| {
        let mut command = Command::new(keyway());
        command.arg("decode").arg(file).args(["--port", port]);
        finish(command.args(arguments), "")
    };
    let lines = decode(&[]).expect(0);
    assert!(lines.out.contains("compare"), "{}", lines.out);
    assert!(lines.err.contains("connections: 10;"), "{}", lines.err);
    let few = decode(&["-f", "(&(op=search)(code=noSuchObject))"]).expect(0);
    assert_eq!(few.out.lines().filter(|line| line.contains(" search ")).count(), 1, "{}", few.out);
    let full = decode(&["--full", "-f", "(op=add)"]).expect(0);
    assert!(full.out.contains("attribute    userPassword: *\n"), "{}", full.out);
    let shown = decode(&["--full", "-f", "(op=add)", "--show-secrets"]).expect(0);
    assert!(shown.out.contains("userPassword: first secret"), "{}", shown.out);
    for (slip, meant) in [("(latancy>=1)", "latency is one"), ("(op=serch)", "search is one")] {
        let wrong = decode(&["-f", slip]).expect(2);
        assert!(wrong.err.contains(meant), "{}", wrong.err);
    }
    let paged = decode(&["--full", "-f", "(control=paged-results)"]).expect(0);
    assert!(paged.out.contains("paged-results 1.2.840.113556.1.4.319"), "{}", paged.out);
    assert!(paged.out.contains(" size: 3\n"), "{}", paged.out);
    // A capture is not what is written, under another name of its neither.
    let (before, link) = (fs::read(file).unwrap(), file.with_extension("link"));
    fs::hard_link(file, &link).unwrap();
    for other in [file, &link] {
        let refused = decode(&["-w", other.to_str().unwrap()]).expect(2);
        assert!(refused.err.contains("write to another file"), "{}", refused.err);
    }
    assert_eq!(fs::read(file).unwrap(), before);
    // The reader of the output leaves; the disk is full.
    let shell = |script: &str| {
        let mut command = Command::new("sh");
        command.args(["-c", script]).env("KEYWAY", keyway()).env("PCAP", file);
        finish(command.env("PORT", port), "")
    };
    let head = shell(r#"{ "$KEYWAY" decode "$PCAP" --port "$PORT"; echo $? >&2; } | head -n 1"#);
    assert_eq!(head.out.lines().count(), 1);
    assert!(head.err.ends_with("0\n"), "{}", head.err);
    let full = shell(r#""$KEYWAY" decode "$PCAP" --port "$PORT" > /dev/full"#).expect(1);
    assert!(full.err.contains("cannot write: "), "{}", full.err);
    let garbage = shell(r#"echo garbage | "$KEYWAY" decode -"#).expect(1);
    assert!(garbage.err.contains("neither pcap, pcapng nor snoop"), "{}", garbage.err);
}

#[test]
fn python_ldap_is_decoded_as_tshark_does() {
    if !can_capture() || !available(&["python:ldap"]) {
        return;
    }
    let (folder, server) = sample(30);
    let capture = Capture::start(folder.path(), port(&server));
    let script = "import os, ldap\n\
        for n in range(3):\n\
        \x20 c = ldap.initialize(os.environ['LDAP_URL'])\n\
        \x20 c.simple_bind_s(os.environ['LDAP_ADMIN'], os.environ['LDAP_PASSWORD'])\n\
        \x20 ids = [c.search('dc=example,dc=com', ldap.SCOPE_SUBTREE, '(sn=*)') for _ in range(20)]\n\
        \x20 c.abandon(ids.pop())\n\
        \x20 [c.result(i) for i in reversed(ids)]\n\
        \x20 c.unbind_s()\n";
    let mut command = Command::new(PYTHON);
    command.args(["-c", script]).env("LDAP_URL", server.ldap());
    command.env("LDAP_ADMIN", server.administrator()).env("LDAP_PASSWORD", server.password());
    finish(&mut command, "").expect(0);
    let (told, file) = capture.end(3);
    let mut ours = messages_of_ours(&told);
    let mut theirs = messages_of_tshark(&file, port(&server));
    // Entries of the abandoned search are on their way when it is, and belong to no search.
    for messages in [&mut ours, &mut theirs] {
        assert!(messages.remove(&4).is_some());
        messages.remove(&5);
    }
    assert_eq!(ours, theirs);
    let abandoned = told.iter().filter(|one| one["end"] == "abandoned").count();
    let answered = told.iter().filter(|one| one["op"] == "search" && one["code"] == 0).count();
    assert_eq!((abandoned <= 3, answered >= 57), (true, true), "{abandoned} {answered}");
}

/// Finds an operation by its name.
fn find<'t>(told: &'t [Value], op: &str) -> &'t Value {
    told.iter().find(|one| one["op"] == op).unwrap_or_else(|| panic!("no {op} in {told:#?}"))
}

#[test]
fn a_proxy_records_a_scenario() {
    if !available(&["ldapsearch"]) {
        return;
    }
    let (folder, server) = sample(20);
    let into = folder.path().join("captured");
    let refused = Proxy::refused(&["--to", server.ldap(), "--as", "scenario"]);
    assert!(refused.contains("--into DIR"), "{refused}");
    let arguments = ["--to", server.ldap(), "--as", "scenario", "--into", into.to_str().unwrap()];
    let (proxy, url) = Proxy::in_words(&arguments);
    for uid in 1..6 {
        let filter = format!("(uid=user.{uid})");
        let mut command = server.tool("ldapsearch", &url);
        command.args(["-D", server.administrator()]);
        command.args(["-y", server.text("administrator_password_file")]);
        command.args(["-b", PEOPLE, "-z", "7", &filter, "cn"]);
        finish(&mut command, "").expect(0);
    }
    let said = proxy.interrupt();
    assert!(said.contains("scenario.toml"), "{said}");
    let scenario = fs::read_to_string(into.join("scenario.toml")).unwrap();
    assert!(scenario.contains("size_limit = 7") && scenario.contains("weight = 5"), "{scenario}");
    assert!(scenario.contains("range = [1, 5]"), "{scenario}");
}

#[test]
fn a_proxy_passes_on_and_tells() {
    if !available(&["ldapsearch", "ldapmodify"]) {
        return;
    }
    let (_folder, server) = sample(500);
    let mut proxy = Proxy::start(&["--to", server.ldap()]);
    let tool = |program: &str, url: &str, arguments: &[&str], input: &str| {
        let mut command = server.tool(program, url);
        command.args(["-D", server.administrator()]);
        command.args(["-y", server.text("administrator_password_file")]);
        finish(command.args(arguments), input)
    };
    let all = ["-b", "dc=example,dc=com", "-LLL", "(objectClass=*)"];
    let through = tool("ldapsearch", &proxy.url, &all, "").expect(0);
    assert_eq!(through.out, tool("ldapsearch", server.ldap(), &all, "").expect(0).out);
    let change =
        format!("dn: {PEOPLE}\nchangetype: modify\nreplace: description\ndescription: a\n");
    tool("ldapmodify", &proxy.url, &[], &change).expect(0);
    let told = proxy.until_closed(2);
    assert_eq!(
        find(&told, "search")["entries"].as_u64(),
        Some(through.out.matches("dn: ").count() as u64)
    );
    assert_eq!(find(&told, "modify")["request"]["changes"][0]["replace"], "description");
    assert_eq!(find(&told, "bind")["request"]["credentials"], "*");
    assert!(told.iter().all(|one| one["event"] != "gap"), "{told:#?}");
    // StartTLS of which it is no part is passed on.
    tool("ldapwhoami", &proxy.url, &["-ZZ"], "").expect(0);
    let told = proxy.until_closed(1);
    assert_eq!(find(&told, "starttls")["code"], 0);
    assert!(told.iter().any(|one| one["event"] == "unreadable"), "{told:#?}");
    proxy.end();
}

#[test]
fn a_proxy_takes_part_in_tls_on_both_sides() {
    if !available(&["ldapsearch"]) {
        return;
    }
    let (folder, server) = sample(10);
    let data = folder.path().join("proxy");
    let data = data.to_str().expect("a path");
    let ca = server.text("ca_certificate").to_owned();
    let whoami = |url: &str, arguments: &[&str]| {
        let mut command = server.tool("ldapwhoami", url);
        command.env("LDAPTLS_CACERT", format!("{data}/ca.pem"));
        command.args(["-D", server.administrator()]);
        command.args(["-y", server.text("administrator_password_file")]);
        finish(command.args(arguments), "").expect(0);
    };
    let mut proxy = Proxy::start(&["--to", server.ldap(), "--data", data, "--ca", &ca]);
    whoami(&proxy.url, &["-ZZ"]);
    whoami(&proxy.url, &[]);
    let told = proxy.until_closed(2);
    let whoami_of = |tls: bool| told.iter().any(|one| one["op"] == "whoami" && one["tls"] == tls);
    assert!(whoami_of(true) && whoami_of(false), "{told:#?}");
    assert_eq!(find(&told, "starttls")["code"], 0);
    proxy.end();
    for to in [server.ldap(), server.ldaps()] {
        let mut proxy = Proxy::start(&["--tls", "--to", to, "--data", data, "--ca", &ca]);
        assert!(proxy.url.starts_with("ldaps://"));
        whoami(&proxy.url, &[]);
        let told = proxy.until_closed(1);
        assert_eq!(find(&told, "whoami")["tls"], true);
        proxy.end();
    }
    // A server that is not who it should be is not spoken to.
    let mut proxy = Proxy::start(&["--to", server.ldaps()]);
    let mut command = server.tool("ldapwhoami", &proxy.url);
    assert_ne!(finish(&mut command, "").code, 0);
    let told = proxy.until_closed(1);
    let why = told.iter().find(|one| one["event"] == "unreadable").expect("why");
    assert!(
        why["why"].as_str().is_some_and(|why| why.contains("TLS with the server failed")),
        "{why}"
    );
    proxy.end();
}

#[test]
fn tls_is_read_with_a_key_log() {
    if !can_capture() {
        return;
    }
    let (folder, server) = sample(60);
    let paged = ["-b", PEOPLE, "-E", "pr=3/noprompt", "-LLL", "(uid=*)", "cn"];
    let suites = [
        ("NORMAL", server.ldaps(), &[][..]),
        ("NORMAL:-VERS-TLS-ALL:+VERS-TLS1.2", server.ldaps(), &[]),
        ("NORMAL:-CIPHER-ALL:+CHACHA20-POLY1305", server.ldaps(), &[]),
        ("NORMAL:-VERS-TLS-ALL:+VERS-TLS1.2:-CIPHER-ALL:+AES-128-GCM", server.ldap(), &["-ZZ"]),
    ];
    for (suite, url, starttls) in suites {
        let port = url.rsplit(':').next().expect("a port");
        let capture = Capture::start(folder.path(), port);
        let keylog = folder.path().join("keys.log");
        let mut command = server.tool("ldapsearch", url);
        command.args(["-D", server.administrator()]);
        command.args(["-y", server.text("administrator_password_file")]).args(starttls).args(paged);
        command.env("LDAPTLS_CIPHER_SUITE", suite).env("SSLKEYLOGFILE", &keylog);
        finish(&mut command, "").expect(0);
        // Without its keys it only says that it is there.
        let (told, file) = capture.end(1);
        assert!(told.iter().any(|one| one["event"] == "unreadable"), "{suite}: {told:#?}");
        assert!(told.iter().all(|one| one["op"] != "search"), "{suite}: {told:#?}");
        let read = |file: &Path| -> Vec<Value> {
            let mut command = Command::new(keyway());
            command.arg("decode").arg(file).args(["--json", "--port", port, "--keylog"]);
            let done = finish(command.arg(&keylog), "").expect(0);
            done.out.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect()
        };
        let pages = |told: &[Value]| {
            let page =
                |one: &&Value| one["op"] == "search" && one["entries"] == 3 && one["code"] == 0;
            told.iter().filter(page).count()
        };
        let told = read(&file);
        assert_eq!(pages(&told), 20, "{suite}: {told:#?}");
        assert_eq!(find(&told, "bind")["tls"], true);
        assert!(told.iter().any(|one| one["op"] == "unbind"), "{suite}");
        // Written without TLS, it is read without keys.
        let plain = folder.path().join("plain.pcapng");
        let mut write = Command::new(keyway());
        write.arg("decode").arg(&file).args(["--port", port, "--keylog"]).arg(&keylog);
        finish(write.arg("-w").arg(&plain), "").expect(0);
        let mut again = Command::new(keyway());
        let again = finish(again.arg("decode").arg(&plain).arg("--json"), "").expect(0).out;
        let again: Vec<Value> =
            again.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
        assert_eq!(pages(&again), 20, "{suite}: {again:#?}");
        std::fs::remove_file(&plain).expect("the plain one");
        // A packet of the server's in the middle is lost.
        let holed = folder.path().join("holed.pcap");
        without_a_packet(&file, &holed, |length| length > 400);
        let told = read(&holed);
        assert!(pages(&told) >= 17, "{suite}: {} pages: {told:#?}", pages(&told));
        assert!(told.iter().any(|one| one["event"] == "gap"), "{suite}");
        std::fs::remove_file(&keylog).expect("the key log");
    }
}
