//! The configuration as it is written: names and types are right, values are not checked yet.

use serde::Deserialize;
use toml::Spanned;

/// The file.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Raw {
    pub device: Device,
    pub outside: Option<Outside>,
    pub cryptod: Option<Cryptod>,
    #[serde(default, rename = "tunnel")]
    pub tunnels: Vec<Spanned<Tunnel>>,
}

/// `[device]`
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Device {
    pub name: Spanned<String>,
    #[serde(default)]
    pub addresses: Vec<Spanned<String>>,
    pub mtu: Option<Spanned<u64>>,
    pub queues: Option<Spanned<u64>>,
    pub routes: Option<bool>,
    pub retire: Option<Spanned<u64>>,
}

/// `[outside]`
#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Outside {
    pub listen: Option<Spanned<String>>,
    pub esp: Option<Spanned<bool>>,
    pub interface: Option<Spanned<String>>,
    pub mark: Option<Spanned<u64>>,
    pub keepalive: Option<Spanned<u64>>,
}

/// `[cryptod]`
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Cryptod {
    pub socket: Spanned<String>,
}

/// `[[tunnel]]`
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Tunnel {
    pub name: Spanned<String>,
    pub mode: Option<Spanned<String>>,
    pub local: Option<Spanned<String>>,
    pub remote: Spanned<String>,
    pub algorithm: Spanned<String>,
    pub esn: Option<bool>,
    pub window: Option<Spanned<u64>>,
    #[serde(default, rename = "selector")]
    pub selectors: Vec<Spanned<Selector>>,
    pub out: Spanned<Side>,
    #[serde(rename = "in")]
    pub inbound: Spanned<Side>,
    pub lifetime: Option<Lifetime>,
}

/// `[[tunnel.selector]]`
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Selector {
    pub local: Spanned<String>,
    pub remote: Spanned<String>,
    pub protocol: Option<Spanned<Protocol>>,
    pub local_ports: Option<Spanned<String>>,
    pub remote_ports: Option<Spanned<String>>,
}

/// A name, or a number.
#[derive(Deserialize)]
#[serde(untagged)]
pub enum Protocol {
    Name(String),
    Number(u64),
}

/// `[tunnel.out]`, `[tunnel.in]`
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Side {
    pub spi: Spanned<String>,
    pub key: Option<Spanned<String>>,
    pub key_file: Option<Spanned<String>>,
    pub key_name: Option<Spanned<String>>,
    pub salt: Option<Spanned<String>>,
}

/// `[tunnel.lifetime]`
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Lifetime {
    pub seconds: Option<Spanned<u64>>,
    pub packets: Option<Spanned<u64>>,
    pub bytes: Option<Spanned<u64>>,
    pub soft: Option<Spanned<f64>>,
}
