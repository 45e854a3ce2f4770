//! A data folder that loses its configuration or its store gets none that is wider or emptier
//! instead.

use keyway_tests::client::Client;
use keyway_tests::{Finished, Server, available, finish, keyway, port, sample};
use rustix::process::Signal;
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Writes access rules that let users read from one other network only, and returns the file's
/// text. The default rules let more clients read.
fn restrict(data: &Path) -> String {
    let file = data.join("keyway.toml");
    let text = fs::read_to_string(&file).unwrap();
    let (head, _) = text.split_once("[[access]]").unwrap();
    let rules = "[[access]]\nwho = \"administrator\"\nwhat = \"everything\"\nrights = [\"all\"]\n\n\
        [[access]]\nwho = \"users\"\nrights = [\"read\", \"search\"]\nwhat = \"data\"\n\
        from = [\"192.0.2.0/24\"]\n";
    let own = format!("{head}{rules}");
    fs::write(&file, &own).unwrap();
    own
}

fn start_fails(data: &Path, parts: &[&str]) {
    let mut command = Command::new(keyway());
    command.args(["up", "--listen", "127.0.0.1:0", "--listen-tls", "127.0.0.1:0", "--data"]);
    let Finished { code, err, .. } = finish(command.arg(data), "");
    assert_eq!(code, 1, "{err}");
    for part in parts {
        assert!(err.contains(part), "{part:?} is not in {err:?}");
    }
}

fn config(data: &Path, arguments: &[&str]) -> Finished {
    let mut command = Command::new(keyway());
    finish(command.arg("config").args(arguments).arg("--data").arg(data), "")
}

/// How many entries a client sees that has not logged in.
fn seen(server: &Server) -> usize {
    let mut client = Client::connect(server.address().parse().unwrap()).unwrap();
    client.search_all("dc=example,dc=com").unwrap_or_default()
}

#[test]
fn a_configuration_that_is_lost_or_cut_is_refused_at_a_start() {
    let (folder, server) = sample(3);
    let data = folder.path().join("data");
    assert!(server.stop().success());
    let (file, own) = (data.join("keyway.toml"), restrict(&data));
    // An edit by hand needs no ceremony, rules of one's own neither.
    let server = Server::start(&data, &[]);
    assert_eq!(seen(&server), 0);
    assert!(server.stop().success());

    let half = &own[..own.len() / 2];
    let before_rules = own.split_once("[[access]]").unwrap().0;
    let without_network = own.trim_end().rsplit_once('\n').unwrap().0;
    for cut in ["", "# nothing\n", half, before_rules, without_network] {
        fs::write(&file, cut).unwrap();
        start_fails(&data, &["keyway.toml"]);
        if cut.is_empty() {
            start_fails(&data, &["looks like what is left", "config restore", "config accept"]);
        }
        assert_eq!(fs::read_to_string(&file).unwrap(), cut, "it is left as it was");
    }
    fs::remove_file(&file).unwrap();
    start_fails(&data, &["keyway.toml is gone", "config restore", "config accept --default"]);
    assert!(!file.exists());
    // Nor do other commands take it for the default one.
    let mut import = Command::new(keyway());
    import.args(["directory", "import", "-", "--data"]).arg(&data);
    let refused = finish(&mut import, "").expect(1);
    assert!(refused.err.contains("is gone"), "{}", refused.err);

    config(&data, &["restore"]).expect(0);
    assert_eq!(fs::read_to_string(&file).unwrap(), own);
    // Edits are kept, and another file is called by its own name.
    let edited = format!("{own}# mine\n");
    fs::write(&file, &edited).unwrap();
    assert!(config(&data, &["restore"]).expect(0).err.contains("keyway.toml.before-restore"));
    assert_eq!(fs::read_to_string(data.join("keyway.toml.before-restore")).unwrap(), edited);
    assert_eq!(fs::read_to_string(&file).unwrap(), own);
    let other = data.join("other.toml");
    for (text, why) in
        [("", "would be refused as "), ("[indexes]\nnosuch = [\"equality\"]\n", "nosuch")]
    {
        fs::write(&other, text).unwrap();
        let refused = config(&data, &["check", other.to_str().unwrap()]).expect(1);
        assert!(refused.err.contains("other.toml") && refused.err.contains(why), "{}", refused.err);
        assert!(!refused.err.contains("config accept"), "{}", refused.err);
    }
    fs::remove_file(&other).unwrap();
    let server = Server::start(&data, &[]);
    assert_eq!(seen(&server), 0);
    assert!(server.stop().success());

    // Meant on purpose.
    fs::write(&file, before_rules).unwrap();
    config(&data, &["check"]).expect(1);
    config(&data, &["accept"]).expect(0);
    assert!(Server::start(&data, &[]).stop().success());
    assert!(!data.join("keyway.toml.accepted").exists());
    assert!(Server::start(&data, &[]).stop().success(), "once and for all");
}

