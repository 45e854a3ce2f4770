//! Temporary.
use keyway_esp_gateway::{UpOptions, commands, run};
use std::path::PathBuf;
fn main() {
    let all: Vec<String> = std::env::args().skip(1).collect();
    let flag = |name: &str| all.iter().position(|it| it == name).map(|at| PathBuf::from(&all[at + 1]));
    let json = all.iter().any(|it| it == "--json");
    let control = flag("--control").unwrap_or_default();
    keyway_host::process_hardening::process(false);
    let done = match all[1].as_str() {
        "up" => run(&UpOptions {
            configuration: PathBuf::from(all.iter().skip(2).find(|it| it.ends_with(".toml")).unwrap()),
            state: flag("--state").unwrap(),
            control,
            json,
            no_sandbox: all.iter().any(|it| it == "--no-sandbox"),
        }),
        "check" => commands::check(&PathBuf::from(&all[2]), json),
        "status" => commands::status(&control, json),
        _ => commands::reload(&control, json),
    };
    if let Err(why) = done {
        if json { println!("{}", serde_json::json!({"event": "failed", "error": why.to_string()})); } else { eprintln!("keyway: {why}"); }
        std::process::exit(i32::from(why.status()));
    }
}
