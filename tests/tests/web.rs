//! `keyway web` in Chromium, against real servers: what the page shows is what was done.

use keyway_tests::authority::Authority;
use keyway_tests::browser::{Browser, NEEDS, key};
use keyway_tests::client::Client;
use keyway_tests::dirsrv::{self, Dirsrv};
use keyway_tests::slapd::{self, Slapd};
use keyway_tests::{Server, available, finish, keyway, nightly, sample};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::Duration;

const PEOPLE: u32 = 200;

/// A running `keyway web`. Killed when dropped.
struct Page {
    child: Child,
    output: BufReader<ChildStdout>,
}

impl Page {
    fn start(data: &Path, arguments: &[&str]) -> Page {
        Page::start_in(Path::new("."), data, arguments)
    }

    /// As [`start`], in a folder, which the data folder may be named from.
    fn start_in(folder: &Path, data: &Path, arguments: &[&str]) -> Page {
        let mut command = Command::new(keyway());
        command.current_dir(folder);
        command
            .args(["web", "--json", "--listen", "127.0.0.1:0", "--data"])
            .arg(data)
            .args(arguments);
        let mut child =
            command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn().expect("keyway starts");
        let output = BufReader::new(child.stdout.take().expect("its output"));
        Page { child, output }
    }

    /// The next URL that it says.
    fn url(&mut self) -> String {
        let mut line = String::new();
        self.output.read_line(&mut line).expect("a line");
        let said: Value =
            serde_json::from_str(&line).unwrap_or_else(|why| panic!("{line:?}: {why}"));
        said["url"].as_str().expect("a URL").to_owned()
    }

    /// SIGTERM, and its exit status.
    fn stop(mut self) -> Option<i32> {
        let pid = Pid::from_raw(self.child.id() as i32).expect("a pid");
        kill_process(pid, Signal::TERM).expect("a signal");
        self.child.wait().expect("its end").code()
    }
}

impl Drop for Page {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Searches as the administrator, and expects this exit code.
fn search(server: &Server, arguments: &[&str], code: i32) -> String {
    let mut tool = server.admin_tool("ldapsearch");
    finish(tool.args(["-LLL"]).args(arguments), "").expect(code).out
}

/// The text of a cell of a table: of the row that has this text in it, below this head.
fn cell(caption: &str, row: &str, head: &str) -> String {
    format!(
        "(() => {{
            const table = [...document.querySelectorAll('table')]
                .find((table) => table.caption?.innerText.startsWith({caption:?}));
            if (!table) return '';
            const at = [...table.tHead.rows[0].cells].findIndex((cell) => cell.innerText.trim() === {head:?});
            const row = [...table.tBodies[0].rows].find((row) => row.innerText.includes({row:?}));
            return row?.cells[at]?.innerText.trim() ?? '';
        }})()"
    )
}

/// A figure above the graphs.
fn tile(name: &str) -> String {
    format!(
        "[...document.querySelectorAll('.tiles dt')].find((it) => it.innerText === {name:?})
            ?.nextElementSibling.innerText ?? ''"
    )
}

const GROUND: &str = "getComputedStyle(document.documentElement).backgroundColor";