#[test]
fn a_running_server_takes_no_configuration_that_was_cut() {
    let (folder, mut server) = sample(3);
    let data = folder.path().join("data");
    let (file, own) = (data.join("keyway.toml"), restrict(&data));
    let reload = |server: &mut Server| {
        server.signal(Signal::HUP);
        server.next_event()
    };
    assert_eq!(reload(&mut server)["event"], "reloaded");
    assert_eq!(seen(&server), 0);
    for cut in ["", &own[..own.find("[[access]]").unwrap()]] {
        fs::write(&file, cut).unwrap();
        let refused = reload(&mut server);
        assert_eq!(refused["event"], "not-reloaded");
        assert!(
            refused["error"].as_str().unwrap().contains("looks like what is left"),
            "{refused}"
        );
        assert_eq!(seen(&server), 0);
        // An edit of it would have the rest forgotten, also one over LDAP.
        let refused = config(&data, &["set", "limits.idle_max_s", "600"]).expect(1).err;
        assert!(refused.contains("looks like what is left"), "{refused}");
        let change = "dn: cn=limits,cn=config\nchangetype: modify\nreplace: keywayIdleMaxS\n\
                      keywayIdleMaxS: 600\n";
        finish(&mut server.admin_tool("ldapmodify"), change).expect(53);
        assert_eq!(fs::read_to_string(&file).unwrap(), cut);
        assert_eq!(seen(&server), 0);
    }
    fs::remove_file(&file).unwrap();
    assert!(reload(&mut server)["error"].as_str().unwrap().contains("is gone"));
    assert_eq!(seen(&server), 0);
    config(&data, &["restore"]).expect(0);
    assert_eq!(server.next_event()["event"], "reloaded");
    // A command that takes all rules away would give the default ones.
    let refused = config(&data, &["set", "access", "[]"]).expect(1);
    assert!(refused.err.contains("[[access]] rules are gone"), "{}", refused.err);
    fs::write(&file, &own[..own.find("[[access]]").unwrap()]).unwrap();
    let accepted = config(&data, &["accept", "--json"]).expect(0);
    assert!(accepted.out.contains("the server has taken it"), "{}", accepted.out);
    assert!(server.stop().success());
}

/// The sample people share a password, and one who has it reads what others may.
#[test]
fn a_directory_that_was_begun_empty_gets_no_sample() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    for arguments in [&["--empty"][..], &[], &["--sample", "3"]] {
        let server = Server::start(&data, arguments);
        assert_eq!(server.ready["entries"], 0, "{arguments:?}");
        assert!(server.stop().success());
    }
    assert!(!data.join("sample-password").exists());
}

