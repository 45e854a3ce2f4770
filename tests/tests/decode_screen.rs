//! `keyway decode --tui` on a terminal of tmux, as its user sees it.

use keyway_tests::proxy::captured;
use keyway_tests::{Server, available, finish, keyway, sample};
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

/// A terminal of its own.
struct Terminal {
    socket: String,
}

impl Terminal {
    /// A shell on a terminal of so many columns and lines.
    fn open(folder: &Path, columns: &str, lines: &str) -> Terminal {
        let terminal = Terminal { socket: folder.join("tmux").display().to_string() };
        let size = ["new-session", "-d", "-x", columns, "-y", lines];
        terminal.tmux(&[&size[..], &["env", "PS1=$ ", "TERM=screen-256color", "sh"]].concat());
        terminal
    }

    fn tmux(&self, arguments: &[&str]) -> String {
        let mut tmux = Command::new("tmux");
        tmux.args(["-f", "/dev/null", "-S", &self.socket]).args(arguments);
        finish(&mut tmux, "").expect(0).out
    }

    fn keys(&self, keys: &[&str]) {
        self.tmux(&[&["send-keys"], keys].concat());
    }

    /// Waits until the screen has this on it.
    #[track_caller]
    fn until(&self, wanted: &str) -> String {
        self.until_so(wanted, |screen| screen.contains(wanted))
    }

