//! Object classes, with all that they inherit filled in (RFC 4512 § 2.4).

use crate::error::SchemaError;
use crate::index::{Index, lookup, unknown};
use keyway_codec::description::{ClassKind, ObjectClassDescription};
use std::sync::LazyLock;

/// The extension of an auxiliary class that an entry may have without a structural one.
const STANDS_ALONE: &str = "X-STANDS-ALONE";

/// An object class.
#[derive(Debug)]
pub struct ObjectClass {
    position: usize,
    /// Its superclasses, all of them.
    superclasses: Vec<usize>,
    /// Attributes that it and its superclasses demand and allow, by position, sorted.
    must: Vec<usize>,
    may: Vec<usize>,
    description: ObjectClassDescription,
}

impl ObjectClass {
    /// The canonical name: the first one, or the OID.
    pub fn name(&self) -> &str {
        self.description.names.first().unwrap_or(&self.description.oid)
    }

    /// The numeric OID.
    pub fn oid(&self) -> &str {
        &self.description.oid
    }

    /// As it was described, for the subschema.
    pub fn description(&self) -> &ObjectClassDescription {
        &self.description
    }

    /// Abstract, structural or auxiliary.
    pub fn kind(&self) -> ClassKind {
        self.description.kind
    }

    /// Whether it derives from the other, or is it.
    pub fn is_a(&self, other: &ObjectClass) -> bool {
        self.position == other.position || self.superclasses.contains(&other.position)
    }

    /// Positions of its superclasses, all the way up.
    pub(crate) fn superclasses(&self) -> &[usize] {
        &self.superclasses
    }

    /// Positions of the attributes that an entry of it must have.
    pub(crate) fn must(&self) -> &[usize] {
        &self.must
    }

    /// Positions of the attributes that an entry of it may have, those that it must have aside.
    pub(crate) fn may(&self) -> &[usize] {
        &self.may
    }

    /// Whether an entry of it may have the attribute of this position.
    pub(crate) fn allows(&self, attribute: usize) -> bool {
        self.may.binary_search(&attribute).is_ok() || self.must.binary_search(&attribute).is_ok()
    }

    /// Whether an auxiliary class may be all that an entry is. `posixGroup` is: RFC 2307 has it as a
    /// structural class, RFC 2307bis as an auxiliary one, and entries of both are in use.
    pub fn may_stand_alone(&self) -> bool {
        let named = |(name, _): &(String, Vec<String>)| name.eq_ignore_ascii_case(STANDS_ALONE);
        self.description.kind == ClassKind::Auxiliary
            && self.description.extensions.iter().any(named)
    }

    /// Whether it allows every user attribute (RFC 4512 § 4.3).
    pub fn allows_all(&self) -> bool {
        self.description.oid == "1.3.6.1.4.1.1466.101.120.111"
    }
}

/// The object class that is described at this position.
pub(crate) fn build(
    position: usize,
    descriptions: &[ObjectClassDescription],
    classes: &Index,
    attributes: &Index,
) -> Result<ObjectClass, SchemaError> {
    let Some(description) = descriptions.get(position) else {
        return Err(SchemaError::new("?", "is not there"));
    };
    let name = description.names.first().unwrap_or(&description.oid);
    let wrong = |why: String| SchemaError::new(name, why);
    let superclasses = ancestors(position, descriptions, classes).map_err(wrong)?;
    let (mut must, mut may) = (Vec::new(), Vec::new());
    let line = std::iter::once(&position).chain(&superclasses);
    for class in line.filter_map(|position| descriptions.get(*position)) {
        for (listed, found) in [(&class.must, &mut must), (&class.may, &mut may)] {
            for attribute in listed {
                let known = lookup(attributes, attribute);
                let unknown = || wrong(unknown("attribute", attribute, attributes));
                found.push(known.ok_or_else(unknown)?);
            }
        }
    }
    for list in [&mut must, &mut may] {
        list.sort_unstable();
        list.dedup();
    }
    Ok(ObjectClass { position, superclasses, must, may, description: description.clone() })
}

/// The classes that a class derives from; if it does not say, `top`, as for all (RFC 4512 § 2.4.1).
fn superiors<'d>(class: &'d ObjectClassDescription, index: &Index) -> &'d [String] {
    static TOP: LazyLock<[String; 1]> = LazyLock::new(|| ["top".to_owned()]);
    let top = lookup(index, "top");
    match &class.sup[..] {
        [] if top.is_some() && lookup(index, &class.oid) != top => &*TOP,
        sup => sup,
    }
}

/// Positions of all that the class derives from, nearest first.
fn ancestors(
    position: usize,
    descriptions: &[ObjectClassDescription],
    index: &Index,
) -> Result<Vec<usize>, String> {
    let mut found: Vec<usize> = Vec::new();
    let mut next = 0;
    let mut from = position;
    loop {
        let class = descriptions.get(from);
        for sup in class.map_or(&[][..], |class| superiors(class, index)) {
            let above = lookup(index, sup).ok_or_else(|| unknown("class", sup, index))?;
            if above == position {
                return Err("derives from itself".into());
            }
            if !found.contains(&above) {
                found.push(above);
            }
        }
        match found.get(next) {
            Some(above) => from = *above,
            None => return Ok(found),
        }
        next += 1;
    }
}
