//! Files that samples name, wherever a scenario of them is read from.

use super::options::{Options, UserPassword, Users};
use crate::error::Error;
use std::path::{Path, PathBuf, absolute};

fn place(path: &Path) -> Result<PathBuf, Error> {
    let find = |why| Error::File { verb: "find", path: path.to_owned(), why };
    absolute(path).map_err(find)
}

impl Users {
    /// These users, their file named from the root.
    ///
    /// # Errors
    /// If the system does not say where this process is.
    pub fn absolute(&self) -> Result<Users, Error> {
        Ok(match self {
            Users::File(file) => Users::File(place(file)?),
            range => range.clone(),
        })
    }
}

impl Options {
    /// These options, their files named from the root: they are where this process is, wherever the scenario is
    /// read from.
    ///
    /// # Errors
    /// If the system does not say where this process is.
    pub fn absolute(&self) -> Result<Options, Error> {
        let mut options = self.clone();
        options.ca = options.ca.as_deref().map(place).transpose()?;
        if let UserPassword::File(file) = &mut options.user_password {
            *file = place(file)?;
        }
        if let Some((certificate, key)) = &mut options.own {
            (*certificate, *key) = (place(certificate)?, place(key)?);
        }
        if let Some((_, file)) = &mut options.admin {
            *file = place(file)?;
        }
        options.users = options.users.as_ref().map(Users::absolute).transpose()?;
        // One that is no file may be built in.
        if let Some(adds) = options.template.as_mut().filter(|it| Path::new(&it.template).exists())
        {
            adds.template = place(Path::new(&adds.template))?.to_string_lossy().into_owned();
        }
        Ok(options)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_named_from_the_root_and_what_is_none_stays() {
        let options = Options {
            ca: Some("ca.pem".into()),
            users: Some(Users::File("users".into())),
            template: Some(crate::Adds { template: "example".into(), ..Default::default() }),
            ..Options::default()
        };
        let found = options.absolute().unwrap();
        assert!(found.ca.is_some_and(|file| file.is_absolute() && file.ends_with("ca.pem")));
        assert!(matches!(found.users, Some(Users::File(file)) if file.is_absolute()));
        assert_eq!(found.template.unwrap().template, "example");
        assert!(matches!(Users::Range(1, 2).absolute(), Ok(Users::Range(1, 2))));
    }
}