    #[track_caller]
    fn until_so(&self, what: &str, is_so: impl Fn(&str) -> bool) -> String {
        let begun = Instant::now();
        loop {
            let screen = self.tmux(&["capture-pane", "-p"]);
            if is_so(&screen) {
                return screen;
            }
            assert!(begun.elapsed() < Duration::from_secs(20), "no {what} in\n{screen}");
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        let mut tmux = Command::new("tmux");
        finish(tmux.args(["-S", &self.socket, "kill-server"]), "");
    }
}

fn searched(server: &Server, url: &str, filter: &str) {
    let mut command = server.tool("ldapsearch", url);
    command.args(["-D", server.administrator()]);
    command.args(["-y", server.text("administrator_password_file")]);
    finish(command.args(["-b", "dc=example,dc=com", filter, "cn"]), "").expect(0);
}

/// Five connections: a bind, a search and an unbind each.
fn capture(server: &Server, folder: &Path) -> String {
    let file = folder.join("traffic.pcapng");
    captured(server.ldap(), &file, 5, |url| {
        for filter in ["(uid=a*)", "(uid=b*)", "(sn=c*)", "(uid=d*)", "(cn=e*)"] {
            searched(server, url, filter);
        }
    });
    file.display().to_string()
}

#[test]
fn a_capture_is_looked_through() {
    if !available(&["tmux", "ldapsearch"]) {
        return;
    }
    let (folder, server) = sample(50);
    let file = capture(&server, folder.path());
    let terminal = Terminal::open(folder.path(), "80", "24");
    let begin = format!(
        "clear; stty -g; {} decode {file} --tui; echo \"status $?\"; stty -g; echo ended",
        keyway().display()
    );
    terminal.keys(&[&begin, "Enter"]);
    let screen = terminal.until("complete");
    assert!(screen.contains("15 of 15"), "{screen}");
    assert!(screen.lines().all(|line| line.chars().count() <= 80), "{screen}");
    assert!(screen.lines().nth(2).is_some_and(|line| line.starts_with("> ")), "{screen}");
    // A filter acts while it is typed, and one that means nothing says why.
    terminal.keys(&["f", "op=sea"]);
    terminal.until("0 of 15");
    terminal.keys(&["rch"]);
    terminal.until("5 of 15");
    terminal.keys(&["Enter", "f", "C-u", "(latancy>=1)"]);
    terminal.until("latency is one");
    terminal.keys(&["Escape"]);
    terminal.until("filter op=search");
    terminal.keys(&["f", "C-u", "&(op=search)(filter=*uid*)", "Enter"]);
    terminal.until("3 of 15");
    // Marks, and what is marked only.
    terminal.keys(&["m", "j", "m", "M"]);
    let marked = terminal.until("2 of 15");
    assert!(marked.contains("marked only") && marked.contains(">*"), "{marked}");
    terminal.keys(&["M", "f", "C-u", "Enter", "s"]);
    terminal.until("by latency");
    terminal.keys(&["S", "s", "s", "s", "s", "S"]);
    terminal
        .until_so("by time", |screen| screen.contains("by time") && !screen.contains("reversed"));
    // Marked ones as commands, and in a file.
    terminal.keys(&["y", "l"]);
    let words = terminal.until("ldap-utils");
    assert!(words.contains("(uid=a*)") && words.contains("-W"), "{words}");
    assert!(!words.contains(&server.password()), "{words}");
    let written = folder.path().join("marked.pcapng").display().to_string();
    terminal.keys(&["q", "w", &written, "Enter"]);
    terminal.until("2 operations written");
    let again = Command::new(keyway()).args(["decode", &written]).output().expect("it runs");
    let again = String::from_utf8_lossy(&again.stdout).into_owned();
    assert_eq!(again.matches(" search ").count(), 2, "{again}");
    one(&terminal);
    // The terminal is what it was.
    terminal.keys(&["q", "q"]);
    let shell = terminal.until("ended");
    assert!(shell.contains("status 0"), "{shell}");
    let modes: Vec<&str> = shell.lines().filter(|line| line.matches(':').count() > 10).collect();
    assert!(modes.len() == 2 && modes[0] == modes[1], "{shell}");
}

/// One operation, as elements, octets and words.
fn one(terminal: &Terminal) {
    terminal.keys(&["g", "j", "Enter"]);
    let tree = terminal.until("searchRequest");
    assert!(tree.contains("baseObject: dc=example,dc=com"), "{tree}");
    terminal.keys(&["j", "j", "j", "Space"]);
    terminal.until_so("folded", |screen| !screen.contains("baseObject"));
    terminal.keys(&["Space", "Tab"]);
    let octets = terminal.until("000000  30");
    assert!(octets.contains("dc=example,dc=c"), "{octets}");
    terminal.keys(&["Tab"]);
    let words = terminal.until("filter       (uid=a*)");
    assert!(words.contains("deref        never"), "{words}");
    terminal.keys(&["n"]);
    terminal.until("unbind: -");
    terminal.keys(&["?"]);
    terminal.until("look at it");
    terminal.keys(&["x"]);
    terminal.until_so("no help", |screen| !screen.contains("look at it"));
    // Its colours are the terminal's own: no background is set.
    let colours = terminal.tmux(&["capture-pane", "-p", "-e"]);
    assert!(!colours.contains("\u{1b}[48;") && !colours.contains(";48;"), "{colours}");
}

#[test]
fn tree_and_octets_are_side_by_side_where_there_is_room() {
    if !available(&["tmux", "ldapsearch"]) {
        return;
    }
    let (folder, server) = sample(10);
    let file = capture(&server, folder.path());
    let terminal = Terminal::open(folder.path(), "160", "45");
    terminal.keys(&[
        &format!("{} decode - --tui < {file}; echo status $?", keyway().display()),
        "Enter",
    ]);
    terminal.until("complete");
    terminal.keys(&["g", "j", "Enter"]);
    let screen = terminal.until("searchRequest");
    assert!(screen.contains("000000  30"), "{screen}");
    // Whatever ends it, the terminal can be used again; also if it is asked twice at once.
    let twice = "pkill -INT -P #{pane_pid}; pkill -TERM -P #{pane_pid}; true";
    terminal.tmux(&["run-shell", twice]);
    terminal.until("status 0");
    terminal.keys(&["clear; echo $((6*7))", "Enter"]);
    terminal.until("42");
}

#[test]
fn what_passes_the_proxy_is_seen() {
    if !available(&["tmux", "ldapsearch"]) {
        return;
    }
    let (folder, server) = sample(10);
    let terminal = Terminal::open(folder.path(), "80", "24");
    let listen = std::net::TcpListener::bind("127.0.0.1:0").expect("a port").local_addr();
    let url = format!("ldap://{}", listen.expect("an address"));
    let address = url.trim_start_matches("ldap://");
    let proxy = format!(
        "{} decode proxy --tui --listen {address} --to {}; echo status $?",
        keyway().display(),
        server.ldap()
    );
    terminal.keys(&[&proxy, "Enter"]);
    terminal.until("nothing yet");
    searched(&server, &url, "(uid=a*)");
    terminal.until("4 of 4");
    terminal.keys(&["P"]);
    terminal.until("paused");
    searched(&server, &url, "(uid=b*)");
    terminal.keys(&["P"]);
    // The newest is looked at: the end of its connection.
    let screen = terminal.until("8 of 8");
    assert!(
        screen.lines().any(|line| line.starts_with('>') && line.contains("closed")),
        "{screen}"
    );
    terminal.keys(&["q"]);
    terminal.until("status 0");
}
