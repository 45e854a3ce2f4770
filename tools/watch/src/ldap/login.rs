//! The identity that asks a server.

use keyway_folder::data::read_password;
use keyway_host::failure::Failure;
use std::path::PathBuf;
use zeroize::Zeroizing;

/// The identity that asks: a name and its password.
pub type Login = Option<(String, Zeroizing<Vec<u8>>)>;

/// The login for each of so many servers: one for all of them, or one for each, in their order.
///
/// # Errors
/// If there are too few or too many, or a password cannot be read.
pub fn logins(dns: &[String], files: &[PathBuf], servers: usize) -> Result<Vec<Login>, Failure> {
    if dns.len() != files.len() {
        return Err(Failure::usage("each --bind-dn has a --password-file"));
    }
    if dns.len() > 1 && dns.len() != servers {
        return Err(Failure::usage(format!(
            "give one --bind-dn and --password-file for all servers, or one for each URL, in their \
             order: there are {} for {servers}",
            dns.len()
        )));
    }
    let login = |(dn, file): (&String, &PathBuf)| Ok(Some((dn.clone(), read_password(file)?)));
    let each: Vec<Login> = dns.iter().zip(files).map(login).collect::<Result<_, Failure>>()?;
    Ok(match each.len() {
        0 => vec![None; servers],
        1 => each.iter().cycle().take(servers).cloned().collect(),
        _ => each,
    })
}
