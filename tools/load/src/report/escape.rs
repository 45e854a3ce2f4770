//! Values of a result as HTML takes them.

use serde_json::Value;

pub(super) fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or_default()
}

pub(super) fn texts(value: &Value) -> Vec<String> {
    let texts = value.as_array().into_iter().flatten();
    texts.filter_map(|text| text.as_str().map(str::to_owned)).collect()
}

/// Escapes the characters that have a meaning in HTML.
pub(super) fn escaped(text: &str) -> String {
    let text = text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
    text.replace('"', "&quot;")
}
