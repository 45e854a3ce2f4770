//! Writing an entry's attributes into an answer.

use super::Filtered;
use crate::candidate::Candidate;
use crate::failure::Result;
use keyway_codec::message::{Attribute, EntryWriter, value_bytes};
use keyway_store::Large;
use std::borrow::Cow;

/// A receiver of an entry's attributes.
pub(crate) trait Sink {
    /// An attribute begins.
    fn attribute(&mut self, description: &str);
    /// A value of it.
    fn value(&mut self, value: &[u8]);
    /// A value of it that the entry's record has; they come in their order there.
    fn stored_value(&mut self, value: &[u8]) {
        self.value(value);
    }
    /// All values of it, which lie apart, if they are to be read later: now their lengths as they are sent
    /// are only added up there.
    fn large(&mut self, _large: &Large<'_>) -> Option<&mut usize> {
        None
    }
}

impl Sink for EntryWriter<'_> {
    fn attribute(&mut self, description: &str) {
        EntryWriter::attribute(self, description);
    }

    fn value(&mut self, value: &[u8]) {
        EntryWriter::value(self, value);
    }
}

impl Sink for Vec<Attribute<'static>> {
    fn attribute(&mut self, description: &str) {
        let description = Cow::Owned(description.to_owned());
        self.push(Attribute { description, values: Vec::new() });
    }

    fn value(&mut self, value: &[u8]) {
        if let Some(attribute) = self.last_mut() {
            attribute.values.push(Cow::Owned(value.to_vec()));
        }
    }
}

/// Hands over the attributes that are wanted and that the subject may read.
///
/// # Errors
/// The store's, for what has to be worked out.
pub(crate) fn encode_entry<'a>(
    sink: &mut impl Sink,
    candidate: &Candidate<'a, '_>,
    filtered: &mut Filtered<'a>,
) -> Result<()> {
    let types_only = filtered.types_only();
    for (position, (name, values)) in candidate.attributes().enumerate() {
        if !filtered.returns(position, name, candidate)? {
            continue;
        }
        sink.attribute(name);
        if !types_only {
            values.for_each(|value| sink.stored_value(value));
        }
    }
    if !candidate.large().is_empty() {
        encode_large(sink, candidate, filtered)?;
    }
    for which in filtered.computed(candidate) {
        let which = which?;
        let values = candidate.computed(which)?;
        if values.is_empty() {
            continue;
        }
        sink.attribute(which.name());
        if !types_only {
            values.iter().for_each(|value| sink.value(value));
        }
    }
    Ok(())
}

/// Hands over the attributes whose values lie apart, as they are read.
fn encode_large<'a>(
    sink: &mut impl Sink,
    candidate: &Candidate<'a, '_>,
    filtered: &mut Filtered<'a>,
) -> Result<()> {
    let first = candidate.attributes().count();
    for (position, large) in (first..).zip(candidate.large()) {
        if !filtered.returns(position, large.name, candidate)? {
            continue;
        }
        sink.attribute(large.name);
        if filtered.types_only() {
            continue;
        }
        let values = candidate.large_values(&large)?.into_iter().flatten();
        if let Some(bytes) = sink.large(&large) {
            for value in values {
                *bytes += value_bytes(value?.1.len());
            }
            continue;
        }
        for value in values {
            sink.value(value?.1);
        }
    }
    Ok(())
}
