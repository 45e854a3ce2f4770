//! Entries into files: the flags of these, and what is said of them.

use super::arguments::{Make, compress};
use super::filters;
use keyway_data::files::{EntryFiles, EntryOutput, WriteError, Written, look_for_twice};
use keyway_data::{Format, Job, Plan};
use keyway_host::failure::Failure;
use keyway_host::output::{self, grouped};
use keyway_host::progress::Progress;
use keyway_host::same_file::is_no_input;
use keyway_host::shutdown::Stop;
use keyway_host::signals::Second;
use serde_json::json;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Writes the entries.
///
/// # Errors
/// If a file cannot be written, is one of the inputs, or an entry cannot be made; files are not there then.
pub fn run(
    arguments: &Make,
    plan: &Arc<Plan>,
    inputs: &[PathBuf],
    range: (u64, u64),
) -> Result<(), Failure> {
    let outputs = outputs(arguments, plan)?;
    let paths = outputs.iter().map(|output| &output.path).chain(&arguments.filters);
    let paths: Vec<&Path> = paths.map(|path| path.as_path()).collect();
    look_for_twice(&paths)?;
    paths.iter().try_for_each(|path| is_no_input(path, inputs))?;
    let stop = Stop::watch(Second::Ends)?;
    let mut files = EntryFiles::open(&outputs, inputs)?;
    let (written, seconds) = entries(arguments, plan, range, &mut files, &stop)?;
    let filters = filters::write(arguments, plan, inputs, range, &stop)?;
    files.finish()?;
    say(arguments, range.0, written, (seconds, filters))
}

/// The files of the flags, that of the entries first.
fn outputs(arguments: &Make, plan: &Plan) -> Result<Vec<EntryOutput>, Failure> {
    let format = arguments.entry_format(&plan.attributes())?;
    let lists = [
        (&arguments.dns, Format::Dns),
        (&arguments.binds, Format::Binds),
        (&arguments.logins, Format::Logins(arguments.login_attribute.clone())),
    ];
    let lists = lists.into_iter().filter_map(|(path, format)| {
        path.as_ref().map(|path| EntryOutput { path: path.clone(), format })
    });
    let first = EntryOutput { path: arguments.output.clone(), format };
    Ok(std::iter::once(first).chain(lists).collect())
}

fn entries(
    arguments: &Make,
    plan: &Arc<Plan>,
    (from, count): (u64, u64),
    files: &mut EntryFiles,
    stop: &Stop,
) -> Result<(Written, f64), Failure> {
    let job = Job {
        plan: plan.clone(),
        from,
        count,
        generation: arguments.entries.generation,
        formats: Vec::new(),
        compress: compress(arguments.compress, &arguments.output),
        threads: arguments.thread_count(),
    };
    let bar = Progress::entries("making entries", count);
    let written = files.write(job, &mut |made| {
        bar.at(made, made);
        !stop.is_asked()
    });
    match written {
        Ok(written) => Ok((written, bar.seconds())),
        Err(WriteError::Stopped(made)) => Err(stopped(arguments, made, count)),
        Err(WriteError::Failed(why)) => Err(why),
    }
}

fn say(
    arguments: &Make,
    from: u64,
    Written { entries, bytes }: Written,
    (seconds, filters): (f64, Option<u64>),
) -> Result<(), Failure> {
    let to_standard = arguments.output.as_os_str() == "-";
    if arguments.json {
        let line = json!({
            "event": "made", "template": arguments.entries.template,
            "seed": arguments.entries.seed, "from": from, "entries": entries, "bytes": bytes, "seconds": seconds,
            "filters": filters, "file": (!to_standard).then_some(&arguments.output),
        });
        return if to_standard { output::aside(&line) } else { output::json(&line) };
    }
    if to_standard {
        return Ok(());
    }
    let rate = entries as f64 / seconds.max(1e-3);
    let filters = filters.map_or(String::new(), |it| format!(", and {} filters", grouped(it)));
    output::text(format_args!(
        "made {} entries{filters} in {} ({seconds:.1} s, {} a second)",
        grouped(entries),
        arguments.output.display(),
        grouped(rate as u64)
    ))
}

/// The failure to report for an end that was asked for.
fn stopped(arguments: &Make, made: u64, count: u64) -> Failure {
    let (made, count) = (grouped(made), grouped(count));
    let file = arguments.output.display();
    Stop::failure(&match arguments.output.as_os_str() == "-" {
        true => format!("stopped after {made} of {count} entries; the output has no more of them"),
        false => format!("stopped after {made} of {count} entries; {file} was not written"),
    })
}
