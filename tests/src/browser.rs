//! Chromium, driven by Debian's chromium-driver (WebDriver over HTTP), as its user would: by looking at the
//! page, and with the keyboard.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// The programs it needs, for [`available`](crate::available).
pub const NEEDS: [&str; 2] = ["chromium", "chromedriver"];

/// How long something may take to appear on a page.
const APPEAR_MAX: Duration = Duration::from_secs(40);

/// The keyboard's keys that are no letters, as WebDriver has them.
pub mod key {
    /// Tab.
    pub const TAB: &str = "\u{e004}";
    /// Enter.
    pub const ENTER: &str = "\u{e007}";
    /// The arrow to the left.
    pub const LEFT: &str = "\u{e012}";
    /// The arrow to the right.
    pub const RIGHT: &str = "\u{e014}";
    /// To the first.
    pub const HOME: &str = "\u{e011}";
    /// To the last.
    pub const END: &str = "\u{e010}";
    /// The space bar.
    pub const SPACE: &str = " ";
}

/// A browser with one window. Ends when dropped.
pub struct Browser {
    driver: Child,
    port: u16,
    session: String,
}

impl Browser {
    /// Starts one with a window of 1280 by 800.
    ///
    /// # Panics
    /// If it does not start.
    pub fn start() -> Browser {
        let mut driver = Command::new("chromedriver")
            .arg("--port=0")
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("chromedriver starts");
        let mut lines = BufReader::new(driver.stdout.take().expect("its output")).lines();
        let port = lines.find_map(|line| {
            let line = line.ok()?;
            line.split_once("successfully on port ")?.1.trim_end_matches('.').parse().ok()
        });
        // Its later output is of no interest, but must not stop it.
        std::thread::spawn(move || lines.for_each(drop));
        let mut browser = Browser { driver, port: port.expect("its port"), session: String::new() };
        let options = json!({ "binary": "/usr/bin/chromium", "args": [
            "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--disable-lcd-text",
            "--ignore-certificate-errors", "--window-size=1280,900",
        ] });
        let wanted = json!({ "browserName": "chrome", "goog:chromeOptions": options,
            "goog:loggingPrefs": { "browser": "ALL" } });
        let made =
            browser.ask("POST", "/session", &json!({ "capabilities": { "alwaysMatch": wanted } }));
        browser.session = made["sessionId"].as_str().expect("a session").to_owned();
        browser.size(1280, 800);
        browser
    }

    /// Opens a page.
    pub fn open(&self, url: &str) {
        self.tell("url", &json!({ "url": url }));
    }

    /// The value of a function's body, run in the page.
    pub fn script(&self, body: &str) -> Value {
        self.tell("execute/sync", &json!({ "script": body, "args": [] }))
    }

    /// Waits until an expression is true, and gives its value.
    ///
    /// # Panics
    /// If it is not, in time.
    #[track_caller]
    pub fn wait(&self, expression: &str) -> Value {
        let begun = Instant::now();
        loop {
            let value = self.script(&format!("return {expression}"));
            let is_true = match &value {
                Value::Null | Value::Bool(false) => false,
                Value::Number(number) => number.as_f64() != Some(0.0),
                Value::String(text) => !text.is_empty(),
                _ => true,
            };
            if is_true {
                return value;
            }
            if begun.elapsed() > APPEAR_MAX {
                let text = self.script("return document.body.innerText");
                panic!("{expression} is {value} on\n{}", text.as_str().unwrap_or_default());
            }
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    /// Presses keys, one after the other.
    pub fn press(&self, keys: &str) {
        let both = |key: char| {
            [json!({ "type": "keyDown", "value": key }), json!({ "type": "keyUp", "value": key })]
        };
        let all: Vec<Value> = keys.chars().flat_map(both).collect();
        self.tell(
            "actions",
            &json!({ "actions": [{ "type": "key", "id": "keys", "actions": all }] }),
        );
    }

    /// Has the system look light or dark.
    pub fn colours(&self, scheme: &str) {
        let features = json!([{ "name": "prefers-color-scheme", "value": scheme }]);
        self.develop("Emulation.setEmulatedMedia", &json!({ "features": features }));
    }

    /// Makes the page so large.
    pub fn size(&self, width: u32, height: u32) {
        let metrics =
            json!({ "width": width, "height": height, "deviceScaleFactor": 1, "mobile": false });
        self.develop("Emulation.setDeviceMetricsOverride", &metrics);
    }

    fn develop(&self, command: &str, parameters: &Value) {
        self.tell("goog/cdp/execute", &json!({ "cmd": command, "params": parameters }));
    }

    /// Takes a picture.
    ///
    /// # Panics
    /// If it cannot be written.
    pub fn picture(&self, path: &Path) {
        let picture =
            self.ask("GET", &format!("/session/{}/screenshot", self.session), &Value::Null);
        let bytes = STANDARD.decode(picture.as_str().expect("a picture")).expect("Base64");
        std::fs::write(path, bytes).expect("written");
    }

    /// Errors that the page's console has had since this was asked last.
    pub fn errors(&self) -> Vec<String> {
        let log = self.tell("se/log", &json!({ "type": "browser" }));
        let lines = log.as_array().cloned().unwrap_or_default();
        let is_error = |line: &&Value| line["level"] == "SEVERE";
        lines.iter().filter(is_error).map(|line| line["message"].to_string()).collect()
    }

    fn tell(&self, what: &str, body: &Value) -> Value {
        self.ask("POST", &format!("/session/{}/{what}", self.session), body)
    }

    fn ask(&self, method: &str, path: &str, body: &Value) -> Value {
        let body = if body.is_null() { String::new() } else { body.to_string() };
        let mut stream =
            TcpStream::connect(("127.0.0.1", self.port)).expect("chromedriver listens");
        stream.set_read_timeout(Some(Duration::from_secs(60))).expect("a time-out");
        let head = format!(
            "{method} {path} HTTP/1.1\r\nHost: 127.0.0.1:{}\r\nContent-Type: application/json\r\n\
             Content-Length: {}\r\nConnection: close\r\n\r\n{body}",
            self.port,
            body.len()
        );
        stream.write_all(head.as_bytes()).expect("sent");
        let mut answer = BufReader::new(stream);
        let mut length = 0;
        loop {
            let mut line = String::new();
            answer.read_line(&mut line).expect("a header");
            let (name, value) = line.trim_end().split_once(':').unwrap_or((line.trim_end(), ""));
            match name.to_ascii_lowercase().as_str() {
                "" => break,
                "content-length" => length = value.trim().parse().expect("a length"),
                _ => {}
            }
        }
        let mut bytes = vec![0; length];
        answer.read_exact(&mut bytes).expect("a body");
        let answer: Value = serde_json::from_slice(&bytes).expect("JSON");
        let error = &answer["value"]["error"];
        assert!(error.is_null(), "{path} {body:.300}: {error}: {}", answer["value"]["message"]);
        answer["value"].clone()
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        if !self.session.is_empty() && !std::thread::panicking() {
            self.ask("DELETE", &format!("/session/{}", self.session), &Value::Null);
        }
        let _ = self.driver.kill();
        let _ = self.driver.wait();
    }
}