#[test]
fn pages_show_what_was_done() {
    if !available(&NEEDS) || !available(&["ldapsearch"]) {
        return;
    }
    let (folder, server) = sample(PEOPLE);
    let mut page = Page::start(&folder.path().join("data"), &[]);
    let browser = Browser::start();
    browser.open(&page.url());
    browser.wait("document.title === 'Keyway: Now'");
    assert_eq!(browser.script("return location.search + location.hash"), "");

    let base = "dc=example,dc=com";
    for _ in 0..3 {
        search(&server, &["-b", base, "(uid=anna.weber)"], 0);
    }
    for _ in 0..2 {
        search(&server, &["-b", base, "(roomNumber=no*where)", "1.1"], 0);
    }
    let evil = "cn=\\<img src=x onerror=document.title='pwned'\\>,dc=example,dc=com";
    for _ in 0..4 {
        search(&server, &["-b", evil, "(objectClass=*)"], 32);
    }
    let mut wrong = server.tool("ldapsearch", server.ldaps());
    wrong.args(["-D", server.administrator(), "-w", "wrong", "-b", base]);
    finish(&mut wrong, "").expect(49);

    // Now: what was refused, by its code, and nothing else was.
    browser.wait(&format!("{} === '4'", cell("Faults", "noSuchObject", "in all")));
    browser.wait(&format!("{} === '1'", cell("Faults", "invalidCredentials", "in all")));
    browser.wait("document.querySelectorAll('figure canvas').length >= 6");

    // Held open, and seen.
    let mut held =
        Client::connect(server.address().parse().expect("an address")).expect("connects");
    held.bind(server.administrator(), &server.password()).expect("binds");

    // From tab to tab by the keyboard.
    browser.script("document.getElementById('tab-now').focus()");
    browser.press(key::RIGHT);
    browser.wait("document.title === 'Keyway: Slow'");
    browser.wait(&format!("{} === 'search'", cell("The slowest", "onerror", "operation")));
    assert_eq!(browser.script("return document.images.length"), 0);
    browser.wait("document.querySelectorAll('.bar i').length > 0");

    browser.press(key::RIGHT);
    browser.wait("document.title === 'Keyway: Filters'");
    browser.wait(&format!("{} === '3'", cell("Searches by", "(uid=?)", "searches")));
    browser.wait(&format!("{} === '2'", cell("Searches by", "(roomnumber=?*?)", "without index")));
    let advice = browser.wait(&cell("Indexes that", "roomNumber", "line below [indexes]"));
    assert_eq!(advice, "roomNumber = [\"substring\"]");

    browser.press(key::RIGHT);
    browser.wait("document.title === 'Keyway: Connections'");
    let peer = browser.wait(&cell("Connections that", "no TLS", "from"));
    assert!(peer.as_str().is_some_and(|peer| peer.starts_with("127.0.0.1:")), "{peer}");
    let who = browser.wait(&cell("Connections that", peer.as_str().unwrap(), "who"));
    assert_eq!(who, server.administrator());
    browser.wait(&format!("{}.startsWith('TLS')", cell("Connections that", "X25519", "over")));

    browser.press(key::RIGHT);
    browser.wait("document.title === 'Keyway: Store'");
    let entries = browser.wait(&tile("entries"));
    let found = search(&server, &["-b", "", "-s", "base", "namingContexts"], 0);
    let below = found.lines().filter_map(|line| line.strip_prefix("namingContexts: "));
    // The server's own entries are below none of these.
    let below = below.chain(["cn=keyway"]);
    let count: usize =
        below.map(|dn| search(&server, &["-b", dn, "1.1"], 0).matches("dn:").count()).sum();
    assert_eq!(entries, count.to_string());

    browser.press(key::RIGHT);
    browser.wait("document.title === 'Keyway: Crypto'");
    browser.wait(&cell("Drivers and", "argon2id", "since start"));
    browser.wait(&cell("Keys that", "tls-server", "state"));

    browser.press(key::RIGHT);
    browser.wait("document.title === 'Keyway: Backups'");
    browser.wait(&format!("{} === 'never'", tile("last export")));
    browser.wait("document.querySelector('#panel .bad').innerText.includes('there is no backup')");
    let file = folder.path().join("<i>all.ldif");
    let directory = |arguments: &[&str]| {
        let mut command = Command::new(keyway());
        command.arg("directory").args(arguments).arg("--data").arg(folder.path().join("data"));
        finish(&mut command, "").expect(0)
    };
    directory(&["export", file.to_str().unwrap()]);
    directory(&["check"]);
    browser.wait(&format!("{} === 'sound'", tile("its verdict")));
    browser.wait(&format!("{}.endsWith('<i>all.ldif')", cell("Imports", "whole", "file")));
    browser.wait(&format!("{} === 'served'", cell("Imports", "check", "server")));
    browser.wait("!document.querySelector('#panel .bad')");
    // Its head is reached by the keyboard, and sorts.
    browser.press(key::TAB);
    browser.press(key::TAB);
    browser.press(key::ENTER);
    browser.wait("document.querySelector('#panel th[aria-sort]').ariaSort === 'ascending'");
    browser.wait("document.documentElement.scrollWidth <= 1280");
    browser.script("document.getElementById('tab-backups').focus()");
    browser.press(key::HOME);
    browser.wait("document.title === 'Keyway: Now'");
    browser.press(key::LEFT);
    browser.wait("document.title === 'Keyway: Load'");

    // Light and dark, as the system or as the user wants it; and tables in the place of graphs.
    browser.colours("light");
    let light = browser.wait(GROUND);
    browser.colours("dark");
    browser.wait(&format!("{GROUND} !== {light}"));
    browser.script("document.getElementById('colours').focus()");
    browser.press("l");
    browser.wait(&format!("{GROUND} === {light}"));
    browser.press(key::HOME);
    browser.press(key::TAB);
    browser.press(key::SPACE);
    browser.script("document.getElementById('tab-now').focus()");
    browser.press(key::ENTER);
    browser.wait("[...document.querySelectorAll('figure .table tbody tr')].some((row) => row.offsetHeight > 0)");
    browser.size(380, 700);
    browser.wait("document.documentElement.scrollWidth <= 380");

    assert_eq!(browser.errors(), [""; 0]);
    assert_ne!(browser.script("return document.title"), "pwned");
    assert_eq!(page.stop(), Some(0));
}

