//! The fuzzed parts: one plain function for each parser, and for each way into the daemon, which
//! panics where that is wrong.
//!
//! A target takes any bytes. It checks more than that nothing panics: what a parser accepts must
//! be the same after it was written and read again.
//!
//! - `cargo test -p keyway-fuzz` replays the corpus; it needs no libFuzzer and so no C++ compiler.
//! - `cargo xtask fuzz 60 message` searches for more, for 60 seconds.
//!
//! An input that was found to break something stays in `corpus/NAME/`, named for what it broke.
#![forbid(unsafe_code)]

mod access_rule;
mod agent;
mod backup;
mod capture;
mod certificate;
#[path = "../../crypto/daemon/tests/daemon/client.rs"]
mod client;
mod cluster_frames;
mod control;
mod definitions;
mod dn;
mod esp_config;
mod esp_ike;
mod esp_receive;
mod etcd_rows;
mod export;
mod filter;
mod key_log;
mod key_reference;
mod key_store;
mod ldif;
mod mailbox;
mod message;
mod meter_page;
mod packet;
mod page;
mod password;
mod proxy;
mod query;
mod record;
mod replay;
mod ring;
mod sasl;
mod served;
mod ssh_agent;
mod syntax;
mod template;
mod tree;
mod tun_offload;
mod vhost_user;

pub use access_rule::access_rule;
pub use agent::agent;
pub use backup::backup;
pub use capture::{capture, segments};
pub use certificate::certificate;
pub use cluster_frames::cluster_frames;
pub use control::control;
pub use definitions::definitions;
pub use dn::dn;
pub use esp_config::esp_config;
pub use esp_ike::esp_ike;
pub use esp_receive::esp_receive;
pub use etcd_rows::etcd_rows;
pub use export::export;
pub use filter::filter;
pub use key_log::key_log;
pub use key_reference::key_reference;
pub use key_store::key_store;
pub use ldif::ldif;
pub use mailbox::mailbox;
pub use message::message;
pub use meter_page::meter_page;
pub use packet::packet;
pub use page::page;
pub use password::password;
pub use proxy::proxy;
pub use query::query;
pub use record::record;
pub use replay::passwords;
pub use ring::ring;
pub use sasl::sasl;
pub use ssh_agent::ssh_agent;
pub use syntax::syntax;
pub use template::template;
pub use tree::tree;
pub use tun_offload::tun_offload;
pub use vhost_user::vhost_user;

/// A target's name, which is also that of its corpus folder and of its binary, and its function.
pub type Target = (&'static str, fn(&[u8]));

/// Every target.
pub const TARGETS: &[Target] = &[
    ("access_rule", access_rule),
    ("agent", agent),
    ("backup", backup),
    ("capture", capture),
    ("certificate", certificate),
    ("cluster_frames", cluster_frames),
    ("control", control),
    ("definitions", definitions),
    ("dn", dn),
    ("esp_config", esp_config),
    ("esp_ike", esp_ike),
    ("esp_receive", esp_receive),
    ("etcd_rows", etcd_rows),
    ("export", export),
    ("filter", filter),
    ("key_log", key_log),
    ("key_reference", key_reference),
    ("key_store", key_store),
    ("ldif", ldif),
    ("mailbox", mailbox),
    ("message", message),
    ("meter_page", meter_page),
    ("packet", packet),
    ("page", page),
    ("password", password),
    ("passwords", passwords),
    ("proxy", proxy),
    ("query", query),
    ("record", record),
    ("ring", ring),
    ("sasl", sasl),
    ("segments", segments),
    ("ssh_agent", ssh_agent),
    ("syntax", syntax),
    ("template", template),
    ("tree", tree),
    ("tun_offload", tun_offload),
    ("vhost_user", vhost_user),
];
