//! Stored passwords: `{SSHA}`, `{PBKDF2...}`, `{BCRYPT}`, `{CRYPT}`, `{ARGON2}` and the others.

use keyway_password::limits::{SCHEME_NAME_BYTES_MAX, STORED_BYTES_MAX};
use keyway_password::{Given, Passwords, classify};

/// Reads the bytes as a value of `userPassword`.
pub fn password(data: &[u8]) {
    let given = classify(data);
    match given {
        Ok(Given::Password(password)) => assert!(data.ends_with(password)),
        Ok(Given::Hashed) => assert!(data.len() <= STORED_BYTES_MAX || data.starts_with(b"!")),
        Err(why) => {
            let label = Passwords::label(data, why);
            assert!(label.len() <= SCHEME_NAME_BYTES_MAX + " (not accepted)".len() + "{}".len());
            assert!(!label.contains(char::is_control), "{label:?} would spoil a log line");
            assert!(!why.to_string().is_empty());
        }
    }

    // The name of a scheme is matched without regard to case (RFC 2307, section 5.3).
    let scheme = data.iter().position(|byte| *byte == b'}').filter(|_| data.starts_with(b"{"));
    if let Some(end) = scheme {
        for change in [<[u8]>::make_ascii_lowercase, <[u8]>::make_ascii_uppercase] {
            let mut other = data.to_vec();
            change(&mut other[..end]);
            match (given, classify(&other)) {
                (Ok(Given::Password(_)), other) => assert!(matches!(other, Ok(Given::Password(_)))),
                (given, other) => assert_eq!(given, other),
            }
        }
        // A lock in front of a value with a scheme locks it, whatever the rest is.
        if !matches!(given, Ok(Given::Password(password)) if password.len() == data.len()) {
            assert_eq!(classify(&[b"!", data].concat()), Ok(Given::Hashed));
        }
    }
}