#[test]
fn a_server_may_come_and_go_while_the_page_is_open() {
    if !available(&NEEDS) {
        return;
    }
    let (folder, server) = sample(20);
    let data = folder.path().join("data");
    let (plain, tls) = (server.address().to_owned(), server.tls_address().to_owned());
    let mut page = Page::start(&data, &[]);
    let browser = Browser::start();
    browser.open(&page.url());
    browser.wait("document.getElementById('state').innerText.startsWith('up since')");
    // It has had figures to show.
    browser.wait("document.querySelectorAll('.tiles').length === 1");
    server.stop();
    browser.wait(
        "document.getElementById('state').innerText.startsWith('not seen: no server runs on')",
    );
    // The last figures are marked, and the newest point of a line is a gap.
    browser.wait("document.querySelector('[role=alert]')?.innerText.startsWith('Not seen since')");
    browser.wait("document.querySelectorAll('.stale .tiles').length === 1");
    browser.wait("document.querySelector('figcaption .key b').innerText === '–'");
    let mut again = Command::new(keyway());
    again.args(["up", "--json", "--listen", &plain, "--listen-tls", &tls, "--data"]).arg(&data);
    let server = Server::spawn(&mut again);
    browser.wait("document.getElementById('state').innerText.startsWith('up since')");
    let mut client =
        Client::connect(server.address().parse().expect("an address")).expect("connects");
    client.bind(server.administrator(), &server.password()).expect("binds");
    browser.script("location.hash = 'connections'");
    browser.wait(&cell("Connections that", "no TLS", "who"));
    assert_eq!(browser.errors(), [""; 0]);

    // Another browser needs a token of its own, and without one it sees no script even.
    let next = page.url();
    let stranger = Browser::start();
    stranger.open(next.split('?').next().expect("a place"));
    stranger.wait("document.body.innerText.includes('keyway web')");
    assert_eq!(stranger.script("return document.scripts.length"), 0);
    stranger.open(&next);
    stranger.wait("document.title === 'Keyway: Now'");

    // The page's own server may go as well.
    assert_eq!(page.stop(), Some(0));
    browser.wait("document.getElementById('state').innerText.includes('does not answer')");
}

