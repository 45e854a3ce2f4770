//! `[[monitor]]`: what else is looked at, once a second, on the same axis.

use super::context::Context;
use super::section::Section;
use crate::error::Error;
use crate::limits::{MONITOR_ATTRIBUTES_MAX, MONITORS_MAX};
use crate::request::Request;
use crate::target::Url;
use crate::text::Names;
use keyway_codec::definitions::nearest;
use keyway_meter::{FIGURES, Figure};
use std::path::PathBuf;

/// Something that is looked at.
#[derive(Debug)]
pub(crate) struct Monitor {
    /// The names of its lines.
    pub(crate) names: Vec<String>,
    /// The bind that comes first.
    pub(crate) bind: Option<Request>,
    /// Without it there is no run.
    pub(crate) is_required: bool,
    pub(crate) kind: MonitorKind,
}

/// The kinds of monitors.
#[derive(Debug)]
pub(crate) enum MonitorKind {
    /// Numbers of an entry, such as those below `cn=monitor`.
    Entry { url: Url, dn: String, attributes: Vec<String>, growth: bool },
    /// How long it takes until a change here is seen there.
    Replication { write: Url, read: Url, dn: String, attribute: String },
    /// Figures of a Keyway server, out of its page and perhaps its daemon's.
    Page { directory: PathBuf, cryptod: Option<PathBuf>, figures: Vec<Figure> },
}

pub(crate) fn read(root: &mut Section<'_>, context: &Context<'_>) -> Result<Vec<Monitor>, Error> {
    let document = root.document();
    let mut monitors = Vec::new();
    for value in root.list("monitor") {
        let section = Section::of(document, value, format!("monitor {}", monitors.len() + 1))?;
        if monitors.len() == MONITORS_MAX {
            return Err(section.error(format!("a scenario has {MONITORS_MAX} monitors at most")));
        }
        let place = value.span();
        let monitor = monitor(section, context)?;
        let known = |name: &&String| monitors.iter().any(|it: &Monitor| it.names.contains(name));
        if let Some(twice) = monitor.names.iter().find(known) {
            let why = format!("two monitors are called '{twice}'; give one another name = \"...\"");
            return Err(document.error(&place, why));
        }
        monitors.push(monitor);
    }
    Ok(monitors)
}

fn monitor(mut section: Section<'_>, context: &Context<'_>) -> Result<Monitor, Error> {
    let mut monitor = match section.text("kind")? {
        Some("entry") => entry(&mut section, context)?,
        Some("replication") => replication(&mut section, context)?,
        Some("keyway") => page(&mut section, context)?,
        _ => {
            let why = "kind is \"entry\", \"replication\" or \"keyway\"";
            return Err(section.error_of("kind", why));
        }
    };
    monitor.is_required = section.flag("required")?.unwrap_or(false);
    section.finish()?;
    Ok(monitor)
}

fn entry(section: &mut Section<'_>, context: &Context<'_>) -> Result<Monitor, Error> {
    section.keys(&["kind", "name", "url", "dn", "attributes", "growth", "bind", "required"])?;
    let missing = "attributes = [\"...\"] is missing: those whose values are numbers";
    let attributes = section.texts("attributes")?.filter(|texts| !texts.is_empty());
    let attributes = attributes.ok_or_else(|| section.error(missing))?;
    if attributes.len() > MONITOR_ATTRIBUTES_MAX {
        let why = format!("a monitor has {MONITOR_ATTRIBUTES_MAX} attributes at most");
        return Err(section.error(why));
    }
    let names = names(section.text("name")?, &attributes);
    let kind = MonitorKind::Entry {
        url: url(section, "url", context)?,
        dn: section.text("dn")?.unwrap_or("cn=monitor").to_owned(),
        attributes: attributes.into_iter().map(str::to_owned).collect(),
        growth: section.flag("growth")?.unwrap_or(false),
    };
    Ok(Monitor { names, bind: bind(section, context)?, is_required: false, kind })
}

