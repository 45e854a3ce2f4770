//! Which entries of which template: the flags that say it.

use crate::value::count;
use clap::Args;
use keyway_data::files::{CsvSource, TemplateSource};
use keyway_data::{CompileOptions, Plan};
use keyway_host::failure::Failure;
use keyway_host::output;
use std::path::PathBuf;
use std::sync::Arc;

/// Which entries, of which template.
#[derive(Debug, Args)]
pub struct Entries {
    /// The template: a file, or one that is built in (example, people_and_groups)
    #[arg(value_name = "TEMPLATE", default_value = "example.template")]
    pub template: PathBuf,
    /// The seed of all that is random
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
    /// The character between its fields
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
    #[arg(long, value_name = "N", default_value_t = 0, value_parser = count)]
    pub generation: u64,
}

impl Entries {
    /// Reads and compiles the template, and says what may be slips in it. Returns the files that were read, too.
    ///
    /// # Errors
    /// The fault of the template, or that a file cannot be read.
    pub fn plan(&self) -> Result<(Arc<Plan>, Vec<PathBuf>), Failure> {
        let csv = self.csv.as_ref().map(|path| CsvSource {
            path: path.clone(),
            delimiter: self.csv_delimiter,
            has_heading: self.csv_heading,
        });
        let options = CompileOptions {
            seed: self.seed,
            constants: self.define.clone(),
            per_template_max: self.per_template,
            table: None,
            allow_exec: self.allow_exec,
            utf8_names: self.utf8_names,
        };
        let (template, resources) = (self.template.clone(), self.resources.clone());
        let (plan, inputs) = TemplateSource { template, resources, csv, options }.plan()?;
        plan.warnings().iter().for_each(output::note);
        Ok((Arc::new(plan), inputs))
    }

    /// Which of them are wanted: the first, and how many.
    ///
    /// # Errors
    /// If there are none, or no flag says how many.
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

/// Reads a constant of a template: `NAME=VALUE`.
pub fn constant(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((name, value)) if !name.trim().is_empty() => {
            let name = name.trim().to_owned();
            // Numbers are said as everywhere here, and written out.
            let number = value.ends_with(['k', 'M', 'G']).then(|| count(value).ok()).flatten();
            Ok((name, number.map_or_else(|| value.to_owned(), |number| number.to_string())))
        }
        _ => Err("write NAME=VALUE".to_owned()),
    }
}
