//! The configuration of a data folder: `keyway.toml` read, checked, edited and compared; as entries of `cn=config`;
//! what was in force last, and what a running server says is in force. Files of definitions of the schema.
#![forbid(unsafe_code)]

pub mod applied;
pub mod catalogue;
pub mod changes;
mod cluster_section;
mod collector;
mod configuration;
pub mod definitions;
pub mod edit;
pub mod in_force;
mod integrity;
pub mod ldap;
mod limits;
pub mod loss;
mod member_url;
mod raw;
mod running;
mod settings;
mod tls_section;
pub mod tree;
pub mod value;
mod wrong;

pub use cluster_section::{Cluster, OwnWrites};
pub use collector::CollectorUrl;
pub use configuration::{Configuration, Metrics, Overrides, TaskSecret, Tasks, text_of};
pub use definitions::Given;
pub use member_url::MemberUrl;
pub use raw::DEFAULT;
pub use running::Running;
pub use settings::{From, Setting, Settings, settings};
