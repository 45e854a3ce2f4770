//! Whether paths lead to one file; outputs that would overwrite an input of their command.

use crate::failure::Failure;
use std::ffi::OsString;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Refuses to write to a file that the command reads: by device and inode, through links and whatever it is
/// called. An input `-` is the file that standard input comes from. Standard output (`-`), pipes and devices are not
/// overwritten.
///
/// # Errors
/// That an input would be overwritten.
pub fn is_no_input<P: AsRef<Path>>(
    output: &Path,
    inputs: impl IntoIterator<Item = P>,
) -> Result<(), Failure> {
    if output.as_os_str() == "-" {
        return Ok(());
    }
    let Some(written) = file(output.to_owned()) else { return Ok(()) };
    for input in inputs {
        let input = input.as_ref();
        let is_standard = input.as_os_str() == "-";
        let read = file(if is_standard { "/dev/stdin".into() } else { input.to_owned() });
        if read == Some(written) {
            return Err(Failure::usage(format!(
                "writing {} would overwrite {}, which this command reads: write to another file",
                output.display(),
                input.display()
            )));
        }
    }
    Ok(())
}

/// Whether both paths lead to one file, or would if they were written. Pipes and devices may be written twice.
pub fn is_same(one: &Path, other: &Path) -> bool {
    match (fs::metadata(one), fs::metadata(other)) {
        (Ok(_), Ok(_)) => file(one.to_owned()).is_some_and(|it| Some(it) == file(other.to_owned())),
        (Err(_), Err(_)) => place(one).is_some_and(|it| Some(it) == place(other)),
        _ => false,
    }
}

/// The device and inode of a plain file.
fn file(path: PathBuf) -> Option<(u64, u64)> {
    fs::metadata(path).ok().filter(fs::Metadata::is_file).map(|it| (it.dev(), it.ino()))
}

/// The folder of a file that is not there, and its name in it.
fn place(path: &Path) -> Option<(PathBuf, OsString)> {
    let folder = path.parent().filter(|it| !it.as_os_str().is_empty()).unwrap_or(Path::new("."));
    Some((fs::canonicalize(folder).ok()?, path.file_name()?.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    #[test]
    fn an_input_is_not_overwritten_whatever_it_is_called() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        let input = at("in");
        fs::write(&input, "text").unwrap();
        fs::hard_link(&input, at("hard")).unwrap();
        symlink(&input, at("soft")).unwrap();
        fs::create_dir(at("sub")).unwrap();
        for output in ["in", "hard", "soft", "./in", "sub/../in"] {
            let why = is_no_input(&at(output), [&input]).unwrap_err();
            assert!(why.to_string().contains("which this command reads"), "{why}");
            assert_eq!(why.status(), 2);
        }
        is_no_input(&at("other"), [&input, &at("missing")]).unwrap();
        is_no_input(&at("missing"), [&at("missing")]).unwrap();
        is_no_input(Path::new("/dev/null"), ["/dev/null"]).unwrap();
        is_no_input(Path::new("-"), ["-"]).unwrap();
    }

    #[test]
    fn one_file_has_many_names_also_before_it_is_there() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        assert!(is_same(&at("a"), &at("./a")) && !is_same(&at("a"), &at("b")));
        fs::write(at("a"), "").unwrap();
        symlink(at("a"), at("b")).unwrap();
        assert!(is_same(&at("a"), &at("b")) && !is_same(&at("a"), &at("c")));
        assert!(!is_same(Path::new("/dev/null"), Path::new("/dev/null")));
    }
}
