//! Compare (RFC 4511 § 4.10).

use crate::access;
use crate::access::{Rights, Subject};
use crate::candidate::Candidate;
use crate::controls::RequestControls;
use crate::directory::Directory;
use crate::evaluate::{Evaluator, Truth, asserted};
use crate::failure::{Failure, Result};
use crate::locate::{Seeking, locate_known};
use crate::naming::{self, Place};
use crate::policy::as_seen;
use crate::settings::Announced;
use crate::state::Snapshot;
use crate::virtual_entries::{VirtualEntry, VirtualTree, Wanted};
use keyway_codec::Filter;
use keyway_codec::message::{CompareRequest, ResultCode, Scope};
use keyway_schema::{ItemScope, Matcher, base, has_options};

impl Directory {
    /// Whether an entry has a value. `announced` is what the root DSE says of the connection.
    ///
    /// # Errors
    /// Everything but true and false, `noSuchAttribute` among them.
    pub fn compare(
        &self,
        subject: &Subject,
        request: &CompareRequest<'_>,
        controls: &RequestControls<'_>,
        announced: Announced,
    ) -> Result<bool> {
        let snapshot = &*self.snapshot();
        self.refresh(subject)?;
        let compare = Compare { snapshot, subject, request, controls };
        let known = snapshot.entry_name(request.dn)?;
        let name = known.name();
        let contexts = snapshot.shared.contexts();
        match naming::place(&contexts, name) {
            Place::Root => {
                let attributes = self.root_dse(snapshot, subject, &contexts, announced)?;
                compare
                    .with(access::Place::RootDse, &Candidate::unstored(snapshot, "", &attributes))
            }
            Place::Subschema => {
                let attributes = snapshot.subschema();
                let candidate = Candidate::unstored(
                    snapshot,
                    keyway_schema::operational::SUBSCHEMA_DN,
                    &attributes,
                );
                compare.with(access::Place::Subschema, &candidate)
            }
            Place::Virtual(VirtualTree::Changelog) => {
                compare.may_anywhere(access::Place::Changelog)?;
                let changelog = self.changelog(snapshot, name, Scope::Base, None, None)?;
                let VirtualEntry { dn, attributes } = changelog.base();
                let candidate = Candidate::unstored(snapshot, dn, attributes);
                compare.with(access::Place::Changelog, &candidate)
            }
            Place::Virtual(tree) => {
                compare.may_anywhere(tree.place())?;
                let entries = snapshot.virtual_tree(tree, &Wanted::new(name, Scope::Base, None));
                let entry = entries.find(name)?;
                let candidate = Candidate::unstored(snapshot, &entry.dn, &entry.attributes);
                compare.with(tree.place(), &candidate)
            }
            Place::Outside => {
                compare.may_anywhere(access::Place::Data)?;
                Err(Failure::no_such_object(""))
            }
            Place::Inside { context, below } => {
                compare.may_anywhere(context.place())?;
                let read = self.store.read()?;
                let view = read.view();
                let told = |failure| {
                    let rights = snapshot.permissions(subject, context.place());
                    snapshot.disclosed(view, &rights, (context, name, below), failure)
                };
                let manages_referrals =
                    controls.manage_dsa_it || !snapshot.special_entries.has_referrals(&read)?;
                let how = Seeking { manages_referrals, ..Seeking::default() };
                let knows = snapshot.known_to(view, subject);
                let found = locate_known(&snapshot.schema, &contexts, &read, &known, how, &knows);
                let id = found.map_err(told)?.id;
                let entry = view.entry(id)?.ok_or_else(|| Failure::no_such_object(""))?;
                let compared = snapshot.with_names(|names| {
                    let seen = as_seen(snapshot, view, read.version(), id, &entry)?;
                    let candidate = Candidate::stored(snapshot, id, entry, view, names);
                    match &seen {
                        None => compare.with(context.place(), &candidate),
                        Some(seen) => compare.with(context.place(), &candidate.showing(seen)),
                    }
                });
                compared.map_err(told)
            }
        }
    }
}

struct Compare<'a> {
    snapshot: &'a Snapshot,
    subject: &'a Subject,
    request: &'a CompareRequest<'a>,
    controls: &'a RequestControls<'a>,
}

impl Compare<'_> {
    /// Refuses a subject that may not compare anything there, before he learns what is there.
    fn may_anywhere(&self, place: access::Place) -> Result<()> {
        if self.snapshot.permissions(self.subject, place).may_anywhere(Rights::COMPARE) {
            return Ok(());
        }
        Err(Failure::denied("compare here"))
    }

    fn with(&self, place: access::Place, entry: &Candidate<'_, '_>) -> Result<bool> {
        let CompareRequest { attribute, value, .. } = *self.request;
        let schema = &self.snapshot.schema;
        let description = crate::write::describe(schema, attribute)?;
        let rights = self.snapshot.permissions(self.subject, place);
        if let Some(assertion) = &self.controls.assertion {
            let evaluator = Evaluator::search(schema, &rights);
            asserted(evaluator.matches(&Matcher::new(schema, assertion), entry)?)?;
        }
        if !rights.may(Rights::COMPARE, description.attribute.name(), entry)? {
            return Err(Failure::denied(format_args!("compare attribute {attribute}")));
        }
        if description.attribute.equality().is_none() {
            let text = format!("attribute {attribute} has no equality rule to compare by");
            return Err(Failure::new(ResultCode::InappropriateMatching, text));
        }
        let filter = Filter::Equality { attribute: attribute.into(), value: value.into() };
        let matcher = Matcher::new(schema, &filter);
        let Matcher::Item(item) = &matcher else {
            let text = format!("the value is no valid assertion for attribute {attribute}");
            return Err(Failure::new(ResultCode::InvalidAttributeSyntax, text));
        };
        let evaluator = Evaluator::new(schema, &rights, Rights::COMPARE);
        if evaluator.matches(&matcher, entry)? == Truth::True {
            return Ok(true);
        }
        let ItemScope::Type { family, computed, .. } = &item.scope else { return Ok(false) };
        let there = entry.descriptions().any(|stored| {
            family.iter().any(|member| member == base(stored)) && has_options(stored, &item.options)
        });
        if there || !computed.is_empty() {
            return Ok(false);
        }
        let text = format!("the entry has no attribute {attribute}");
        Err(Failure::new(ResultCode::NoSuchAttribute, text))
    }
}
