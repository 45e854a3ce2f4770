//! `keyway quic get`: files, each whole or not at all.

use super::arguments::Get;
use super::host;
use crate::quic::failed::failed;
use keyway_host::failure::Failure;
use keyway_host::output::{self, grouped};
use keyway_host::progress::Progress;
use keyway_host::same_file::is_no_input;
use keyway_host::signals::Signals;
use keyway_quic::{Fetched, HQ, Wanted};
use serde_json::{Value, json};
use std::io;
use std::path::Path;
use std::time::Instant;

/// Fetches them all. Says whether all could be had.
///
/// # Errors
/// If it could not be begun.
pub fn run(arguments: &Get) -> Result<bool, Failure> {
    let wanted = wanted(arguments)?;
    let engine = keyway_drivers::engine();
    let verifier = host::verifier(&engine, &arguments.trust)?;
    host::runtime(&arguments.transport)?.block_on(async {
        let mut signals = Signals::catch()?;
        let host = host::host(&engine, &arguments.transport, None, None)?;
        let endpoint = host.client().map_err(|why| failed(&why))?;
        let config = host.client_config(verifier, HQ).map_err(|why| failed(&why))?;
        let bar = Progress::bytes("fetching", None);
        let begun = Instant::now();
        let results = tokio::select! {
            results = keyway_quic::fetch(&endpoint, &config, wanted, move |bytes, file| {
                bar.step(bytes, file);
            }) => results,
            _ = signals.next() => {
                keyway_quic::close(&endpoint).await;
                return Err(Failure::new("interrupted; what was not whole is removed"));
            }
        };
        let seconds = begun.elapsed().as_secs_f64();
        keyway_quic::close(&endpoint).await;
        report(arguments, &results, seconds)?;
        Ok(results.iter().all(|file| file.result.is_ok()))
    })
}

/// Finds each file's place before any server is asked for it.
fn wanted(arguments: &Get) -> Result<Vec<Wanted>, Failure> {
    let (urls, output) = (&arguments.urls, arguments.output.as_deref());
    let is_output = output == Some(Path::new("-"));
    if arguments.json && is_output {
        return Err(Failure::usage("the file and --json cannot both go to standard output"));
    }
    let into = output.filter(|path| path.is_dir());
    if urls.len() > 1 && output.is_some() && into.is_none() {
        return Err(Failure::usage(
            "several files do not go into one; make a folder, and name it with -o",
        ));
    }
    let mut places = Vec::new();
    let mut all = Vec::with_capacity(urls.len());
    for from in urls {
        let place = match output {
            Some(path) if into.is_none() => path.to_owned(),
            _ => into.unwrap_or(Path::new("")).join(from.file_name()),
        };
        if is_output {
            all.push(Wanted::stream(from.clone(), io::stdout()));
            continue;
        }
        if place.is_dir() {
            let place = place.display();
            return Err(Failure::usage(format!("{place} is a folder; name a file with -o FILE")));
        }
        // Until it is whole it is beside its place, under another name.
        let part = keyway_quic::part_of(&place);
        for written in [&place, &part] {
            is_no_input(written, &arguments.trust.ca)?;
        }
        if places.contains(&place) {
            return Err(Failure::usage(format!(
                "two files would both be called {}; fetch them one after the other, with -o",
                place.display()
            )));
        }
        all.push(Wanted::file(from.clone(), place.clone()).map_err(|why| failed(&why))?);
        places.push(place);
    }
    Ok(all)
}

fn report(arguments: &Get, all: &[Fetched], seconds: f64) -> Result<(), Failure> {
    for file in all {
        if let Err(why) = &file.result {
            output::note(failed(why));
        }
    }
    let bytes: u64 = all.iter().filter_map(|file| Some(file.result.as_ref().ok()?.0)).sum();
    let mbit_per_second = bytes as f64 * 8.0 / 1e6 / seconds.max(1e-9);
    if arguments.json {
        let files: Vec<Value> = all.iter().map(as_json).collect();
        return output::json(&json!({
            "files": files,
            "bytes": bytes,
            "seconds": seconds,
            "mbit_per_second": mbit_per_second,
        }));
    }
    let whole = all.iter().filter(|file| file.result.is_ok() && file.place.is_some());
    for file in whole {
        if let (Some(place), Ok((bytes, _))) = (&file.place, &file.result) {
            let place = place.display();
            output::text(format_args!("{place}: {} bytes", grouped(*bytes)))?;
        }
    }
    if arguments.output.as_deref() != Some(Path::new("-")) && bytes > 0 {
        output::text(format_args!(
            "{} bytes in {seconds:.3} s, {mbit_per_second:.1} Mbit/s",
            grouped(bytes)
        ))?;
    }
    Ok(())
}

fn as_json(file: &Fetched) -> Value {
    let place = file.place.as_ref().map(|place| place.display().to_string());
    match &file.result {
        Ok((bytes, seconds)) => json!({
            "url": file.from.to_string(), "file": place, "bytes": bytes, "seconds": seconds,
        }),
        Err(why) => {
            json!({ "url": file.from.to_string(), "error": failed(why).to_string() })
        }
    }
}