#[test]
fn a_store_that_is_gone_is_not_filled_anew() {
    let (folder, server) = sample(3);
    let data = folder.path().join("data");
    assert!(server.stop().success());
    let (store, aside) = (data.join("store"), folder.path().join("aside"));
    fs::rename(&store, &aside).unwrap();
    start_fails(&data, &["the store is gone", "restore", "backup"]);
    assert!(!store.exists(), "none is made in its place");
    for command in [["directory", "export"], ["directory", "check"]] {
        let mut command = command.iter().fold(Command::new(keyway()), |mut command, argument| {
            command.arg(argument);
            command
        });
        let refused = finish(command.arg("--data").arg(&data), "").expect(1);
        assert!(refused.err.contains("the store is gone"), "{}", refused.err);
    }
    // A folder with nothing but the lock is no store either.
    fs::create_dir(&store).unwrap();
    fs::copy(aside.join("lock"), store.join("lock")).unwrap();
    start_fails(&data, &["the store is gone"]);
    fs::remove_dir_all(&store).unwrap();
    // Another folder's.
    let (other, server) = sample(5);
    assert!(server.stop().success());
    let copied =
        Command::new("cp").arg("-r").arg(other.path().join("data/store")).arg(&store).status();
    assert!(copied.unwrap().success());
    start_fails(&data, &["another store", "take the line \"store "]);
    fs::remove_dir_all(&store).unwrap();
    fs::rename(&aside, &store).unwrap();
    let server = Server::start(&data, &[]);
    assert_eq!(server.ready["first_start"], Value::Bool(false));
    assert!(server.stop().success());
}

#[test]
fn a_server_whose_store_is_taken_away_acknowledges_nothing_more() {
    type Harm = fn(&Path, &Path);
    let harms: [(&str, Harm); 3] = [
        ("store moved", |data, aside| fs::rename(data.join("store"), aside).unwrap()),
        ("folder moved", |data, aside| fs::rename(data, aside).unwrap()),
        ("store replaced", |data, aside| {
            let store = data.join("store");
            let copied = Command::new("cp").arg("-r").arg(&store).arg(aside).status();
            assert!(copied.unwrap().success());
            fs::rename(&store, data.join("old")).unwrap();
            fs::rename(aside, &store).unwrap();
        }),
    ];
    for (what, harm) in harms {
        let folder = tempfile::tempdir().unwrap();
        let data = folder.path().join("data");
        let mut server = Server::start(&data, &["--sample", "1"]);
        let mut client = Client::connect(server.address().parse().unwrap()).unwrap();
        client.bind(server.administrator(), &server.password()).unwrap();
        let mut add = |name: &str| {
            let dn = format!("ou={name},dc=example,dc=com");
            client.add(&dn, &[("objectClass", &["organizationalUnit"]), ("ou", &[name])])
        };
        add("before").unwrap();
        harm(&data, &folder.path().join("aside"));
        let refused = add("after").unwrap_err();
        assert!(refused.contains("navailable") || refused.contains("moved"), "{what}: {refused}");
        // It ends, and says why.
        let end = server.next_event();
        assert_eq!(end["event"], "failed", "{what}: {end}");
        assert!(end["error"].as_str().unwrap().contains("moved, removed or replaced"), "{end}");
        while server.is_up() {
            std::thread::sleep(std::time::Duration::from_millis(20));
        }
    }
}

#[test]
fn a_server_with_only_a_unix_socket() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    let off = ["--listen", "off", "--listen-tls", "off", "--listen-unix", "ldapi", "--empty"];
    let mut command = Command::new(keyway());
    command.args(["up", "--json", "--data"]).arg(&data).args(off);
    let server = Server::spawn(&mut command);
    assert!(server.text("ldapi").starts_with("ldapi://"));
    assert_eq!(server.ready["first_start"], Value::Bool(true), "also without entries");
    let socket = data.join("ldapi");
    let stream = std::os::unix::net::UnixStream::connect(socket).unwrap();
    let mut client = Client::over(stream);
    client.bind(server.administrator(), &server.password()).unwrap();
    assert_eq!(client.read("").unwrap(), 1);
    assert!(server.stop().success());
}

