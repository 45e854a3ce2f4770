//! The settings of groups, references, unique values and numbers.

/// Which of an entry's groups `memberOf` shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MemberOf {
    /// None: the attribute is not there.
    Off,
    /// Those that name the entry.
    Direct,
    /// Those as well that these are in, however deep.
    Nested,
}

/// How entries that speak of each other are kept in agreement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IntegritySetting {
    /// The attributes by which a group names its members: DNs, and for `memberUid` the members' uid.
    pub members: Vec<String>,
    /// Which of an entry's groups `memberOf` shows.
    pub member_of: MemberOf,
    /// Attributes that follow the entries which they name: to their new names, and away.
    pub references: Vec<String>,
    /// Values that two entries may not share.
    pub unique: Vec<Unique>,
    /// Numbers that are given out.
    pub allocate: Vec<Allocate>,
}

/// Attributes of which no two entries of a subtree have an equal value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unique {
    /// The attributes, each by itself.
    pub attributes: Vec<String>,
    /// The DN at the top of the subtree; `None` for all entries of users.
    pub below: Option<String>,
    /// Only entries that match this filter count; `None` for all.
    pub filter: Option<String>,
}

/// A range of numbers of which entries get one that come without.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Allocate {
    /// The attribute that gets the number.
    pub attribute: String,
    /// The object class whose entries get one.
    pub class: String,
    /// The first number.
    pub from: u64,
    /// The last one.
    pub to: u64,
    /// A value that asks for one, like none at all.
    pub magic: Option<String>,
}

impl Default for IntegritySetting {
    /// The settings that `keyway up` starts with.
    fn default() -> Self {
        let names = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
        IntegritySetting {
            members: names(&["member", "uniqueMember", "memberUid"]),
            member_of: MemberOf::Nested,
            references: names(&[
                "member",
                "uniqueMember",
                "manager",
                "owner",
                "seeAlso",
                "secretary",
                "roleOccupant",
            ]),
            unique: Vec::new(),
            allocate: Vec::new(),
        }
    }
}
