//! Scenarios to begin with: one for each LDAP job type of SLAMD, with what a user has said filled in.
//! The short forms of the command are some of these.

mod list;
mod options;
mod places;
mod sample;

pub use list::SAMPLES;
pub use options::{Adds, Knee, Options, UserPassword, Users};

use sample::Job;
pub use sample::Sample;
use std::fmt::Write as _;
use std::path::Path;
use std::time::Duration;

impl Sample {
    /// The one of a name.
    #[must_use]
    pub fn named(name: &str) -> Option<&'static Sample> {
        SAMPLES.iter().find(|sample| sample.name == name)
    }

    /// Whether it needs an administrator: it changes entries, or asks for data that is not open to all
    /// users.
    #[must_use]
    pub fn needs_admin(&self) -> bool {
        self.needs_admin
    }

    /// Whether it adds entries, which may be those of a template: it does nothing to them that depends on
    /// how they are called.
    #[must_use]
    pub fn takes_template(&self) -> bool {
        let mut steps = self.jobs.iter().flat_map(|job| job.steps);
        steps.clone().any(|step| *step == "@ADD@") && !steps.any(|step| step.contains("{fresh}"))
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
        text.push_str(
            "\n# A job's steps are one unit of the rate; {user} is the same in all of them.\n",
        );
        let jobs: Vec<String> = self.jobs.iter().map(Job::text).collect();
        text.push_str(&self.filled(&jobs.join("\n"), options));
        text
    }

    fn target(&self, options: &Options, text: &mut String) {
        options.target(text);
        if self.needs_admin && !options.has_admin() {
            let dn = quoted(&format!("cn=admin,{}", options.base()));
            let _ = writeln!(text, "admin = {{ dn = {dn}, password_file = \"admin-password\" }}");
        }
    }

    fn data(&self, options: &Options, text: &mut String) {
        let _ = writeln!(text, "\n# Values for {{name}} in the texts below.\n[data]");
        let pick = self.pick;
        let _ = match options.users() {
            Users::Range(low, high) => {
                writeln!(text, "user = {{ range = [{low}, {high}]{pick} }}")
            }
            Users::File(file) => writeln!(text, "user = {{ file = {}{pick} }}", path(file)),
            Users::Lines { lines, .. } => {
                let lines: Vec<String> = lines.iter().map(|line| quoted(line)).collect();
                let lines = lines.join(",\n  ");
                writeln!(text, "user = {{ lines = [\n  {lines}\n]{pick} }}")
            }
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
        if let Some(Knee { from, to, until, hold }) = &options.find {
            let (until, hold) = (quoted(until), seconds(*hold));
            let _ = writeln!(
                text,
                "# Each rate is held so long; the rule is what must not come true.\n[[phase]]\n\
                 find = {{ rate = [{from}, {to}], until = {until}, hold = \"{hold}\" }}"
            );
            return;
        }
        if !options.warm_up.is_zero() {
            let warm_up = seconds(options.warm_up);
            let _ = writeln!(text, "[[phase]]\nfor = \"{warm_up}\"\n{rate}record = false\n");
        }
        if let Some(operations) = options.operations {
            let _ = write!(text, "[[phase]]\noperations = {operations}\n{rate}");
        } else if self.phases.is_empty() {
            let _ = write!(text, "[[phase]]\nfor = \"{}\"\n{rate}", seconds(options.length));
        } else {
            text.push_str(&self.filled(self.phases, options));
        }
    }

    fn filled(&self, text: &str, options: &Options) -> String {
        let user = options.user();
        let credential = match &options.user_password {
            UserPassword::Text(text) => format!("password = {}", quoted(text)),
            UserPassword::File(file) => format!("password_file = {}", path(file)),
        };
        // The number of entries that a custom filter finds is not known here.
        let expect = if options.filter.is_some() { "code = 0" } else { "entries = 1" };
        let mut text = text.replace("@EXPECT@", expect);
        let (data, add) = match &options.template {
            Some(adds) if self.takes_template() => (adds.data(), ADD_ENTRY.to_owned()),
            _ => (FRESH_DATA.to_owned(), ADD.to_owned()),
        };
        text = text.replace("@FRESH_DATA@", &data).replace("@ADD@", &add);
        text = text.replace("@CREDENTIAL@", &credential);
        for (name, value) in [
            ("@BASE@", options.base()),
            ("@BELOW@", &user.below),
            ("@FILTER@", &user.filter),
            ("@USER_DN@", &user.dn),
            ("@FRESH@", &options.fresh.to_string()),
            ("@LENGTH@", &seconds(options.length)),
        ] {
            let quoted = quoted(value);
            text = text.replace(name, quoted.get(1..quoted.len() - 1).unwrap_or_default());
        }
        text
    }
}

