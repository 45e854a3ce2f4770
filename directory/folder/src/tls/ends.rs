//! When certificates begin and end, and what is said of it.

use crate::pem::malformed;
use keyway_codec::certificate::Certificate;
use keyway_host::failure::Failure;
use keyway_host::timestamp::{DAY_S, Timestamp};
use rustls_pki_types::CertificateDer;
use std::path::{Path, PathBuf};

/// How long before its end there is a warning.
const WARNING_DAYS: i64 = 14;

/// A file of certificates, and when the first of them ends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ends {
    /// The file.
    pub file: PathBuf,
    /// When the last of them begins.
    pub from: Timestamp,
    /// When the first of them ends.
    pub at: Timestamp,
}

impl Ends {
    /// # Errors
    /// If there is no certificate in the chain, or one that cannot be read.
    pub fn of(file: &Path, chain: &[CertificateDer<'_>]) -> Result<Ends, Failure> {
        let all: Result<Vec<(i64, i64)>, _> = chain
            .iter()
            .map(|der| {
                Certificate::read(der).map(|read| (read.not_before_unix_s, read.not_after_unix_s))
            })
            .collect();
        let all = all.unwrap_or_default();
        let (from, at) =
            (all.iter().map(|(from, _)| *from).max(), all.iter().map(|(_, at)| *at).min());
        let bounds = from.zip(at).ok_or_else(|| malformed(file, "it is not a certificate"))?;
        let (from, at) = (Timestamp::from_unix_s(bounds.0), Timestamp::from_unix_s(bounds.1));
        Ok(Ends { file: file.to_owned(), from, at })
    }

    /// Whether clients take them at this time.
    pub fn is_valid(&self, now: Timestamp) -> bool {
        (self.from..=self.at).contains(&now)
    }

    /// The warning, if it is time for one.
    pub fn warning(&self, now: Timestamp) -> Option<String> {
        let Ends { file, from, at } = self;
        if now < *from {
            return Some(format!(
                "the certificate {} begins at {from}, and it is {now} now: clients refuse it until then; set \
                 this machine's clock, or put one that is valid in its place",
                file.display()
            ));
        }
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
        let [from, at] = [10, 100].map(|days| Timestamp::from_unix_s(days * DAY_S));
        let ends = Ends { file: "a.pem".into(), from, at };
        let said = |days| ends.warning(Timestamp::from_unix_s(days * DAY_S - 1));
        assert!(said(10).is_some_and(|text| text.contains("begins at")) && said(11).is_none());
        assert_eq!(said(86), None);
        for (day, expected) in
            [(87, "in 13 days"), (99, "in a day"), (100, "within a day"), (101, "has ended")]
        {
            let text = said(day).unwrap_or_default();
            assert!(text.contains(expected), "{day}: {text}");
        }
    }
}