/// The Load tab as it is when it is opened, on the server that keyway up has made; in windows of any width.
#[test]
fn load_needs_no_words_and_pages_fit() {
    if !available(&NEEDS) {
        return;
    }
    let (folder, _server) = sample(30);
    let mut page = Page::start(&folder.path().join("data"), &[]);
    let browser = Browser::start();
    browser.open(&page.url());
    browser.script("location.hash = 'load'");
    browser.wait("document.querySelectorAll('input[name=target]').length === 1");
    browser.script("document.querySelector('[name=seconds]').value = '2'");
    browser.script("document.querySelector('form.order button').click()");
    browser.wait("document.querySelector('.row .quiet')?.innerText === 'ended'");
    let errors = "[...document.querySelectorAll('.panel .row .key')].map((it) => it.innerText)
        .find((text) => text.startsWith('errors'))";
    assert_eq!(browser.wait(errors), "errors 0");
    // Percentiles differ in more than their colours.
    for kind in ["solid", "dashed", "dotted"] {
        browser.wait(&format!("document.querySelectorAll('figcaption i.{kind}').length > 0"));
    }
    for width in [1280, 640, 400] {
        browser.size(width, 800);
        for tab in ["now", "slow", "filters", "connections", "store", "crypto", "backups", "load"] {
            browser.script(&format!("location.hash = '{tab}'"));
            browser.wait(&format!("document.title.toLowerCase() === 'keyway: {tab}'"));
            browser.wait("document.documentElement.scrollWidth <= innerWidth");
        }
    }
    browser.script("location.hash = 'now'");
    browser.wait(&format!("{}.endsWith('%')", tile("host CPU")));
    assert_eq!(browser.errors(), [""; 0]);
    assert_eq!(page.stop(), Some(0));
}

#[test]
fn load_is_started_changed_stopped_and_raced() {
    if !available(&NEEDS) {
        return;
    }
    let (folder, server) = sample(50);
    let (_second, other) = sample(50);
    let password = other.text("administrator_password_file").to_owned();
    let both = folder.path().join("both.pem");
    let authorities = [server.text("ca_certificate"), other.text("ca_certificate")]
        .map(|file| std::fs::read_to_string(file).expect("an authority"));
    std::fs::write(&both, authorities.concat()).expect("written");
    let urls = [server.ldaps(), other.ldaps()];
    // One password for both administrators.
    let mut change = server.admin_tool("ldappasswd");
    finish(change.args(["-s", &other.password(), server.administrator()]), "").expect(0);
    std::fs::copy(&password, server.text("administrator_password_file")).expect("copied");
    let account = [server.administrator(), password.as_str()];
    let mut page = Page::start(
        &folder.path().join("data"),
        &[
            urls[0],
            urls[1],
            "--ca",
            both.to_str().unwrap(),
            "--bind-dn",
            account[0],
            "--password-file",
            account[1],
            "--load-bind-dn",
            account[0],
            "--load-password-file",
            account[1],
        ],
    );
    let browser = Browser::start();
    browser.open(&page.url());
    browser.wait("document.title === 'Keyway: Now'");
    browser.script("document.getElementById('tab-now').focus()");
    browser.press(key::END);
    browser.wait("document.querySelectorAll('input[name=target]').length === 2");

    // One server, by the keyboard: rate, filter, Enter.
    browser.script("document.querySelector('details').open = true");
    browser.script("document.querySelector('[name=filter]').focus()");
    browser.press("(uid=anna.weber)");
    browser
        .script("const rate = document.querySelector('[name=rate]'); rate.focus(); rate.select()");
    browser.press(&format!("50{}", key::ENTER));
    let answered =
        "Number(document.querySelector('[data-figure=\"done-0\"]')?.innerText.replaceAll(',', ''))";
    browser.wait(&format!("{answered} >= 100"));
    browser.script(
        "const rate = document.querySelector('[name=new_rate]'); rate.focus(); rate.select()",
    );
    browser.press(&format!("400{}", key::ENTER));
    browser.wait("document.querySelector('.row .key b')?.innerText === '400/s'");
    browser.wait("[...document.querySelectorAll('figcaption .key b')].slice(0, 1).some((b) => Number(b.innerText) > 300)");
    let stop = "[...document.querySelectorAll('button')].find((b) => b.innerText === 'Stop')";
    browser.script(&format!("{stop}.focus()"));
    browser.press(key::SPACE);
    browser.wait(&format!("{stop}.disabled"));
    browser.wait("document.querySelector('.row .quiet')?.innerText === 'ended'");
    // As many as the page says were answered, and no other server was asked.
    let said = browser.wait(answered).as_f64().expect("a number") as u64;
    let counted = shape(&server);
    assert!(counted >= said && counted <= said + 60, "{said} of {counted}");
    assert_eq!(shape(&other), 0);

    // Two side by side.
    browser.script("document.querySelectorAll('input[name=target]')[1].focus()");
    browser.press(key::SPACE);
    browser.script("const it = document.querySelector('[name=seconds]'); it.focus(); it.select()");
    browser.press(&format!("3{}", key::ENTER));
    browser.wait("document.querySelectorAll('[data-figure]').length === 2");
    browser.wait("[...document.querySelectorAll('.row .quiet')].filter((it) => it.innerText === 'ended').length === 2");
    for lane in 0..2 {
        let done = browser.wait(&answered.replace("done-0", &format!("done-{lane}")));
        assert!(done.as_f64().expect("a number") >= 140.0, "{done}");
    }
    assert!(shape(&other) >= 140);
    assert_eq!(browser.errors(), [""; 0]);
    assert_eq!(page.stop(), Some(0));
}

