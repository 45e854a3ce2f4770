//! `keyway cluster token`: a token is made beside the server that runs, and the first one makes that a member.

use super::authority;
use super::own_url::of_running;
use super::row;
use super::token::JoinToken;
use super::tokens;
use crate::offline::store_to_read;
use keyway_config::{Configuration, Given, Running};
use keyway_folder::data::{self, name};
use keyway_folder::pem::certificates;
use keyway_folder::user::{self, Half};
use keyway_host::failure::Failure;
use keyway_host::timestamp::Timestamp;
use std::io::Read;
use std::path::Path;
use std::time::Duration;
use zeroize::Zeroizing;

/// More than the line of a token has, in bytes.
const TOKEN_TEXT_MAX: u64 = 1 << 10;

/// A token that was made.
pub struct MadeToken {
    /// Its line.
    pub token: Zeroizing<String>,
    /// Until when it is good.
    pub ends: String,
    /// Where the follower finds this server.
    pub url: String,
}

/// Makes a token that is good for so long, for a member of this name, if one is given. The process becomes the folder's
/// user for good.
///
/// # Errors
/// If the folder holds no directory, follows another server, or has no authority of its own.
pub fn make_token(
    folder: &Path,
    valid: Duration,
    name: Option<&str>,
) -> Result<MadeToken, Failure> {
    let folder = std::path::absolute(folder)
        .map_err(|why| Failure::system("find the data folder", folder, &why))?;
    user::enter(None, &folder, Half::Ldapd)?.keep_nothing()?;
    let configuration = Configuration::ahead(&folder, &Given::none())?;
    let store = store_to_read(&folder)?;
    if !configuration.feed {
        return Err(Failure::new(format!(
            "{}: [feed] enabled = false, and others follow by the feed: set it to true and start again",
            folder.join(name::CONFIGURATION).display()
        )));
    }
    let ca = folder.join(name::CA_CERTIFICATE);
    if !ca.exists() {
        return Err(Failure::new(format!(
            "{} is not there, and members have certificates of the folder's own authority: it is made at a start with \
             server.pem and server.key moved away; name these in {} then ([tls] certificate and key)",
            ca.display(),
            name::CONFIGURATION
        )));
    }
    let _lock = data::lock_edits(&folder)?;
    let (authority, remote) = authority::of_folder(&folder)?;
    let own = authority.found()?;
    if let Some(row) = row::read(&store)?
        && row.writer.to_string() != own.id
    {
        let writer = row.member(row.writer).map(|writer| writer.url.as_str()).unwrap_or_default();
        return Err(Failure::new(format!(
            "this server follows: tokens are made at the writer, which is {writer}"
        )));
    }
    let certificate = certificates(&ca)?;
    let certificate = certificate.first().map(|der| der.as_ref()).unwrap_or_default();
    let token = JoinToken::make(&authority.engine, certificate)?;
    let seconds = i64::try_from(valid.as_secs()).unwrap_or(i64::MAX);
    let ends = Timestamp::from_unix_s(Timestamp::now().unix_s().saturating_add(seconds));
    tokens::keep(&authority.engine, &folder, &token, ends, name)?;
    drop(remote);
    let url = of_running(&configuration, Running::look(&folder).as_ref()).to_string();
    Ok(MadeToken { token: token.text(), ends: ends.to_string(), url })
}

/// A member's name, as a flag gives it.
///
/// # Errors
/// A sentence that says what it should look like.
pub fn member_name(text: &str) -> Result<String, String> {
    let is_fit = |c: u8| c.is_ascii_alphanumeric() || b"._-".contains(&c);
    match (1..=64).contains(&text.len()) && text.bytes().all(is_fit) {
        true => Ok(text.to_owned()),
        false => Err(format!("\"{text}\" is no name of 1 to 64 letters, digits, '.', '_' and '-'")),
    }
}

/// A token, as a flag gives it: its line, or `-` for that on standard input.
///
/// # Errors
/// A sentence that says what is wrong.
pub fn join_token(text: &str) -> Result<JoinToken, String> {
    if text != "-" {
        return JoinToken::parse(text);
    }
    let mut line = Zeroizing::new(String::new());
    let read = std::io::stdin().take(TOKEN_TEXT_MAX).read_to_string(&mut line);
    read.map_err(|why| format!("it cannot be read from standard input: {why}"))?;
    JoinToken::parse(&line)
}
