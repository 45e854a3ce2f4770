//! Two stores compared, entry for entry.

use crate::read::View;
use crate::{Entry, EntryId, Error, LargeEdit};

impl View<'_> {
    /// The first difference between the entries of two stores: their identifiers, places, names and attributes. Rows
    /// of [`Write::meta_put`](crate::Write::meta_put) that `other` has must be here too. Lists are not compared.
    ///
    /// Says what differs and where, for a person to read; `None` if nothing does.
    ///
    /// # Errors
    /// Those of reading either.
    pub fn difference(self, other: View<'_>) -> Result<Option<String>, Error> {
        let (mut ours, mut theirs) = (self.entries(EntryId::ROOT)?, other.entries(EntryId::ROOT)?);
        loop {
            let (one, another) = (ours.next().transpose()?, theirs.next().transpose()?);
            let (id, entry, same) = match (one, another) {
                (None, None) => break,
                (Some((id, _)), None) => return Ok(Some(format!("entry {id} is only in one"))),
                (None, Some((id, _))) => {
                    return Ok(Some(format!("entry {id} is only in the other")));
                }
                (Some((id, one)), Some((other_id, another))) => {
                    if id != other_id {
                        return Ok(Some(format!("entry {} is only in one", id.min(other_id))));
                    }
                    (
                        id,
                        one,
                        (one.parent(), whole(self, id)?) == (another.parent(), whole(other, id)?),
                    )
                }
            };
            if !same {
                return Ok(Some(format!("entry {id} ({}) is not the same", entry.rdn())));
            }
        }
        self.difference_of_rows(other)
    }

    fn difference_of_rows(self, other: View<'_>) -> Result<Option<String>, Error> {
        let trees = (self.tables.tree.iter(self.txn), other.tables.tree.iter(other.txn));
        let reading = |e| self.shared.error("comparing stores", e);
        let (mut ours, mut theirs) = (trees.0.map_err(reading)?, trees.1.map_err(reading)?);
        loop {
            let one = ours.next().transpose().map_err(reading)?;
            if one != theirs.next().transpose().map_err(reading)? {
                return Ok(Some("the entries hang from each other differently".into()));
            }
            if one.is_none() {
                break;
            }
        }
        for row in other.tables.meta.iter(other.txn).map_err(reading)? {
            let (name, value) = row.map_err(reading)?;
            let is_callers = name.first() == Some(&b'u');
            if is_callers && self.shared.get(self.tables.meta, self.txn, name)? != Some(value) {
                let name = String::from_utf8_lossy(name.get(1..).unwrap_or_default()).into_owned();
                return Ok(Some(format!("the row {name} has another value")));
            }
        }
        Ok(None)
    }
}

/// An entry with all values of its large attributes.
fn whole(view: View<'_>, id: EntryId) -> Result<Entry, Error> {
    let found = view.entry(id)?.ok_or(Error::NotFound)?;
    let mut entry = found.to_entry();
    entry.large.clear();
    for large in found.large() {
        let values = view.large_values(id, &large)?;
        let added: Vec<_> = values
            .map(|value| value.map(|(key, value)| (key, value.to_vec())))
            .collect::<Result<_, _>>()?;
        entry.large.push(LargeEdit { name: large.name.to_owned(), removed: Vec::new(), added });
    }
    Ok(entry)
}
