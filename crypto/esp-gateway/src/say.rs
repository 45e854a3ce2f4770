//! What a gateway says while it runs: lines for people, or for programs.

use keyway_host::output;
use serde_json::json;
use std::fmt::Display;

/// Its manner.
#[derive(Clone, Copy, Debug)]
pub struct Say {
    /// Lines of JSON on standard output, and not words on standard error.
    pub json: bool,
}

impl Say {
    /// A remark.
    pub fn note(self, text: impl Display) {
        match self.json {
            // A reader that has gone misses it.
            true => drop(output::json(&json!({ "event": "note", "text": text.to_string() }))),
            false => output::note(text),
        }
    }

    /// An event of a tunnel.
    pub fn tunnel(self, event: &str, tunnel: &str, text: impl Display) {
        match self.json {
            true => drop(output::json(&json!({
                "event": event,
                "tunnel": tunnel,
                "text": text.to_string(),
            }))),
            false => output::note(format_args!("tunnel {tunnel}: {text}")),
        }
    }
}
