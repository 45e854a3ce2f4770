//! The data folder: its files, its lock and its users; its certificate authority, keys and certificates; what was
//! done with it. It knows no directory and no configuration.
#![forbid(unsafe_code)]

pub mod authority;
pub mod control;
pub mod data;
pub mod folder_keys;
pub mod history;
pub mod host_names;
pub mod limits;
pub mod member;
pub mod pem;
pub mod signing;
pub mod subject;
pub mod tls;
pub mod trust;
pub mod unix_socket;
pub mod user;
