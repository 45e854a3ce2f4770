//! The tokens that a data folder has given out: what is needed to know one again, never its secret.

use super::token::JoinToken;
use keyway_engine::Engine;
use keyway_folder::data::{self, name};
use keyway_host::failure::Failure;
use keyway_host::timestamp::Timestamp;
use serde::{Deserialize, Serialize};
use std::fs::{self, DirBuilder};
use std::io::{self, ErrorKind};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

/// Tokens that are good at one time.
const TOKENS_MAX: usize = 64;
/// The ending of a token's file, and of one that is being used.
const ENDING: &str = "json";
const CLAIMED: &str = "claimed";

/// A token, as it is kept.
#[derive(Debug, Serialize, Deserialize)]
struct Kept {
    /// Of its secret, in hexadecimal digits.
    sha256: String,
    /// Until when it is good, in seconds since 1970.
    ends: i64,
    /// What the member is to be called that joins with it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    name: Option<String>,
}

/// Keeps a new token until `ends`, and removes those that have ended. The caller has
/// [`lock_edits`](data::lock_edits).
///
/// # Errors
/// If there are too many, or it cannot be written.
pub fn keep(
    engine: &Engine,
    folder: &Path,
    token: &JoinToken,
    ends: Timestamp,
    name: Option<&str>,
) -> Result<(), Failure> {
    let place = folder.join(name::cluster::TOKENS);
    for place in [folder.join(name::CLUSTER).as_path(), &place] {
        match DirBuilder::new().mode(0o700).create(place) {
            Err(why) if why.kind() != ErrorKind::AlreadyExists => {
                return Err(Failure::system("make", place, &why));
            }
            _ => {}
        }
    }
    let left = remove_ended(&place, Timestamp::now())?;
    if left >= TOKENS_MAX {
        return Err(Failure::new(format!(
            "{left} tokens were not used and have not ended; wait, or remove files in {}",
            place.display()
        )));
    }
    let kept = Kept {
        sha256: hex(&token.digest(engine)?),
        ends: ends.unix_s(),
        name: name.map(ToOwned::to_owned),
    };
    let text = serde_json::to_string(&kept).map_err(Failure::new)?;
    let file = format!("{}/{:016x}.{ENDING}", name::cluster::TOKENS, token.id);
    data::write_secret(folder, &file, format!("{text}\n").as_bytes())
}

/// Removes tokens that have ended or cannot be read. Returns how many are left.
fn remove_ended(place: &Path, now: Timestamp) -> Result<usize, Failure> {
    let system = |why: io::Error| Failure::system("read", place, &why);
    let mut left = 0;
    for found in fs::read_dir(place).map_err(system)? {
        let path = found.map_err(system)?.path();
        match path.extension().and_then(|ending| ending.to_str()) {
            Some(ENDING) if read(&path).is_some_and(|kept| now.unix_s() < kept.ends) => left += 1,
            // One that was being used when the server ended is as good as used.
            Some(CLAIMED) if read(&path).is_some_and(|kept| now.unix_s() < kept.ends) => {}
            Some(ENDING | CLAIMED) => {
                // The next one does it, if this cannot.
                let _ = fs::remove_file(&path);
            }
            _ => {}
        }
    }
    Ok(left)
}

fn read(path: &Path) -> Option<Kept> {
    serde_json::from_str(&data::read_secret(path).ok()?).ok()
}

/// A token that this process alone can use: it is used up by [`Claim::spend`], and else good again when this goes.
pub struct Claim {
    /// What the member is to be called, if that was said when the token was made.
    pub name: Option<String>,
    from: PathBuf,
    claimed: PathBuf,
    is_spent: bool,
}

/// Takes a token, if it is one that was given out, has not ended and is not being used.
///
/// # Errors
/// If no driver digests.
pub fn claim(
    engine: &Engine,
    folder: &Path,
    token: &JoinToken,
    now: Timestamp,
) -> Result<Option<Claim>, Failure> {
    let from = folder.join(name::cluster::TOKENS).join(format!("{:016x}.{ENDING}", token.id));
    // As long as for one that is there.
    let shown = hex(&token.digest(engine)?);
    let Some(kept) = read(&from) else { return Ok(None) };
    if !is_same(kept.sha256.as_bytes(), shown.as_bytes()) || now.unix_s() >= kept.ends {
        return Ok(None);
    }
    let claimed = from.with_extension(CLAIMED);
    match fs::rename(&from, &claimed) {
        Ok(()) => Ok(Some(Claim { name: kept.name, from, claimed, is_spent: false })),
        // Another was faster.
        Err(_) => Ok(None),
    }
}

