//! `keyway top`: on a terminal, which is tmux's here, and as lines, beside a server and over LDAP.

use keyway_tests::slapd::{self, Slapd};
use keyway_tests::{Finished, Server, available, finish, keyway, port, sample};
use rustix::io::Errno;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

const NEEDS: &[&str] = &["tmux", "ldapsearch", "ldapmodify"];
/// Where the sample is.
const SUFFIX: &str = "dc=example,dc=com";
/// How long something may take that is bound to come.
const PATIENCE: Duration = Duration::from_secs(60);

/// A terminal with a program in it.
struct Pane {
    /// A tmux of its own.
    socket: tempfile::TempDir,
}

impl Pane {
    /// Runs `keyway top` with these arguments in a terminal of that size.
    fn open(width: u16, height: u16, arguments: &[&str]) -> Pane {
        let pane = Pane { socket: tempfile::tempdir().unwrap() };
        let quoted: Vec<String> = arguments.iter().map(|it| format!("'{it}'")).collect();
        let program = keyway().display().to_string();
        let line = format!("'{program}' top {}; echo ENDED $?; exec cat", quoted.join(" "));
        let (width, height) = (width.to_string(), height.to_string());
        let session = ["new-session", "-d", "-s", "top", "-x", &width, "-y", &height, &line];
        pane.tmux(&session);
        pane
    }

    fn tmux(&self, arguments: &[&str]) -> String {
        let mut command = Command::new("tmux");
        command.arg("-S").arg(self.socket.path().join("tmux")).args(["-f", "/dev/null"]);
        command.env("TERM", "screen-256color").env("LANG", "C.UTF-8");
        finish(command.args(arguments), "").expect(0).out
    }

    fn lines(&self) -> Vec<String> {
        let shown = self.tmux(&["capture-pane", "-p", "-t", "top"]);
        shown.lines().map(str::to_owned).collect()
    }

    fn press(&self, key: &str) {
        self.tmux(&["send-keys", "-t", "top", key]);
    }

    fn size(&self, width: u16, height: u16) {
        let (width, height) = (width.to_string(), height.to_string());
        self.tmux(&["resize-window", "-t", "top", "-x", &width, "-y", &height]);
    }

