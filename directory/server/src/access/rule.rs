//! Rules as an administrator writes them.

use super::network::Network;
use super::rights::Rights;
use super::strength::Strength;
use keyway_codec::message::Scope;
use keyway_store::EntryId;
use std::fmt;
use std::sync::Arc;

/// The attribute whose values are rules.
pub(crate) const RULE: &str = "keywayAccessRule";

/// One rule: which subjects it lets do what to which attributes of which entries.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rule {
    /// The subjects that it is for.
    pub who: Who,
    /// The further demands on the subject, all of which must be met.
    pub needs: Needs,
    /// Where.
    pub what: What,
    /// On which entries there.
    pub target: Target,
    /// On which of their attributes.
    pub attributes: Attributes,
    /// Do what.
    pub rights: Rights,
    /// Where it is written.
    pub origin: Origin,
}

/// Where a rule is written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Origin {
    /// Nowhere: it is always there.
    BuiltIn,
    /// In the configuration, from this line on.
    Line(usize),
    /// In an entry, for entries around that.
    Entry(Arc<Stored>),
}

/// Where in the tree a rule is, and how it is written there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stored {
    /// The entry.
    pub id: EntryId,
    /// How much of the tree at it the rule speaks of.
    pub scope: Scope,
    /// The attribute's value.
    pub text: String,
}

/// The subjects that a rule speaks of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Who {
    /// All subjects, bound or not.
    Everyone,
    /// All subjects that are bound.
    Users,
    /// The one whose entry it is.
    Owner,
    /// The administrator.
    Administrator,
}

impl Who {
    const NAMES: [(&str, Who); 4] = [
        ("everyone", Who::Everyone),
        ("users", Who::Users),
        ("self", Who::Owner),
        ("administrator", Who::Administrator),
    ];

    /// The one of a name, as in a configuration: `everyone`, `users`, `self`, `administrator`.
    pub fn from_name(name: &str) -> Option<Who> {
        Self::NAMES.iter().find(|(known, _)| *known == name).map(|(_, who)| *who)
    }
}

impl fmt::Display for Who {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = Self::NAMES.iter().find(|(_, who)| who == self);
        f.write_str(name.map_or("", |(name, _)| name))
    }
}

/// The demands of a rule on a subject. One of several in one list is enough; an empty list demands
/// nothing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Needs {
    /// His entry has one of these DNs.
    pub dns: Vec<String>,
    /// His entry is one of these, or below one.
    pub subtrees: Vec<String>,
    /// He is in one of these groups, or in a group that is in one.
    pub groups: Vec<String>,
    /// One of these attributes of the entry names him.
    pub relations: Vec<String>,
    /// He comes from one of these networks.
    pub from: Vec<Network>,
    /// His connection is at least this strong.
    pub strength: Strength,
}

/// Which entries of a place a rule speaks of.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Target {
    /// Those around this one.
    pub below: Option<Below>,
    /// Those that match this filter.
    pub filter: Option<String>,
    /// Those that are in none of these groups, however deep.
    pub except_members_of: Vec<String>,
}

/// A part of the tree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Below {
    /// Its top.
    pub dn: String,
    /// How much of it.
    pub scope: Scope,
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
    /// `cn=config`.
    Config,
    /// `cn=monitor`.
    Monitor,
    /// `cn=changelog`.
    Changelog,
    /// `cn=tasks`.
    Tasks,
}

impl Place {
    pub(super) const ALL: [Place; 8] = [
        Place::RootDse,
        Place::Subschema,
        Place::Data,
        Place::System,
        Place::Config,
        Place::Monitor,
        Place::Changelog,
        Place::Tasks,
    ];
}

/// Which places a rule speaks of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum What {
    /// One place.
    Only(Place),
    /// All of them.
    Everything,
}

impl What {
    const NAMES: [(&str, What); 9] = [
        ("root-dse", What::Only(Place::RootDse)),
        ("schema", What::Only(Place::Subschema)),
        ("data", What::Only(Place::Data)),
        ("system", What::Only(Place::System)),
        ("config", What::Only(Place::Config)),
        ("monitor", What::Only(Place::Monitor)),
        ("changelog", What::Only(Place::Changelog)),
        ("tasks", What::Only(Place::Tasks)),
        ("everything", What::Everything),
    ];

    /// The one of a name, as in a configuration: `root-dse`, `schema`, `data`, `system`,
    /// `config`, `monitor`, `changelog`, `tasks`, `everything`.
    pub fn from_name(name: &str) -> Option<What> {
        Self::NAMES.iter().find(|(known, _)| *known == name).map(|(_, what)| *what)
    }