impl Claim {
    /// The member has joined.
    pub fn spend(mut self) {
        self.is_spent = true;
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        // One that cannot be given back is lost, and another can be made.
        let _ = match self.is_spent {
            true => fs::remove_file(&self.claimed),
            false => fs::rename(&self.claimed, &self.from),
        };
    }
}

/// In a time that does not depend on where they differ.
fn is_same(one: &[u8], other: &[u8]) -> bool {
    one.len() == other.len() && one.iter().zip(other).fold(0, |all, (a, b)| all | (a ^ b)) == 0
}

fn hex(octets: &[u8]) -> String {
    octets.iter().map(|octet| format!("{octet:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_good_once_and_until_it_ends() {
        let engine = keyway_drivers::engine();
        let folder = tempfile::tempdir().unwrap();
        let token = JoinToken::make(&engine, b"ca").unwrap();
        let end = Timestamp::now().after_days(1);
        keep(&engine, folder.path(), &token, end, Some("b")).unwrap();
        let claim = |token: &JoinToken, now| claim(&engine, folder.path(), token, now).unwrap();
        assert!(claim(&token, end).is_none());
        let first = claim(&token, Timestamp::now()).unwrap();
        assert_eq!(first.name.as_deref(), Some("b"));
        assert!(claim(&token, Timestamp::now()).is_none(), "it is being used");
        drop(first);
        claim(&token, Timestamp::now()).unwrap().spend();
        assert!(claim(&token, Timestamp::now()).is_none(), "it was used");
    }

    #[test]
    fn another_secret_is_another_token() {
        let engine = keyway_drivers::engine();
        let folder = tempfile::tempdir().unwrap();
        let token = JoinToken::make(&engine, b"ca").unwrap();
        let other = JoinToken::make(&engine, b"ca").unwrap();
        let end = Timestamp::now().after_days(1);
        keep(&engine, folder.path(), &token, end, None).unwrap();
        let mut octets = base64_of(&token);
        let of_other = base64_of(&other);
        octets.truncate(41);
        octets.extend(&of_other[41..]);
        let mixed = JoinToken::parse(&text_of(&octets)).unwrap();
        assert_eq!(mixed.id, token.id);
        for wrong in [&mixed, &other] {
            assert!(claim(&engine, folder.path(), wrong, Timestamp::now()).unwrap().is_none());
        }
        assert!(claim(&engine, folder.path(), &token, Timestamp::now()).unwrap().is_some());
    }

    fn base64_of(token: &JoinToken) -> Vec<u8> {
        use base64::Engine as _;
        base64::prelude::BASE64_URL_SAFE_NO_PAD.decode(&*token.text()).unwrap()
    }

    fn text_of(octets: &[u8]) -> String {
        use base64::Engine as _;
        base64::prelude::BASE64_URL_SAFE_NO_PAD.encode(octets)
    }

    #[test]
    fn ended_tokens_go_and_there_are_never_too_many() {
        let engine = keyway_drivers::engine();
        let folder = tempfile::tempdir().unwrap();
        let make = |end: Timestamp| {
            let token = JoinToken::make(&engine, b"ca").unwrap();
            keep(&engine, folder.path(), &token, end, None)
        };
        let now = Timestamp::now();
        for _ in 0..TOKENS_MAX {
            make(now.after_days(-1)).unwrap();
        }
        for _ in 0..TOKENS_MAX {
            make(now.after_days(1)).unwrap();
        }
        assert!(make(now.after_days(1)).unwrap_err().to_string().contains("64 tokens"));
        let place = folder.path().join(name::cluster::TOKENS);
        assert_eq!(fs::read_dir(place).unwrap().count(), TOKENS_MAX);
    }
}
