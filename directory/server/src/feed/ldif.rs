//! Changes as change records of LDIF (RFC 2849), which other directories can make again.

use super::described::{
    AttributeChange, AttributeValues, DescribedChange, EntryChange, Extent, Operation, Renaming,
    RowOrEntry, Values,
};
use keyway_codec::ldif::{Lines, Modification, Record, RecordKind, Writer};
use keyway_codec::message::ChangeOperation;

impl DescribedChange {
    /// Appends it as change records: one, or two if an entry has got a new name and other changes. Comments before
    /// the first record say its position in the feed, its time, its author, and which values are not shown. The
    /// change of a row is such a comment alone.
    pub fn write_ldif(&self, out: &mut Vec<u8>) {
        let mut writer = Writer::new(out);
        let time = self.note.as_ref().map(|note| format!(", {}", note.time())).unwrap_or_default();
        let (position, index, origin) = (self.position, self.index, self.origin());
        writer.comment(&format!("position {position}.{index}{time}, {origin}"));
        match &self.change {
            RowOrEntry::Row(name) => {
                writer.comment(&format!("{}: row {name}", self.kind()));
                writer.end();
            }
            RowOrEntry::Entry(entry) => entry.write(&mut writer),
        }
    }
}

impl EntryChange {
    /// The lines of a change record behind its type, as an entry of a changelog has them: those of an added entry or
    /// of its modifications. They are ASCII. Values that are not shown are left out.
    pub(crate) fn ldif_lines(&self) -> String {
        let (kind, begins) = match &self.operation {
            Operation::Add(attributes) => (RecordKind::Add(lines(attributes)), "add"),
            Operation::Delete(_) => return String::new(),
            Operation::Modify(attributes) | Operation::ModifyDn(Renaming { attributes, .. }) => {
                let all = attributes.iter().flat_map(modifications).collect();
                (RecordKind::Modify(all), "modify")
            }
        };
        let mut out = Vec::new();
        Writer::new(&mut out).record(&Record { line: 0, dn: String::new(), kind });
        let text = String::from_utf8_lossy(&out);
        let begins = format!("dn:\nchangetype: {begins}\n");
        // The empty line that ends a record goes too.
        let lines = text.strip_prefix(&begins).and_then(|text| text.strip_suffix('\n'));
        lines.unwrap_or_default().to_owned()
    }

    fn write(&self, writer: &mut Writer<'_>) {
        let dn = || self.dn.clone();
        match &self.operation {
            Operation::Add(attributes) => {
                hidden_values(attributes, writer);
                let kind = RecordKind::Add(lines(attributes));
                writer.record(&Record { line: 0, dn: dn(), kind });
            }
            Operation::Delete(_) => {
                writer.record(&Record { line: 0, dn: dn(), kind: RecordKind::Delete });
            }
            Operation::Modify(attributes) => modify(dn(), attributes, writer),
            Operation::ModifyDn(renaming) => {
                let kind = RecordKind::ModRdn {
                    new_rdn: renaming.new_rdn.clone(),
                    delete_old_rdn: renaming.delete_old_rdn,
                    new_superior: renaming.new_superior.clone(),
                };
                writer.record(&Record { line: 0, dn: dn(), kind });
                if !renaming.attributes.is_empty() {
                    modify(renaming.new_dn.clone(), &renaming.attributes, writer);
                }
            }
        }
    }
}

fn hidden_values(attributes: &[AttributeValues], writer: &mut Writer<'_>) {
    for AttributeValues { name, values } in attributes {
        if let Values::Hidden(count) = values {
            writer.comment(&format!("{name}: {}, not shown", counted(*count)));
        }
    }
}

fn lines(attributes: &[AttributeValues]) -> Lines {
    let line = |name: &String, value: &Vec<u8>| (name.clone(), value.clone());
    let lines = attributes.iter().flat_map(|AttributeValues { name, values }| match values {
        Values::Shown(values) => values.iter().map(|value| line(name, value)).collect(),
        Values::Hidden(_) => Vec::new(),
    });
    lines.collect()
}

/// A modify record; only a comment with its name if all that it has is not shown.
fn modify(dn: String, attributes: &[AttributeChange], writer: &mut Writer<'_>) {
    for AttributeChange { name, removed, added, .. } in attributes {
        let parts = [(removed, "deleted"), (added, "added")].map(|(values, what)| match values {
            Values::Hidden(count) if *count > 0 => Some(format!("{} {what}", counted(*count))),
            _ => None,
        });
        let parts: Vec<String> = parts.into_iter().flatten().collect();
        if !parts.is_empty() {
            writer.comment(&format!("{name}: {}, not shown", parts.join(", ")));
        }
    }
    let modifications: Vec<Modification> = attributes.iter().flat_map(modifications).collect();
    if modifications.is_empty() {
        writer.comment(&format!("modify: {dn}"));
        return writer.end();
    }
    writer.record(&Record { line: 0, dn, kind: RecordKind::Modify(modifications) });
}

fn modifications(change: &AttributeChange) -> Vec<Modification> {
    let AttributeChange { name, extent, removed, added } = change;
    let modification = |operation, values: &Values| match values {
        Values::Shown(values) => {
            Some(Modification { operation, attribute: name.clone(), values: values.clone() })
        }
        Values::Hidden(_) => None,
    };
    let of_values = |operation, values: &Values| match values.is_empty() {
        true => None,
        false => modification(operation, values),
    };
    let all = match extent {
        // It says nothing of the values, so it can be shown of a password too.
        Extent::Gone => [modification(ChangeOperation::Delete, &Values::Shown(Vec::new())), None],
        Extent::Replaced => [modification(ChangeOperation::Replace, added), None],
        Extent::Some => {
            [of_values(ChangeOperation::Delete, removed), of_values(ChangeOperation::Add, added)]
        }
    };
    all.into_iter().flatten().collect()
}

fn counted(count: usize) -> String {
    if count == 1 { "1 value".to_owned() } else { format!("{count} values") }
}
