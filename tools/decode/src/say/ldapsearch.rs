//! Commands of OpenLDAP's ldap-utils.

use super::quoting::shell;
use super::{Commands, comment, comment_note, ldif};
use crate::operation::{Note, Operation};
use crate::query::{mechanism, user};
use crate::secrets::{STAR, Secrets};
use crate::view::View;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use keyway_codec::message::{
    Authentication, Control, Deref, ModifyDnRequest, Scope, SearchRequest,
};
use keyway_codec::{Op, extended};
use std::io::Write;

impl View for Commands {
    fn operation(&mut self, operation: &Operation<'_>, out: &mut Vec<u8>) {
        comment(operation, out);
        let start = out.len();
        if command(operation, out) {
            out.push(b'\n');
        } else {
            out.truncate(start);
        }
    }

    fn note(&mut self, note: &Note<'_>, out: &mut Vec<u8>) {
        comment_note(note, out);
    }
}

/// Appends the command; whether there is one.
fn command(operation: &Operation<'_>, out: &mut Vec<u8>) -> bool {
    let Some(request) = operation.request.op() else { return false };
    let bound = operation.connection.bound.as_str();
    match request {
        Op::BindRequest(bind) => {
            let Authentication::Simple(password) = bind.authentication else {
                return sasl(operation, out);
            };
            let name = bind.name;
            program("ldapwhoami", operation, name, out);
            if operation.secrets == Secrets::Shown && !password.is_empty() {
                // In the place of the question.
                out.truncate(out.len() - 3);
                option(" -w ", password, out);
            }
        }
        Op::SearchRequest(search) => {
            program("ldapsearch", operation, bound, out);
            searching(search, out);
            controls("-E", operation, out);
            // Also attributes may look like options.
            if search.attributes.iter().any(|name| name.starts_with('-')) {
                out.extend_from_slice(b" --");
            }
            option(" ", search.filter.to_string().as_bytes(), out);
            search.attributes.iter().for_each(|name| option(" ", name.as_bytes(), out));
        }
        Op::CompareRequest(compare) => {
            program("ldapcompare", operation, bound, out);
            positional(compare.dn, out);
            let mut assertion = compare.attribute.as_bytes().to_vec();
            assertion.extend_from_slice(b"::");
            assertion.extend_from_slice(STANDARD.encode(compare.value).as_bytes());
            option(" ", &assertion, out);
        }
        Op::DeleteRequest(dn) => {
            program("ldapdelete", operation, bound, out);
            positional(dn, out);
        }
        Op::ModifyDnRequest(rename) => {
            program("ldapmodrdn", operation, bound, out);
            renaming(rename, out);
        }
        Op::AddRequest(_) | Op::ModifyRequest(_) => {
            let mut record = Vec::new();
            if !ldif::record(operation, &mut record) {
                return false;
            }
            program("ldapmodify", operation, bound, out);
            out.extend_from_slice(b" <<'EOF'\n");
            out.extend_from_slice(&record);
            out.extend_from_slice(b"EOF");
        }
        Op::ExtendedRequest(request) => match request.oid {
            extended::WHO_AM_I => program("ldapwhoami", operation, bound, out),
            extended::PASSWORD_MODIFY => {
                program("ldappasswd", operation, bound, out);
                password(operation, request.value, out);
                if let Some(user) = user(operation) {
                    positional(user, out);
                }
            }
            _ => return false,
        },
        _ => return false,
    }
    true
}

fn sasl(operation: &Operation<'_>, out: &mut Vec<u8>) -> bool {
    out.extend_from_slice(b"ldapwhoami -H ");
    shell(url(operation).as_bytes(), out);
    option(" -Y ", mechanism(operation).unwrap_or_default().as_bytes(), out);
    if let Some(user) = user(operation) {
        option(" -U ", user.as_bytes(), out);
    }
    true
}

