//! The server's certificates while it runs: files that change are read again and taken for sessions to
//! come, and a warning comes in time before one expires.

use keyway_folder::data::Folder;
use keyway_folder::tls::{Ends, Look, Made, Settings, Tls, Watch};
use keyway_host::failure::Failure;
use keyway_host::timestamp::Timestamp;
use keyway_ldapd::CurrentTls;
use keyway_log::Logs;
use keyway_meter::{Gauge, gauge};
use keyway_server::log::{Severity, Value};
use std::net::SocketAddr;
use std::path::PathBuf;

/// The configuration of TLS, and its sources.
pub struct Certificates {
    tls: Tls,
    pub current: CurrentTls,
    watch: Watch,
    ends: Vec<Ends>,
    /// When their ends were looked at last.
    warned: Option<Timestamp>,
    first_end: Gauge,
}

/// The files to be read, for a server that listens there.
#[derive(Clone, Copy)]
pub struct Sources<'a> {
    pub folder: &'a Folder,
    pub settings: &'a Settings,
    pub listen: &'a [SocketAddr],
}

/// The configuration that was read, and is not in use yet.
pub struct Fresh {
    pub made: Made,
    watch: Watch,
}

impl Fresh {
    fn read(tls: &mut Tls, sources: Sources<'_>) -> Result<Fresh, Failure> {
        let Sources { folder, settings, listen } = sources;
        // Looked at before they are read: what is written meanwhile is read again.
        let mut watch = Watch::new(folder, settings);
        let made = tls.make(folder, settings, listen, Timestamp::now())?;
        watch.own_written();
        Ok(Fresh { made, watch })
    }
}

impl Certificates {
    /// Reads them for the first time; says what was made of them, too.
    ///
    /// # Errors
    /// The file and its error.
    pub fn open(mut tls: Tls, sources: Sources<'_>) -> Result<(Certificates, Made), Failure> {
        let Fresh { made, watch } = Fresh::read(&mut tls, sources)?;
        let current = CurrentTls::new(made.config.clone());
        let (ends, first_end) = (made.ends.clone(), gauge("tls.certificate.ends"));
        let certificates = Certificates { tls, current, watch, ends, warned: None, first_end };
        certificates.measure();
        Ok((certificates, made))
    }

    /// Reads them again. Nothing is in use before it is put.
    ///
    /// # Errors
    /// The file and its error.
    pub fn read(&mut self, sources: Sources<'_>) -> Result<Fresh, Failure> {
        Fresh::read(&mut self.tls, sources)
    }

    /// Takes what was read for sessions to come.
    pub fn put(&mut self, fresh: Fresh) {
        let Fresh { made: Made { config, ends, .. }, watch } = fresh;
        self.current.replace(config);
        (self.watch, self.ends, self.warned) = (watch, ends, None);
        self.measure();
    }

    /// Looks whether files have changed, and at the ends once a day.
    pub fn look(&mut self, sources: Sources<'_>, logs: &Logs, now: Timestamp) {
        match self.watch.look() {
            Look::Wait => {}
            Look::Changed(files) => self.renew(sources, logs, &files),
            Look::Gone(file) => say(
                logs,
                Severity::Error,
                &format!(
                    "{} is gone; what was read of it stays in use until it is there again",
                    file.display()
                ),
            ),
        }
        self.warn(sources, logs, now);
    }

    fn renew(&mut self, sources: Sources<'_>, logs: &Logs, files: &[PathBuf]) {
        let shown: Vec<_> = files.iter().map(|file| file.display().to_string()).collect();
        let shown = shown.join(", ");
        let now = Timestamp::now();
        match self.read(sources) {
            // Those that are in use are better.
            Ok(fresh) if self.are_valid(now) && !are_valid(&fresh.made.ends, now) => {
                let why: Vec<_> = fresh.made.ends.iter().filter_map(|it| it.warning(now)).collect();
                let why = why.join("; ");
                let text = format!("{shown} changed, all certificates stay as they were: {why}");
                say(logs, Severity::Error, &text);
            }
            Ok(fresh) => {
                self.put(fresh);
                let text = format!("{shown} changed: new sessions get what is in it now");
                say(logs, Severity::Info, &text);
            }
            Err(why) => {
                let text = format!("{shown} changed, all certificates stay as they were: {why}");
                say(logs, Severity::Error, &text);
            }
        }
    }

    /// Says which are near their ends, once a day. The folder's own is issued anew, if it can be.
    fn warn(&mut self, sources: Sources<'_>, logs: &Logs, now: Timestamp) {
        // A clock that was ahead then must not keep it quiet for as long.
        let is_recent = |last: Timestamp| (last..last.after_days(1)).contains(&now);
        if self.warned.is_some_and(is_recent) {
            return;
        }
        let is_due = |ends: &Ends| ends.warning(now).is_some();
        if sources.settings.files.is_none() && self.ends.iter().any(is_due) {
            match self.read(sources) {
                Ok(fresh) => self.put(fresh),
                Err(why) => say(logs, Severity::Error, &why.to_string()),
            }
        }
        self.warned = Some(now);
        for text in self.ends.iter().filter_map(|ends| ends.warning(now)) {
            say(logs, Severity::Warning, &text);
        }
    }

    fn are_valid(&self, now: Timestamp) -> bool {
        are_valid(&self.ends, now)
    }

    fn measure(&self) {
        let first = self.ends.iter().map(|ends| ends.at.unix_s()).min();
        self.first_end.set(first.and_then(|first| u64::try_from(first).ok()).unwrap_or(0));
    }
}

fn are_valid(ends: &[Ends], now: Timestamp) -> bool {
    ends.iter().all(|ends| ends.is_valid(now))
}

fn say(logs: &Logs, severity: Severity, text: &str) {
    logs.say(severity, "certificates", &[("text", Value::Text(text))]);
}
