//! Scenarios to begin with: one for each LDAP job type of SLAMD, with what a user has said filled in.
//! The short forms of the command are some of these.

mod list;

pub use list::SAMPLES;

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Who the users are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Users {
    /// Numbered from the first to the last of these.
    Range(u64, u64),
    /// Named in a file, a line each; what tabs part are `{user.1}`, `{user.2}`.
    File(PathBuf),
}

/// What is filled in.
#[derive(Debug, Clone)]
pub struct Options {
    /// The servers.
    pub urls: Vec<String>,
    /// The authority that is trusted.
    pub ca: Option<PathBuf>,
    /// Our own certificate, and its key.
    pub own: Option<(PathBuf, PathBuf)>,
    /// Who binds is whom that shows.
    pub external: bool,
    /// Any certificate is.
    pub insecure: bool,
    /// TLS begins with StartTLS.
    pub start_tls: bool,
    /// TLS sessions are resumed.
    pub resume: bool,
    /// Below which all entries are.
    pub base: String,
    /// The administrator, and the file with the password.
    pub admin: Option<(String, PathBuf)>,
    /// The users.
    pub users: Users,
    /// How a user is found.
    pub filter: Option<String>,
    /// A user's name.
    pub user_dn: Option<String>,
    /// A user's password.
    pub user_password: String,
    /// Sequences a second; without one as many as are answered.
    pub rate: Option<f64>,
    /// Connections.
    pub connections: Option<u64>,
    /// Operations in flight on each.
    pub in_flight: Option<u64>,
    /// Sequences after which each is opened anew.
    pub reconnect_after: Option<u64>,
    /// How long it is run, warm-up apart.
    pub length: Duration,
    /// How long before that, without counting.
    pub warm_up: Duration,
    /// What all that is random follows from.
    pub seed: u64,
    /// The number that the first entry is named by which is added.
    pub fresh: u64,
    /// How long an answer may take.
    pub timeout: Duration,
    /// Threads.
    pub threads: Option<u64>,
}

impl Options {
    fn has_admin(&self) -> bool {
        self.admin.is_some() || self.external
    }
}

impl Default for Options {
    fn default() -> Options {
        Options {
            urls: vec!["ldap://localhost:389".into()],
            ca: None,
            own: None,
            external: false,
            insecure: false,
            start_tls: false,
            resume: false,
            base: "dc=example,dc=com".into(),
            admin: None,
            users: Users::Range(0, 9_999),
            filter: None,
            user_dn: None,
            user_password: "password".into(),
            rate: None,
            connections: None,
            in_flight: None,
            reconnect_after: None,
            length: Duration::from_secs(10),
            warm_up: Duration::ZERO,
            seed: 1,
            fresh: 1_000_000,
            timeout: Duration::from_secs(10),
            threads: None,
        }
    }
}

/// A scenario to begin with.
#[derive(Debug)]
pub struct Sample {
    /// What it is called.
    pub name: &'static str,
    /// What SLAMD calls it.
    pub slamd: &'static str,
    /// What it does.
    pub about: &'static str,
    connections: u64,
    in_flight: u64,
    needs_admin: bool,
    data: &'static str,
    pick: &'static str,
    jobs: &'static str,
    phases: &'static str,
}

