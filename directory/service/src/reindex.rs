//! Indexes that a command has asked a running server to make anew.

use crate::instance::{Instance, describe};
use keyway_folder::data::name;
use keyway_host::failure::Failure;
use std::fs;
use std::io::ErrorKind;
use std::path::Path;

/// A request to a server through a file in its folder: the server begins with it, and the file goes.
///
/// # Errors
/// The error; the file goes all the same.
pub fn take_asked(folder: &Path, instance: &Instance) -> Result<(), Failure> {
    let file = folder.join(name::REINDEX);
    let text = match fs::read_to_string(&file) {
        Err(why) if why.kind() == ErrorKind::NotFound => return Ok(()),
        Err(why) => return Err(Failure::system("read", &file, &why)),
        Ok(text) => text,
    };
    let attributes: Vec<String> = text.lines().map(str::to_owned).collect();
    let begun = instance.directory.reindex(&attributes, true);
    fs::remove_file(&file).map_err(|why| Failure::system("remove", &file, &why))?;
    begun.map_err(|why| Failure::new(describe(&why)))?;
    instance.directory.build_indexes();
    Ok(())
}
