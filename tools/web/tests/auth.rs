//! Admission, over real connections: tokens, hosts, origins, logins, limits.

use keyway_load::Options;
use keyway_meter::Snapshot;
use keyway_web::{
    App, Auth, AuthMethod, Detail, MonitorTarget, Races, Source, Target, limits, serve,
};
use serde_json::{Value, json};
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;
use tokio::sync::oneshot;

/// A server whose counter goes up by 10 with each look.
struct Counting(u64);

impl Source for Counting {
    fn look(&mut self) -> Result<Snapshot, String> {
        self.0 += 10;
        let counters = vec![("ldap.search".to_owned(), self.0)];
        Ok(Snapshot { pid: 1, started_unix_ms: 5, counters, histograms: Vec::new() })
    }

    fn detail(&mut self, what: Detail) -> Result<Value, String> {
        match what {
            Detail::Slow => Ok(json!({ "operations": [{ "dn": "</script><b>x" }] })),
            _ => Err("not today".into()),
        }
    }
}

struct Page {
    address: SocketAddr,
    said: Receiver<String>,
    end: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Page {
    fn with_token() -> Page {
        let (say, said) = channel();
        let say = Mutex::new(say);
        let say = move |url: &str| drop(say.lock().unwrap().send(url.to_owned()));
        Page::new(AuthMethod::Token(Box::new(say)), said)
    }

    /// A page whose administrator has the name admin and the password secret.
    fn with_login() -> Page {
        let login = |name: &str, password: &[u8]| match (name, password) {
            ("cn=admin,cn=keyway", b"s3cret&+%") => Ok(()),
            _ => Err("The name or the password is wrong <&>.".to_owned()),
        };
        Page::new(AuthMethod::Login(Arc::new(login)), channel().1)
    }

    fn new(method: AuthMethod, said: Receiver<String>) -> Page {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let listener = runtime.block_on(tokio::net::TcpListener::bind("127.0.0.1:0")).unwrap();
        let address = listener.local_addr().unwrap();
        let next = AtomicU64::new(1);
        let random = move |bytes: &mut [u8]| {
            let number = next.fetch_add(1, Ordering::Relaxed).to_ne_bytes();
            bytes.iter_mut().zip(number.iter().cycle()).for_each(|(to, from)| *to = *from);
            Ok(())
        };
        let hosts = vec![address.to_string(), format!("localhost:{}", address.port())];
        let auth = Auth::new(method, hosts, false, Box::new(random)).unwrap();
        let provider = keyway_tls::provider(&keyway_drivers::engine());
        let target = Target { name: "none".into(), options: Box::new(|| Ok(Options::default())) };
        let app = App {
            auth,
            monitored: vec![MonitorTarget::new("counting".into(), Box::new(Counting(0))).unwrap()],
            races: Races::new(vec![target], Vec::new(), provider),
            page: 7,
        };
        let (end, ended) = oneshot::channel::<()>();
        let thread = std::thread::spawn(move || {
            let end = async { drop(ended.await) };
            runtime.block_on(serve(listener, None, Arc::new(app), end)).unwrap();
        });
        Page { address, said, end: Some(end), thread: Some(thread) }
    }

    fn send(&self, request: &str) -> Answer {
        let mut stream = TcpStream::connect(self.address).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        stream.write_all(request.as_bytes()).unwrap();
        let mut text = Vec::new();
        let _ = stream.read_to_end(&mut text);
        Answer(String::from_utf8_lossy(&text).into_owned())
    }

    fn get(&self, path: &str, headers: &[(&str, &str)]) -> Answer {
        self.ask("GET", path, headers, "")
    }

    fn post(&self, path: &str, headers: &[(&str, &str)], body: &str) -> Answer {
        let origin = format!("http://{}", self.address);
        self.ask("POST", path, &[headers, &[("Origin", &origin)]].concat(), body)
    }

    fn ask(&self, method: &str, path: &str, headers: &[(&str, &str)], body: &str) -> Answer {
        let host = self.address.to_string();
        let named = headers.iter().any(|(name, _)| *name == "Host");
        let mut request = format!("{method} {path} HTTP/1.1\r\nConnection: close\r\n");
        if !named {
            request += &format!("Host: {host}\r\n");
        }
        for (name, value) in headers {
            request += &format!("{name}: {value}\r\n");
        }
        if !body.is_empty() {
            request += &format!("Content-Length: {}\r\n", body.len());
        }
        self.send(&format!("{request}\r\n{body}"))
    }

    /// The cookie and key of a browser that opened the URL printed last.
    fn enter(&self) -> (String, String) {
        let url = self.said.recv().unwrap();
        let path = url.strip_prefix(&format!("http://{}", self.address)).unwrap();
        let entered = self.get(path, &[]);
        assert_eq!((entered.status(), entered.header("location")), (303, Some("/")));
        self.key(entered.cookie())
    }

    fn key(&self, cookie: String) -> (String, String) {
        let page = self.get("/", &[("Cookie", &cookie)]);
        assert_eq!(page.status(), 200);
        let (_, rest) = page.0.split_once("name=\"keyway-page\" content=\"").unwrap();
        let key = rest.split('"').next().unwrap().to_owned();
        assert_eq!(key.len(), 64);
        (cookie, key)
    }
}

impl Drop for Page {
    fn drop(&mut self) {
        let _ = self.end.take().unwrap().send(());
        self.thread.take().unwrap().join().unwrap();
    }
}

struct Answer(String);

impl Answer {
    fn status(&self) -> u16 {
        self.0.split(' ').nth(1).unwrap_or_default().parse().unwrap_or_default()
    }

