//! Entries that speak of each other: groups and their members, references that follow what they
//! name, values that are unique, numbers that are given out.
//!
//! Nothing of it is stored twice. Who is in a group is asked of the equality index of the group's
//! member attribute, so that it can never disagree with the group, and a group costs nothing more
//! to change. All else is done in the job of the committer that does the change itself: two changes
//! at once cannot both pass a check, and none is half done.

mod allocate;
mod chain;
mod checked;
mod imported_member_of;
mod membership;
mod range;
mod reference_attribute;
mod references;
mod resolve;
mod setting;
mod unique;
mod unique_set;

pub(crate) use chain::Chain;
pub(crate) use checked::Integrity;
pub use imported_member_of::Disagreement;
pub(crate) use imported_member_of::ImportedMemberOf;
pub(crate) use membership::{Groups, Membership};
pub(crate) use reference_attribute::{ReferenceAttribute, normal_dn};
pub(crate) use references::{ReferenceCleanup, ReferringEntries};
pub use setting::{Allocate, IntegritySetting, MemberOf, Unique};
pub(crate) use unique::Proposed;