impl Sample {
    /// The one of a name.
    #[must_use]
    pub fn named(name: &str) -> Option<&'static Sample> {
        SAMPLES.iter().find(|sample| sample.name == name)
    }

    /// Whether it changes entries or asks what not everybody may know.
    #[must_use]
    pub fn needs_admin(&self) -> bool {
        self.needs_admin
    }

    /// The scenario's text.
    #[must_use]
    pub fn text(&self, options: &Options) -> String {
        let mut text = format!(
            "# {}: {} (SLAMD: {}).\n# keyway load run FILE runs it; docs/guide/load.md has every key.\n\n\
             name = \"{}\"\nseed = {}\ntimeout = \"{}\"\n",
            self.name,
            self.about,
            self.slamd,
            self.name,
            options.seed,
            seconds(options.timeout),
        );
        // Into memory it cannot fail.
        if let Some(threads) = options.threads {
            let _ = writeln!(text, "threads = {threads}");
        }
        self.target(options, &mut text);
        self.data(options, &mut text);
        self.connections(options, &mut text);
        self.phases(options, &mut text);
        let _ = write!(
            text,
            "\n# A job's steps are one unit of the rate; {{user}} is the same in all of them.\n{}",
            self.filled(self.jobs, options)
        );
        text
    }

    fn target(&self, options: &Options, text: &mut String) {
        let urls: Vec<String> = options.urls.iter().map(|url| quoted(url)).collect();
        let _ = writeln!(text, "\n[target]\nurls = [{}]", urls.join(", "));
        let _ = writeln!(text, "base = {}", quoted(&options.base));
        if let Some(ca) = &options.ca {
            let _ = writeln!(text, "ca = {}", path(ca));
        }
        if let Some((certificate, key)) = &options.own {
            let (certificate, key) = (path(certificate), path(key));
            let _ = writeln!(text, "certificate = {certificate}\nkey = {key}");
        }
        for (flag, name) in [
            (options.insecure, "insecure"),
            (options.start_tls, "start_tls"),
            (options.resume, "resume"),
        ] {
            if flag {
                let _ = writeln!(text, "{name} = true");
            }
        }
        match &options.admin {
            Some((dn, file)) => {
                let (dn, file) = (quoted(dn), path(file));
                let _ = writeln!(text, "admin = {{ dn = {dn}, password_file = {file} }}");
            }
            None if options.external => text.push_str("admin = { sasl = \"EXTERNAL\" }\n"),
            None if self.needs_admin => {
                let _ = writeln!(
                    text,
                    "admin = {{ dn = {}, password_file = \"admin-password\" }}",
                    quoted(&format!("cn=admin,{}", options.base))
                );
            }
            None => {}
        }
    }

    fn data(&self, options: &Options, text: &mut String) {
        let _ = writeln!(text, "\n# Values for {{name}} in the texts below.\n[data]");
        let pick = self.pick;
        let _ = match &options.users {
            Users::Range(low, high) => {
                writeln!(text, "user = {{ range = [{low}, {high}]{pick} }}")
            }
            Users::File(file) => writeln!(text, "user = {{ file = {}{pick} }}", path(file)),
        };
        text.push_str(&self.filled(self.data, options));
    }

    fn connections(&self, options: &Options, text: &mut String) {
        let count = options.connections.unwrap_or(self.connections);
        let in_flight = options.in_flight.unwrap_or(self.in_flight);
        let kind = match options.reconnect_after {
            None => "\"kept\"".to_owned(),
            Some(1) => "\"per-operation\"".to_owned(),
            Some(after) => format!("{{ reconnect_after = {after} }}"),
        };
        let is_admin = self.needs_admin || options.has_admin() && self.name != "bind";
        let bind = if is_admin { "admin" } else { "none" };
        let _ = writeln!(
            text,
            "\n[connections]\ncount = {count}\nin_flight = {in_flight}\nkind = {kind}   # \"kept\", \
             \"per-operation\" or {{ reconnect_after = 1000 }}\nbind = \"{bind}\"   # \"none\", \
             \"admin\" or {{ dn = \"...\", password_file = \"...\" }}"
        );
    }

    fn phases(&self, options: &Options, text: &mut String) {
        let rate = match options.rate {
            Some(rate) => format!("rate = {rate}\n"),
            None => "# rate = 1_000            # sequences a second; without it as many as are \
                     answered\n"
                .to_owned(),
        };
        text.push('\n');
        if !options.warm_up.is_zero() {
            let warm_up = seconds(options.warm_up);
            let _ = writeln!(text, "[[phase]]\nfor = \"{warm_up}\"\n{rate}record = false\n");
        }
        if self.phases.is_empty() {
            let _ = write!(text, "[[phase]]\nfor = \"{}\"\n{rate}", seconds(options.length));
        } else {
            text.push_str(&self.filled(self.phases, options));
        }
    }

    fn filled(&self, text: &str, options: &Options) -> String {
        let is_file = matches!(options.users, Users::File(_));
        let user = if is_file { "{user.1}" } else { "user.{user}" };
        let filter = options.filter.clone().unwrap_or_else(|| format!("(uid={user})"));
        let user_dn = options.user_dn.clone();
        let user_dn = user_dn.unwrap_or_else(|| format!("uid={user},ou=People,{}", options.base));
        // Of another filter only who wrote it knows how many entries it has.
        let expect = if options.filter.is_some() { "code = 0" } else { "entries = 1" };
        let mut text = text.replace("@EXPECT@", expect);
        for (name, value) in [
            ("@BASE@", &options.base),
            ("@FILTER@", &filter),
            ("@USER_DN@", &user_dn),
            ("@PASSWORD@", &options.user_password),
            ("@FRESH@", &options.fresh.to_string()),
            ("@LENGTH@", &seconds(options.length)),
        ] {
            let quoted = quoted(value);
            text = text.replace(name, quoted.get(1..quoted.len() - 1).unwrap_or_default());
        }
        text
    }
}

/// A time as the scenario has it.
fn seconds(time: Duration) -> String {
    match time.subsec_nanos() {
        0 => format!("{}s", time.as_secs()),
        _ => format!("{}ms", time.as_millis()),
    }
}

/// A text as TOML has it.
fn quoted(text: &str) -> String {
    let mut quoted = String::from("\"");
    for c in text.chars() {
        match c {
            '"' | '\\' => quoted.extend(['\\', c]),
            c if c.is_control() => {
                let _ = write!(quoted, "\\u{:04X}", u32::from(c));
            }
            c => quoted.push(c),
        }
    }
    quoted.push('"');
    quoted
}

fn path(path: &Path) -> String {
    quoted(&path.to_string_lossy())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scenario::Scenario;

    #[test]
    fn every_sample_is_a_scenario() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("names.txt"), "ada\nbob\n").unwrap();
        std::fs::write(folder.path().join("admin-password"), "x{y}\n").unwrap();
        for sample in SAMPLES {
            let text = sample.text(&Options::default());
            let scenario = Scenario::parse(&text, sample.name, folder.path());
            let scenario = scenario.unwrap_or_else(|why| panic!("{}: {why}\n{text}", sample.name));
            assert_eq!(scenario.name, sample.name);
            assert!(!scenario.text.contains("x{y}"));
        }
    }

    #[test]
    fn what_is_filled_in_is_quoted() {
        let options = Options {
            base: "o=\"a\\,b\"".into(),
            user_password: "\u{1}\"".into(),
            rate: Some(2_500.0),
            warm_up: Duration::from_millis(1_500),
            reconnect_after: Some(100),
            ..Options::default()
        };
        let text = Sample::named("auth").unwrap().text(&options);
        let scenario = Scenario::parse(&text, "x", Path::new("")).unwrap();
        assert_eq!(scenario.phases.len(), 2);
        assert!(!scenario.phases[0].record);
        assert_eq!(scenario.length(), Duration::from_millis(11_500));
        // Passwords are not kept.
        assert!(scenario.text.contains("password = \"*\""), "{}", scenario.text);
    }
}
