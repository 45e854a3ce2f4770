//! `[target]`: which servers, how they are known, and the account of the administrator.

use super::account::Account;
use super::section::Section;
use crate::error::Error;
use crate::target::Url;
use crate::trust::Trust;
use std::path::Path;
use std::time::Duration;

/// `[target]`, checked.
pub(crate) struct Target {
    pub(crate) urls: Vec<Url>,
    pub(crate) trust: Trust,
    pub(crate) start_tls: bool,
    pub(crate) slow_tls: Duration,
    /// Where searches begin that do not say.
    pub(crate) base: String,
    pub(crate) admin: Option<Account>,
}

pub(crate) fn read(
    section: Option<Section<'_>>,
    root: &Section<'_>,
    folder: &Path,
) -> Result<Target, Error> {
    let missing = "there is no [target] with urls = [\"ldap://HOST:PORT\"]";
    let mut section = section.ok_or_else(|| root.error(missing))?;
    section.keys(&[
        "urls",
        "ca",
        "certificate",
        "key",
        "insecure",
        "resume",
        "start_tls",
        "slow_tls",
        "base",
        "admin",
    ])?;
    let mut urls = Vec::new();
    for value in section.list("urls") {
        let url = value.get_ref().as_str().ok_or("a URL is a text".to_owned()).and_then(Url::parse);
        urls.push(url.map_err(|why| section.error_at(value, why))?);
    }
    if urls.is_empty() {
        return Err(section.error(missing));
    }
    let own = match (section.text("certificate")?, section.text("key")?) {
        (Some(certificate), Some(key)) => Some((folder.join(certificate), folder.join(key))),
        (None, None) => None,
        _ => return Err(section.error("certificate and key go together, each a PEM file")),
    };
    let trust = Trust {
        own,
        ca: section.text("ca")?.map(|file| folder.join(file)),
        own_ca: None,
        insecure: section.flag("insecure")?.unwrap_or(false),
        resume: section.flag("resume")?.unwrap_or(false),
    };
    if trust.ca.is_some() && trust.insecure {
        return Err(section.error("either ca or insecure, not both"));
    }
    let start_tls = section.flag("start_tls")?.unwrap_or(false);
    if start_tls && urls.iter().any(|url| url.tls) {
        return Err(section.error("start_tls is for ldap:// URLs; ldaps:// has TLS from the start"));
    }
    let slow_tls = section.time("slow_tls")?.unwrap_or(Duration::from_secs(1));
    let base = section.text("base")?.unwrap_or("").to_owned();
    let admin = match section.section("admin")? {
        Some(admin) => Some(account(admin, folder)?),
        None => None,
    };
    section.finish()?;
    Ok(Target { urls, trust, start_tls, slow_tls, base, admin })
}

/// A table that says of an account and nothing else.
pub(crate) fn account(mut section: Section<'_>, folder: &Path) -> Result<Account, Error> {
    let account = Account::read(&mut section, folder)?;
    section.finish()?;
    Ok(account)
}
