//! When certificates end, and what is said of it.

use crate::authority::malformed;
use crate::failure::Failure;
use crate::timestamp::{DAY_S, Timestamp};
use keyway_codec::certificate::Certificate;
use rustls_pki_types::CertificateDer;
use std::path::{Path, PathBuf};

/// How long before its end somebody is told.
const WARNING_DAYS: i64 = 14;

/// A file of certificates, and when the first of them ends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ends {
    pub file: PathBuf,
    pub at: Timestamp,
}

impl Ends {
    /// # Errors
    /// If there is no certificate in the chain, or one that cannot be read.
    pub fn of(file: &Path, chain: &[CertificateDer<'_>]) -> Result<Ends, Failure> {
        let all: Result<Vec<i64>, _> = chain
            .iter()
            .map(|der| Certificate::read(der).map(|read| read.not_after_unix_s))
            .collect();
        let first = all.ok().and_then(|all| all.into_iter().min());
        let first = first.ok_or_else(|| malformed(file, "it is not a certificate"))?;
        Ok(Ends { file: file.to_owned(), at: Timestamp::from_unix_s(first) })
    }

    /// What to say, if it is time to.
    pub fn warning(&self, now: Timestamp) -> Option<String> {
        let Ends { file, at } = self;
        let left_s = at.unix_s().saturating_sub(now.unix_s());
        let when = match left_s.div_euclid(DAY_S) {
            WARNING_DAYS.. => return None,
            ..0 => format!("has ended at {at}, and clients refuse it"),
            0 => format!("ends at {at}, within a day"),
            1 => format!("ends at {at}, in a day"),
            days => format!("ends at {at}, in {days} days"),
        };
        let advice = "put the next one in its place: it is taken while the server runs";
        Some(format!("the certificate {} {when}; {advice}", file.display()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fourteen_days_before_it_is_said() {
        let ends = Ends { file: "a.pem".into(), at: Timestamp::from_unix_s(100 * DAY_S) };
        let said = |days| ends.warning(Timestamp::from_unix_s(days * DAY_S - 1));
        assert_eq!(said(86), None);
        for (day, expected) in
            [(87, "in 13 days"), (99, "in a day"), (100, "within a day"), (101, "has ended")]
        {
            let text = said(day).unwrap_or_default();
            assert!(text.contains(expected), "{day}: {text}");
        }
    }
}