impl Options {
    /// `[target]`: how the servers are reached, and as which user.
    fn target(&self, text: &mut String) {
        let urls: Vec<String> = self.urls.iter().map(|url| quoted(url)).collect();
        let _ = writeln!(text, "\n[target]\nurls = [{}]", urls.join(", "));
        let _ = writeln!(text, "base = {}", quoted(self.base()));
        if let Some(ca) = &self.ca {
            let _ = writeln!(text, "ca = {}", path(ca));
        }
        if let Some((certificate, key)) = &self.own {
            let (certificate, key) = (path(certificate), path(key));
            let _ = writeln!(text, "certificate = {certificate}\nkey = {key}");
        }
        for (flag, name) in
            [(self.insecure, "insecure"), (self.start_tls, "start_tls"), (self.resume, "resume")]
        {
            if flag {
                let _ = writeln!(text, "{name} = true");
            }
        }
        match &self.admin {
            Some((dn, file)) => {
                let (dn, file) = (quoted(dn), path(file));
                let _ = writeln!(text, "admin = {{ dn = {dn}, password_file = {file} }}");
            }
            None if self.external => text.push_str("admin = { sasl = \"EXTERNAL\" }\n"),
            None => {}
        }
    }

    /// A scenario that asks who it is, and nothing else.
    pub(crate) fn target_only(&self) -> String {
        let mut text = String::new();
        self.target(&mut text);
        let bind = if self.has_admin() { "admin" } else { "none" };
        let _ = writeln!(
            text,
            "[connections]\ncount = 1\nbind = \"{bind}\"\n[[job]]\nsteps = [{{ whoami = {{}} }}]"
        );
        text
    }
}

/// Entries of a run's own, and how one is added.
const FRESH_DATA: &str = "\
# Each value once, for entries that are added. Choose another beginning if entries of an earlier run
# are still there.
fresh = { counter = @FRESH@ }
";
const ADD: &str = r#"{ add = { dn = "uid=load.{fresh},@BELOW@", attributes = { objectClass = ["top", "person", "organizationalPerson", "inetOrgPerson"], uid = "load.{fresh}", cn = "Load {fresh}", sn = "Load", description = "{random:alpha:64}" } } }"#;
const ADD_ENTRY: &str = "{ add = { entry = \"entry\" } }";

impl Adds {
    fn data(&self) -> String {
        let mut text = "# Entries of a template, each once; those above them have to be there.\n\
                        # Without from = N: from the first on that keyway data does not make of it.\n"
            .to_owned();
        let _ = write!(text, "entry = {{ template = {}", quoted(&self.template));
        if let Some(of) = &self.of {
            let _ = write!(text, ", of = {}", quoted(of));
        }
        if let Some(from) = self.from {
            let _ = write!(text, ", from = {from}");
        }
        if !self.define.is_empty() {
            let constant =
                |(name, value): &(String, String)| format!("{} = {}", quoted(name), quoted(value));
            let constants: Vec<String> = self.define.iter().map(constant).collect();
            let _ = write!(text, ", define = {{ {} }}", constants.join(", "));
        }
        text.push_str(" }\n");
        text
    }
}

impl Job {
    fn text(&self) -> String {
        let mut text = format!("{}[[job]]\nname = \"{}\"\n", self.about, self.name);
        if self.weight > 0 {
            let _ = writeln!(text, "weight = {}", self.weight);
        }
        if !self.connections.is_empty() {
            let _ = writeln!(text, "connections = {}", self.connections);
        }
        let steps: Vec<String> = self.steps.iter().map(|step| format!("  {step},\n")).collect();
        let _ = writeln!(text, "steps = [\n{}]", steps.concat());
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
    use std::os::unix::fs::PermissionsExt;

    /// The administrator's password, for us only.
    fn secret(folder: &Path, text: &str) {
        let file = folder.join("admin-password");
        std::fs::write(&file, text).unwrap();
        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o600)).unwrap();
    }

    #[test]
    fn every_sample_is_a_scenario() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("names.txt"), "ada\nbob\n").unwrap();
        secret(folder.path(), "x{y}\n");
        for sample in SAMPLES {
            let text = sample.text(&Options::default());
            let scenario = Scenario::parse(&text, sample.name, folder.path());
            let scenario = scenario.unwrap_or_else(|why| panic!("{}: {why}\n{text}", sample.name));
            assert_eq!(scenario.name, sample.name);
            assert!(!scenario.text.contains("x{y}"));
        }
    }

    #[test]
    fn users_that_a_server_has_shown_are_asked_for_by_their_names() {
        let lines =
            vec!["ada{1}\tcn=ada\\,\"x\",ou={a},o=b".to_owned(), "bob\tcn=bob,o=b".to_owned()];
        let users = Some(Users::Lines { lines, login: "cn" });
        let options = Options { users, operations: Some(7), ..Options::default() };
        for sample in SAMPLES.iter().filter(|sample| !sample.data.contains("names.txt")) {
            let text = sample.text(&options);
            let folder = tempfile::tempdir().unwrap();
            secret(folder.path(), "x");
            let scenario = Scenario::parse(&text, sample.name, folder.path());
            let scenario = scenario.unwrap_or_else(|why| panic!("{}: {why}\n{text}", sample.name));
            assert_eq!(scenario.phases.last().and_then(|phase| phase.most), Some(7));
        }
        let text = Sample::named("mixed").unwrap().text(&options);
        assert!(text.contains("(cn={user.1})") && text.contains("{fresh},ou={{a}},o=b"), "{text}");
    }

    #[test]
    fn what_is_filled_in_is_quoted() {
        let options = Options {
            base: Some("o=\"a\\,b\"".into()),
            user_password: UserPassword::Text("\u{1}\"".into()),
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
