//! Who asks for a request that another server of the cluster sends.

use keyway_server::access::{Over, Strength};
use keyway_server::{Directory, Failure, RequestOrigin, Subject};
use std::net::IpAddr;

/// A request's control on connections of other members of the cluster, and on no other: who asks for it.
pub(crate) const ON_BEHALF: &str = "2.25.15936739705580567830054646219924409936.2.2";

/// The one who asks, and over what.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct OnBehalf {
    /// The DN of its entry, and the entry's number, which is one and the same on all members. None of an anonymous one.
    pub who: Option<(String, u64)>,
    /// Where its client is, and how safe the connection is.
    pub over: Over,
    /// Its request there.
    pub origin: RequestOrigin,
}

const STRENGTHS: [Strength; 4] =
    [Strength::Any, Strength::Private, Strength::Tls, Strength::Certificate];

impl OnBehalf {
    /// `strength`, the client's address, the connection's number, the message id, the entry's number and its DN, a line each.
    /// Anonymous ones have neither of the last two.
    pub fn encode(&self) -> Vec<u8> {
        let strength = STRENGTHS.iter().position(|one| *one == self.over.strength);
        let RequestOrigin { from, connection, operation } = self.origin;
        let mut text = format!("{}\n{from}\n{connection}\n{operation}", strength.unwrap_or(0));
        if let Some((dn, id)) = &self.who {
            text.push_str(&format!("\n{id}\n{dn}"));
        }
        text.into_bytes()
    }

    /// Reads the control's value; `None` if it is none.
    pub fn decode(value: &[u8]) -> Option<OnBehalf> {
        let mut parts = str::from_utf8(value).ok()?.splitn(6, '\n');
        let mut next = || parts.next();
        let strength = *STRENGTHS.get(next()?.parse::<usize>().ok()?)?;
        let from: IpAddr = next()?.parse().ok()?;
        let (connection, operation) = (next()?.parse().ok()?, next()?.parse().ok()?);
        let who = match next() {
            Some(id) => Some((id.parse().ok()?, next()?.to_owned())),
            None => None,
        };
        Some(OnBehalf {
            who: who.map(|(id, dn)| (dn, id)),
            over: Over { address: Some(from), strength },
            origin: RequestOrigin { from, connection, operation },
        })
    }

    /// The user of this directory that it is. One whose entry is another one by now is no user that has an entry: rules
    /// that speak of the DN must not give it what another has.
    ///
    /// # Errors
    /// The store's.
    pub fn subject(&self, directory: &Directory) -> Result<Subject, Failure> {
        let Some((dn, id)) = &self.who else {
            return Ok(Subject::anonymous().over(self.over));
        };
        let found = directory.credentials(dn).ok().flatten();
        let found = found.filter(|found| found.subject.id().is_some_and(|found| found.0 == *id));
        let subject = match found {
            Some(found) => found.subject,
            // A process of this machine's that is known by its user has no entry.
            None if *id == u64::MAX => Subject::without_entry(dn),
            None => {
                let text = "the entry of the one who asks was moved or deleted: bind again";
                return Err(Failure::denied(text));
            }
        };
        Ok(subject.over(self.over))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_read_as_it_was_written() {
        let from: IpAddr = "2001:db8::1".parse().unwrap();
        for who in [None, Some(("uid=a\nb,dc=x".to_owned(), 7)), Some((String::new(), u64::MAX))] {
            for strength in STRENGTHS {
                let one = OnBehalf {
                    who: who.clone(),
                    over: Over { address: Some(from), strength },
                    origin: RequestOrigin { from, connection: 1 << 40, operation: 3 },
                };
                assert_eq!(OnBehalf::decode(&one.encode()), Some(one));
            }
        }
        for wrong in [
            "",
            "4\n::1\n1\n1",
            "0\n::1\n1",
            "0\nx\n1\n1",
            "0\n::1\n1\n1\n5",
            "0\n::1\n1\n1\nx\ndn",
        ] {
            assert_eq!(OnBehalf::decode(wrong.as_bytes()), None, "{wrong:?}");
        }
    }
}
