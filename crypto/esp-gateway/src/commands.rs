//! What is asked of a gateway, or of its configuration, from a shell.

use crate::config;
use crate::control::{Request, ask};
use keyway_host::failure::Failure;
use keyway_host::output;
use serde_json::{Value, json};
use std::path::Path;

/// Says whether a configuration could run, as far as its text tells.
///
/// # Errors
/// The first fault.
pub fn check(path: &Path, is_json: bool) -> Result<(), Failure> {
    let configuration = config::read(path)?;
    let tunnels = configuration.tunnels.len();
    match is_json {
        true => output::json(&json!({ "event": "checked", "tunnels": tunnels })),
        false => output::text(format_args!("{}: {tunnels} tunnels, no fault", path.display())),
    }
}

/// Has the gateway read its configuration again.
///
/// # Errors
/// That it is not there, or the fault for which it has changed nothing.
pub fn reload(control: &Path, is_json: bool) -> Result<(), Failure> {
    let answer = ask(control, Request::Reload)?;
    match is_json {
        true => output::json(&json!({ "event": "reloaded", "text": answer["done"] })),
        false => output::text(answer["done"].as_str().unwrap_or_default()),
    }
}

/// Shows how the gateway is.
///
/// # Errors
/// That it is not there.
pub fn status(control: &Path, is_json: bool) -> Result<(), Failure> {
    let answer = ask(control, Request::Status)?;
    match is_json {
        true => output::json(&answer),
        false => output::text(lines(&answer).join("\n")),
    }
}

/// The status in words.
fn lines(status: &Value) -> Vec<String> {
    let mut lines = Vec::new();
    let device = status["device"].as_str().unwrap_or_default();
    let cryptod = match status["cryptod"].as_bool() {
        None => "",
        Some(true) => ", cryptod is there",
        Some(false) => ", cryptod is away",
    };
    lines.push(format!("{device}, MTU {}{cryptod}", status["mtu"]));
    for tunnel in status["tunnels"].as_array().into_iter().flatten() {
        let text = |name: &str| tunnel[name].as_str().unwrap_or_default();
        lines.push(format!(
            "{}: {} mode, {}, to {}, packets of {} bytes at most",
            text("name"),
            text("mode"),
            text("algorithm"),
            text("remote"),
            tunnel["longest_packet"]
        ));
        lines.extend(["out", "in"].map(|way| association(way, &tunnel[way])));
    }
    for retired in status["retired"].as_array().into_iter().flatten() {
        let spi = retired["spi"].as_str().unwrap_or_default();
        lines.push(format!("in {spi}: retires, {} s left", retired["seconds_left"]));
    }
    for way in ["out", "in"] {
        let figures = &status["figures"][way];
        let (packets, bytes) = (number(&figures["packets"]), number(&figures["bytes"]));
        lines.push(format!("all {way}: {packets} packets, {bytes} bytes"));
        for (cause, dropped) in figures["dropped"].as_object().into_iter().flatten() {
            let (packets, bytes) = (number(&dropped["packets"]), number(&dropped["bytes"]));
            lines.push(format!("  dropped, {cause}: {packets} packets, {bytes} bytes"));
        }
    }
    lines
}

fn association(way: &str, it: &Value) -> String {
    let (spi, state) = (it["spi"].as_str().unwrap_or_default(), it["state"].as_str());
    let leased = match it["leased"].as_u64() {
        Some(left) => format!(", {} leased ahead", output::grouped(left)),
        None => String::new(),
    };
    if it["packets"].is_null() {
        return format!("  {way} {spi}: {}", state.unwrap_or_default());
    }
    format!(
        "  {way} {spi}: {}, number {}{leased}, {} packets, {} bytes",
        state.unwrap_or_default(),
        number(&it["number"]),
        number(&it["packets"]),
        number(&it["bytes"])
    )
}

fn number(value: &Value) -> String {
    output::grouped(value.as_u64().unwrap_or(0))
}
