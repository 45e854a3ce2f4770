//! Entries of templates, made where they are needed: each is a function of template, seed and number, so
//! that threads and agents need to agree on numbers only.

use crate::source::{Source, Values};
use keyway_data::{MakeError, Maker, View};

/// The makers of those entries, for one thread.
#[derive(Debug, Default)]
pub(crate) struct Makers {
    /// One for each source that has entries.
    makers: Vec<Option<Maker>>,
    failed: Option<MakeError>,
}

impl Makers {
    pub(crate) fn new(sources: &[Source]) -> Makers {
        let mut failed = None;
        let maker = |source: &Source| {
            let Values::Entries(entries) = &source.values else { return None };
            Maker::new(entries.plan.clone(), 0).map_err(|why| failed = Some(why)).ok()
        };
        let makers = sources.iter().map(maker).collect();
        Makers { makers, failed }
    }

    /// The entry that has this index among those of a source.
    pub(crate) fn entry(
        &mut self,
        sources: &[Source],
        source: usize,
        index: u64,
    ) -> Option<View<'_>> {
        let Values::Entries(entries) = &sources.get(source)?.values else { return None };
        let maker = self.makers.get_mut(source)?.as_mut()?;
        match maker.entry_of(entries.template, entries.from.saturating_add(index)) {
            Ok(entry) => entry,
            Err(why) => {
                self.failed = Some(why);
                None
            }
        }
    }

    /// Why an entry could not be made, if one could not.
    pub(crate) fn failed(&self) -> Option<&MakeError> {
        self.failed.as_ref()
    }
}
