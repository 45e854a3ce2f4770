//! The passwords that are sent again.

use keyway_codec::dn::Dn;
use std::collections::HashMap;
use std::fmt;
use zeroize::Zeroizing;

/// The passwords that are sent.
#[derive(Default)]
pub enum Passwords {
    /// None: requests with one are left out.
    #[default]
    None,
    /// Those that were captured.
    Captured,
    /// In simple binds, those of these names.
    Listed(List),
    /// None: the replay binds each connection with its own account, and sends no bind of the capture.
    Ours,
}

/// Passwords by who has them.
pub struct List(HashMap<Vec<u8>, Zeroizing<Vec<u8>>>);

impl fmt::Debug for Passwords {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Passwords::None => "None",
            Passwords::Captured => "Captured",
            Passwords::Listed(_) => "Listed",
            Passwords::Ours => "Ours",
        })
    }
}

impl List {
    /// Reads lines of a name, a tab and a password.
    ///
    /// # Errors
    /// The number of a line that is not that.
    pub fn parse(text: &[u8]) -> Result<List, usize> {
        let mut known = HashMap::new();
        for (index, line) in text.split(|byte| *byte == b'\n').enumerate() {
            let line = line.strip_suffix(b"\r").unwrap_or(line);
            if line.is_empty() {
                continue;
            }
            let wrong = || index + 1;
            let tab = line.iter().position(|byte| *byte == b'\t').ok_or_else(wrong)?;
            let (name, rest) = line.split_at_checked(tab).ok_or_else(wrong)?;
            let name = std::str::from_utf8(name).map_err(|_| wrong())?;
            let password = rest.strip_prefix(b"\t").unwrap_or_default().to_vec();
            known.insert(folded(name), Zeroizing::new(password));
        }
        Ok(List(known))
    }

    pub(super) fn of(&self, name: &str) -> Option<&[u8]> {
        self.0.get(&folded(name)).map(|password| password.as_slice())
    }
}

/// A name without regard to case and blanks.
fn folded(name: &str) -> Vec<u8> {
    let dn = Dn::parse(name).map_or_else(|_| name.to_owned(), |dn| dn.to_string());
    dn.to_lowercase().into_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn passwords_are_found_whatever_the_case() {
        let list = List::parse(b"uid=a, dc=x\tone\r\nUID=B,dc=x\t\n\n").unwrap();
        assert_eq!(list.of("UID=A,DC=X"), Some(&b"one"[..]));
        assert_eq!(list.of("uid=b,dc=x"), Some(&b""[..]));
        assert_eq!(list.of("uid=c,dc=x"), None);
        assert_eq!(List::parse(b"uid=a\tone\nuid=b two").err(), Some(2));
    }
}
