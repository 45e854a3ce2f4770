//! Runs a scenario's file, and prints what it comes to.
//!
//!     cargo run --release -p keyway-load --example run -- scenario.toml

use keyway_load::{Error, Event, Interrupt, Scenario, run, summary};
use std::path::Path;
use std::sync::Arc;

fn main() -> Result<(), Error> {
    let usage = || Error::Usage("name a scenario's file".into());
    let file = std::env::args_os().nth(1).ok_or_else(usage)?;
    let scenario = Scenario::read(Path::new(&file))?;
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let outcome = run(&scenario, &provider, &Interrupt::default(), &mut |event| {
        if let Event::Second(second) = event {
            eprintln!("{}", summary::second(second));
        }
    })?;
    println!("{}", summary::table(&scenario, &outcome));
    Ok(())
}
