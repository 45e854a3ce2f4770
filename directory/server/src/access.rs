//! Who may do what to which attribute of which entry. Rules are data; without one nothing is
//! allowed.
//!
//! A rule only ever grants. That keeps a table readable: what a subject may do is the union of the
//! rules that speak of him, in any order.

use crate::directory::USER_PASSWORD;
use crate::policy::HISTORY;
use crate::schema::Schema;
use keyway_store::EntryId;
use std::fmt;
use std::ops::BitOr;
use std::sync::{Arc, PoisonError, RwLock};

/// Whom a connection speaks for. Cheap to clone.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Subject {
    /// Nobody: no bind, or an anonymous one.
    #[default]
    Anonymous,
    /// Somebody with an entry.
    User {
        /// The entry's DN as it is written in the directory.
        dn: Arc<str>,
        /// The entry.
        id: EntryId,
    },
    /// The administrator, whose entry is in the server's own naming context.
    Administrator {
        /// The entry's DN.
        dn: Arc<str>,
        /// The entry.
        id: EntryId,
    },
}

impl Subject {
    /// The authorization identity of RFC 4513 § 5.2.1.8: `dn:...`, or empty for nobody.
    pub fn authz_id(&self) -> String {
        self.dn().map(|dn| format!("dn:{dn}")).unwrap_or_default()
    }

    /// The DN of the subject's entry.
    pub fn dn(&self) -> Option<&str> {
        match self {
            Subject::Anonymous => None,
            Subject::User { dn, .. } | Subject::Administrator { dn, .. } => Some(dn),
        }
    }

    /// The subject's entry.
    pub fn id(&self) -> Option<EntryId> {
        match self {
            Subject::Anonymous => None,
            Subject::User { id, .. } | Subject::Administrator { id, .. } => Some(*id),
        }
    }

    /// Whether it is the administrator.
    pub fn is_administrator(&self) -> bool {
        matches!(self, Subject::Administrator { .. })
    }
}

/// A set of things that may be done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Rights(u8);

impl Rights {
    /// None of them.
    pub const NONE: Rights = Rights(0);
    /// Return the attribute in a search or a read entry control.
    pub const READ: Rights = Rights(1);
    /// Use the attribute in a filter.
    pub const SEARCH: Rights = Rights(2);
    /// Compare the attribute.
    pub const COMPARE: Rights = Rights(4);
    /// Change the attribute.
    pub const WRITE: Rights = Rights(8);
    /// Add entries below, delete or rename the entry. It is not bound to attributes.
    pub const MANAGE: Rights = Rights(16);
    /// All of them.
    pub const ALL: Rights = Rights(31);

    const NAMES: [(&str, Rights); 5] = [
        ("read", Rights::READ),
        ("search", Rights::SEARCH),
        ("compare", Rights::COMPARE),
        ("write", Rights::WRITE),
        ("manage", Rights::MANAGE),
    ];

    /// Whether all of `other` are in it.
    pub fn contains(self, other: Rights) -> bool {
        self.0 & other.0 == other.0
    }

    /// The right of a name, as in a configuration: `read`, `search`, `compare`, `write`, `manage`,
    /// or `all`.
    pub fn from_name(name: &str) -> Option<Rights> {
        let one = Self::NAMES.iter().find(|(known, _)| *known == name).map(|(_, rights)| *rights);
        one.or((name == "all").then_some(Rights::ALL))
    }
}

impl BitOr for Rights {
    type Output = Rights;

    fn bitor(self, other: Rights) -> Rights {
        Rights(self.0 | other.0)
    }
}

impl fmt::Display for Rights {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut names = Self::NAMES.iter().filter(|(_, right)| self.contains(*right));
        if let Some((first, _)) = names.next() {
            f.write_str(first)?;
        }
        names.try_for_each(|(name, _)| write!(f, ", {name}"))
    }
}