#[test]
fn several_settings_at_once_and_those_that_would_stop_a_start() {
    let (folder, server) = sample(1);
    let data = folder.path().join("data");
    // The server has a flag for it.
    let said = config(&data, &["set", "listen", &port()]).expect(0).out;
    assert!(said.contains("started with --listen, which wins"), "{said}");
    let made = Command::new("openssl")
        .args(["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes"])
        .args(["-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost", "-keyout"])
        .arg(data.join("own.key"))
        .arg("-out")
        .arg(data.join("own.pem"))
        .output()
        .unwrap();
    assert!(made.status.success(), "{made:?}");
    config(&data, &["set", "tls.certificate", "own.pem"]).expect(1);
    let said = config(&data, &["set", "tls.certificate=own.pem", "tls.key=own.key", "--json"]);
    let said: Value = serde_json::from_str(&said.expect(0).out).unwrap();
    assert_eq!(said["settings"].as_array().unwrap().len(), 2);
    assert!(said["settings"][1]["state"].as_str().unwrap().contains("has taken it"), "{said}");
    assert!(server.stop().success());

    let before = fs::read_to_string(data.join("keyway.toml")).unwrap();
    let long = format!("unix/{}", "x".repeat(200));
    for (setting, why) in [
        ("naming_contexts=notadn", "is not a valid DN"),
        ("naming_contexts=[\"cn=config\"]", "the server's own"),
        ("listen=192.0.2.77:389", "no address of this machine"),
        ("listen_unix=nowhere/ldapi", "there is no folder"),
        ("log.folder=keyway.toml", "is no folder"),
        ("tls.certificate=gone.pem", "gone.pem"),
        ("log.mode=0777", "is not one of"),
        (&format!("listen_unix={long}"), "107 bytes at most"),
    ] {
        let refused = config(&data, &["set", setting, "limits.idle_max_s=99"]).expect(1).err;
        assert!(refused.contains(why), "{setting}: {refused}");
        let (key, value) = setting.split_once('=').unwrap();
        let own = with(&before, key, value);
        let new = folder.path().join("new.toml");
        fs::write(&new, own).unwrap();
        let refused = config(&data, &["check", new.to_str().unwrap()]).expect(1).err;
        assert!(refused.contains(why), "{setting}: {refused}");
    }
    // Those that only the store can judge.
    for (setting, why) in [
        ("indexes.nosuch=equality", "there is no attribute \"nosuch\""),
        ("indexes.jpegPhoto=equality", "no rule to index by"),
        ("integrity.unique={attributes=[\"nosuch\"]}", "nosuch is not known"),
        ("limits.idle_max_s=-1", "less than 0"),
        ("limits.idle_max_s=99999999999999999999", "too large"),
    ] {
        let refused = config(&data, &["set", setting]).expect(1).err;
        assert!(refused.contains(why), "{setting}: {refused}");
    }
    let unknown = format!("{before}\n[[integrity.unique]]\nattributes = [\"nosuch\"]\n");
    let new = folder.path().join("new.toml");
    fs::write(&new, unknown).unwrap();
    let refused = config(&data, &["check", new.to_str().unwrap()]).expect(1).err;
    assert!(refused.contains("nosuch is not known"), "{refused}");
    let twice = ["set", "limits.idle_max_s=500", "limits.idle_max_s=400"];
    let refused = config(&data, &twice).expect(2).err;
    assert!(refused.contains("limits.idle_max_s is given twice"), "{refused}");
    assert_eq!(fs::read_to_string(data.join("keyway.toml")).unwrap(), before);
    config(&data, &["check"]).expect(0);
}

/// A FIFO in the configuration's place, or behind a link there, is neither waited for nor replaced.
#[test]
fn only_a_plain_file_is_a_configuration() {
    let (folder, mut server) = sample(1);
    let data = folder.path().join("data");
    let (file, aside) = (data.join("keyway.toml"), folder.path().join("aside"));
    let fifo = folder.path().join("fifo");
    assert!(Command::new("mkfifo").arg(&fifo).status().unwrap().success());
    fs::rename(&file, &aside).unwrap();
    std::os::unix::fs::symlink(&fifo, &file).unwrap();
    server.signal(Signal::HUP);
    let event = server.next_event();
    assert!(event["error"].as_str().unwrap().contains("is no plain file"), "{event}");
    for arguments in
        [&["check"][..], &["get", "log.mode"], &["set", "log.mode", "0640"], &["restore"]]
    {
        if arguments[0] == "get" {
            // The running server says what is in force.
            config(&data, arguments).expect(0);
            continue;
        }
        let refused = config(&data, arguments).expect(1).err;
        assert!(refused.contains("is no plain file"), "{arguments:?}: {refused}");
    }
    assert!(fs::symlink_metadata(&file).unwrap().is_symlink());
    fs::remove_file(&file).unwrap();
    fs::rename(&aside, &file).unwrap();
    config(&data, &["set", "log.mode", "0640"]).expect(0);
    assert!(server.stop().success());
}

