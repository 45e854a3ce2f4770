//! `keyway directory import`.

use crate::cli::Import;
use keyway_config::Configuration;
use keyway_config::Given;
use keyway_folder::data::Folder;
use keyway_folder::history::Done;
use keyway_folder::user::{self, Half};
use keyway_host::failure::Failure;
use keyway_host::output::{self, grouped};
use keyway_host::timestamp::Timestamp;
use keyway_server::Verdict;
use keyway_service::client;
use keyway_service::instance::Instance;
use keyway_service::ldif_source::Source;
use keyway_service::populate::{self, Manner, Populated};
use serde_json::json;
use std::path::Path;
use std::time::Instant;

const ADVICE: &str = "correct it and go on with --resume, or leave out what is wrong with --resume \
                      --continue";

/// Puts an LDIF file into the directory of a data folder, which is made if there is none.
/// Returns whether all of it is in.
///
/// # Errors
/// If the file or the folder cannot be used, or a record is refused and it was not to go on.
pub fn run(arguments: &Import) -> Result<bool, Failure> {
    let source = Source::open(&arguments.file)?;
    from(source, &prepare(arguments)?, arguments)
}

/// Reads the files of definitions, and becomes the user whose folder it is if root has started this: what
/// is made in the folder is to be that user's. To be called before a thread is started, and after what only root
/// may read was opened.
///
/// # Errors
/// If a file cannot be read, or that user cannot be become.
pub fn prepare(arguments: &Import) -> Result<Given, Failure> {
    let given = Given::read(&arguments.schema, &arguments.data.folder)?;
    user::enter(None, &arguments.data.folder, Half::Ldapd)?.keep_nothing()?;
    Ok(given)
}

/// As [`run`], with LDIF that comes from somewhere else, and what [`prepare`] has read.
///
/// # Errors
/// As [`run`].
pub fn from(source: Source, given: &Given, arguments: &Import) -> Result<bool, Failure> {
    let began = Instant::now();
    let mut done = Done::new("import", Some(Path::new(&source.path)));
    let imported = import(source, given, arguments, &mut done);
    done.seconds = began.elapsed().as_secs_f64();
    let done = match &imported {
        Ok(true) => done.with("whole", None),
        Ok(false) => done.with("in part", None),
        Err(why) => done.with("failed", Some(&why.to_string())),
    };
    done.record(&arguments.data.folder);
    imported
}

fn import(
    source: Source,
    given: &Given,
    arguments: &Import,
    noted: &mut Done,
) -> Result<bool, Failure> {
    let folder = Folder::open(&arguments.data.folder, Timestamp::now())?;
    let configuration = Configuration::load_with(&folder, given)?;
    let engine = keyway_drivers::engine();
    // Passwords in clear are stored under the pepper.
    let cryptod = match configuration.directory.password_pepper {
        Some(_) => client::daemon(&folder, &configuration, None)?,
        None => None,
    };
    let _cryptod = client::connect(&engine, cryptod.as_ref(), |_| {})?;
    let instance = Instance::open(&folder, &configuration, &engine, false)?;
    // When the store has taken them, so that one that it refuses is not there at the next start.
    given.put(&folder)?;
    instance.say_schema_warnings();
    let done = records_done(arguments, &instance, &folder)?;
    let shown = source.shown.clone();
    let populated = populate::ldif(
        &instance,
        &folder,
        source,
        Manner {
            go_on: arguments.go_on,
            done,
            advice: ADVICE,
            unverified: arguments.unverified,
            fast_passwords: Some(arguments.fast_passwords),
        },
    )?;
    instance.close()?;
    let Populated { report, bytes, seconds, forecast_s, verdict, definitions } = &populated;
    (noted.entries, noted.bytes) = (Some(report.records), Some(*bytes));
    if arguments.json {
        output::json(&json!({
            "event": "imported",
            "records": report.records,
            "refused": report.errors,
            "verified": matches!(verdict, Verdict::Whole(_)),
            "damage": match verdict { Verdict::Damaged(why) => Some(why), _ => None },
            "definitions_added": definitions.added,
            "definitions_left_out": definitions.left,
            "values_left_out": populate::left_out(report),
            "notes": populate::notes(report),
            "member_of_agreeing": report.member_of.agreeing,
            "member_of_disagreeing": report.member_of.disagreeing,
            "member_of_unchecked": report.member_of.unchecked,
            "passwords_hashed": report.passwords_hashed,
            "passwords_unverified": report.passwords_unverified,
            "hashing_seconds_expected": forecast_s,
            "skipped": done,
            "bytes": bytes,
            "seconds": seconds,
        }))?;
    } else {
        let refused = match report.errors {
            0 => String::new(),
            errors => format!(", refused {}", grouped(errors)),
        };
        let whole = match verdict {
            Verdict::Whole(_) => "; its checksum is right",
            Verdict::Unframed | Verdict::Damaged(_) => "",
        };
        output::text(format_args!(
            "imported {} from {shown}{refused} ({seconds:.1} s){whole}",
            match report.records {
                1 => "1 record".to_owned(),
                records => format!("{} records", grouped(records)),
            }
        ))?;
        populate::say_notes(&populated)?;
    }
    Ok(report.errors == 0)
}

/// How many records are in already, of an import that is to be gone on with.
fn records_done(arguments: &Import, instance: &Instance, folder: &Folder) -> Result<u64, Failure> {
    // One from which no entry was imported is no obstacle.
    match instance.unfinished()?.filter(|unfinished| unfinished.records > 0) {
        Some(unfinished) if arguments.resume => Ok(unfinished.records),
        Some(unfinished) if !arguments.restart => {
            let text = populate::unfinished_text(&unfinished, folder.path());
            Err(Failure::new(format!(
                "{text}; or begin with the first record of a file with --restart"
            )))
        }
        None if arguments.resume => Err(Failure::new(format!(
            "{} has no unfinished import; leave out --resume",
            folder.path().display()
        ))),
        _ => Ok(0),
    }
}