    fn header(&self, name: &str) -> Option<&str> {
        let head = self.0.split("\r\n\r\n").next()?;
        let lines = head.lines().filter_map(|line| line.split_once(": "));
        lines.into_iter().find(|(found, _)| *found == name).map(|(_, value)| value)
    }

    fn cookie(&self) -> String {
        let cookie = self.header("set-cookie").unwrap();
        assert!(cookie.ends_with("; Path=/; HttpOnly; SameSite=Strict"), "{cookie}");
        cookie.split(';').next().unwrap().to_owned()
    }

    fn json(&self) -> Value {
        serde_json::from_str(self.0.split("\r\n\r\n").nth(1).unwrap()).unwrap()
    }
}

#[test]
fn a_token_lets_one_browser_in_and_the_next_one_is_said() {
    let page = Page::with_token();
    let first = page.said.recv().unwrap();
    let path = first.strip_prefix(&format!("http://{}", page.address)).unwrap();
    for wrong in
        ["/", "/?token=", "/?token=0", &path[..path.len() - 1], "/api/now", "/static/main.js"]
    {
        let refused = page.get(wrong, &[]);
        assert_eq!(refused.status(), 401, "{wrong}");
        assert_eq!(refused.header("set-cookie"), None);
        assert!(!refused.0.contains("ldap.search"));
    }
    let entered = page.get(path, &[]);
    assert_eq!(entered.status(), 303);
    let (cookie, key) = page.key(entered.cookie());
    // The token is spent, and the key is given once.
    assert_eq!(page.get(path, &[]).status(), 401);
    assert_eq!(page.get(path, &[("Cookie", &cookie)]).header("location"), Some("/"));
    let again = page.get("/", &[("Cookie", &cookie)]);
    assert!(again.status() == 200 && again.0.contains("name=\"keyway-page\" content=\"\""));
    let both = [("Cookie", cookie.as_str()), ("X-Keyway-Page", key.as_str())];
    assert_eq!(page.get("/api/now", &both).status(), 200);
    let (other_cookie, other_key) = page.enter();
    for half in [
        vec![("Cookie", cookie.as_str())],
        vec![("X-Keyway-Page", key.as_str())],
        vec![("Cookie", cookie.as_str()), ("X-Keyway-Page", other_key.as_str())],
        vec![("Cookie", other_cookie.as_str()), ("X-Keyway-Page", key.as_str())],
        vec![("Cookie", "keyway-1=1"), ("X-Keyway-Page", key.as_str())],
    ] {
        assert_eq!(page.get("/api/now", &half).status(), 401, "{half:?}");
    }
    let gone = page.post("/logout", &both, "");
    assert_eq!(gone.status(), 303);
    assert_eq!(page.get("/api/now", &both).status(), 401);
}

#[test]
fn other_hosts_and_other_sites_are_refused() {
    let page = Page::with_token();
    let (cookie, key) = page.enter();
    let both = [("Cookie", cookie.as_str()), ("X-Keyway-Page", key.as_str())];
    let port = page.address.port().to_string();
    for host in ["evil.example", "127.0.0.1", "127.0.0.1:1", &format!("evil.example:{port}"), ""] {
        let asked = [both.as_slice(), &[("Host", host)]].concat();
        assert_eq!(page.get("/api/hosts", &asked).status(), 421, "{host}");
    }
    let named = format!("LocalHost:{port}");
    assert_eq!(page.get("/api/hosts", &[&both[..], &[("Host", &named)]].concat()).status(), 200);
    let twice = format!(
        "GET / HTTP/1.1\r\nHost: {0}\r\nHost: x\r\nConnection: close\r\n\r\n",
        page.address
    );
    assert!([400, 421].contains(&page.send(&twice).status()));

    for origin in
        ["http://evil.example", "null", "https://127.0.0.1", &format!("http://127.0.0.1:{port}0")]
    {
        let asked = [both.as_slice(), &[("Origin", origin)]].concat();
        assert_eq!(page.ask("POST", "/api/load/stop", &asked, "{}").status(), 403, "{origin}");
        assert_eq!(page.get("/api/hosts", &asked).status(), 403, "{origin}");
    }
    assert_eq!(page.ask("POST", "/api/load/stop", &both, "{}").status(), 403);
    for site in ["cross-site", "same-site"] {
        let asked = [both.as_slice(), &[("Sec-Fetch-Site", site)]].concat();
        assert_eq!(page.get("/api/hosts", &asked).status(), 401, "{site}");
    }
    assert_eq!(page.post("/api/load/stop", &both, "{}").status(), 200);
}

#[test]
fn answers_are_for_a_page_and_no_other_site() {
    let page = Page::with_token();
    let (cookie, key) = page.enter();
    let both = [("Cookie", cookie.as_str()), ("X-Keyway-Page", key.as_str())];
    let paths = [
        "/",
        "/static/main.js",
        "/static/uplot.js",
        "/static/style.css",
        "/nothing",
        "/api/nothing",
    ];
    for path in paths {
        let answer = page.get(path, &both);
        let policy = answer.header("content-security-policy").unwrap_or_default();
        assert!(policy.contains("default-src 'none'; script-src 'self'"), "{path}");
        assert!(!policy.contains("unsafe"));
        assert_eq!(answer.header("cache-control"), Some("no-store"), "{path}");
        assert_eq!(answer.header("x-content-type-options"), Some("nosniff"));
    }
    // A server's text stays text: JSON is no page.
    let slow = page.get("/api/slow", &both);
    assert_eq!(slow.header("content-type"), Some("application/json"));
    assert_eq!(slow.json()["operations"][0]["dn"], "</script><b>x");
    assert_eq!(page.get("/api/connections", &both).json()["why"], "not today");
    assert_eq!(page.get("/api/hosts", &both).json()["hosts"][0]["name"], "counting");
    assert_eq!(page.get("/api/now?host=1", &both).status(), 404);
    for odd in
        ["/api/now?host=-1", "/api/now?after=x", "/api/now?after=99999999999999999999&host=0"]
    {
        assert_eq!(page.get(odd, &both).json()["history"], "7", "{odd}");
    }
    // The page asks for nothing from elsewhere, and has no script in it.
    let text = page.get("/", &both).0;
    assert!(!text.contains("http://") && !text.contains("https://") && !text.contains("<script>"));
}

#[test]
fn a_second_is_what_was_counted_in_it() {
    let page = Page::with_token();
    let (cookie, key) = page.enter();
    let both = [("Cookie", cookie.as_str()), ("X-Keyway-Page", key.as_str())];
    let points = loop {
        let now = page.get("/api/now", &both).json();
        let points = now["points"].as_array().unwrap().clone();
        if points.len() >= 2 {
            break points;
        }
    };
    assert!(points.iter().all(|point| point["counts"]["ldap.search"] == 10), "{points:?}");
    let after = page.get("/api/now?after=1", &both).json();
    assert_eq!(after["points"][0]["number"], 1);
}

#[test]
fn logins_are_those_of_the_directory() {
    let page = Page::with_login();
    let form = [("Content-Type", "application/x-www-form-urlencoded")];
    let closed = page.get("/", &[]);
    assert!(closed.status() == 401 && closed.0.contains("action=\"/login\""));
    assert_eq!(page.get("/?token=", &[]).status(), 401);
    for body in [
        "name=cn%3Dadmin%2Ccn%3Dkeyway&password=wrong",
        "name=cn%3Dadmin%2Ccn%3Dkeyway&password=",
        "name=&password=s3cret%26%2B%25",
    ] {
        let refused = page.post("/login", &form, body);
        assert_eq!((refused.status(), refused.header("set-cookie")), (401, None), "{body}");
        assert!(!refused.0.contains("<&>") && !refused.0.contains("s3cret"));
    }
    for body in ["", "name", "name=%FF%FE&password=x", "[]"] {
        assert_eq!(page.post("/login", &form, body).status(), 400, "{body}");
    }
    let right = "name=cn%3Dadmin%2Ccn%3Dkeyway&password=s3cret%26%2B%25";
    assert_eq!(page.post("/login", &[("Content-Type", "text/plain")], right).status(), 400);
    let evil = [form[0], ("Origin", "http://evil.example")];
    assert_eq!(page.ask("POST", "/login", &evil, right).status(), 403);
    let entered = page.post("/login", &form, right);
    assert_eq!(entered.status(), 303);
    let (cookie, key) = page.key(entered.cookie());
    let both = [("Cookie", cookie.as_str()), ("X-Keyway-Page", key.as_str())];
    assert_eq!(page.get("/api/hosts", &both).status(), 200);
}

#[test]
fn hostile_requests_are_refused_and_hurt_no_client() {
    let page = Page::with_token();
    let (cookie, key) = page.enter();
    let both = [("Cookie", cookie.as_str()), ("X-Keyway-Page", key.as_str())];
    let long = "x".repeat(limits::BODY_BYTES_MAX + 1);
    assert_eq!(page.post("/api/load/start", &both, &long).status(), 413);
    let deep = "[".repeat(10_000);
    for body in [
        "",
        "{",
        "[]",
        "{\"rate\":1}",
        &deep,
        "{\"scenario\":\"search\",\"targets\":[0],\"seconds\":1,\"urls\":[]}",
    ] {
        assert_eq!(page.post("/api/load/start", &both, body).status(), 400, "{body:.40}");
    }
    for body in [
        json!({ "scenario": "../../etc/passwd", "targets": [0], "seconds": 1 }),
        json!({ "scenario": "search", "targets": [1], "seconds": 1 }),
        json!({ "scenario": "modify", "targets": [0], "seconds": 1 }),
        json!({ "scenario": "search", "targets": [0], "seconds": 1, "base": "\"\n[data]\nx = { file = \"/etc/passwd\" }" ,
            "connections": 0 }),
    ] {
        assert_eq!(page.post("/api/load/start", &both, &body.to_string()).status(), 409, "{body}");
    }
    assert_eq!(page.post("/api/load/rate", &both, "{\"rate\":5}").status(), 409);
    let header =
        format!("GET / HTTP/1.1\r\nHost: {}\r\nX: {}\r\n\r\n", page.address, "y".repeat(64 << 10));
    assert!(![200, 303].contains(&page.send(&header).status()));
    for noise in ["\0\0\0\0\r\n\r\n", "GET\r\n\r\n", "\u{16}\u{3}\u{1}\0\u{5}hello\r\n\r\n"] {
        assert!(![200, 303].contains(&page.send(noise).status()));
    }
}

#[test]
fn a_crowd_that_says_nothing_keeps_no_client_out() {
    let page = Page::with_token();
    let (cookie, key) = page.enter();
    let both = [("Cookie", cookie.as_str()), ("X-Keyway-Page", key.as_str())];
    // A browser that was let in keeps its connection.
    let mut known = TcpStream::connect(page.address).unwrap();
    known.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    let request = format!("GET / HTTP/1.1\r\nHost: {}\r\nCookie: {cookie}\r\n\r\n", page.address);
    let mut answered = || {
        known.write_all(request.as_bytes()).unwrap();
        let mut text = Vec::new();
        while !text.ends_with(b"</html>\n") {
            let mut byte = [0];
            known.read_exact(&mut byte).unwrap();
            text.push(byte[0]);
        }
        assert!(text.starts_with(b"HTTP/1.1 200"));
    };
    answered();
    let crowd: Vec<TcpStream> = (0..limits::CONNECTIONS_MAX * 2)
        .map(|_| {
            let mut one = TcpStream::connect(page.address).unwrap();
            // They may have been turned out by then.
            let _ = one.write_all(b"GET / HTTP/1.1\r\nX: ");
            one
        })
        .collect();
    assert_eq!(page.get("/api/hosts", &both).status(), 200);
    answered();
    drop(crowd);
}