    /// Whether this place is meant.
    pub fn includes(self, place: Place) -> bool {
        self == What::Everything || self == What::Only(place)
    }
}

impl fmt::Display for What {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = Self::NAMES.iter().find(|(_, what)| what == self);
        f.write_str(name.map_or("", |(name, _)| name))
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

impl Attributes {
    /// Whether an attribute is meant, given by its canonical name; the lists are expanded.
    pub(super) fn include(&self, attribute: &str) -> bool {
        match self {
            Attributes::All => true,
            Attributes::Only(names) => names.iter().any(|name| name == attribute),
            Attributes::Except(names) => !names.iter().any(|name| name == attribute),
        }
    }
}

impl fmt::Display for Attributes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Attributes::All => f.write_str("all attributes"),
            Attributes::Only(names) => f.write_str(&names.join(", ")),
            Attributes::Except(names) => write!(f, "all attributes but {}", names.join(", ")),
        }
    }
}

impl Rule {
    /// A rule without conditions.
    pub fn new(who: Who, what: What, attributes: Attributes, rights: Rights) -> Rule {
        let (needs, target) = (Needs::default(), Target::default());
        let origin = Origin::BuiltIn;
        Rule { who, needs, what, target, attributes, rights, origin }
    }

    /// The table that a server starts with: the administrator does everything; a user reads,
    /// searches and compares all but secrets and changes his own password; every subject reads the root
    /// DSE and the subschema.
    pub fn defaults() -> Vec<Rule> {
        let look = Rights::READ | Rights::SEARCH | Rights::COMPARE;
        let password = || vec!["userPassword".to_owned()];
        vec![
            Rule::new(Who::Administrator, What::Everything, Attributes::All, Rights::ALL),
            Rule::new(Who::Everyone, What::Only(Place::RootDse), Attributes::All, look),
            Rule::new(Who::Everyone, What::Only(Place::Subschema), Attributes::All, look),
            Rule::new(Who::Users, What::Only(Place::Data), Attributes::All, look),
            Rule::new(
                Who::Owner,
                What::Only(Place::Data),
                Attributes::Only(password()),
                Rights::WRITE,
            ),
        ]
    }

    /// Whether secrets are left out of what it says of a right. A new password in place of an old
    /// one shows none.
    pub(super) fn withholds_secrets(&self, right: Rights) -> bool {
        match self.attributes {
            Attributes::All => self.rights != Rights::ALL && right != Rights::RESET,
            Attributes::Only(_) => false,
            Attributes::Except(_) => right != Rights::RESET,
        }
    }

    /// The subjects that it is for, in words.
    pub fn subject_text(&self) -> String {
        let Needs { dns, subtrees, groups, relations, from, strength } = &self.needs;
        let mut text = self.who.to_string();
        let mut also = |what: &str, list: Vec<String>| {
            if !list.is_empty() {
                text.push_str(&format!(", {what} {}", list.join(" or ")));
            }
        };
        also("being", dns.clone());
        also("being or being below", subtrees.clone());
        also("in group", groups.clone());
        also("named by", relations.clone());
        also("from", from.iter().map(Network::to_string).collect());
        if *strength > Strength::Any {
            text.push_str(&format!(", over {strength}"));
        }
        text
    }

    /// On which entries, in words.
    pub fn target_text(&self) -> String {
        let Target { below, filter, except_members_of } = &self.target;
        let mut text = self.what.to_string();
        if let Some(Below { dn, scope }) = below {
            text.push_str(&format!(", {} {dn}", scope_text(*scope)));
        }
        if let Origin::Entry(stored) = &self.origin {
            text.push_str(&format!(", {} the rule's entry", scope_text(stored.scope)));
        }
        if let Some(filter) = filter {
            text.push_str(&format!(", matching {filter}"));
        }
        if !except_members_of.is_empty() {
            text.push_str(&format!(", but no member of {}", except_members_of.join(" or ")));
        }
        text
    }
}

fn scope_text(scope: Scope) -> &'static str {
    match scope {
        Scope::Base => "only",
        Scope::One => "directly below",
        Scope::Subtree => "from",
        Scope::Subordinate => "below",
    }
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Rule { attributes, rights, .. } = self;
        let (who, what) = (self.subject_text(), self.target_text());
        write!(f, "{who}: {rights} {attributes} ({what})")
    }
}
