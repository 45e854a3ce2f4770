//! What a backup says of itself.

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
    /// What it has beside the store.
    pub with: With,
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
        let number = u128::from_str_radix(&self.incarnation, 16);
        let number = number.map_err(|_| Failure::new("a backup names no store"))?;
        Ok(number.to_be_bytes())
    }

    /// The things that a server which is made of it alone lacks, in words.
    pub fn lacks(&self) -> Vec<&'static str> {
        let config = "the configuration and files of definitions (--with config)";
        let keys = "certificates, private keys and the passwords' pepper: it gets new certificates, and passwords that were \
                    hashed with a pepper do not fit any more (--with keys)";
        [(self.with.config, config), (self.with.keys, keys)]
            .into_iter()
            .filter_map(|(is_there, what)| (!is_there).then_some(what))
            .collect()
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
