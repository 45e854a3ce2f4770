//! How entries are written: LDIF, change records, CSV, and lists of names, of passwords and of
//! logins beside them.

use crate::list::is_plain;
use crate::maker::View;
use crate::plan::{Plan, Step};
use keyway_codec::ldif::Writer;

/// Longest line of LDIF that is not folded.
const LINE_BYTES_MAX: usize = 76;
/// The separator between values of a field of CSV.
const BETWEEN_VALUES: &[u8] = b"|";
const PASSWORD: &str = "userPassword";

/// How an entry is written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Format {
    /// LDIF (RFC 2849), an entry as it is.
    Ldif,
    /// LDIF, a record that adds the entry.
    Add,
    /// LDIF, a record that replaces values of the entry by those of another generation: of these
    /// attributes, or of all that chance has a part in and that names are not made of.
    Modify(Option<Vec<String>>),
    /// LDIF, a record that deletes the entry.
    Delete,
    /// Comma-separated values (RFC 4180): the DN, and these attributes.
    Csv(Vec<String>),
    /// The DN on a line.
    Dns,
    /// The DN, a tab, the password; entries without a password are left out.
    Binds,
    /// The value of this attribute, a tab, the password; entries without either are left out.
    Logins(String),
}

impl Format {
    /// The beginning of a file.
    #[must_use]
    pub fn head(&self) -> Vec<u8> {
        match self {
            Format::Csv(columns) => {
                let mut head = b"dn".to_vec();
                for column in columns {
                    head.push(b',');
                    push_field(&mut head, column.as_bytes());
                }
                head.push(b'\n');
                head
            }
            _ => Vec::new(),
        }
    }

    /// Whether children have to be written before the entry above them.
    pub(crate) fn is_backwards(&self) -> bool {
        *self == Format::Delete
    }

    /// Appends an entry.
    #[inline]
    pub fn write(&self, view: &View<'_>, out: &mut Vec<u8>) {
        match self {
            Format::Ldif => {
                ldif_name(view, out);
                ldif_values(view, out);
                out.push(b'\n');
            }
            Format::Add => {
                ldif_name(view, out);
                out.extend_from_slice(b"changetype: add\n");
                ldif_values(view, out);
                out.push(b'\n');
            }
            Format::Modify(attributes) => modify(view, attributes.as_deref(), out),
            Format::Delete => {
                ldif_name(view, out);
                out.extend_from_slice(b"changetype: delete\n\n");
            }
            Format::Csv(columns) => csv(view, columns, out),
            Format::Dns => push_line(out, &[view.dn().as_bytes()]),
            Format::Binds => {
                if let Some(password) = view.values(PASSWORD).next() {
                    push_line(out, &[view.dn().as_bytes(), password]);
                }
            }
            Format::Logins(attribute) => {
                let login = view.values(attribute).next();
                if let (Some(login), Some(password)) = (login, view.values(PASSWORD).next()) {
                    push_line(out, &[login, password]);
                }
            }
        }
    }
}

#[inline]
fn ldif_name(view: &View<'_>, out: &mut Vec<u8>) {
    push_value(out, b"dn: ", "dn", view.dn().as_bytes(), false);
}

#[inline]
fn ldif_values(view: &View<'_>, out: &mut Vec<u8>) {
    for step in &view.kind.ldif {
        match step {
            Step::Text(text) => out.extend_from_slice(text),
            Step::Line(at) => {
                let Some(line) = view.kind.lines.get(*at) else { continue };
                for value in view.entry.values(*at) {
                    push_value(out, &line.prefix, &line.attribute, value, line.is_plain);
                }
            }
        }
    }
}

/// Writes a line; a value that is neither plain nor short is the codec's business.
#[inline]
fn push_value(out: &mut Vec<u8>, prefix: &[u8], name: &str, value: &[u8], plain: bool) {
    if prefix.len() + value.len() <= LINE_BYTES_MAX && (plain || is_plain(value)) {
        out.extend_from_slice(prefix);
        out.extend_from_slice(value);
        out.push(b'\n');
    } else {
        Writer::new(out).value(name, value);
    }
}

fn modify(view: &View<'_>, attributes: Option<&[String]>, out: &mut Vec<u8>) {
    let (kind, plan): (_, &Plan) = (view.kind, view.plan);
    let start = out.len();
    ldif_name(view, out);
    out.extend_from_slice(b"changetype: modify\n");
    let mut is_changed = false;
    for (_, lines) in &kind.attributes {
        let Some(first) = lines.first().and_then(|at| kind.lines.get(*at)) else { continue };
        let name = first.attribute.as_str();
        let is_wanted = match attributes {
            Some(wanted) => wanted.iter().any(|it| it.eq_ignore_ascii_case(name)),
            None => plan.is_changeable(kind, lines),
        };
        if !is_wanted {
            continue;
        }
        is_changed = true;
        push_value(out, b"replace: ", "replace", name.as_bytes(), true);
        for at in lines {
            for value in view.entry.values(*at) {
                push_value(out, &first.prefix, name, value, first.is_plain && lines.len() == 1);
            }
        }
        out.extend_from_slice(b"-\n");
    }
    match is_changed {
        true => out.push(b'\n'),
        // There is nothing to change about it.
        false => out.truncate(start),
    }
}

fn csv(view: &View<'_>, columns: &[String], out: &mut Vec<u8>) {
    push_field(out, view.dn().as_bytes());
    let mut field = Vec::new();
    for column in columns {
        out.push(b',');
        field.clear();
        for (at, value) in view.values(column).enumerate() {
            if at > 0 {
                field.extend_from_slice(BETWEEN_VALUES);
            }
            field.extend_from_slice(value);
        }
        push_field(out, &field);
    }
    out.push(b'\n');
}

fn push_field(out: &mut Vec<u8>, value: &[u8]) {
    if !value.iter().any(|byte| b",\"\r\n".contains(byte)) {
        out.extend_from_slice(value);
        return;
    }
    out.push(b'"');
    for byte in value {
        if *byte == b'"' {
            out.push(b'"');
        }
        out.push(*byte);
    }
    out.push(b'"');
}

fn push_line(out: &mut Vec<u8>, fields: &[&[u8]]) {
    for (at, field) in fields.iter().enumerate() {
        if at > 0 {
            out.push(b'\t');
        }
        out.extend_from_slice(field);
    }
    out.push(b'\n');
}
