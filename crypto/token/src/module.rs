//! A PKCS#11 module: its library, loaded and started once for all its tokens.

use crate::error::{Error, reason};
use cryptoki::context::{CInitializeArgs, CInitializeFlags, Pkcs11};
use cryptoki::error::{Error as ModuleError, RvError};
use cryptoki::slot::{Slot, TokenInfo};
use keyway_lock::Unpoisoned;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

pub(crate) struct Module {
    path: PathBuf,
    /// Loaded when it is first needed: after the process has given up its rights.
    loaded: Mutex<Option<Pkcs11>>,
}

impl Module {
    pub fn new(path: &Path) -> Self {
        Module { path: path.to_owned(), loaded: Mutex::default() }
    }

    /// The started module. It may take as long as the module likes.
    ///
    /// # Errors
    /// [`Error::Module`] if it is none, [`Error::Start`] if it does not start.
    pub fn get(&self) -> Result<Pkcs11, Error> {
        let mut loaded = self.loaded.lock().unpoisoned();
        if let Some(module) = &*loaded {
            return Ok(module.clone());
        }
        let module = Pkcs11::new(&self.path).map_err(|why| self.failed(&why))?;
        match module.initialize(CInitializeArgs::new(CInitializeFlags::OS_LOCKING_OK)) {
            Ok(()) | Err(ModuleError::Pkcs11(RvError::CryptokiAlreadyInitialized, _)) => {}
            // The device behind it may be away.
            Err(why) => return Err(self.stopped(&why)),
        }
        Ok(loaded.insert(module).clone())
    }

    /// The slot that has the token of this label now.
    pub fn find(&self, label: &str) -> Result<(Pkcs11, Slot, TokenInfo), Error> {
        let module = self.get()?;
        let slots = module.get_slots_with_token().map_err(|why| self.stopped(&why))?;
        let info = |slot: Slot| Some((slot, module.get_token_info(slot).ok()?));
        let tokens: Vec<_> = slots.into_iter().filter_map(info).collect();
        let mut its = tokens.iter().filter(|(_, info)| info.label() == label);
        match (its.next(), its.next()) {
            (Some((slot, info)), None) => Ok((module.clone(), *slot, info.clone())),
            _ => {
                let there = tokens.iter().filter(|(_, info)| info.token_initialized());
                Err(Error::NotThere {
                    label: label.to_owned(),
                    path: self.path.clone(),
                    there: there.map(|(_, info)| info.label().to_owned()).collect(),
                })
            }
        }
    }

    fn stopped(&self, why: &ModuleError) -> Error {
        Error::Start { path: self.path.clone(), why: reason(why) }
    }

    fn failed(&self, why: &ModuleError) -> Error {
        Error::Module { path: self.path.clone(), why: reason(why) }
    }
}
