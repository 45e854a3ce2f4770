//! Which attributes of an entry a search returns (RFC 4511 § 4.5.1.8).

use crate::access::{Rights, View};
use crate::candidate::Candidate;
use crate::failure::Result;
use crate::limits::{VERDICTS_FIRST, VERDICTS_MAX};
use keyway_schema::operational::Computed;
use keyway_schema::{Schema, base, has_options};

/// A client's list of attributes, understood once for all entries of a search.
#[derive(Clone, Debug, Default)]
pub struct Selection {
    /// All user attributes: `*`, or an empty list.
    user: bool,
    /// All operational attributes: `+` (RFC 3673).
    operational: bool,
    named: Vec<Named>,
    /// Leave the values out.
    types_only: bool,
}

#[derive(Clone, Debug)]
struct Named {
    /// Canonical names of the type and its subtypes.
    family: Vec<String>,
    options: Vec<String>,
}

/// The treatment of one stored description.
#[derive(Clone, Debug)]
struct Verdict<'a> {
    stored: &'a str,
    selected: bool,
    /// Whether it may be read, where that is the same for all entries.
    may: Option<bool>,
}

impl Selection {
    /// Understands a list. Descriptions that are not known select nothing.
    pub fn new(schema: &Schema, wanted: &[&str], types_only: bool) -> Selection {
        let mut selection = Selection { types_only, user: wanted.is_empty(), ..Default::default() };
        for description in wanted {
            match *description {
                "*" => selection.user = true,
                "+" => selection.operational = true,
                other if other.starts_with('@') => selection.class(schema, other),
                other => selection.named.extend(schema.describe(other).map(|description| {
                    Named {
                        family: schema
                            .family(description.attribute)
                            .map(|member| member.name().to_owned())
                            .collect(),
                        options: description.options,
                    }
                })),
            }
        }
        selection
    }

    /// All attributes of a class, by `@` and its name (RFC 4529).
    fn class(&mut self, schema: &Schema, wanted: &str) {
        let mut parts = wanted.trim_start_matches('@').split(';');
        let Some(class) = parts.next().and_then(|name| schema.class(name)) else { return };
        if class.allows_all() {
            self.user = true;
        }
        let options: Vec<String> = parts.map(str::to_ascii_lowercase).collect();
        let families = schema.attributes_of(class).map(|attribute| Named {
            family: schema.family(attribute).map(|member| member.name().to_owned()).collect(),
            options: options.clone(),
        });
        self.named.extend(families);
    }

    /// Whether a stored description is wanted.
    fn selects(&self, schema: &Schema, stored: &str) -> bool {
        let name = base(stored);
        let operational = schema.attribute(name).is_some_and(|known| known.is_operational());
        let all = if operational { self.operational } else { self.user };
        all || self.named.iter().any(|named| {
            named.family.iter().any(|member| member == name) && has_options(stored, &named.options)
        })
    }
}

/// A selection as one subject sees it, with a memory of the descriptions it has met.
pub struct Filtered<'a> {
    schema: &'a Schema,
    selection: &'a Selection,
    view: &'a View,
    verdicts: Vec<Verdict<'a>>,
    computed: Vec<Computed>,
}

impl<'a> Filtered<'a> {
    /// The selection of this subject.
    pub fn new(schema: &'a Schema, selection: &'a Selection, view: &'a View) -> Self {
        let computed = Computed::ALL.into_iter();
        let computed = computed.filter(|one| selection.selects(schema, one.name())).collect();
        Filtered { schema, selection, view, verdicts: Vec::with_capacity(VERDICTS_FIRST), computed }
    }

    /// Whether the attribute stored under this description, at this position of its entry, is
    /// returned.
    ///
    /// Entries of a kind have their attributes in the same order, so the verdict is mostly found
    /// where the attribute is.
    ///
    /// # Errors
    /// The store's.
    pub fn returns(
        &mut self,
        position: usize,
        stored: &'a str,
        entry: &Candidate<'_, '_>,
    ) -> Result<bool> {
        let known = match self.verdicts.get(position) {
            Some(verdict) if verdict.stored == stored => Some(verdict),
            _ => self.verdicts.iter().find(|verdict| verdict.stored == stored),
        };
        let (selected, may) = match known {
            Some(verdict) => (verdict.selected, verdict.may),
            None => {
                let selected = self.selection.selects(self.schema, stored);
                let may = match selected && self.view.is_settled(Rights::READ) {
                    true => Some(self.view.may(Rights::READ, base(stored), entry)?),
                    false => None,
                };
                if self.verdicts.len() < VERDICTS_MAX {
                    self.verdicts.push(Verdict { stored, selected, may });
                }
                (selected, may)
            }
        };
        match may {
            _ if !selected => Ok(false),
            Some(may) => Ok(may),
            None => self.view.may(Rights::READ, base(stored), entry),
        }
    }

    /// The attributes to work out for this entry.
    ///
    /// # Errors
    /// The store's.
    pub fn computed(&self, entry: &Candidate<'_, '_>) -> impl Iterator<Item = Result<Computed>> {
        let view = self.view;
        self.computed.iter().filter_map(move |one| {
            match view.may(Rights::READ, one.name(), entry) {
                Ok(true) => Some(Ok(*one)),
                Ok(false) => None,
                Err(failure) => Some(Err(failure)),
            }
        })
    }

    /// Whether values are left out.
    pub fn types_only(&self) -> bool {
        self.selection.types_only
    }
}
