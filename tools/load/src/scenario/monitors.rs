//! `[[monitor]]`: what else is looked at, once a second, on the same axis.

use super::job::Context;
use super::section::Section;
use crate::error::Error;
use crate::limits::{MONITOR_ATTRIBUTES_MAX, MONITORS_MAX};
use crate::request::Request;
use crate::target::Url;
use crate::text::Names;

/// Something that is looked at.
#[derive(Debug)]
pub(crate) struct Monitor {
    /// What its lines are called.
    pub(crate) names: Vec<String>,
    /// The bind that comes first.
    pub(crate) bind: Option<Request>,
    pub(crate) watched: Watched,
}

/// What it is.
#[derive(Debug)]
pub(crate) enum Watched {
    /// Numbers of an entry, such as those below `cn=monitor`.
    Entry { url: Url, dn: String, attributes: Vec<String>, growth: bool },
    /// How long it takes until a change here is seen there.
    Replication { write: Url, read: Url, dn: String, attribute: String },
}

pub(crate) fn read(root: &mut Section<'_>, context: &Context<'_>) -> Result<Vec<Monitor>, Error> {
    let document = root.document();
    let mut monitors = Vec::new();
    for value in root.list("monitor") {
        let section = Section::of(document, value, format!("monitor {}", monitors.len() + 1))?;
        if monitors.len() == MONITORS_MAX {
            return Err(section.error(format!("a scenario has {MONITORS_MAX} monitors at most")));
        }
        monitors.push(monitor(section, context)?);
    }
    Ok(monitors)
}

fn monitor(mut section: Section<'_>, context: &Context<'_>) -> Result<Monitor, Error> {
    let monitor = match section.text("kind")? {
        Some("entry") => entry(&mut section, context)?,
        Some("replication") => replication(&mut section, context)?,
        _ => return Err(section.error_of("kind", "kind is \"entry\" or \"replication\"")),
    };
    section.finish()?;
    Ok(monitor)
}

fn entry(section: &mut Section<'_>, context: &Context<'_>) -> Result<Monitor, Error> {
    section.keys(&["kind", "name", "url", "dn", "attributes", "growth", "bind"])?;
    let missing = "attributes = [\"...\"] is missing: those whose values are numbers";
    let attributes = section.texts("attributes")?.filter(|texts| !texts.is_empty());
    let attributes = attributes.ok_or_else(|| section.error(missing))?;
    if attributes.len() > MONITOR_ATTRIBUTES_MAX {
        let why = format!("a monitor has {MONITOR_ATTRIBUTES_MAX} attributes at most");
        return Err(section.error(why));
    }
    let names = match (section.text("name")?, attributes.len()) {
        (None, _) => attributes.iter().map(|attribute| (*attribute).to_owned()).collect(),
        (Some(name), 1) => vec![name.to_owned()],
        (Some(name), _) => attributes.iter().map(|one| format!("{name} {one}")).collect(),
    };
    let watched = Watched::Entry {
        url: url(section, "url", context)?,
        dn: section.text("dn")?.unwrap_or("cn=monitor").to_owned(),
        attributes: attributes.into_iter().map(str::to_owned).collect(),
        growth: section.flag("growth")?.unwrap_or(false),
    };
    Ok(Monitor { names, bind: bind(section, context)?, watched })
}

fn replication(section: &mut Section<'_>, context: &Context<'_>) -> Result<Monitor, Error> {
    section.keys(&["kind", "name", "write", "read", "dn", "attribute", "bind"])?;
    let missing = "dn is missing: an entry of which an attribute may be changed";
    let dn = section.text("dn")?.ok_or_else(|| section.error(missing))?.to_owned();
    let name = section.text("name")?.unwrap_or("replication, ms");
    if section.get("read").is_none() {
        return Err(
            section.error("read = \"ldap://...\" is missing: where the change is to appear")
        );
    }
    let watched = Watched::Replication {
        write: url(section, "write", context)?,
        read: url(section, "read", context)?,
        dn,
        attribute: section.text("attribute")?.unwrap_or("description").to_owned(),
    };
    Ok(Monitor { names: vec![name.to_owned()], bind: bind(section, context)?, watched })
}

/// A URL; without one the first of the target's.
fn url(section: &mut Section<'_>, key: &'static str, context: &Context<'_>) -> Result<Url, Error> {
    match section.text(key)? {
        Some(text) => Url::parse(text).map_err(|why| section.error_of(key, why)),
        None => context.target.urls.first().cloned().ok_or_else(|| section.error("no URL")),
    }
}

/// Who looks; the administrator if there is one and nothing is said.
fn bind(section: &mut Section<'_>, context: &Context<'_>) -> Result<Option<Request>, Error> {
    let account = match section.get("bind") {
        None => context.target.admin.clone(),
        Some(value) => super::connections::account(section, value, context)?,
    };
    // Nothing varies here.
    let request = account.map(|account| account.request(Vec::new(), &mut Names::new(&[])));
    request.transpose().map_err(|why| section.error_of("bind", why))
}