/// Whom a rule speaks of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Who {
    /// Everybody, bound or not.
    Everyone,
    /// Everybody who is bound.
    Users,
    /// The one whose entry it is.
    Owner,
    /// The administrator.
    Administrator,
}

impl Who {
    /// The one of a name, as in a configuration: `everyone`, `users`, `self`, `administrator`.
    pub fn from_name(name: &str) -> Option<Who> {
        Some(match name {
            "everyone" => Who::Everyone,
            "users" => Who::Users,
            "self" => Who::Owner,
            "administrator" => Who::Administrator,
            _ => return None,
        })
    }
}

/// Where an entry is, as rules see it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// The root DSE.
    RootDse,
    /// The subschema entry.
    Subschema,
    /// The naming contexts of users.
    Data,
    /// The server's own naming context.
    System,
}

/// What a rule speaks of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum What {
    /// One place.
    Only(Place),
    /// All of them.
    Everything,
}

impl What {
    /// The one of a name, as in a configuration: `root-dse`, `schema`, `data`, `system`,
    /// `everything`.
    pub fn from_name(name: &str) -> Option<What> {
        Some(match name {
            "root-dse" => What::Only(Place::RootDse),
            "schema" => What::Only(Place::Subschema),
            "data" => What::Only(Place::Data),
            "system" => What::Only(Place::System),
            "everything" => What::Everything,
            _ => return None,
        })
    }
}

/// Which attributes a rule speaks of; a type stands for its subtypes as well.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Attributes {
    /// All.
    All,
    /// These.
    Only(Vec<String>),
    /// All but these.
    Except(Vec<String>),
}

/// One line of the table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rule {
    /// Whom it lets.
    pub who: Who,
    /// On which entries.
    pub what: What,
    /// On which of their attributes.
    pub attributes: Attributes,
    /// Do what.
    pub rights: Rights,
}

impl Rule {
    /// The table that a server starts with: the administrator does everything; a user reads,
    /// searches and compares all but passwords and changes his own; everybody reads the root DSE
    /// and the subschema.
    pub fn defaults() -> Vec<Rule> {
        let look = Rights::READ | Rights::SEARCH | Rights::COMPARE;
        let password = || vec!["userPassword".to_owned()];
        let rule = |who, what, attributes, rights| Rule { who, what, attributes, rights };
        vec![
            rule(Who::Administrator, What::Everything, Attributes::All, Rights::ALL),
            rule(Who::Everyone, What::Only(Place::RootDse), Attributes::All, look),
            rule(Who::Everyone, What::Only(Place::Subschema), Attributes::All, look),
            rule(Who::Users, What::Only(Place::Data), Attributes::Except(password()), look),
            rule(Who::Owner, What::Only(Place::Data), Attributes::Only(password()), Rights::WRITE),
        ]
    }
}

/// The table, checked against the schema. It can be replaced; who has a view keeps what he saw.
pub struct Access {
    rules: RwLock<Arc<[Rule]>>,
}

impl Access {
    /// Checks a table and makes its attribute names canonical. The administrator may do
    /// everything, also if the table does not say so: nobody else could mend it.
    ///
    /// # Errors
    /// The name of an attribute that the schema does not know.
    pub fn new(rules: &[Rule], schema: &Schema) -> Result<Access, String> {
        Ok(Access { rules: RwLock::new(checked(rules, schema)?) })
    }

    /// Puts another table in its place, checked likewise.
    ///
    /// # Errors
    /// As [`Access::new`]; then nothing changes.
    pub fn replace(&self, rules: &[Rule], schema: &Schema) -> Result<(), String> {
        let rules = checked(rules, schema)?;
        *self.rules.write().unwrap_or_else(PoisonError::into_inner) = rules;
        Ok(())
    }

