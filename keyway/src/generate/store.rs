//! Entries into a store, by the way that an import goes, without a file between.

use super::arguments::Make;
use crate::cli::Import;
use crate::data_flag::Data;
use crate::import;
use keyway_data::{Format, Job, Plan};
use keyway_host::failure::Failure;
use keyway_host::output::shell;
use keyway_service::ldif_source::Source;
use keyway_service::populate::MADE;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Puts the entries into the store of a data folder. Says whether all of them are in.
///
/// # Errors
/// As an import.
pub fn run(
    arguments: &Make,
    folder: &Path,
    plan: Arc<Plan>,
    (from, count): (u64, u64),
) -> Result<bool, Failure> {
    let job = Job {
        plan,
        from,
        count,
        generation: arguments.entries.generation,
        formats: vec![Format::Ldif],
        compress: None,
        threads: arguments.thread_count(),
    };
    let shown = arguments.entries.template.display().to_string();
    let import = Import {
        file: PathBuf::new(),
        data: Data { folder: folder.to_owned() },
        schema: arguments.schema.clone(),
        go_on: arguments.go_on,
        resume: arguments.resume,
        restart: arguments.restart,
        unverified: false,
        fast_passwords: arguments.fast_passwords,
        json: arguments.json,
    };
    let given = import::prepare(&import)?;
    let stream = job.start().map_err(Failure::new)?;
    let source = Source::made(stream, shown, format!("{MADE}{}", again(arguments)), count);
    import::from(source, &given, &import)
}

/// The arguments that make the same entries again.
fn again(arguments: &Make) -> String {
    let entries = &arguments.entries;
    let mut words = vec![shell(&entries.template.to_string_lossy())];
    let mut add = |flag: &str, value: String| words.extend([flag.to_owned(), shell(&value)]);
    add("--seed", entries.seed.to_string());
    add("--from", entries.from.to_string());
    entries.define.iter().for_each(|(name, value)| add("--define", format!("{name}={value}")));
    let numbers = [("--count", entries.count), ("--per-template", entries.per_template)];
    for (flag, number) in numbers {
        if let Some(number) = number {
            add(flag, number.to_string());
        }
    }
    if let Some(csv) = &entries.csv {
        add("--csv", csv.to_string_lossy().into_owned());
        add("--csv-delimiter", entries.csv_delimiter.to_string());
    }
    entries.resources.iter().for_each(|it| add("--resources", it.to_string_lossy().into_owned()));
    if entries.generation > 0 {
        add("--generation", entries.generation.to_string());
    }
    let flags = [
        ("--csv-heading", entries.csv_heading),
        ("--utf8-names", entries.utf8_names),
        ("--allow-exec", entries.allow_exec),
        ("--fast-passwords", arguments.fast_passwords),
        ("--continue", arguments.go_on),
    ];
    words.extend(flags.iter().filter(|(_, given)| *given).map(|(flag, _)| (*flag).to_owned()));
    words.join(" ")
}
