//! What a backup says of itself.

use crate::lineage::Ancestor;
use keyway_host::failure::Failure;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// What was taken along beside the store.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct With {
    /// The configuration, and the definitions of attributes and classes.
    pub config: bool,
    /// Certificates and private keys, the pepper of the passwords, and the administrator's password.
    pub keys: bool,
}

/// The state that a backup holds.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Meta {
    /// The store's incarnation, in hexadecimal digits.
    pub incarnation: String,
    /// How often a store before it was restored.
    pub epoch: u64,
    /// The last commit that it has; `None` if its feed is switched off.
    pub position: Option<u64>,
    /// How many entries it has.
    pub entries: u64,
    /// The time by the system's clock at which it had all that was committed, in microseconds since 1970.
    pub taken_unix_us: u64,
    /// The stores that this one was before it was restored, the oldest first.
    pub ancestors: Vec<Ancestor>,
    /// What it has beside the store.
    pub with: With,
    /// Files of the folder that it could not take along, each with the reason.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub left_out: Vec<String>,
    /// The version of the program that made it.
    pub version: String,
}

impl Meta {
    /// Reads it.
    ///
    /// # Errors
    /// If another program made the backup.
    pub fn read(backup: &str, value: &serde_json::Value) -> Result<Meta, Failure> {
        serde_json::from_value(value.clone()).map_err(|why| {
            Failure::new(format!(
                "backup {backup} is none of a directory that this version knows: {why}"
            ))
        })
    }

    /// The store's incarnation.
    ///
    /// # Errors
    /// If it is none.
    pub fn history(&self) -> Result<[u8; 16], Failure> {
        history(&self.incarnation)
    }

    /// The identity of the directory, which it keeps when it is restored: the incarnation of its first store.
    pub fn directory(&self) -> &str {
        self.ancestors.first().map_or(&self.incarnation, |first| &first.incarnation)
    }

    /// The stores whose changes lead to the state that it holds, the oldest first, each with the last position that is
    /// a part of that; `None` where it is not known.
    pub(super) fn path(&self) -> Vec<(&str, Option<u64>)> {
        let before = self.ancestors.iter().map(|one| (one.incarnation.as_str(), one.position));
        before.chain([(self.incarnation.as_str(), None)]).collect()
    }

    /// The things that a server which is made of it alone lacks, in words.
    pub fn lacks(&self) -> Vec<String> {
        let config = "the files of the configuration and of definitions: it gets the settings with which the directory was \
                      served last (--with config)";
        let keys = "certificates, private keys and the passwords' pepper: it gets new certificates, and passwords that were \
                    hashed with a pepper do not fit any more (--with keys)";
        [(self.with.config, config), (self.with.keys, keys)]
            .into_iter()
            .filter(|(is_there, _)| !is_there)
            .map(|(_, what)| what.to_owned())
            .chain(self.left_out.iter().cloned())
            .collect()
    }
}

/// An incarnation of its hexadecimal digits.
///
/// # Errors
/// If it is none.
pub(super) fn history(incarnation: &str) -> Result<[u8; 16], Failure> {
    let number = u128::from_str_radix(incarnation, 16);
    let number = number.map_err(|_| Failure::new("a backup names no store"))?;
    Ok(number.to_be_bytes())
}

impl With {
    /// Whether all that `other` has is here, too.
    pub(super) fn has(self, other: With) -> bool {
        (self.config || !other.config) && (self.keys || !other.keys)
    }
}

impl FromStr for With {
    type Err = String;

    fn from_str(text: &str) -> Result<With, String> {
        let mut with = With::default();
        for part in text.split(',') {
            match part {
                "config" => with.config = true,
                "keys" => with.keys = true,
                other => return Err(format!("{other:?} is neither keys nor config")),
            }
        }
        Ok(with)
    }
}

impl fmt::Display for With {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match (self.config, self.keys) {
            (true, true) => "store, configuration and keys",
            (true, false) => "store and configuration",
            (false, true) => "store and keys",
            (false, false) => "store",
        })
    }
}
