//! RDNs that name an entry, or are to.

use super::edit;
use crate::access::RULE;
use crate::failure::{Failure, Result};
use keyway_codec::dn::{Dn, Rdn};
use keyway_codec::message::ResultCode;
use keyway_codec::secret::SECRETS;
use keyway_schema::Schema;
use keyway_store::EntryRef;

/// The RDN of a stored entry, as it was written.
pub(super) fn rdn_of(entry: &EntryRef<'_>) -> Result<Rdn> {
    // The top of a naming context is stored under its whole name.
    let dn = Dn::parse(entry.rdn());
    let rdn = dn.ok().and_then(|dn| dn.rdns.into_iter().next());
    rdn.ok_or_else(|| Failure::new(ResultCode::Other, "a stored RDN is malformed"))
}

/// Checks that an RDN can name an entry: each type once, and none that only the server sets.
pub(super) fn check_rdn(schema: &Schema, rdn: &Rdn) -> Result<()> {
    for (index, ava) in rdn.avas.iter().enumerate() {
        let Some(attribute) = schema.attribute(&ava.attribute) else {
            let text = format!("attribute {} of the RDN is not known", ava.attribute);
            return Err(Failure::new(ResultCode::UndefinedAttributeType, text));
        };
        edit::require_writable(attribute)?;
        let violation = |what: &str| {
            let text = format!("attribute {} {what}", attribute.name());
            Err(Failure::new(ResultCode::NamingViolation, text))
        };
        if attribute.equality().is_none() {
            return violation("has no equality rule and cannot name an entry");
        }
        let is_secret = |name: &&str| name.eq_ignore_ascii_case(attribute.name());
        if SECRETS.iter().any(is_secret) {
            return violation(
                "holds passwords or keys, which names show to all users, and cannot name an entry",
            );
        }
        if attribute.name() == RULE {
            return violation("says who may do what and cannot name an entry");
        }
        let mut before = rdn.avas.iter().take(index);
        if before.any(|other| schema.attribute(&other.attribute) == Some(attribute)) {
            return violation("is in the RDN twice");
        }
    }
    Ok(())
}
