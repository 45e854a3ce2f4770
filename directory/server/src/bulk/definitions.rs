//! Definitions that come with entries: those in the head of an export, and those of attributes that a
//! server without them has let in.

use super::prepare::Undefined;
use crate::directory::Directory;
use crate::failure::{Failure, Result};
use crate::limits::SCHEMA_CHANGES_BYTES_MAX;
use crate::redefine::{Redefinition, install};
use keyway_codec::description::AttributeTypeDescription;
use keyway_codec::message::ResultCode;
use keyway_engine::Algorithm;
use keyway_lock::Unpoisoned;
use keyway_schema::{Changes, Defined, Definition, DefinitionOrigin, is_among, is_kept};
use std::collections::BTreeMap;

/// The arc below which a UUID is an OID (ITU-T X.667).
const UUIDS: &str = "2.25";
/// The UUIDs of attributes are made of this and their names.
const NAMED: &[u8] = b"keyway attribute ";
const TEXT: &str = "EQUALITY caseIgnoreMatch SUBSTR caseIgnoreSubstringsMatch \
                    SYNTAX 1.3.6.1.4.1.1466.115.121.1.15";
const OCTETS: &str = "EQUALITY octetStringMatch SYNTAX 1.3.6.1.4.1.1466.115.121.1.40";

/// How the definitions that an import came with were taken.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TakenDefinitions {
    /// Names of those that are there now and were not, or otherwise.
    pub added: Vec<String>,
    /// Those that are not taken, because the directory's own stay: each with where that one stands.
    pub left: Vec<String>,
}

impl Directory {
    /// Takes the definitions of an export's head ([`crate::Verifying::definitions`]), as if they had been
    /// added over LDAP. Those that come from a file or over LDAP here stay as they are. Blocks until it is
    /// on the disk.
    ///
    /// # Errors
    /// `invalidAttributeSyntax` for what is no definition or makes no schema; what keeps a schema from being
    /// changed; the store's.
    pub fn take_definitions(&self, text: &str) -> Result<TakenDefinitions> {
        let given = Changes::from_text(text)
            .map_err(|why| Failure::new(ResultCode::InvalidAttributeSyntax, why.to_string()))?;
        let snapshot = self.snapshot();
        let mut taken = TakenDefinitions::default();
        let mut changes = snapshot.changes.clone();
        let types = &snapshot.composed.attribute_types;
        take(types, given.attribute_types, &mut changes.attribute_types, &mut taken);
        let classes = &snapshot.composed.object_classes;
        take(classes, given.object_classes, &mut changes.object_classes, &mut taken);
        if !taken.added.is_empty() {
            self.redefine(changes)?;
        }
        Ok(taken)
    }

    /// Defines attributes of these names as text, or as octets where they have values that are none. The
    /// OIDs are made of the names, so that the definitions are the same wherever they are made.
    ///
    /// # Errors
    /// As [`Directory::take_definitions`].
    pub(super) fn define_as_text(&self, names: &BTreeMap<String, Undefined>) -> Result<()> {
        let snapshot = self.snapshot();
        let mut changes = snapshot.changes.clone();
        for (lower, Undefined { name, is_text }) in names {
            let mut digest = [0; 32];
            snapshot.shared.engine.digest(
                Algorithm::Sha256,
                &[NAMED, lower.as_bytes()],
                &mut digest,
            )?;
            let form = if *is_text { TEXT } else { OCTETS };
            let oid = format!("{UUIDS}.{}", uuid(digest));
            let text =
                format!("( {oid} NAME '{name}' {form} X-ORIGIN 'imported without a definition' )");
            let definition = AttributeTypeDescription::parse_stored(&text).map_err(|_| {
                let text = format!("\"{name}\" cannot be the name of an attribute");
                Failure::new(ResultCode::UndefinedAttributeType, text)
            })?;
            changes.attribute_types.push(definition);
        }
        self.redefine(changes)
    }

    /// Has other changes made over LDAP than now.
    ///
    /// # Errors
    /// As [`Directory::take_definitions`].
    pub(super) fn redefine(&self, changes: Changes) -> Result<()> {
        if changes.to_text().len() > SCHEMA_CHANGES_BYTES_MAX {
            let text = format!(
                "definitions that come with entries or over LDAP may have {SCHEMA_CHANGES_BYTES_MAX} bytes \
                 together; give them as files with --schema"
            );
            return Err(Failure::new(ResultCode::AdminLimitExceeded, text));
        }
        let snapshot = self.snapshot();
        let settings = snapshot.shared.settings.read().unpoisoned().clone();
        let Some(new) = Redefinition::new(&snapshot, snapshot.sources.clone(), changes, &settings)?
        else {
            return Ok(());
        };
        let next = new.next();
        self.store.write_now(move |write| new.apply(write))?;
        install(&self.shared, &self.current, Some(next), None);
        self.shared.access.groups_changed();
        Ok(())
    }
}

/// A UUID (RFC 9562 § 5.8) as a number.
fn uuid(digest: [u8; 32]) -> u128 {
    let number = digest.iter().take(16).fold(0, |number, byte| number << 8 | u128::from(*byte));
    let (version, variant) = (0xF << 76, 0b11 << 62);
    number & !(version | variant) | 8 << 76 | 0b10 << 62
}

/// Enters into `changes` those of `given` that `held` has not.
fn take<D: Definition>(
    held: &[Defined<D>],
    given: Vec<D>,
    changes: &mut Vec<D>,
    taken: &mut TakenDefinitions,
) {
    for definition in given {
        if is_among(held, &definition) || changes.iter().any(|one| one.means(&definition)) {
            continue;
        }
        let stays = |one: &&Defined<D>| {
            is_kept(one)
                || matches!(one.origin, DefinitionOrigin::File { .. } | DefinitionOrigin::Ldap)
        };
        let mut met = held.iter().filter(|one| one.definition.meets(&definition));
        let name = definition.shown().to_owned();
        if let Some(own) = met.find(stays) {
            taken.left.push(format!("{name} ({} has it otherwise)", own.origin));
        } else if changes.iter().any(|one| one.meets(&definition)) {
            taken.left.push(format!("{name} (it is there twice)"));
        } else {
            taken.added.push(name);
            changes.push(definition);
        }
    }
}
