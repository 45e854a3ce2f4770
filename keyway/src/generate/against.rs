//! The schema that entries are checked against: what is built in, with files of definitions, or what a
//! server publishes.

use super::arguments::Check;
use keyway_codec::definitions::{self, File, Located};
use keyway_codec::description::{AttributeTypeDescription, ObjectClassDescription};
use keyway_codec::message::Scope;
use keyway_host::failure::Failure;
use keyway_schema::{Changes, Composed, Schema, Sources};
use keyway_watch::ldap::{FoundEntry, SearchClient, SearchResult, ServerUrl};
use std::collections::HashSet;

/// A schema, and what it is called.
pub struct Against {
    pub schema: Schema,
    pub name: String,
}

impl Against {
    /// The one that is asked for.
    ///
    /// # Errors
    /// If definitions cannot be read or do not fit together, or a server does not show its schema.
    pub fn of(arguments: &Check) -> Result<Against, Failure> {
        match &arguments.to {
            Some(url) => of_server(arguments, url),
            None => of_files(arguments),
        }
    }
}

fn of_files(arguments: &Check) -> Result<Against, Failure> {
    let files = arguments.schema.iter().map(|path| keyway_config::definitions::read(path, path));
    let sources = Sources { files: files.collect::<Result<_, _>>()?, ..Sources::defaults() };
    let composed = Composed::new(&sources, &Changes::default()).map_err(Failure::new)?;
    let schema = composed.schema().map_err(Failure::new)?;
    keyway_config::definitions::say(&composed.warnings);
    keyway_config::definitions::say(
        &schema.warnings().iter().map(ToString::to_string).collect::<Vec<_>>(),
    );
    let files = sources.files.iter().map(|file| format!(" and {}", file.name));
    let name = format!("the definitions that are built in{}", files.collect::<String>());
    Ok(Against { schema, name })
}

/// RFC 4512 § 4.4: the root DSE says where the schema is.
fn of_server(arguments: &Check, url: &str) -> Result<Against, Failure> {
    let bad = |why: &dyn std::fmt::Display| Failure::new(format!("{url}: {why}"));
    let server = ServerUrl::parse("--to", url)?;
    let login = arguments.access.login(&server)?;
    let mut session = SearchClient::open(&server, &arguments.access.connect_options(), &login)?;
    let mut read = |base: &str, filter: &str, attributes: &[&str]| -> Result<FoundEntry, Failure> {
        let SearchResult { entries, end } =
            session.search(base, Scope::Base, filter, attributes).map_err(|why| bad(&why))?;
        entries.into_iter().next().ok_or_else(|| {
            let why = end.err().map_or(String::new(), |why| format!(" ({})", why.words));
            bad(&format!(
                "it does not show its schema{why}; say who asks with --bind-dn, or name files of \
                 definitions with --schema"
            ))
        })
    };
    let root = read("", "(objectClass=*)", &["subschemaSubentry"])?;
    let place = root.value("subschemasubentry").unwrap_or("cn=subschema");
    let entry = read(place, "(objectClass=subschema)", &["attributeTypes", "objectClasses"])?;
    let text = as_ldif(place, &entry);
    let read = definitions::read(&[File { name: url, bytes: text.as_bytes() }]);
    let read = read.map_err(Failure::new)?;
    let (attributes, mut classes) = (bare(read.attribute_types), bare(read.object_classes));
    leave_out_hidden(&attributes, &mut classes);
    let schema = Schema::of(&attributes, &classes).map_err(|why| bad(&why))?;
    Ok(Against { schema, name: format!("the schema of {url}") })
}

/// The entry as 389 Directory Server keeps it, a definition a line.
fn as_ldif(dn: &str, entry: &FoundEntry) -> String {
    let mut text = format!("dn: {dn}\n");
    for name in ["attributeTypes", "objectClasses"] {
        for value in entry.values.get(&name.to_ascii_lowercase()).into_iter().flatten() {
            text += &format!("{name}: {}\n", value.replace(['\r', '\n'], " ").trim());
        }
    }
    text
}

/// Servers do not publish all attributes that their classes name: slapd has some for itself.
fn leave_out_hidden(
    attributes: &[AttributeTypeDescription],
    classes: &mut [ObjectClassDescription],
) {
    let names = attributes.iter().flat_map(|one| one.names.iter().chain([&one.oid]));
    let known: HashSet<String> = names.map(|name| name.to_ascii_lowercase()).collect();
    for list in classes.iter_mut().flat_map(|class| [&mut class.must, &mut class.may]) {
        list.retain(|name| known.contains(&name.to_ascii_lowercase()));
    }
}

fn bare<D>(located: Vec<Located<D>>) -> Vec<D> {
    located.into_iter().map(|one| one.definition).collect()
}
