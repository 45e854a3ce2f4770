//! Secrets that a program has derived: objects of a session, which end with it.

use crate::abi::{self, Rv, Ulong};
use crate::limits::SECRETS_MAX;
use crate::object::{Attribute, flag, number};
use keyway_client::PerProcess;
use once_cell::race::OnceBox;
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use zeroize::Zeroizing;

/// A secret.
pub struct Secret {
    session: Ulong,
    is_readable: bool,
    value: Zeroizing<Vec<u8>>,
    attributes: Vec<Attribute>,
}

type Secrets = PerProcess<HashMap<Ulong, Arc<Secret>>>;

static SECRETS: OnceBox<Secrets> = OnceBox::new();
static LAST: AtomicU64 = AtomicU64::new(0);
/// Tells their handles from those of the token's objects.
const HANDLES: Ulong = 1 << (Ulong::BITS - 1);

fn all() -> &'static Secrets {
    SECRETS.get_or_init(|| Box::new(PerProcess::new(HashMap::new())))
}

impl Secret {
    /// One of a session, as a template wants it.
    ///
    /// # Errors
    /// If the template wants what no such object has.
    pub fn new(
        session: Ulong,
        template: Vec<Attribute>,
        mut value: Zeroizing<Vec<u8>>,
    ) -> Result<Secret, Rv> {
        let wanted = |kind| template.iter().find(|(it, _)| *it == kind).map(|(_, value)| &**value);
        let is = |kind, otherwise| match wanted(kind) {
            Some(value) => value != [0],
            None => otherwise,
        };
        if is(abi::ATTRIBUTE_TOKEN, false) {
            return Err(abi::TOKEN_WRITE_PROTECTED);
        }
        let class = number(abi::CLASS_SECRET_KEY);
        if wanted(abi::ATTRIBUTE_CLASS).is_some_and(|wanted| wanted != class) {
            return Err(abi::TEMPLATE_INCONSISTENT);
        }
        if let Some(length) = wanted(abi::ATTRIBUTE_VALUE_LEN) {
            let length = length.try_into().map(Ulong::from_ne_bytes);
            let length = length.ok().and_then(|length| usize::try_from(length).ok());
            let length = length.filter(|length| (1..=value.len()).contains(length));
            let length = length.ok_or(abi::TEMPLATE_INCONSISTENT)?;
            // PKCS #11 takes bytes from the front (3.0 current mechanisms § 2.3.21).
            value = Zeroizing::new(value[value.len() - length..].to_vec());
        }
        let kind = wanted(abi::ATTRIBUTE_KEY_TYPE).map(<[u8]>::to_vec);
        let text = |kind| wanted(kind).unwrap_or_default().to_vec();
        let is_readable =
            is(abi::ATTRIBUTE_EXTRACTABLE, true) && !is(abi::ATTRIBUTE_SENSITIVE, false);
        let attributes = vec![
            (abi::ATTRIBUTE_CLASS, class),
            (abi::ATTRIBUTE_KEY_TYPE, kind.unwrap_or_else(|| number(abi::TYPE_GENERIC_SECRET))),
            (abi::ATTRIBUTE_LABEL, text(abi::ATTRIBUTE_LABEL)),
            (abi::ATTRIBUTE_ID, text(abi::ATTRIBUTE_ID)),
            (abi::ATTRIBUTE_VALUE_LEN, number(value.len() as Ulong)),
            (abi::ATTRIBUTE_TOKEN, flag(false)),
            (abi::ATTRIBUTE_PRIVATE, flag(false)),
            (abi::ATTRIBUTE_SENSITIVE, flag(!is_readable)),
            (abi::ATTRIBUTE_EXTRACTABLE, flag(is_readable)),
            (abi::ATTRIBUTE_LOCAL, flag(false)),
        ];
        Ok(Secret { session, is_readable, value, attributes })
    }

    /// An attribute's value.
    pub fn value(&self, kind: Ulong) -> Result<&[u8], Rv> {
        if kind == abi::ATTRIBUTE_VALUE {
            return if self.is_readable {
                Ok(&self.value)
            } else {
                Err(abi::ATTRIBUTE_IS_SENSITIVE)
            };
        }
        let found = self.attributes.iter().find(|(it, _)| *it == kind);
        found.map(|(_, value)| &**value).ok_or(abi::ATTRIBUTE_TYPE_INVALID)
    }
}

/// Keeps a secret, and says its handle.
pub fn keep(secret: Secret) -> Result<Ulong, Rv> {
    let mut all = all().lock();
    if all.len() >= SECRETS_MAX {
        return Err(abi::HOST_MEMORY);
    }
    let handle = HANDLES | (LAST.fetch_add(1, Ordering::Relaxed) + 1);
    all.insert(handle, Arc::new(secret));
    Ok(handle)
}

/// The secret of a handle.
pub fn get(handle: Ulong) -> Option<Arc<Secret>> {
    if handle & HANDLES == 0 {
        return None;
    }
    all().lock().get(&handle).cloned()
}

/// Forgets a secret; whether there was one.
pub fn forget(handle: Ulong) -> bool {
    handle & HANDLES != 0 && all().lock().remove(&handle).is_some()
}

/// Forgets those of a session.
pub fn forget_those_of(session: Ulong) {
    if let Some(all) = SECRETS.get() {
        all.lock().retain(|_, secret| secret.session != session);
    }
}

/// Forgets all.
pub fn forget_all() {
    if let Some(all) = SECRETS.get() {
        all.lock().clear();
    }
}
