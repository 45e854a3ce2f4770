//! `[cluster]`, checked.

use crate::member_url::MemberUrl;
use crate::raw;
use crate::wrong::{Wrong, choice, wrong};
use std::path::{Path, PathBuf};
use std::time::Duration;
use toml::Spanned;

/// Characters that a URL of etcd may have.
const ETCD_URL_LIMIT: usize = 256;
/// Members of etcd that are named.
const ETCD_MAX: usize = 16;
/// Seconds that one waits for its own writes at most.
const OWN_WRITES_WAIT_MAX_S: u64 = 60;
/// Seconds of a lease.
const LEASE_S: std::ops::RangeInclusive<u64> = 2..=300;
/// Most seconds of an age.
const AGE_MAX_S: u64 = 10 * 365 * 86_400;

/// `[cluster]`: how this server works with others.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cluster {
    /// Whether a follower sends changes to the writer; else it answers with a referral.
    pub forward: bool,
    /// Whose reads wait for which writes.
    pub own_writes: OwnWrites,
    /// For how long they wait.
    pub own_writes_wait: Duration,
    /// Where others reach this server; `None`: its name and port.
    pub url: Option<MemberUrl>,
    /// The members of etcd; none: failover is by hand.
    pub etcd: Vec<String>,
    /// The authority of etcd's certificates; a path that does not begin with / begins at the data folder.
    pub etcd_ca: Option<PathBuf>,
    /// The certificate that etcd is shown, and its key.
    pub etcd_client: Option<(PathBuf, PathBuf)>,
    /// How long the writer holds its office without a word.
    pub lease: Duration,
    /// A member that was silent for this long is not waited for when changes are forgotten.
    pub member_age_max: Duration,
}

/// Whose reads see a client's own writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OwnWrites {
    /// Those of the connection that wrote.
    Connection,
    /// Those of all connections of its address.
    Address,
}

impl Cluster {
    /// The files that it names.
    pub fn named(&self) -> impl Iterator<Item = &Path> {
        let client = self.etcd_client.iter().flat_map(|(certificate, key)| [certificate, key]);
        self.etcd_ca.iter().chain(client).map(PathBuf::as_path)
    }
}

/// Checks the section.
///
/// # Errors
/// The setting and what it should be.
pub fn cluster(raw: &raw::Cluster) -> Result<Cluster, Wrong> {
    let kinds = [("connection", OwnWrites::Connection), ("address", OwnWrites::Address)];
    let url = raw.url.get_ref();
    let url = (!url.is_empty()).then(|| url.parse::<MemberUrl>()).transpose();
    if raw.etcd.len() > ETCD_MAX {
        let why = format!("etcd has no more than {ETCD_MAX} members");
        return Err(raw
            .etcd
            .last()
            .map_or_else(|| wrong(&raw.url, &*why), |last| wrong(last, &*why)));
    }
    let path = |text: &str| Some(PathBuf::from(text)).filter(|path| !path.as_os_str().is_empty());
    let etcd_client = match (path(&raw.etcd_certificate), path(raw.etcd_key.get_ref())) {
        (Some(certificate), Some(key)) => Some((certificate, key)),
        (None, None) => None,
        _ => return Err(wrong(&raw.etcd_key, "etcd_certificate and etcd_key go together")),
    };
    Ok(Cluster {
        forward: raw.forward,
        own_writes: choice(&raw.own_writes, &kinds)?,
        own_writes_wait: within(&raw.own_writes_wait_s, 0..=OWN_WRITES_WAIT_MAX_S)?,
        url: url.map_err(|why| wrong(&raw.url, why))?,
        etcd: raw.etcd.iter().map(etcd).collect::<Result<_, _>>()?,
        etcd_ca: path(&raw.etcd_ca),
        etcd_client,
        lease: within(&raw.lease_s, LEASE_S)?,
        member_age_max: within(&raw.member_age_max_s, 1..=AGE_MAX_S)?,
    })
}

fn within(at: &Spanned<u64>, range: std::ops::RangeInclusive<u64>) -> Result<Duration, Wrong> {
    match range.contains(at.get_ref()) {
        true => Ok(Duration::from_secs(*at.get_ref())),
        false => Err(wrong(at, format!("it must be from {} to {}", range.start(), range.end()))),
    }
}

fn etcd(text: &Spanned<String>) -> Result<String, Wrong> {
    let url = text.get_ref();
    let rest = url.strip_prefix("https://").or_else(|| url.strip_prefix("http://"));
    let is_fit = rest.is_some_and(|rest| {
        !rest.is_empty() && url.len() <= ETCD_URL_LIMIT && url.bytes().all(|c| c.is_ascii_graphic())
    });
    match is_fit {
        true => Ok(url.trim_end_matches('/').to_owned()),
        false => {
            Err(wrong(text, format!("\"{url}\" is no URL like https://etcd-1.example.com:2379")))
        }
    }
}
