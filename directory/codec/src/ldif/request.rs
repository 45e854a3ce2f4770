//! A record as the request that makes its change.

use super::{Lines, Modification, Record, RecordKind};
use crate::message::{AddRequest, Attribute, Change, ModifyDnRequest, ModifyRequest, Op};

impl Record {
    /// The request that makes its change. Lines behind each other that have one attribute description are one
    /// attribute.
    #[must_use]
    pub fn request(&self) -> Op<'_> {
        let dn = self.dn.as_str();
        match &self.kind {
            RecordKind::Content(lines) | RecordKind::Add(lines) => {
                Op::AddRequest(AddRequest { dn, attributes: attributes(lines) })
            }
            RecordKind::Delete => Op::DeleteRequest(dn),
            RecordKind::Modify(modifications) => {
                let changes = modifications.iter().map(change).collect();
                Op::ModifyRequest(ModifyRequest { dn, changes })
            }
            RecordKind::ModRdn { new_rdn, delete_old_rdn, new_superior } => {
                Op::ModifyDnRequest(ModifyDnRequest {
                    dn,
                    new_rdn,
                    delete_old_rdn: *delete_old_rdn,
                    new_superior: new_superior.as_deref(),
                })
            }
        }
    }
}

fn attributes(lines: &Lines) -> Vec<Attribute<'_>> {
    let mut all: Vec<Attribute<'_>> = Vec::new();
    for (name, value) in lines {
        match all.last_mut().filter(|last| last.description == name.as_str()) {
            Some(last) => last.values.push(value.into()),
            None => all
                .push(Attribute { description: name.as_str().into(), values: vec![value.into()] }),
        }
    }
    all
}

fn change(modification: &Modification) -> Change<'_> {
    let Modification { operation, attribute, values } = modification;
    let values = values.iter().map(Into::into).collect();
    let attribute = Attribute { description: attribute.as_str().into(), values };
    Change { operation: *operation, attribute }
}
