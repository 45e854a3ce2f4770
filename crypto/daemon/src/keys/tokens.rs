//! Keys that live in tokens: the store has a reference, and a driver does the work.

use super::access::{Purpose, Purposes};
use super::error::Error;
use super::material::Material;
use super::record::{Encoding, Record, Version};
use super::reference::TokenReference;
use super::store::KeyStore;
use keyway_engine::Algorithm;
use keyway_lock::Unpoisoned;
use keyway_token::{Error as TokenError, TokenKey, TokenPlace, Tokens, Uses};
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use zeroize::Zeroizing;

/// The engine's name for a version of a key that lives in a token.
pub(super) fn held_name(name: &str, number: u32) -> String {
    format!("{name}@{number}")
}

impl KeyStore {
    /// With the tokens of this daemon, which the store's engine has as a driver. Their keys can be used from now on. No
    /// token is asked for anything.
    #[must_use]
    pub fn with_tokens(mut self, tokens: Arc<Tokens>) -> Self {
        {
            let keys = self.keys.get_mut().unpoisoned();
            for entry in keys.live.values() {
                for (version, reference) in in_tokens(&entry.record) {
                    let held = hold(
                        &tokens,
                        &entry.record.name,
                        version,
                        reference,
                        &entry.record.algorithms,
                    );
                    if let Err(why) = held {
                        self.audit
                            .report(&format!("key `{}` cannot be used: {why}", entry.record.name));
                    }
                }
            }
        }
        self.tokens = Some(tokens);
        self
    }

    /// How many tokens there are.
    pub(crate) fn tokens_count(&self) -> usize {
        self.tokens.as_ref().map_or(0, |tokens| tokens.labels().len())
    }

    /// The number of a token.
    pub(crate) fn token(&self, label: &str) -> Option<usize> {
        self.tokens.as_ref()?.index(label)
    }

    /// The token that is asked where a key is changed.
    pub(crate) fn token_of_key(&self, name: &str) -> Option<usize> {
        let entry = self.entry(name).ok()?;
        self.token_of(entry.record.newest()?.token.as_ref()?).ok()
    }

    /// The token that is responsible for a key: the first one that there is.
    pub(super) fn token_of(&self, reference: &TokenReference) -> Result<usize, Error> {
        let index = |label: String| self.tokens.as_ref()?.index(&label);
        let unknown = || self.unknown(reference.labels().collect::<Vec<_>>().join(","));
        reference.labels().find_map(index).ok_or_else(unknown)
    }

    fn unknown(&self, label: String) -> Error {
        let known = self.tokens.as_ref().map_or_else(Vec::new, |tokens| tokens.labels());
        Error::Token(TokenError::Unknown { label, known })
    }

    /// Makes a version of a key in a token, or finds it there; `None` for material of another kind.
    pub(super) fn version_in_token(
        &self,
        (name, number): (&str, u32),
        algorithms: &[Algorithm],
        purposes: Purposes,
        material: Material<'_>,
        created_s: u64,
    ) -> Result<Option<Version>, Error> {
        let uses = Uses {
            sign: purposes.contains(Purpose::Sign),
            decrypt: purposes.contains(Purpose::Decrypt),
            agree: purposes.contains(Purpose::Agree),
        };
        let (key, made_here) = match material {
            Material::InToken { label, rsa_bits } => {
                let tokens = self.tokens.as_ref().ok_or_else(|| self.unknown(label.to_owned()))?;
                (tokens.generate(label, name, algorithms, uses, rsa_bits)?, true)
            }
            Material::OfTokens { labels, wanted } => {
                let tokens = self.tokens.as_ref().ok_or_else(|| self.unknown(labels.join(",")))?;
                (tokens.adopt(labels, wanted, algorithms, uses)?, false)
            }
            _ => return Ok(None),
        };
        let places = key.places.into_iter().map(|place| (place.token, place.id)).collect();
        let reference = TokenReference { places, made_here };
        let version = Version {
            number,
            created_s,
            encoding: Encoding::Token,
            material: Zeroizing::new(reference.encode()?),
            token: Some(reference),
            public: key.public,
            uses: Arc::default(),
            saved_uses: AtomicU64::default(),
        };
        if let (Some(tokens), Some(reference)) = (&self.tokens, &version.token) {
            hold(tokens, name, &version, reference, algorithms)?;
        }
        Ok(Some(version))
    }

    /// The material of the next version, where a new one is asked for: it is made where the newest version lives.
    ///
    /// # Errors
    /// [`Error::Unfit`] if that is in several tokens.
    pub(super) fn successor<'a>(
        newest: Option<&'a Version>,
        material: Material<'a>,
    ) -> Result<Material<'a>, Error> {
        let reference = newest.and_then(|version| version.token.as_ref());
        match (reference, material) {
            (Some(reference), Material::Generate { rsa_bits }) => match &reference.places[..] {
                [(label, _)] => Ok(Material::InToken { label, rsa_bits }),
                _ => Err(Error::Unfit(
                    "the key lives in several tokens, and none makes the same key as another; put a new one into \
                     all of them and import it under another name",
                )),
            },
            (_, material) => Ok(material),
        }
    }

    /// Takes a version back that could not be saved.
    pub(super) fn discard(&self, name: &str, version: &Version) {
        let (Some(tokens), Some(reference)) = (&self.tokens, &version.token) else { return };
        tokens.let_go(&held_name(name, version.number));
        if reference.made_here
            && let Err(why) = tokens.destroy(name, &key_of(version, reference))
        {
            self.audit
                .report(&format!("a new key `{name}` that is not used is left behind: {why}"));
        }
    }

    /// Destroys the keys in tokens that the daemon made there for a record. Those in a token that this daemon was not
    /// started with stay.
    pub(super) fn destroy_in_tokens(&self, record: &Record) -> Result<(), Error> {
        for (version, reference) in in_tokens(record).filter(|(_, reference)| reference.made_here) {
            match (&self.tokens, self.token_of(reference)) {
                (Some(tokens), Ok(_)) => {
                    tokens.destroy(&record.name, &key_of(version, reference))?;
                }
                (_, unknown) => self.audit.report(&format!(
                    "key `{}` is deleted, and stays in its token: {}",
                    record.name,
                    unknown.err().map_or_else(String::new, |why| why.to_string())
                )),
            }
        }
        for (version, _) in in_tokens(record) {
            if let Some(tokens) = &self.tokens {
                tokens.let_go(&held_name(&record.name, version.number));
            }
        }
        Ok(())
    }
}

fn in_tokens(record: &Record) -> impl Iterator<Item = (&Version, &TokenReference)> {
    record.versions.iter().filter_map(|version| Some((&**version, version.token.as_ref()?)))
}

fn key_of(version: &Version, reference: &TokenReference) -> TokenKey {
    let place =
        |(token, id): &(String, Vec<u8>)| TokenPlace { token: token.clone(), id: id.clone() };
    let places = reference.places.iter().map(place).collect();
    TokenKey { places, public: version.public.clone() }
}

fn hold(
    tokens: &Tokens,
    name: &str,
    version: &Version,
    reference: &TokenReference,
    algorithms: &[Algorithm],
) -> Result<(), TokenError> {
    let key = key_of(version, reference);
    tokens.hold(&held_name(name, version.number), &key, algorithms)
}
