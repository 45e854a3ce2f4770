//! `keyway data`: entries of templates, into files, to a server, into a store. The work is that of
//! `keyway-data`; here are its flags and its words.

mod arguments;
mod files;
mod filters;
mod server;
pub mod stop;
mod store;
mod tags;

pub use arguments::{Generate, constant, count};

use crate::failure::{Failure, plain};
use crate::output;
use arguments::{FileFormat, Make};
use keyway_data::{Options, Plan, TEMPLATES, Table};
use std::fs;
use std::io::{ErrorKind, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// More than a file that a template names may have, in bytes.
const FILE_BYTES_MAX: u64 = keyway_data::limits::LIST_BYTES_MAX;

/// Does what the arguments ask for. Says whether all of it could be done.
///
/// # Errors
/// What is wrong with the template, or why its entries could not be written.
pub fn run(command: &Generate) -> Result<bool, Failure> {
    match command {
        Generate::Tags(arguments) => tags::run(arguments).map(|()| true),
        Generate::Template(arguments) => tags::template(arguments).map(|()| true),
        Generate::Make(arguments) => {
            let plan = Arc::new(plan(arguments)?);
            for warning in plan.warnings() {
                output::note(warning);
            }
            let (from, count) = range(arguments, &plan)?;
            if (arguments.to.is_some() || arguments.into.is_some())
                && arguments.format == FileFormat::Csv
            {
                return Err(Failure::usage("--format csv is for a file"));
            }
            match (&arguments.to, &arguments.into) {
                (Some(url), _) => server::run(arguments, url, plan, (from, count)),
                (None, Some(folder)) => store::run(arguments, folder, plan, (from, count)),
                (None, None) => files::run(arguments, &plan, (from, count)).map(|()| true),
            }
        }
    }
}

/// Reads and compiles the template.
fn plan(arguments: &Make) -> Result<Plan, Failure> {
    let shown = arguments.template.display().to_string();
    let text = template_text(&arguments.template)?;
    let table = arguments.csv.as_deref().map(|path| table(arguments, path)).transpose()?;
    let options = Options {
        seed: arguments.seed,
        constants: arguments.define.clone(),
        per_template_max: arguments.per_template,
        table,
        allow_exec: arguments.allow_exec,
        utf8_names: arguments.utf8_names,
    };
    let beside = arguments.template.parent().filter(|it| !it.as_os_str().is_empty());
    let beside = beside.unwrap_or(Path::new(".")).to_owned();
    let folders: Vec<PathBuf> =
        std::iter::once(beside).chain(arguments.resources.iter().cloned()).collect();
    Plan::compile(&shown, &text, &options, &mut |name| look_up(&folders, name))
        .map_err(Failure::new)
}

/// The template's text: a file's, or one that is built in.
fn template_text(path: &Path) -> Result<String, Failure> {
    let bad = |why: &std::io::Error| Failure::system("read", path, why);
    let bytes = match read(path) {
        Ok(bytes) => bytes,
        Err(why) if why.kind() == ErrorKind::NotFound => {
            let name = path.to_str().unwrap_or_default();
            let names = [name.to_owned(), format!("{name}.template")];
            let found = TEMPLATES.iter().find(|(it, _)| names.iter().any(|name| name == it));
            return found.map(|(_, text)| (*text).to_owned()).ok_or_else(|| {
                let known: Vec<_> = TEMPLATES.iter().map(|(name, _)| *name).collect();
                let path = path.display();
                Failure::new(format!(
                    "there is no file {path}, and no template of that name is built in ({} are)",
                    known.join(" and ")
                ))
            });
        }
        Err(why) => return Err(bad(&why)),
    };
    String::from_utf8(bytes)
        .map_err(|_| Failure::new(format!("{}: it is not UTF-8", path.display())))
}

/// A file that a template names: from the root, or in the first of the folders that has it.
fn look_up(folders: &[PathBuf], name: &str) -> Result<Option<Vec<u8>>, String> {
    for folder in folders {
        let path = folder.join(name);
        match read(&path) {
            Ok(bytes) => return Ok(Some(bytes)),
            Err(why) if matches!(why.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {}
            Err(why) => return Err(format!("{}: {}", path.display(), plain(&why))),
        }
    }
    Ok(None)
}

fn read(path: &Path) -> std::io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    fs::File::open(path)?.take(FILE_BYTES_MAX + 1).read_to_end(&mut bytes)?;
    match bytes.len() as u64 > FILE_BYTES_MAX {
        true => Err(std::io::Error::other(format!("it has more than {FILE_BYTES_MAX} bytes"))),
        false => Ok(bytes),
    }
}

fn table(arguments: &Make, path: &Path) -> Result<Arc<Table>, Failure> {
    let bytes = read(path).map_err(|why| Failure::system("read", path, &why))?;
    let shown = path.display().to_string();
    let text =
        String::from_utf8(bytes).map_err(|_| Failure::new(format!("{shown}: it is not UTF-8")))?;
    let table = Table::read(&shown, &text, arguments.csv_delimiter, arguments.csv_heading);
    Ok(Arc::new(table))
}

/// Which entries are wanted: the first, and how many.
fn range(arguments: &Make, plan: &Plan) -> Result<(u64, u64), Failure> {
    if plan.is_endless() && arguments.count.is_none() {
        return Err(Failure::usage(
            "the template does not say how many entries it makes (a subordinateTemplate without a \
             number); say it with --count N",
        ));
    }
    let left = plan.entries().saturating_sub(arguments.from);
    if left == 0 {
        return Err(Failure::usage(format!(
            "--from {}: the template makes {} entries, and the first is 0",
            arguments.from,
            output::grouped(plan.entries())
        )));
    }
    Ok((arguments.from, arguments.count.unwrap_or(u64::MAX).min(left)))
}
