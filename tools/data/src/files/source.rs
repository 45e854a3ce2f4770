//! A template and the files that it names, read and compiled.

use super::read::read;
use crate::TEMPLATES;
use crate::list::Table;
use crate::plan::{CompileOptions, Plan};
use keyway_host::failure::{Failure, plain};
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A file of comma-separated values.
#[derive(Clone, Debug)]
pub struct CsvSource {
    /// The file.
    pub path: PathBuf,
    /// The character between its fields.
    pub delimiter: char,
    /// Whether its first row is a heading.
    pub has_heading: bool,
}

/// Where a template is, and how it is compiled.
#[derive(Clone, Debug)]
pub struct TemplateSource {
    /// The template: a file, or the name of one that is built in.
    pub template: PathBuf,
    /// Folders of files that the template names and that are not beside it.
    pub resources: Vec<PathBuf>,
    /// The file that `<csvfield:N>` reads.
    pub csv: Option<CsvSource>,
    /// How it is compiled; its table is that of `csv`.
    pub options: CompileOptions,
}

impl TemplateSource {
    /// Reads and compiles the template. Says which files were read.
    ///
    /// # Errors
    /// The fault of the template, or that a file cannot be read.
    pub fn plan(&self) -> Result<(Plan, Vec<PathBuf>), Failure> {
        let shown = self.template.display().to_string();
        let text = template_text(&self.template)?;
        let mut inputs = vec![self.template.clone()];
        inputs.extend(self.csv.as_ref().map(|csv| csv.path.clone()));
        let table = self.csv.as_ref().map(table).transpose()?;
        let options = CompileOptions { table, ..self.options.clone() };
        let beside = self.template.parent().filter(|it| !it.as_os_str().is_empty());
        let beside = beside.unwrap_or(Path::new(".")).to_owned();
        let folders: Vec<PathBuf> =
            std::iter::once(beside).chain(self.resources.iter().cloned()).collect();
        let plan = Plan::compile(&shown, &text, &options, &mut |name| {
            let found = look_up(&folders, name)?;
            Ok(found.map(|(path, bytes)| {
                inputs.push(path);
                bytes
            }))
        });
        Ok((plan.map_err(Failure::new)?, inputs))
    }
}

fn table(csv: &CsvSource) -> Result<Arc<Table>, Failure> {
    let path = &csv.path;
    let bytes = read(path).map_err(|why| Failure::system("read", path, &why))?;
    let shown = path.display().to_string();
    let text =
        String::from_utf8(bytes).map_err(|_| Failure::new(format!("{shown}: it is not UTF-8")))?;
    Ok(Arc::new(Table::read(&shown, &text, csv.delimiter, csv.has_heading)))
}

/// The template's text: a file's, or one that is built in.
fn template_text(path: &Path) -> Result<String, Failure> {
    let bad = |why: &io::Error| Failure::system("read", path, why);
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
fn look_up(folders: &[PathBuf], name: &str) -> Result<Option<(PathBuf, Vec<u8>)>, String> {
    for folder in folders {
        let path = folder.join(name);
        match read(&path) {
            Ok(bytes) => return Ok(Some((path, bytes))),
            Err(why) if matches!(why.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {}
            Err(why) => return Err(format!("{}: {}", path.display(), plain(&why))),
        }
    }
    Ok(None)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    fn source(template: PathBuf) -> TemplateSource {
        let options = CompileOptions::default();
        TemplateSource { template, resources: Vec::new(), csv: None, options }
    }

    #[test]
    fn one_that_is_built_in_needs_no_file() {
        assert!(source("example".into()).plan().is_ok_and(|(plan, _)| plan.entries() > 0));
        let why = source("none".into()).plan().map(drop).unwrap_err().to_string();
        assert!(why.contains("people_and_groups.template are"), "{why}");
    }

    #[test]
    fn files_are_found_beside_the_template_and_in_the_folders_that_are_named() {
        let folder = tempfile::tempdir().unwrap();
        let lists = folder.path().join("lists");
        fs::create_dir(&lists).unwrap();
        fs::write(lists.join("towns"), "Ulm\n").unwrap();
        let template = folder.path().join("a.template");
        let text = "branch: dc=example\nsubordinateTemplate: person:2\n\ntemplate: person\n\
                    rdnAttr: uid\nuid: <sequential>\nl: <file:towns>\n";
        fs::write(&template, text).unwrap();
        let mut source = source(template);
        assert!(source.plan().is_err());
        source.resources.push(lists.clone());
        let (plan, inputs) = source.plan().unwrap();
        assert_eq!(plan.entries(), 3);
        assert_eq!(inputs, [source.template, lists.join("towns")]);
    }
}
