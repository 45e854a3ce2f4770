//! Who may do what to which attribute of which entry. Rules are data; without one nothing is
//! allowed.
//!
//! A rule only ever grants. That keeps a table readable: what a subject may do is the union of the
//! rules that speak of him, in any order. An exception is a part of the rule that it limits.
//!
//! The conditions of a rule on the subject (who he is, his groups, where he comes from) are decided once
//! a bind and again when the rules or a group change; those on the entry, when it is looked at, and only
//! if no other rule has granted the same already.

mod compiled;
mod condition;
mod diff;
mod disclosure;
mod explain;
mod facts;
mod in_force;
mod look_up;
mod memo;
mod network;
mod rights;
mod rule;
mod secret;
mod stored;
mod strength;
mod subject;
mod table;
mod trace;
mod view;
mod written;

pub use diff::{Grant, difference};
pub use explain::{Considered, Question};
pub use in_force::Access;
pub(crate) use memo::Memo;
pub use network::Network;
pub use rights::Rights;
pub(crate) use rule::RULE;
pub use rule::{Attributes, Below, Needs, Origin, Place, Rule, Stored, Target, What, Who};
pub(crate) use secret::Secrets;
pub(crate) use stored::{holds_rules, settle};
pub use strength::{Over, Strength};
pub use subject::Subject;
pub use trace::Trace;
pub use view::View;
pub use written::{Fault, Written};
