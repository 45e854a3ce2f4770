//! `[target]`: which servers, how they are known, and the account of the administrator.

use super::section::Section;
use crate::error::Error;
use crate::limits::PASSWORD_BYTES_MAX;
use crate::target::Url;
use crate::trust::{Trust, read as read_file};
use std::path::Path;
use std::time::Duration;
use zeroize::Zeroizing;

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

/// Who binds, and with what.
#[derive(Clone)]
pub(crate) struct Account {
    pub(crate) dn: String,
    pub(crate) password: Zeroizing<String>,
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
    let trust = Trust {
        ca: section.text("ca")?.map(|file| folder.join(file)),
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

/// `{ dn = "...", password = "..." }` or with `password_file`.
pub(crate) fn account(mut section: Section<'_>, folder: &Path) -> Result<Account, Error> {
    let dn = section.text("dn")?.ok_or_else(|| section.error("dn is missing"))?.to_owned();
    let password = password(&mut section, folder)?;
    section.finish()?;
    Ok(Account { dn, password })
}

/// A password that is there, or in a file of which the last line end does not count.
pub(crate) fn password(
    section: &mut Section<'_>,
    folder: &Path,
) -> Result<Zeroizing<String>, Error> {
    match (section.text("password")?, section.text("password_file")?) {
        (Some(password), None) => Ok(Zeroizing::new(password.to_owned())),
        (None, Some(file)) => {
            let path = folder.join(file);
            let bytes = Zeroizing::new(read_file(&path, PASSWORD_BYTES_MAX)?);
            let text = std::str::from_utf8(&bytes)
                .map_err(|_| Error::Content(path, "the password is not UTF-8".into()))?;
            let text = text.strip_suffix('\n').unwrap_or(text);
            // A brace in a file is a brace.
            let text = text.strip_suffix('\r').unwrap_or(text).replace('{', "{{");
            Ok(Zeroizing::new(text.replace('}', "}}")))
        }
        (None, None) => Err(section.error("password or password_file is missing")),
        _ => Err(section.error("either password or password_file, not both")),
    }
}