fn replication(section: &mut Section<'_>, context: &Context<'_>) -> Result<Monitor, Error> {
    section.keys(&["kind", "name", "write", "read", "dn", "attribute", "bind", "required"])?;
    let missing = "dn is missing: an entry of which an attribute may be changed";
    let dn = section.text("dn")?.ok_or_else(|| section.error(missing))?.to_owned();
    let name = section.text("name")?.unwrap_or("replication, ms");
    if section.get("read").is_none() {
        return Err(
            section.error("read = \"ldap://...\" is missing: where the change is to appear")
        );
    }
    let kind = MonitorKind::Replication {
        write: url(section, "write", context)?,
        read: url(section, "read", context)?,
        dn,
        attribute: section.text("attribute")?.unwrap_or("description").to_owned(),
    };
    let (names, bind) = (vec![name.to_owned()], bind(section, context)?);
    Ok(Monitor { names, bind, is_required: false, kind })
}

/// The page's name in a data folder, and that of the daemon's.
const PAGE: &str = "meter";
const CRYPTOD_PAGE: &str = "cryptod/meter";
/// The figures that are watched if the scenario names none.
const USUAL: [&str; 6] = ["total", "errors", "p99_us", "queue", "commits", "sync_p99_us"];

/// `data = "keyway-data"` or `page = "keyway-data/meter"`, and perhaps `figures = ["total", "p99_us"]`
fn page(section: &mut Section<'_>, context: &Context<'_>) -> Result<Monitor, Error> {
    section.keys(&["kind", "name", "data", "page", "figures", "required"])?;
    let (directory, cryptod) = match (section.text("data")?, section.text("page")?) {
        (Some(data), None) => {
            let data = context.folder.join(data);
            (data.join(PAGE), Some(data.join(CRYPTOD_PAGE)))
        }
        (None, Some(page)) => (context.folder.join(page), None),
        _ => {
            let why = "either data = \"DIR\", the data folder of a server of this machine, or page = \
                       \"FILE\", the page that it counts in";
            return Err(section.error(why));
        }
    };
    let wanted = section.texts("figures")?.unwrap_or_else(|| USUAL.to_vec());
    let figure = |name: &&str| {
        Figure::named(name).ok_or_else(|| {
            let known = || FIGURES.iter().map(|figure| figure.name);
            let why = match nearest(name, known()) {
                Some(near) => format!("there is no figure '{name}'; did you mean '{near}'?"),
                None => {
                    let known: Vec<&str> = known().collect();
                    format!("there is no figure '{name}'; there are {}", known.join(", "))
                }
            };
            section.error_of("figures", why)
        })
    };
    let figures: Vec<Figure> = wanted.iter().map(figure).collect::<Result<_, _>>()?;
    let names = names(section.text("name")?, &wanted);
    let kind = MonitorKind::Page { directory, cryptod, figures };
    Ok(Monitor { names, bind: None, is_required: false, kind })
}

/// The names of lines: those of the figures, or one that is given.
fn names(name: Option<&str>, watched: &[&str]) -> Vec<String> {
    match (name, watched.len()) {
        (None, _) => watched.iter().map(|one| (*one).to_owned()).collect(),
        (Some(name), 1) => vec![name.to_owned()],
        (Some(name), _) => watched.iter().map(|one| format!("{name} {one}")).collect(),
    }
}

/// A URL; without one the first of the target's.
fn url(section: &mut Section<'_>, key: &'static str, context: &Context<'_>) -> Result<Url, Error> {
    match section.text(key)? {
        Some(text) => Url::parse(text).map_err(|why| section.error_of(key, why)),
        None => context.target.urls.first().cloned().ok_or_else(|| section.error("no URL")),
    }
}

/// The identity that looks; the administrator if there is one and nothing is said.
fn bind(section: &mut Section<'_>, context: &Context<'_>) -> Result<Option<Request>, Error> {
    let account = match section.get("bind") {
        None => context.target.admin.clone(),
        Some(value) => super::connections::account(section, value, context)?,
    };
    // Nothing varies here.
    let request = account.map(|account| account.request(Vec::new(), &mut Names::new(&[])));
    request.transpose().map_err(|why| section.error_of("bind", why))
}
