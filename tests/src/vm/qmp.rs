//! QEMU's machine protocol (QMP): commands and events, a line of JSON each.

use serde_json::{Value, json};
use std::collections::VecDeque;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::time::Duration;

/// A connection to a monitor.
pub struct Qmp {
    reader: BufReader<UnixStream>,
    /// Those that came while an answer was waited for.
    events: VecDeque<Value>,
}

impl Qmp {
    /// Takes the greeting; fails if there is none within the time.
    pub fn new(stream: UnixStream, limit: Duration) -> Result<Qmp, String> {
        stream.set_read_timeout(Some(limit)).map_err(|why| why.to_string())?;
        let mut qmp = Qmp { reader: BufReader::new(stream), events: VecDeque::new() };
        qmp.line()?;
        qmp.execute("qmp_capabilities", &json!({}))?;
        Ok(qmp)
    }

    /// What the command returns, or the description of its error.
    pub fn execute(&mut self, command: &str, arguments: &Value) -> Result<Value, String> {
        let line = json!({ "execute": command, "arguments": arguments });
        let written = writeln!(self.reader.get_mut(), "{line}");
        written.map_err(|why| format!("QMP: {why}"))?;
        loop {
            let mut answer = self.line()?;
            if !answer["event"].is_null() {
                self.events.push_back(answer);
            } else if answer["error"].is_null() {
                return Ok(answer["return"].take());
            } else {
                return Err(answer["error"]["desc"].as_str().unwrap_or("an error").to_owned());
            }
        }
    }

    /// Waits for an event, and takes it: its data.
    pub fn event(
        &mut self,
        name: &str,
        is_meant: impl Fn(&Value) -> bool,
    ) -> Result<Value, String> {
        let mut at = 0;
        loop {
            if at == self.events.len() {
                let line = self.line()?;
                self.events.push_back(line);
            }
            let event = &self.events[at];
            if event["event"] == name && is_meant(&event["data"]) {
                let event = self.events.remove(at).unwrap_or_default();
                return Ok(event["data"].clone());
            }
            at += 1;
        }
    }

    fn line(&mut self) -> Result<Value, String> {
        let mut line = String::new();
        let read = self.reader.read_line(&mut line).map_err(|why| format!("QMP: {why}"))?;
        if read == 0 {
            return Err("QMP: QEMU has gone".to_owned());
        }
        serde_json::from_str(&line).map_err(|why| format!("QMP: {line:?}: {why}"))
    }
}