    /// What this subject may do in this place.
    pub fn view(&self, subject: &Subject, place: Place) -> View {
        let rules = self.rules.read().unwrap_or_else(PoisonError::into_inner).clone();
        let applies = |rule: &Rule| {
            let who = match rule.who {
                Who::Everyone => true,
                Who::Users | Who::Owner => *subject != Subject::Anonymous,
                Who::Administrator => subject.is_administrator(),
            };
            who && (rule.what == What::Everything || rule.what == What::Only(place))
        };
        let chosen = (0..).zip(&*rules).filter(|(_, rule)| applies(rule)).map(|(at, _)| at);
        View { chosen: chosen.collect(), rules, own: subject.id() }
    }
}

/// The table with canonical names, and the administrator's rule.
fn checked(rules: &[Rule], schema: &Schema) -> Result<Arc<[Rule]>, String> {
    let administrator = Rule {
        who: Who::Administrator,
        what: What::Everything,
        attributes: Attributes::All,
        rights: Rights::ALL,
    };
    rules
        .iter()
        .chain([&administrator])
        .map(|rule| {
            let attributes = match &rule.attributes {
                Attributes::All => Attributes::All,
                Attributes::Only(names) => Attributes::Only(expand(names, schema)?),
                Attributes::Except(names) => Attributes::Except(expand(names, schema)?),
            };
            let Rule { who, what, rights, .. } = *rule;
            Ok(Rule { who, what, attributes, rights })
        })
        .collect()
}

/// Names made canonical, with all their subtypes.
fn expand(names: &[String], schema: &Schema) -> Result<Vec<String>, String> {
    let mut expanded = Vec::new();
    for name in names {
        let attribute = schema.attribute(name).ok_or_else(|| name.clone())?;
        let family = schema.family(attribute);
        expanded.extend(family.map(|member| member.name().to_owned()));
        // Earlier passwords are as secret as the one there is.
        if attribute.name() == USER_PASSWORD {
            expanded.push(HISTORY.to_owned());
        }
    }
    Ok(expanded)
}

/// The rules that speak of one subject in one place.
#[derive(Clone)]
pub struct View {
    rules: Arc<[Rule]>,
    /// Those of them that do, by their places.
    chosen: Vec<usize>,
    own: Option<EntryId>,
}

/// What the server does for itself.
const EVERYTHING: Rule = Rule {
    who: Who::Everyone,
    what: What::Everything,
    attributes: Attributes::All,
    rights: Rights::ALL,
};

impl View {
    /// The view of the server itself, which may do everything.
    pub fn unrestricted() -> View {
        View { rules: [EVERYTHING].into(), chosen: vec![0], own: None }
    }

    /// Whether the subject may do this to an attribute, given by its canonical name without
    /// options, of this entry.
    pub fn may(&self, right: Rights, attribute: &str, entry: EntryId) -> bool {
        self.granting(right, entry).any(|rule| match &rule.attributes {
            Attributes::All => true,
            Attributes::Only(names) => names.iter().any(|name| name == attribute),
            Attributes::Except(names) => !names.iter().any(|name| name == attribute),
        })
    }

    /// Whether the subject may do this to some attribute of this entry.
    pub fn may_something(&self, right: Rights, entry: EntryId) -> bool {
        self.granting(right, entry).next().is_some()
    }

    /// Whether the subject may do this to some attribute of some entry of the place.
    pub fn may_anywhere(&self, right: Rights) -> bool {
        self.chosen().any(|rule| rule.rights.contains(right))
    }

    /// Whether the subject may add, delete and rename this entry.
    pub fn may_manage(&self, entry: EntryId) -> bool {
        self.may_something(Rights::MANAGE, entry)
    }

    fn granting(&self, right: Rights, entry: EntryId) -> impl Iterator<Item = &Rule> {
        let own = self.own == Some(entry);
        self.chosen()
            .filter(move |rule| rule.rights.contains(right) && (own || rule.who != Who::Owner))
    }

    fn chosen(&self) -> impl Iterator<Item = &Rule> {
        self.chosen.iter().filter_map(|at| self.rules.get(*at))
    }
}