    /// Waits until the screen is as it should be.
    #[track_caller]
    fn wait(&self, what: &str, is_it: impl Fn(&[String]) -> bool) -> Vec<String> {
        let begun = Instant::now();
        loop {
            let lines = self.lines();
            if is_it(&lines) {
                return lines;
            }
            assert!(begun.elapsed() < PATIENCE, "no {what}:\n{}", lines.join("\n"));
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    #[track_caller]
    fn shows(&self, text: &str) -> Vec<String> {
        self.wait(text, |lines| lines.iter().any(|line| line.contains(text)))
    }
}

impl Drop for Pane {
    fn drop(&mut self) {
        let mut command = Command::new("tmux");
        command.arg("-S").arg(self.socket.path().join("tmux")).arg("kill-server");
        let _ = command.output();
    }
}

fn search(server: &Server, filter: &str) {
    let base = SUFFIX;
    let arguments = ["-LLL", "-b", base, filter, "1.1"];
    finish(server.admin_tool("ldapsearch").args(arguments), "").expect(0);
}

/// Some of all that there is to be seen.
fn work(server: &Server) {
    search(server, "(|(uid=nosuchuser)(cn=*x*))");
    search(server, "(sn=Weber)");
    let base = SUFFIX;
    let change = format!("dn: {base}\nchangetype: modify\nreplace: description\ndescription: x\n");
    finish(&mut server.admin_tool("ldapmodify"), &change).expect(0);
}

fn folder_of(server: &Server) -> &str {
    server.text("data")
}

#[test]
fn every_view_by_its_key_small_and_large() {
    if !available(NEEDS) {
        return;
    }
    let (_folder, server) = sample(20);
    work(&server);
    for (width, height) in [(80, 24), (200, 50)] {
        let pane = Pane::open(width, height, &["--data", folder_of(&server), "--interval", "0.2"]);
        let lines = pane.shows("since start");
        assert!(lines[0].contains("Keyway") && lines[0].contains("every 0.2s"), "{}", lines[0]);
        assert!(lines[usize::from(height) - 1].contains("q quit"), "{lines:?}");
        let line = lines.iter().find(|line| line.starts_with("time")).unwrap();
        assert!(line.contains("search") && line.contains("p99"), "{line}");
        assert_eq!(line.contains("dirty"), width == 200, "{line}");
        work(&server);
        for (key, texts) in [
            ("s", &["Store", "in use", "a commit and its sync"][..]),
            ("s", &["entries", "25"]),
            ("c", &["Drivers (by op/s)", "Clients of cryptod", "software", "keyway directory"]),
            ("n", &["Connections: 1 (by op/s)", "127.0.0.1:", "cn=admin,cn=keyway"]),
            ("f", &["Filters by cost", "sub (|(uid=?)(cn=*?*))", "sub (sn=?)", "100%"]),
            ("l", &["Slow operations", "search", "modify", "(|(uid=?)(cn=*?*))"]),
            ("?", &["sort by the column", "Ctrl-C"]),
            ("?", &["Slow operations"]),
            ("o", &["operation", "since start"]),
        ] {
            pane.press(key);
            for text in texts {
                pane.shows(text);
            }
        }
        pane.press("q");
        pane.shows("ENDED 0");
    }
    // Values of filters are nowhere.
    let pane = Pane::open(200, 50, &["--data", folder_of(&server), "--interval", "0.2"]);
    pane.press("l");
    let lines = pane.shows("(sn=?)");
    assert!(!lines.iter().any(|line| line.contains("Weber") || line.contains("nosuchuser")));
}

#[test]
fn a_terminal_that_is_closed_ends_it() {
    if !available(NEEDS) {
        return;
    }
    let (_folder, server) = sample(20);
    let pane = Pane::open(80, 24, &["--data", folder_of(&server)]);
    pane.shows("since start");
    let shell = pane.tmux(&["display-message", "-p", "-t", "top", "#{pane_pid}"]);
    let shell = shell.trim();
    let children = std::fs::read_to_string(format!("/proc/{shell}/task/{shell}/children")).unwrap();
    let line = format!("/proc/{}/cmdline", children.split_whitespace().next().unwrap());
    assert!(std::fs::read_to_string(&line).unwrap().contains("top"));
    drop(pane);
    let begun = Instant::now();
    // A process that has ended and was not waited for has no command line.
    while std::fs::read_to_string(&line).is_ok_and(|line| !line.is_empty()) {
        assert!(begun.elapsed() < PATIENCE, "it runs on");
        std::thread::sleep(Duration::from_millis(50));
    }
}

#[test]
fn it_sorts_pauses_follows_the_window_and_leaves_the_terminal_as_it_was() {
    if !available(NEEDS) {
        return;
    }
    let (_folder, server) = sample(20);
    work(&server);
    let pane = Pane::open(80, 24, &["--data", folder_of(&server), "--interval", "0.2"]);
    pane.shows("since start");
    pane.press("f");
    pane.shows("(by time)");
    pane.press(">");
    pane.press(">");
    pane.shows("(by count)");
    pane.press("r");
    pane.shows("(by count, reversed)");
    pane.press("<");
    pane.shows("(by now/s, reversed)");
    pane.press("p");
    let paused = pane.shows("PAUSED");
    search(&server, "(givenName=a*)");
    // Requests that come while it is paused are not shown; the lines that a key draws anew are the
    // same.
    pane.press("End");
    pane.press("Home");
    let same: Vec<String> = pane.lines();
    assert_eq!(paused[1..], same[1..]);
    pane.press("Space");
    pane.shows("(givenname=?*)");
    pane.size(60, 12);
    pane.wait("smaller footer", |lines| {
        lines.len() == 12
            && lines[11].starts_with(" o ops")
            && lines.iter().all(|it| it.len() <= 60)
    });
    pane.size(15, 3);
    pane.shows("too small");
    pane.size(132, 43);
    pane.wait("larger footer", |lines| lines.len() == 43 && lines[42].contains("q quit"));
    for signals in [&[Signal::TERM][..], &[Signal::INT], &[Signal::INT, Signal::TERM]] {
        let pane = Pane::open(80, 24, &["--data", folder_of(&server), "--interval", "0.2"]);
        pane.shows("since start");
        let alternate = || pane.tmux(&["display-message", "-p", "-t", "top", "#{alternate_on}"]);
        assert_eq!(alternate().trim(), "1");
        let shell = pane.tmux(&["display-message", "-p", "-t", "top", "#{pane_pid}"]);
        let shell: u32 = shell.trim().parse().unwrap();
        let children = std::fs::read_to_string(format!("/proc/{shell}/task/{shell}/children"));
        let top: i32 = children.unwrap().trim().parse().unwrap();
        for signal in signals {
            // The first one may have ended it by the time of the second.
            let sent = kill_process(Pid::from_raw(top).unwrap(), *signal);
            assert!(matches!(sent, Ok(()) | Err(Errno::SRCH)), "{sent:?}");
        }
        pane.shows("ENDED 0");
        assert_eq!(alternate().trim(), "0");
        // Typed text is seen, and a line at a time: the terminal is not raw.
        let modes = pane.tmux(&["display-message", "-p", "-t", "top", "#{pane_tty}"]);
        let modes = finish(Command::new("stty").arg("-a").arg("-F").arg(modes.trim()), "");
        let modes = modes.expect(0).out;
        assert!(modes.contains(" icanon") && modes.contains(" echo "), "{modes}");
    }
}

#[test]
fn a_server_that_goes_and_comes_back_and_two_at_once() {
    if !available(NEEDS) {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let (data, address) = (folder.path().join("data"), port());
    let start = |arguments: &[&str]| {
        let mut command = Command::new(keyway());
        command.args(["up", "--json", "--listen", "127.0.0.1:0", "--listen-tls", &address]);
        Server::spawn(command.arg("--data").arg(&data).args(arguments))
    };
    let mut server = start(&["--sample", "5"]);
    let password = server.text("administrator_password_file").to_owned();
    let ca = server.text("ca_certificate").to_owned();
    let two = [
        format!("ldaps://{address}"),
        format!("ldaps://{}", address.replace("127.0.0.1", "localhost")),
    ];
    let access = ["--bind-dn", "cn=admin,cn=keyway", "--password-file", &password, "--ca", &ca];
    let arguments = |urls: &[String]| -> Vec<String> {
        let access = access.iter().map(|it| (*it).to_owned());
        let rest = ["--interval", "0.3"].map(str::to_owned);
        urls.iter().cloned().chain(access).chain(rest).collect()
    };
    let one_host = arguments(&two[..1]);
    let one_host: Vec<&str> = one_host.iter().map(String::as_str).collect();
    let two_hosts = arguments(&two);
    let two_hosts: Vec<&str> = two_hosts.iter().map(String::as_str).collect();
    let (one, both) = (Pane::open(80, 24, &one_host), Pane::open(120, 24, &two_hosts));
    one.shows("since start");
    both.wait("a row each", |lines| {
        let row = |name: &str| {
            lines
                .iter()
                .any(|it| it.starts_with(name) && !it.contains("GONE") && it.contains(" 0 "))
        };
        row(&address) && row("localhost:")
    });
    both.press("Tab");
    both.shows("(2 of 2)");
    server.kill();
    one.shows("GONE: ");
    both.wait("both gone", |lines| {
        lines.iter().filter(|line| line.contains("GONE: ")).count() >= 2
    });
    let again = start(&[]);
    let is_back = |lines: &[String]| !lines.iter().any(|line| line.contains("GONE"));
    one.wait("it again", |lines| {
        is_back(lines) && lines.iter().any(|it| it.contains("since start"))
    });
    both.wait("both again", is_back);
    one.press("s");
    one.shows("in use");
    drop(again);
}

fn top(arguments: &[&str]) -> Finished {
    finish(Command::new(keyway()).arg("top").args(arguments), "")
}

#[test]
fn json_and_csv_over_ldap_for_the_administrator_only() {
    if !available(&["ldapsearch"]) {
        return;
    }
    let (_folder, server) = sample(5);
    let (url, ca) = (server.ldaps(), server.text("ca_certificate"));
    let password = server.text("administrator_password_file");
    let as_administrator = ["--bind-dn", "cn=admin,cn=keyway", "--password-file", password];
    let more = ["--ca", ca, "--interval", "0.1", "--count", "3"];
    let with = |form: &[&str], login: &[&str]| top(&[&[url][..], form, login, &more].concat());
    let json = with(&["--json"], &as_administrator).expect(0).out;
    let lines: Vec<Value> = json.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(lines.len(), 3);
    for line in &lines {
        assert!(line["kind"].as_str().unwrap().starts_with("Keyway"));
        assert!(line["figures"]["search"].as_f64().unwrap() > 0.0, "its own: {line}");
        assert!(line["operations"]["search"]["p50_us"].as_f64().unwrap() > 0.0, "{line}");
        assert!(line["figures"]["connections"].as_f64().unwrap() >= 1.0);
    }
    let csv = with(&["--csv"], &as_administrator).expect(0).out;
    let rows: Vec<Vec<&str>> = csv.lines().map(|line| line.split(',').collect()).collect();
    assert_eq!((rows.len(), rows[0][0], rows[0][1]), (4, "time", "server"));
    assert!(rows.iter().all(|row| row.len() == rows[0].len()));
    assert!(rows[1..].iter().flat_map(|row| &row[2..]).all(|it| it.parse::<f64>().is_ok()));
    let text = with(&[], &as_administrator).expect(0).out;
    assert!(text.starts_with("server"), "{text}");
    assert_eq!(text.lines().count(), 4);
    // No other user.
    assert!(with(&[], &[]).expect(1).err.contains("--bind-dn"));
    let sample_password = server.text("sample_password_file");
    let people =
        finish(server.admin_tool("ldapsearch").args(["-LLL", "-b", SUFFIX, "(uid=*)", "1.1"]), "");
    let person = people
        .expect(0)
        .out
        .lines()
        .find_map(|it| it.strip_prefix("dn: ").map(str::to_owned))
        .unwrap();
    let login = ["--bind-dn", &person, "--password-file", sample_password];
    assert!(with(&[], &login).expect(1).err.contains("cn=monitor"));
    let wrong = ["--bind-dn", "cn=admin,cn=keyway", "--password-file", sample_password];
    assert!(with(&[], &wrong).expect(1).err.contains("not tried again"));
    // Each of several servers may have a login of its own; the one that is refused is asked once.
    let (_other_folder, other) = sample(5);
    let both = [url, other.ldaps(), "--insecure", "--interval", "0.1", "--count", "4"];
    let each = [&both[..], &as_administrator, &wrong].concat();
    let shown = top(&each).expect(0);
    assert!(
        shown.err.contains("not tried again") && shown.err.contains("--insecure"),
        "{}",
        shown.err
    );
    assert!(shown.out.contains("127.0.0.1"), "{}", shown.out);
    assert_eq!(other.refused_binds(Path::new(folder_of(&other))), 1);
    let three = [&both[..], &as_administrator, &wrong, &wrong].concat();
    assert!(top(&three).expect(2).err.contains("one for each URL"));
    // The same numbers beside the server.
    let data = folder_of(&server);
    let here = top(&["--data", data, "--json", "--count", "1", "--interval", "0.1"]).expect(0).out;
    let here: Value = serde_json::from_str(here.trim()).unwrap();
    for name in ["total", "p99_us", "queue", "changes_a_commit", "hash_threads", "busy"] {
        assert!(here["figures"][name].is_number(), "{name} in {here}");
        assert!(lines[0]["figures"][name].is_number(), "{name}");
    }
    let csv = top(&["--data", data, "--csv", "--count", "2", "--interval", "0.1"]).expect(0).out;
    assert_eq!(csv.lines().count(), 3);
}

#[test]
fn the_monitor_tells_what_is_slow_and_what_filters_cost_without_their_values() {
    if !available(NEEDS) {
        return;
    }
    let (_folder, server) = sample(5);
    search(&server, "(&(objectClass=person)(telephoneNumber=+1555secret*))");
    search(&server, "(userPassword=hunter2)");
    let monitor = |base: &str| {
        let arguments = ["-LLL", "-o", "ldif-wrap=no", "-b", base, "*", "+"];
        finish(server.admin_tool("ldapsearch").args(arguments), "").expect(0).out
    };
    let filters = monitor("cn=Filters,cn=monitor");
    assert!(filters.contains("filter=(&(objectclass=?)(telephonenumber=?*))"), "{filters}");
    assert!(filters.contains("filter=(userpassword=?)"), "{filters}");
    assert!(filters.contains("searches=1") && filters.contains("candidates="), "{filters}");
    let slow = monitor("cn=Slow,cn=monitor");
    for fact in
        ["operation=bind", "operation=search", "time_us=", "crypto_us=", "store_us=", "scope=sub"]
    {
        assert!(slow.contains(fact), "{fact} in {slow}");
    }
    for secret in ["secret", "hunter2"] {
        assert!(!filters.contains(secret) && !slow.contains(secret));
    }
    let connections = monitor("cn=Connections,cn=monitor");
    assert!(connections.contains("tls=TLSv1.3") && connections.contains("group="), "{connections}");
    assert!(connections.contains("in_flight=0") && connections.contains("idle_ms="));
    let counters = monitor("cn=Counters,cn=monitor");
    for name in
        ["ldap.time.search", "tls.handshakes", "store.group", "password.threads", "ldap.busy"]
    {
        assert!(counters.contains(&format!("cn: {name}\n")), "{name}");
    }
    let metrics =
        finish(Command::new(keyway()).args(["metrics", "--data", folder_of(&server)]), "");
    let metrics = metrics.expect(0).out;
    for name in [
        "keyway_ldap_time_seconds_count{operation=\"search\",process=\"directory\"}",
        "keyway_search_filter_searches_total{scope=\"sub\",filter=\"(userpassword=?)\"",
        "keyway_store_entries ",
        "keyway_tls_handshakes_total ",
    ] {
        assert!(metrics.contains(name), "{name} in {metrics}");
    }
    assert!(!Path::new(folder_of(&server)).join("meter.new").exists());
}

#[test]
fn slapd_shows_what_it_counts() {
    if !available(&[slapd::NEEDS]) {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let slapd = Slapd::start(folder.path());
    let begun = Instant::now();
    let line = loop {
        let done = top(&[&slapd.url, "--json", "--interval", "0.1", "--count", "1"]);
        if done.code == 0 {
            break done.out;
        }
        assert!(begun.elapsed() < PATIENCE, "{}", done.err);
        std::thread::sleep(Duration::from_millis(50));
    };
    let line: Value = serde_json::from_str(line.trim()).unwrap();
    assert!(line["kind"].as_str().unwrap().starts_with("OpenLDAP"), "{line}");
    assert!(line["figures"]["search"].as_f64().unwrap() > 0.0, "its own: {line}");
    assert!(line["figures"]["entries_sent"].as_f64().unwrap() > 0.0, "{line}");
    assert_eq!(line["figures"]["connections"], 1.0);
}
