//! Text from elsewhere that a terminal can be given.

use serde_json::Value;

/// Whether a terminal would take this for a command, or text looks like another because of it.
#[must_use]
pub fn misleads(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{ad}' | '\u{61c}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}' | '\u{feff}')
}

/// JSON that a terminal can be given: the same is escaped as JSON has it.
#[must_use]
pub fn json(value: &Value) -> String {
    let text = value.to_string();
    if !text.contains(misleads) {
        return text;
    }
    // All of them are below U+10000.
    let one = |c: char| match misleads(c) {
        true => format!("\\u{:04x}", u32::from(c)),
        false => c.to_string(),
    };
    text.chars().map(one).collect()
}
