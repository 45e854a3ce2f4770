//! `keyway data`: entries of templates, into files, to a server, into a store, or held against a schema.
//! The work is that of `keyway-data`; here are its flags and its words.

mod access;
mod against;
mod arguments;
mod check;
mod entries;
mod files;
mod filters;
mod server;
mod store;
mod tags;

pub use arguments::{Compression, Generate, compress};
pub use entries::constant;

use arguments::FileFormat;
use keyway_host::failure::Failure;

/// Does what the arguments ask for. Says whether all of it could be done.
///
/// # Errors
/// The fault of the template, or why its entries could not be written.
pub fn run(command: &Generate) -> Result<bool, Failure> {
    match command {
        Generate::Tags(arguments) => tags::run(arguments).map(|()| true),
        Generate::Template(arguments) => tags::template(arguments).map(|()| true),
        Generate::Check(arguments) => check::run(arguments),
        Generate::Make(arguments) => {
            let (plan, inputs) = arguments.entries.plan()?;
            let range = arguments.entries.range(&plan)?;
            if (arguments.to.is_some() || arguments.into.is_some())
                && arguments.format == Some(FileFormat::Csv)
            {
                return Err(Failure::usage("--format csv is for a file"));
            }
            match (&arguments.to, &arguments.into) {
                (Some(url), _) => server::run(arguments, url, plan, range),
                (None, Some(folder)) => store::run(arguments, folder, plan, range),
                (None, None) => files::run(arguments, &plan, &inputs, range).map(|()| true),
            }
        }
    }
}