/// A configuration with another value in the line of a setting.
fn with(text: &str, key: &str, value: &str) -> String {
    let (section, name) = key.split_once('.').unwrap_or(("", key));
    let value = match (name, value.starts_with('[')) {
        (_, true) => value.to_owned(),
        ("naming_contexts", false) => format!("[\"{value}\"]"),
        (_, false) => format!("\"{value}\""),
    };
    let mut within = "";
    let mut new = String::new();
    for line in text.lines() {
        within = line.strip_prefix('[').map_or(within, |rest| rest.trim_matches(['[', ']']));
        match within == section && line.starts_with(&format!("{name} = ")) {
            true => new += &format!("{name} = {value}\n"),
            false => new += &format!("{line}\n"),
        }
    }
    assert_ne!(new, text, "{key}");
    new
}

#[test]
fn logs_that_a_group_may_read() {
    use std::os::unix::fs::PermissionsExt;
    let (folder, mut server) = sample(1);
    let data = folder.path().join("data");
    let mode = |path: PathBuf| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    let logs = data.join("log");
    assert_eq!((mode(logs.clone()), mode(logs.join("audit.log"))), (0o700, 0o600));
    config(&data, &["set", "log.mode", "0640"]).expect(0);
    assert_eq!(server.next_event()["event"], "reloaded");
    assert_eq!((mode(logs.clone()), mode(logs.join("audit.log"))), (0o750, 0o640));
    assert!(server.stop().success());
}

#[test]
fn what_an_add_is_told_that_cannot_be() {
    if !available(&["ldapadd"]) {
        return;
    }
    let (_folder, server) = sample(1);
    let outside = "dn: o=none\nobjectClass: organization\no: none\n";
    let refused = finish(&mut server.admin_tool("ldapadd"), outside).expect(32).err;
    assert!(refused.contains("naming_contexts"), "{refused}");
    // All of it is sent before the answer is read.
    let photo = "QUJD".repeat(3_000_000);
    let long = format!(
        "dn: uid=long,ou=People,dc=example,dc=com\nobjectClass: inetOrgPerson\nuid: long\ncn: l\nsn: l\n\
         jpegPhoto:: {photo}\n"
    );
    let refused = finish(&mut server.admin_tool("ldapadd"), &long).expect(11).err;
    assert!(refused.contains("message_bytes_max"), "{refused}");
}

#[test]
fn an_export_in_the_first_instants_of_a_server_waits_for_it() {
    let (folder, server) = sample(3);
    let data = folder.path().join("data");
    assert!(server.stop().success());
    let mut up = Command::new(keyway());
    up.args(["up", "--json", "--listen", "127.0.0.1:0", "--listen-tls", "off", "--data"])
        .arg(&data);
    let starting = std::thread::spawn(move || Server::spawn(&mut up));
    // Its lock is there, and it is not ready.
    let is_taken = || {
        let lock = fs::File::open(data.join("lock")).unwrap();
        rustix::fs::flock(lock, rustix::fs::FlockOperation::NonBlockingLockShared).is_err()
    };
    while !is_taken() {
        std::thread::yield_now();
    }
    let mut export = Command::new(keyway());
    let exported = finish(export.args(["directory", "export", "--data"]).arg(&data), "").expect(0);
    assert!(exported.out.contains("dn: dc=example,dc=com"));
    assert!(starting.join().unwrap().stop().success());
}