/// How often a server was asked with the filter of the load.
fn shape(server: &Server) -> u64 {
    let all =
        ["-o", "ldif-wrap=no", "-b", "cn=Filters,cn=monitor", "(objectClass=*)", "monitoredInfo"];
    let found = search(server, &all, 0);
    let ours = found.split("\n\n").find(|entry| {
        entry.contains("monitoredInfo: filter=(uid=?)")
            && entry.contains("monitoredInfo: scope=sub")
    });
    let lines = ours.unwrap_or_default().lines();
    let mut counts = lines.filter_map(|line| line.strip_prefix("monitoredInfo: searches="));
    counts.next().map_or(0, |count| count.parse().expect("a number"))
}

#[test]
fn elsewhere_there_is_tls_and_a_login() {
    if !available(&NEEDS) {
        return;
    }
    let (folder, server) = sample(10);
    let mut page = Page::start(&folder.path().join("data"), &["--tls"]);
    let url = page.url();
    assert!(url.starts_with("https://127.0.0.1:") && !url.contains("token"), "{url}");
    let browser = Browser::start();
    browser.open(&url);
    browser.wait("document.activeElement?.name === 'name'");
    browser.press(&format!(
        "uid=anna.weber,ou=People,dc=example,dc=com{}wrong{}",
        key::TAB,
        key::ENTER
    ));
    browser
        .wait("document.querySelector('[role=alert]')?.innerText.includes('invalidCredentials')");
    let person =
        std::fs::read_to_string(folder.path().join("data/sample-password")).expect("a password");
    browser.wait("document.activeElement?.name === 'name'");
    browser.press(&format!(
        "uid=anna.weber,ou=People,dc=example,dc=com{}{}{}",
        key::TAB,
        person.trim(),
        key::ENTER
    ));
    browser.wait("document.querySelector('[role=alert]')?.innerText.includes('no administrator')");
    browser.wait("document.activeElement?.name === 'name'");
    browser.press(&format!(
        "{}{}{}{}",
        server.administrator(),
        key::TAB,
        server.password(),
        key::ENTER
    ));
    browser.wait("document.title === 'Keyway: Now'");
    browser.wait("document.getElementById('state').innerText.startsWith('up since')");
    let cookies = browser.script("return document.cookie");
    assert_eq!(cookies, "");
    browser.script(
        "[...document.querySelectorAll('button')].find((b) => b.innerText === 'Log out').click()",
    );
    browser.wait("document.title === 'Keyway: log in'");
    assert_eq!(page.stop(), Some(0));
}

