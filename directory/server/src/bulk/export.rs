//! Export: entries as LDIF, parents before children.

use super::error::ExportError;
use super::frame::Framed;
use crate::directory::Directory;
use crate::failure::Failure;
use crate::naming::{self, NamingContext, Place};
use crate::state::Snapshot;
use keyway_codec::ldif::Writer;
use keyway_codec::message::ResultCode;
use keyway_schema::{EntryName, SchemaError};
use keyway_store::{EntryId, EntryRef, Key, View};
use std::io;

impl Directory {
    /// Writes a part of the tree as LDIF: the entry of `base` and all below it, or all naming
    /// contexts of users. Operational attributes and password hashes are written as they are
    /// stored. A head says which definitions a new data folder lacks, and an end how many entries there are
    /// and what their checksum is. Returns how many entries there were; `progress` hears of every one.
    ///
    /// All of it is one state of the store. The store cannot use freed pages again meanwhile.
    ///
    /// # Errors
    /// The store's, the output's; `noSuchObject` or `invalidDNSyntax` for the base.
    pub fn export(
        &self,
        base: Option<&str>,
        out: &mut dyn io::Write,
        progress: &mut dyn FnMut(u64),
    ) -> Result<u64, ExportError> {
        let snapshot = &*self.snapshot();
        let read = self.store.read()?;
        let view = read.view();
        let tops = snapshot.export_tops(view, base)?;
        let definitions = snapshot.composed.beyond_defaults().map_err(unreadable)?;
        let out = Framed::begin(out, &snapshot.shared.engine, &definitions)?;
        let mut export = Export { view, out, buffer: Vec::new(), entries: 0, progress };
        for top in tops {
            export.subtree(snapshot, top)?;
        }
        export.out.end(export.entries)?;
        Ok(export.entries)
    }
}

/// A schema that cannot be put together.
pub(super) fn unreadable(why: SchemaError) -> Failure {
    Failure::new(ResultCode::Other, why.to_string())
}

impl Snapshot {
    fn export_tops(&self, view: View<'_>, base: Option<&str>) -> Result<Vec<EntryId>, Failure> {
        let contexts = self.shared.contexts();
        let Some(base) = base else {
            let own = |context: &&std::sync::Arc<NamingContext>| !context.is_system;
            let mut tops = Vec::new();
            for context in contexts.iter().filter(own) {
                tops.extend(view.child(EntryId::ROOT, &context.component)?);
            }
            return Ok(tops);
        };
        let name = EntryName::parse(&self.schema, base)?;
        match naming::place(&contexts, &name) {
            Place::Inside { context, below } => {
                Ok(vec![naming::resolve(view, context, &name, below)?])
            }
            _ => Err(Failure::no_such_object("").context(base)),
        }
    }
}

struct Export<'a> {
    view: View<'a>,
    out: Framed<'a>,
    buffer: Vec<u8>,
    entries: u64,
    progress: &'a mut dyn FnMut(u64),
}

/// An entry whose children are being written.
struct Level {
    id: EntryId,
    /// The last child that was written.
    after: EntryId,
    dn: String,
}

impl Export<'_> {
    fn subtree(&mut self, snapshot: &Snapshot, top: EntryId) -> Result<(), ExportError> {
        let Some(entry) = self.view.entry(top)? else { return Ok(()) };
        let dn = snapshot.with_names(|names| self.view.dn_of(&entry, &mut names.borrow_mut()))?;
        self.entry(top, &dn, &entry)?;
        let mut path = vec![Level { id: top, after: EntryId::ROOT, dn }];
        while let Some(level) = path.last_mut() {
            let key = Key::children(level.id);
            let Some(child) = self.view.postings(&key, level.after)?.next().transpose()? else {
                path.pop();
                continue;
            };
            level.after = child;
            let Some(entry) = self.view.entry(child)? else { continue };
            let dn = format!("{},{}", entry.rdn(), level.dn);
            self.entry(child, &dn, &entry)?;
            if self.view.child_count(child)? > 0 {
                path.push(Level { id: child, after: EntryId::ROOT, dn });
            }
        }
        Ok(())
    }

    fn entry(&mut self, id: EntryId, dn: &str, entry: &EntryRef<'_>) -> Result<(), ExportError> {
        let view = self.view;
        self.write(|writer| {
            writer.dn(dn);
            for (name, values) in entry.attributes() {
                values.for_each(|value| writer.value(name, value));
            }
            for large in entry.large() {
                for value in view.large_values(id, &large)? {
                    writer.value(large.name, value?.1);
                }
            }
            writer.end();
            Ok(())
        })?;
        self.entries += 1;
        (self.progress)(self.entries);
        Ok(())
    }

    fn write(
        &mut self,
        text: impl FnOnce(&mut Writer<'_>) -> Result<(), ExportError>,
    ) -> Result<(), ExportError> {
        self.buffer.clear();
        text(&mut Writer::new(&mut self.buffer))?;
        self.out.write(&self.buffer)
    }
}
