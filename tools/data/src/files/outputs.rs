//! Entries into files: the entries themselves, and lists beside them.

use crate::format::Format;
use crate::stream::{Job, Part};
use keyway_host::atomic_file::Target;
use keyway_host::failure::Failure;
use keyway_host::same_file::is_same;
use std::io::Write;
use std::path::{Path, PathBuf};

/// A file that is to be written, and what it has of each entry.
#[derive(Clone, Debug)]
pub struct EntryOutput {
    /// The file; `-` is standard output.
    pub path: PathBuf,
    /// How an entry is written there.
    pub format: Format,
}

/// How many entries were written, and the bytes of the first file, compressed if that is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Written {
    /// Entries.
    pub entries: u64,
    /// Bytes.
    pub bytes: u64,
}

/// Why entries were not written.
#[derive(Debug)]
pub enum WriteError {
    /// The caller has ended it after so many entries.
    Stopped(u64),
    /// An entry could not be made, or a file not be written.
    Failed(Failure),
}

impl From<Failure> for WriteError {
    fn from(failure: Failure) -> WriteError {
        WriteError::Failed(failure)
    }
}

/// Two outputs that are the same file would spoil each other.
///
/// # Errors
/// That two are.
pub fn look_for_twice(paths: &[&Path]) -> Result<(), Failure> {
    let is_output = |path: &Path| path.as_os_str() == "-";
    for (at, path) in paths.iter().enumerate() {
        let twice = |other: &&Path| match is_output(path) {
            true => is_output(other),
            false => !is_output(other) && is_same(path, other),
        };
        if paths.iter().skip(at + 1).any(twice) {
            let path = path.display();
            return Err(Failure::usage(format!("{path} cannot be two outputs at once")));
        }
    }
    Ok(())
}

/// A file that is being written.
struct Output {
    target: Target,
    writer: Box<dyn Write>,
    format: Format,
    bytes: u64,
}

impl Output {
    fn open(output: &EntryOutput, inputs: &[PathBuf]) -> Result<Output, Failure> {
        let target = Target::open(&output.path, inputs)?;
        let writer = target.writer()?;
        Ok(Output { target, writer, format: output.format.clone(), bytes: 0 })
    }

    fn write(&mut self, bytes: &[u8]) -> Result<(), Failure> {
        self.bytes += bytes.len() as u64;
        self.writer.write_all(bytes).map_err(|why| self.target.cannot_write(&why))
    }
}

/// Files that are being written. Those that are dropped before [`EntryFiles::finish`] are not there.
pub struct EntryFiles(Vec<Output>);

impl std::fmt::Debug for EntryFiles {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("EntryFiles").field(&self.0.len()).finish()
    }
}

impl EntryFiles {
    /// Opens them; the first is that of the entries themselves. `inputs` are the files that these are made of.
    ///
    /// # Errors
    /// If one cannot be written, or is one of the inputs.
    pub fn open(outputs: &[EntryOutput], inputs: &[PathBuf]) -> Result<EntryFiles, Failure> {
        let mut files = EntryFiles(Vec::new());
        for output in outputs {
            files.0.push(Output::open(output, inputs)?);
        }
        Ok(files)
    }

    /// Writes the entries of a job, whose formats are those of the files. `go_on` is called with the number of
    /// entries so far, and says whether to go on.
    ///
    /// # Errors
    /// If a file cannot be written or an entry not be made, or `go_on` has ended it.
    pub fn write(
        &mut self,
        job: Job,
        go_on: &mut dyn FnMut(u64) -> bool,
    ) -> Result<Written, WriteError> {
        let (count, compress) = (job.count, job.compress);
        let formats = self.0.iter().map(|output| output.format.clone()).collect();
        if let Some(first) = self.0.first_mut() {
            let head = first.format.head();
            let head = match compress {
                Some(compress) => compress.part(&head).map_err(Failure::new)?,
                None => head,
            };
            first.write(&head)?;
        }
        let mut stream = Job { formats, ..job }.start().map_err(Failure::new)?;
        let (mut part, mut made) = (Part::default(), 0);
        while let Some(next) = stream.part(part).map_err(Failure::new)? {
            for (output, bytes) in self.0.iter_mut().zip(&next.outputs) {
                output.write(bytes)?;
            }
            made += next.entries;
            if !go_on(made) && made < count {
                return Err(WriteError::Stopped(made));
            }
            part = next;
        }
        for output in &mut self.0 {
            output.writer.flush().map_err(|why| output.target.cannot_write(&why))?;
        }
        Ok(Written { entries: made, bytes: self.0.first().map_or(0, |output| output.bytes) })
    }

    /// Puts the files in place.
    ///
    /// # Errors
    /// If the system refuses.
    pub fn finish(mut self) -> Result<(), Failure> {
        let outputs = std::mem::take(&mut self.0);
        outputs.iter().try_for_each(|output| output.target.finish().map(drop))
    }
}

impl Drop for EntryFiles {
    fn drop(&mut self) {
        self.0.iter().for_each(|output| output.target.discard());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::{CompileOptions, Plan};
    use std::fs;
    use std::sync::Arc;

    fn job(count: u64) -> Job {
        let text = "branch: dc=example\nsubordinateTemplate: person:5000\n\ntemplate: person\n\
                    rdnAttr: uid\nobjectClass: account\nuid: <sequential>\n";
        let plan = Plan::compile("a", text, &CompileOptions::default(), &mut |_| Ok(None)).unwrap();
        let (plan, formats) = (Arc::new(plan), Vec::new());
        Job { plan, from: 0, count, generation: 0, formats, compress: None, threads: 1 }
    }

    fn outputs(folder: &Path) -> [EntryOutput; 2] {
        let output = |name: &str, format| EntryOutput { path: folder.join(name), format };
        [output("all.ldif", Format::Ldif), output("names", Format::Dns)]
    }

    #[test]
    fn files_are_there_when_they_are_whole() {
        let folder = tempfile::tempdir().unwrap();
        let outputs = outputs(folder.path());
        let mut files = EntryFiles::open(&outputs, &[]).unwrap();
        let written = files.write(job(3), &mut |_| true).unwrap();
        assert!(!outputs[0].path.exists());
        files.finish().unwrap();
        assert_eq!(written.entries, 3);
        assert_eq!(fs::metadata(&outputs[0].path).unwrap().len(), written.bytes);
        let names = fs::read_to_string(&outputs[1].path).unwrap();
        assert_eq!(names, "dc=example\nuid=0,dc=example\nuid=1,dc=example\n");
    }

    #[test]
    fn those_of_one_that_was_stopped_are_not() {
        let folder = tempfile::tempdir().unwrap();
        let mut files = EntryFiles::open(&outputs(folder.path()), &[]).unwrap();
        let stopped = files.write(job(5_000), &mut |_| false);
        assert!(matches!(stopped, Err(WriteError::Stopped(1..5_000))), "{stopped:?}");
        drop(files);
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
    }

    #[test]
    fn two_outputs_are_not_one_file() {
        let [one, other, again] = ["a", "b", "./a"].map(Path::new);
        assert!(look_for_twice(&[one, other]).is_ok());
        assert!(look_for_twice(&[one, other, one]).is_err());
        assert!(look_for_twice(&[one, again]).is_err());
        let standard = Path::new("-");
        assert!(look_for_twice(&[standard, one]).is_ok());
        assert!(look_for_twice(&[standard, one, standard]).is_err());
        let null = Path::new("/dev/null");
        assert!(look_for_twice(&[null, one, null]).is_ok());
    }
}
