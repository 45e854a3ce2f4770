//! Which entries of which template: the flags that say it, and the template, read.

use super::arguments::constant;
use crate::value::count;
use clap::Args;
use keyway_data::{CompileOptions, Plan, TEMPLATES, Table};
use keyway_host::failure::{Failure, plain};
use keyway_host::output;
use std::fs;
use std::io::{ErrorKind, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// More than a file that a template names may have, in bytes.
const FILE_BYTES_MAX: u64 = keyway_data::limits::LIST_BYTES_MAX;

/// Which entries, of which template.
#[derive(Debug, Args)]
pub struct Entries {
    /// The template: a file, or one that is built in (example, people_and_groups)
    #[arg(value_name = "TEMPLATE", default_value = "example.template")]
    pub template: PathBuf,
    /// What chance begins with
    #[arg(short, long, value_name = "N", default_value = "0", value_parser = count)]
    pub seed: u64,
    /// Give a constant another value than the template does; 5k and 5M are numbers (repeatable)
    #[arg(long, value_name = "NAME=VALUE", value_parser = constant)]
    pub define: Vec<(String, String)>,
    /// Leave out the entries before this one (5000, 5k, 5M)
    #[arg(long, value_name = "N", default_value = "0", value_parser = count)]
    pub from: u64,
    /// Make so many entries [default: all]
    #[arg(long, value_name = "N", value_parser = count)]
    pub count: Option<u64>,
    /// Make no more than so many entries of a subordinateTemplate line below one parent
    #[arg(short = 'x', long, value_name = "N", value_parser = count)]
    pub per_template: Option<u64>,
    /// Where files are that the template names, if not beside it (repeatable)
    #[arg(short, long, value_name = "DIR")]
    pub resources: Vec<PathBuf>,
    /// Names of people with letters beyond ASCII
    #[arg(long)]
    pub utf8_names: bool,
    /// The file of comma-separated values that <csvfield:N> reads
    #[arg(short = 'c', long, value_name = "FILE")]
    pub csv: Option<PathBuf>,
    /// What is between its fields
    #[arg(long, value_name = "CHARACTER", default_value_t = ',')]
    pub csv_delimiter: char,
    /// Its first row is a heading
    #[arg(long)]
    pub csv_heading: bool,
    /// Let <exec:..> start programs
    #[arg(long)]
    pub allow_exec: bool,
    /// Which state of the entries: 0 is the first, another number has other values where chance has
    /// a part in them, but for those that names are made of
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub generation: u64,
}

impl Entries {
    /// Reads and compiles the template, and says what may be slips in it.
    ///
    /// # Errors
    /// What is wrong with it, or a file cannot be read.
    pub fn plan(&self) -> Result<Arc<Plan>, Failure> {
        let shown = self.template.display().to_string();
        let text = template_text(&self.template)?;
        let table = self.csv.as_deref().map(|path| self.table(path)).transpose()?;
        let options = CompileOptions {
            seed: self.seed,
            constants: self.define.clone(),
            per_template_max: self.per_template,
            table,
            allow_exec: self.allow_exec,
            utf8_names: self.utf8_names,
        };
        let beside = self.template.parent().filter(|it| !it.as_os_str().is_empty());
        let beside = beside.unwrap_or(Path::new(".")).to_owned();
        let folders: Vec<PathBuf> =
            std::iter::once(beside).chain(self.resources.iter().cloned()).collect();
        let plan = Plan::compile(&shown, &text, &options, &mut |name| look_up(&folders, name))
            .map_err(Failure::new)?;
        plan.warnings().iter().for_each(output::note);
        Ok(Arc::new(plan))
    }

    fn table(&self, path: &Path) -> Result<Arc<Table>, Failure> {
        let bytes = read(path).map_err(|why| Failure::system("read", path, &why))?;
        let shown = path.display().to_string();
        let text = String::from_utf8(bytes)
            .map_err(|_| Failure::new(format!("{shown}: it is not UTF-8")))?;
        let table = Table::read(&shown, &text, self.csv_delimiter, self.csv_heading);
        Ok(Arc::new(table))
    }

    /// Which of them are wanted: the first, and how many.
    ///
    /// # Errors
    /// If there are none, or nobody says how many.
    pub fn range(&self, plan: &Plan) -> Result<(u64, u64), Failure> {
        if plan.is_endless() && self.count.is_none() {
            return Err(Failure::usage(
                "the template does not say how many entries it makes (a subordinateTemplate \
                 without a number); say it with --count N",
            ));
        }
        let left = plan.entries().saturating_sub(self.from);
        if left == 0 {
            return Err(Failure::usage(format!(
                "--from {}: the template makes {} entries, and the first is 0",
                self.from,
                output::grouped(plan.entries())
            )));
        }
        Ok((self.from, self.count.unwrap_or(u64::MAX).min(left)))
    }
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
