//! Browsers that were let in.
//!
//! Each has a cookie and a key. A browser sends its cookies to every port of a host, and so, on loopback,
//! to whatever other users of the machine listen with there: a cookie alone is worth nothing. The key is
//! handed to the page once, which keeps it where only pages of this port can read it, and sends it with each
//! question.

use crate::limits::{SESSION_IDLE_MAX, SESSION_MAX, SESSIONS_MAX};
use std::time::Instant;
use subtle::ConstantTimeEq;
use zeroize::Zeroizing;

/// A secret that is compared in constant time.
pub(crate) struct Secret(Zeroizing<String>);

impl Secret {
    /// In hexadecimal.
    pub fn of(bytes: &[u8]) -> Secret {
        let digit = |nibble: u8| char::from_digit(u32::from(nibble), 16).unwrap_or('0');
        let mut text = Zeroizing::new(String::with_capacity(2 * bytes.len()));
        for byte in bytes {
            text.push(digit(byte >> 4));
            text.push(digit(byte & 15));
        }
        Secret(text)
    }

    pub fn is(&self, other: &str) -> bool {
        self.0.as_bytes().ct_eq(other.as_bytes()).into()
    }

    pub fn text(&self) -> &str {
        &self.0
    }
}

struct Session {
    cookie: Secret,
    key: Secret,
    /// The page has had the key.
    is_given: bool,
    began: Instant,
    seen: Instant,
}

/// All of them.
#[derive(Default)]
pub(crate) struct Sessions(Vec<Session>);

impl Sessions {
    /// Lets another one in.
    pub fn add(&mut self, cookie: Secret, key: Secret, now: Instant) {
        self.forget(now);
        if self.0.len() >= SESSIONS_MAX {
            let oldest = self.0.iter().enumerate().min_by_key(|(_, session)| session.seen);
            if let Some((at, _)) = oldest {
                self.0.swap_remove(at);
            }
        }
        self.0.push(Session { cookie, key, is_given: false, began: now, seen: now });
    }

    /// Whether the cookie is one's.
    pub fn has(&mut self, cookie: &str, now: Instant) -> bool {
        self.find(cookie, now).is_some()
    }

    /// Whether cookie and key are the same one's.
    pub fn has_both(&mut self, cookie: &str, key: &str, now: Instant) -> bool {
        self.find(cookie, now).is_some_and(|session| session.key.is(key))
    }

    /// The key of the session with this cookie, the first time that it is asked for.
    pub fn key(&mut self, cookie: &str, now: Instant) -> Option<String> {
        let session = self.find(cookie, now)?;
        let is_first = !std::mem::replace(&mut session.is_given, true);
        is_first.then(|| session.key.text().to_owned())
    }

    /// Forgets the one with this cookie.
    pub fn end(&mut self, cookie: &str) {
        self.0.retain(|session| !session.cookie.is(cookie));
    }

    fn find(&mut self, cookie: &str, now: Instant) -> Option<&mut Session> {
        self.forget(now);
        let session = self.0.iter_mut().find(|session| session.cookie.is(cookie))?;
        session.seen = now;
        Some(session)
    }

    fn forget(&mut self, now: Instant) {
        self.0.retain(|session| {
            now.duration_since(session.began) < SESSION_MAX
                && now.duration_since(session.seen) < SESSION_IDLE_MAX
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    fn secret(byte: usize) -> Secret {
        Secret::of(&[byte as u8; 32])
    }

    #[test]
    fn a_key_is_given_once_and_belongs_to_its_cookie() {
        let now = Instant::now();
        let mut sessions = Sessions::default();
        sessions.add(secret(1), secret(2), now);
        sessions.add(secret(3), secret(4), now);
        let [one, two, three, four] = [1, 2, 3, 4].map(|byte| secret(byte).text().to_owned());
        assert!(!sessions.has_both(&one, &four, now));
        assert_eq!(sessions.key(&one, now), Some(two.clone()));
        assert_eq!(sessions.key(&one, now), None);
        assert!(sessions.has_both(&one, &two, now) && sessions.has(&three, now));
        assert!(!sessions.has("", now) && !sessions.has(&one[..63], now));
        sessions.end(&one);
        assert!(!sessions.has(&one, now) && sessions.has(&three, now));
    }

    #[test]
    fn they_end_and_are_not_too_many() {
        let now = Instant::now();
        let mut sessions = Sessions::default();
        for byte in 0..=SESSIONS_MAX {
            sessions.add(secret(byte), secret(byte), now + Duration::from_millis(byte as u64));
        }
        assert_eq!(sessions.0.len(), SESSIONS_MAX);
        assert!(!sessions.has(secret(0).text(), now));
        let last = secret(SESSIONS_MAX);
        let mut at = now + Duration::from_secs(1);
        while at < now + SESSION_MAX {
            assert!(sessions.has(last.text(), at), "{:?}", at - now);
            at += SESSION_IDLE_MAX / 2;
        }
        assert!(!sessions.has(last.text(), at));
        sessions.add(secret(1), secret(1), at);
        assert!(!sessions.has(secret(1).text(), at + SESSION_IDLE_MAX));
    }
}