#[test]
fn a_certificate_that_changes_is_taken_while_it_runs() {
    if !available(&["openssl"]) {
        return;
    }
    let authority = Authority::new();
    let file = |name: &str| authority.path(name).to_str().expect("a name").to_owned();
    let take = |name: &str| {
        for kind in ["key", "pem"] {
            let draft = authority.path(&format!("draft.{kind}"));
            std::fs::copy(authority.path(&format!("{name}.{kind}")), &draft).expect("copied");
            std::fs::rename(&draft, authority.path(&format!("it.{kind}"))).expect("renamed");
        }
    };
    for name in ["one", "two"] {
        authority.issue_own(name, &format!("/CN={name}"), "subjectAltName=DNS:localhost");
    }
    take("one");
    let (certificate, key) = (file("it.pem"), file("it.key"));
    let arguments = ["--tls", "--certificate", &certificate, "--key", &key];
    let mut page = Page::start(authority.place(), &arguments);
    let url = page.url();
    let address = url.trim_start_matches("https://").trim_end_matches('/').to_owned();
    let subject = || {
        let mut client = Command::new("openssl");
        let said = finish(client.args(["s_client", "-connect", &address]), "").out;
        let line = said.lines().find(|line| line.starts_with("subject="));
        line.unwrap_or_default().replace(' ', "")
    };
    assert_eq!(subject(), "subject=CN=one");
    take("two");
    let begun = std::time::Instant::now();
    while subject() != "subject=CN=two" {
        assert!(begun.elapsed() < Duration::from_secs(60), "it is still {}", subject());
        std::thread::sleep(Duration::from_millis(100));
    }
    assert_eq!(page.stop(), Some(0));
}