fn url(operation: &Operation<'_>) -> String {
    let server = operation.connection.server;
    // StartTLS has a flag of its own.
    let at_once = operation.connection.tls && server.port().to_string().ends_with('6');
    let scheme = if at_once { "ldaps" } else { "ldap" };
    format!("{scheme}://{server}")
}

/// A program, its server and its bind DN.
fn program(name: &str, operation: &Operation<'_>, bound: &str, out: &mut Vec<u8>) {
    let url = url(operation);
    let _ = write!(out, "{name} -x -H ");
    shell(url.as_bytes(), out);
    if operation.connection.tls && url.starts_with("ldap:") {
        out.extend_from_slice(b" -ZZ");
    }
    if name == "ldapsearch" {
        out.extend_from_slice(b" -LLL");
    } else {
        controls("-e", operation, out);
    }
    if !bound.is_empty() {
        option(" -D ", bound.as_bytes(), out);
        out.extend_from_slice(b" -W");
    }
}

fn option(before: &str, argument: &[u8], out: &mut Vec<u8>) {
    out.extend_from_slice(before.as_bytes());
    shell(argument, out);
}

/// An argument that is no option, also if it looks like one.
fn positional(argument: &str, out: &mut Vec<u8>) {
    if argument.starts_with('-') {
        out.extend_from_slice(b" --");
    }
    option(" ", argument.as_bytes(), out);
}

fn searching(search: &SearchRequest<'_>, out: &mut Vec<u8>) {
    option(" -b ", search.base.as_bytes(), out);
    let scope = match search.scope {
        Scope::Base => "base",
        Scope::One => "one",
        Scope::Subtree => "sub",
        Scope::Subordinate => "children",
    };
    option(" -s ", scope.as_bytes(), out);
    let deref = match search.deref {
        Deref::Never => None,
        Deref::InSearching => Some("search"),
        Deref::FindingBase => Some("find"),
        Deref::Always => Some("always"),
    };
    if let Some(deref) = deref {
        option(" -a ", deref.as_bytes(), out);
    }
    if search.size_limit > 0 {
        let _ = write!(out, " -z {}", search.size_limit);
    }
    if search.time_limit_s > 0 {
        let _ = write!(out, " -l {}", search.time_limit_s);
    }
    if search.types_only {
        out.extend_from_slice(b" -A");
    }
}

fn renaming(rename: &ModifyDnRequest<'_>, out: &mut Vec<u8>) {
    if rename.delete_old_rdn {
        out.extend_from_slice(b" -r");
    }
    if let Some(superior) = rename.new_superior {
        option(" -s ", superior.as_bytes(), out);
    }
    positional(rename.dn, out);
    option(" ", rename.new_rdn.as_bytes(), out);
}

/// Asks for each password that there was, or has it.
fn password(operation: &Operation<'_>, value: Option<&[u8]>, out: &mut Vec<u8>) {
    let Ok(parameters) = extended::PasswordModifyRequest::decode(value) else { return };
    let mut one = |ask: &str, given: &str, password: Option<&[u8]>| match password {
        Some(password) if operation.secrets == Secrets::Shown && password != STAR => {
            option(given, password, out);
        }
        Some(_) => out.extend_from_slice(ask.as_bytes()),
        None => {}
    };
    one(" -A", " -a ", parameters.old);
    one(" -S", " -s ", parameters.new);
}

/// Controls by their object identifiers, as the tools take those they do not know.
fn controls(flag: &str, operation: &Operation<'_>, out: &mut Vec<u8>) {
    let all: &[Control<'_>] = operation.request.message().map_or(&[], |message| &message.controls);
    for control in all {
        let mut text = String::from(if control.critical { "!" } else { "" });
        text.push_str(control.oid);
        if let Some(value) = &control.value {
            text.push_str("=:");
            text.push_str(&STANDARD.encode(value));
        }
        let _ = write!(out, " {flag} ");
        shell(text.as_bytes(), out);
    }
}
