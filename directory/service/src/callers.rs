//! The clients that keys of a cryptod are for, in the words of its manager.

use keyway_host::failure::Failure;
use keyway_host::who;
use std::fs;
use std::io::ErrorKind;
use std::path::Path;

/// Callers of keys as the daemon knows them: names become numbers, since the daemon may read no files, and programs the
/// files that they are. Conditions of a caller are joined by `+`.
///
/// # Errors
/// If there is no such user or group, or a program is no plain file.
pub fn numbered(callers: &[String]) -> Result<Vec<String>, Failure> {
    let condition = |condition: &str| match condition.split_once(':') {
        Some(("user", name)) => Ok(format!("user:{}", who::user(name)?)),
        Some(("group", name)) => Ok(format!("group:{}", who::group(name)?)),
        Some(("program", path)) => program(path),
        _ => Ok(condition.to_owned()),
    };
    let caller = |caller: &String| {
        let conditions = caller.split('+').map(condition);
        Ok(conditions.collect::<Result<Vec<_>, Failure>>()?.join("+"))
    };
    callers.iter().map(caller).collect()
}

/// The file that a program is, which links may lead to. One that is not there is written as it is given, to be
/// forbidden, or allowed before it is installed.
fn program(path: &str) -> Result<String, Failure> {
    let real = match fs::canonicalize(path) {
        Ok(real) if real.is_file() => real,
        Ok(_) => return Err(Failure::usage(format!("{path} is no program: it is no plain file"))),
        Err(why) if why.kind() == ErrorKind::NotFound => path.into(),
        Err(why) => return Err(Failure::system("look at the program", Path::new(path), &why)),
    };
    let unwritable = || Failure::usage(format!("the path of {path} is not UTF-8"));
    Ok(format!("program:{}", real.to_str().ok_or_else(unwritable)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn one(caller: &str) -> Result<String, Failure> {
        numbered(&[caller.to_owned()]).map(|all| all.concat())
    }

    #[test]
    fn names_become_numbers_and_programs_files() {
        assert_eq!(one("everybody").unwrap(), "everybody");
        assert_eq!(one("user:root+group:0").unwrap(), "user:0+group:0");
        let folder = tempfile::tempdir().unwrap();
        let (file, link) = (folder.path().join("program"), folder.path().join("link"));
        fs::write(&file, "").unwrap();
        std::os::unix::fs::symlink(&file, &link).unwrap();
        let real = file.canonicalize().unwrap();
        let expected = format!("program:{}", real.display());
        assert_eq!(one(&format!("program:{}", link.display())).unwrap(), expected);
        assert_eq!(one("program:/not/there").unwrap(), "program:/not/there");
        assert!(one(&format!("program:{}", folder.path().display())).is_err());
    }
}