#[test]
fn slapd_is_shown_as_far_as_it_tells() {
    if !available(&NEEDS) || !available(&[slapd::NEEDS]) {
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let slapd = Slapd::start(folder.path());
    shown_as_far_as_it_tells(
        folder.path(),
        &[&slapd.url],
        &cell("Connections that", "127.0.0.1", "number"),
    );
}

/// It takes half a minute to load and to start; so it is a test of the night.
#[test]
fn ds_389_is_shown_as_far_as_it_tells() {
    if !nightly() || !available(&NEEDS) || !available(&["/usr/sbin/ns-slapd"]) {
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let (ldif, password) = (folder.path().join("people.ldif"), folder.path().join("password"));
    let entry = "dn: dc=example,dc=com\nobjectClass: domain\ndc: example\n";
    std::fs::write(&ldif, entry).expect("written");
    std::fs::write(&password, "secret").expect("written");
    let private = std::os::unix::fs::PermissionsExt::from_mode(0o600);
    std::fs::set_permissions(&password, private).expect("closed");
    let server = Dirsrv::start(folder.path(), &ldif, dirsrv::SECRET_STORED).expect("389");
    let url = format!("ldap://{}", server.address);
    let login = ["--bind-dn", dirsrv::ADMIN, "--password-file", password.to_str().expect("a name")];
    let arguments = [&[&url[..]], &login[..]].concat();
    let told = "document.getElementById('panel').innerText.includes('is not told')";
    shown_as_far_as_it_tells(folder.path(), &arguments, told);
}

/// The counters of a server of another kind are shown, and those that it lacks are not said to be 0;
/// `connections` is what is true of it.
fn shown_as_far_as_it_tells(folder: &Path, arguments: &[&str], connections: &str) {
    let mut page = Page::start(folder, arguments);
    let browser = Browser::start();
    browser.open(&page.url());
    browser.wait("document.getElementById('state').innerText.startsWith('up since')");
    // The page's own searches.
    browser.wait(&format!("Number({}) > 0", cell("The last second", "search", "a second")));
    browser.wait(&format!("{} === '1'", tile("connections")));
    browser.wait(&format!("{} === '–'", tile("p99")));
    let not_told =
        "document.querySelector('#panel').innerText.includes('what is empty here is not told')";
    browser.wait(not_told);
    for tab in ["slow", "filters", "store", "crypto"] {
        browser.script(&format!("location.hash = '{tab}'"));
        browser.wait(&format!("document.title.toLowerCase() === 'keyway: {tab}'"));
        browser.wait(not_told);
        assert_eq!(browser.script("return document.querySelectorAll('#panel tbody tr').length"), 0);
        let text = browser.script("return document.getElementById('panel').innerText");
        assert!(!text.as_str().expect("text").contains("NaN"), "{tab}: {text}");
    }
    browser.script("location.hash = 'backups'");
    browser.wait(
        "document.getElementById('panel').innerText.includes('does not tell when it was exported')",
    );
    browser.script("location.hash = 'connections'");
    assert_eq!(browser.wait(&tile("over TLS")), "–");
    browser.wait(connections);
    assert_eq!(browser.errors(), [""; 0]);
    assert_eq!(page.stop(), Some(0));
}

/// Makes the pictures of the guide: `KEYWAY_PICTURES=docs/guide/pictures cargo test -p keyway-tests --test web
/// pictures`. Without that it takes one, to see that it could.
#[test]
fn pictures() {
    if !available(&NEEDS) {
        return;
    }
    let scratch = tempfile::tempdir().expect("a folder");
    let wanted = std::env::var_os("KEYWAY_PICTURES").map(PathBuf::from);
    let seconds = if wanted.is_some() { 60 } else { 2 };
    let place = wanted.map_or(scratch.path().to_owned(), |place| {
        Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/..")).join(place)
    });
    std::fs::create_dir_all(&place).expect("a folder");
    let (folder, server) = sample(2_000);
    // No path of ours in the guide.
    let mut page = Page::start_in(folder.path(), Path::new("data"), &[]);
    let browser = Browser::start();
    browser.open(&page.url());
    browser.script("location.hash = 'load'");
    browser.wait("document.querySelectorAll('input[name=target]').length === 1");
    browser.script("document.querySelector('[name=filter]').value = '(mail=anna.*)'");
    browser.script("document.querySelector('[name=rate]').value = '800'");
    browser.script(&format!("document.querySelector('[name=seconds]').value = '{}'", 4 * seconds));
    browser.script("document.querySelector('form.order button').click()");
    browser.wait("document.querySelector('.row .quiet')?.innerText === 'running'");
    let base = "dc=example,dc=com";
    let begun = std::time::Instant::now();
    let mut turn = 0;
    while begun.elapsed() < Duration::from_secs(seconds) {
        turn += 1;
        search(&server, &["-b", base, "(description=*none*)", "1.1"], 0);
        search(&server, &["-b", &format!("cn=absent,{base}"), "1.1"], 32);
        let entry =
            format!("dn: cn=n{turn},ou=People,{base}\nobjectClass: person\ncn: n{turn}\nsn: n\n");
        finish(&mut server.admin_tool("ldapadd"), &entry).expect(0);
        if turn % 8 == 0 {
            browser.script(&format!(
                "document.querySelector('[name=new_rate]').value = {}",
                600 + 40 * turn % 900
            ));
            browser.script("[...document.querySelectorAll('button')].find((b) => b.innerText === 'Change rate').click()");
        }
    }
    for arguments in [["export"], ["check"]] {
        let mut command = Command::new(keyway());
        command.current_dir(folder.path()).arg("directory").args(arguments);
        finish(command.args(["--data", "data"]), "").expect(0);
    }
    for (name, ready) in [
        ("backups", "document.querySelectorAll('#panel tbody tr').length === 2"),
        ("load", "document.querySelectorAll('canvas').length === 6"),
        ("now", "document.querySelectorAll('canvas').length >= 6"),
        ("slow", "document.querySelectorAll('.bar i').length > 5"),
    ] {
        browser.script(&format!("location.hash = {name:?}"));
        browser.wait(ready);
        for scheme in ["light", "dark"] {
            browser.colours(scheme);
            browser.wait(&format!("matchMedia('(prefers-color-scheme: {scheme})').matches"));
            let picture = place.join(format!("web-{name}-{scheme}.png"));
            browser.picture(&picture);
            let size = std::fs::metadata(&picture).expect("a picture").len();
            assert!((5_000..500_000).contains(&size), "{name} {scheme}: {size}");
        }
    }
    assert_eq!(browser.errors(), [""; 0]);
}
