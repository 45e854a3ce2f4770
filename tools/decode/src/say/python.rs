//! A program in Python, with python-ldap.

use super::quoting::{python_octets as octets, python_text as text};
use super::{Python, comment, comment_note};
use crate::operation::{Note, Operation};
use crate::secrets::{STAR, Secrets, is_secret};
use crate::view::View;
use keyway_codec::message::{Attribute, Authentication, ChangeOperation, Scope, SearchRequest};
use keyway_codec::{Op, extended};
use std::io::Write;

const BEGIN: &[u8] = b"\
import getpass
import ldap


def run(call, *arguments, **more):
    try:
        return call(*arguments, **more)
    except ldap.LDAPError as why:
        print(call.__name__, repr(why))


";

impl View for Python {
    fn operation(&mut self, operation: &Operation<'_>, out: &mut Vec<u8>) {
        if !self.is_begun {
            self.is_begun = true;
            out.extend_from_slice(BEGIN);
        }
        comment(operation, out);
        let mut call = Vec::new();
        if !self::call(operation, &mut call) {
            return;
        }
        let number = operation.connection.number;
        // As many as there are; beyond a limit one is opened again, which does no harm.
        if self.opened.len() < crate::limits::CONNECTIONS_MAX && self.opened.insert(number) {
            let _ = writeln!(out, "c{number} = ldap.initialize('{}')", url(operation));
        }
        if matches!(operation.request.op(), Some(Op::UnbindRequest)) {
            self.opened.remove(&number);
        }
        let _ = write!(out, "run(c{number}.");
        out.extend_from_slice(&call);
        out.extend_from_slice(b")\n");
    }

    fn note(&mut self, note: &Note<'_>, out: &mut Vec<u8>) {
        comment_note(note, out);
    }
}

fn url(operation: &Operation<'_>) -> String {
    let server = operation.connection.server;
    let at_once = operation.connection.tls && server.port().to_string().ends_with('6');
    format!("{}://{server}", if at_once { "ldaps" } else { "ldap" })
}

/// Appends the method and its arguments; whether there is one.
fn call(operation: &Operation<'_>, out: &mut Vec<u8>) -> bool {
    let Some(request) = operation.request.op() else { return false };
    match request {
        Op::BindRequest(bind) => {
            let Authentication::Simple(password) = bind.authentication else { return false };
            argument("simple_bind_s, ", bind.name, out);
            out.extend_from_slice(b", ");
            secret(operation, password, out);
        }
        Op::UnbindRequest => out.extend_from_slice(b"unbind_s"),
        Op::SearchRequest(search) => searching(search, out),
        Op::CompareRequest(compare) => {
            argument("compare_s, ", compare.dn, out);
            argument(", ", compare.attribute, out);
            out.extend_from_slice(b", ");
            octets(compare.value, out);
        }
        Op::AddRequest(add) => {
            argument("add_s, ", add.dn, out);
            out.extend_from_slice(b", [");
            for (index, attribute) in add.attributes.iter().enumerate() {
                out.extend_from_slice(if index > 0 { b", (" } else { b"(" });
                values(operation, attribute, out);
                out.push(b')');
            }
            out.push(b']');
        }
        Op::ModifyRequest(modify) => {
            argument("modify_s, ", modify.dn, out);
            out.extend_from_slice(b", [");
            for (index, change) in modify.changes.iter().enumerate() {
                out.extend_from_slice(if index > 0 { b", (" } else { b"(" });
                out.extend_from_slice(match change.operation {
                    ChangeOperation::Add => b"ldap.MOD_ADD, ",
                    ChangeOperation::Delete => b"ldap.MOD_DELETE, ",
                    ChangeOperation::Replace => b"ldap.MOD_REPLACE, ",
                    ChangeOperation::Increment => b"ldap.MOD_INCREMENT, ",
                });
                values(operation, &change.attribute, out);
                out.push(b')');
            }
            out.push(b']');
        }
        Op::DeleteRequest(dn) => argument("delete_s, ", dn, out),
        Op::ModifyDnRequest(rename) => {
            argument("rename_s, ", rename.dn, out);
            argument(", ", rename.new_rdn, out);
            if let Some(superior) = rename.new_superior {
                argument(", newsuperior=", superior, out);
            }
            let _ = write!(out, ", delold={}", u8::from(rename.delete_old_rdn));
        }
        Op::ExtendedRequest(request) => match request.oid {
            extended::WHO_AM_I => out.extend_from_slice(b"whoami_s"),
            extended::START_TLS => out.extend_from_slice(b"start_tls_s"),
            extended::PASSWORD_MODIFY => {
                let Ok(parameters) = extended::PasswordModifyRequest::decode(request.value) else {
                    return false;
                };
                out.extend_from_slice(b"passwd_s, ");
                optional(parameters.user, out);
                for password in [parameters.old, parameters.new] {
                    out.extend_from_slice(b", ");
                    match password {
                        Some(password) => secret(operation, password, out),
                        None => out.extend_from_slice(b"None"),
                    }
                }
            }
            _ => return false,
        },
        _ => return false,
    }
    true
}

fn argument(before: &str, argument: &str, out: &mut Vec<u8>) {
    out.extend_from_slice(before.as_bytes());
    text(argument, out);
}

fn optional(argument: Option<&str>, out: &mut Vec<u8>) {
    match argument {
        Some(argument) => text(argument, out),
        None => out.extend_from_slice(b"None"),
    }
}

/// A password, or a question for it.
fn secret(operation: &Operation<'_>, password: &[u8], out: &mut Vec<u8>) {
    if operation.secrets == Secrets::Hidden && password == STAR {
        out.extend_from_slice(b"getpass.getpass()");
    } else {
        octets(password, out);
    }
}

/// A description and its values; without values `None`.
fn values(operation: &Operation<'_>, attribute: &Attribute<'_>, out: &mut Vec<u8>) {
    text(&attribute.description, out);
    if attribute.values.is_empty() {
        return out.extend_from_slice(b", None");
    }
    out.extend_from_slice(b", [");
    for (index, value) in attribute.values.iter().enumerate() {
        if index > 0 {
            out.extend_from_slice(b", ");
        }
        if is_secret(&attribute.description) && operation.secrets == Secrets::Hidden {
            out.extend_from_slice(b"getpass.getpass().encode()");
        } else {
            octets(value, out);
        }
    }
    out.push(b']');
}

fn searching(search: &SearchRequest<'_>, out: &mut Vec<u8>) {
    argument("search_ext_s, ", search.base, out);
    out.extend_from_slice(match search.scope {
        Scope::Base => b", ldap.SCOPE_BASE",
        Scope::One => b", ldap.SCOPE_ONELEVEL",
        Scope::Subtree => b", ldap.SCOPE_SUBTREE",
        Scope::Subordinate => b", ldap.SCOPE_SUBORDINATE",
    });
    argument(", ", &search.filter.to_string(), out);
    out.extend_from_slice(b", [");
    for (index, name) in search.attributes.iter().enumerate() {
        argument(if index > 0 { ", " } else { "" }, name, out);
    }
    out.push(b']');
    if search.types_only {
        out.extend_from_slice(b", attrsonly=1");
    }
    if search.size_limit > 0 {
        let _ = write!(out, ", sizelimit={}", search.size_limit);
    }
    if search.time_limit_s > 0 {
        let _ = write!(out, ", timeout={}", search.time_limit_s);
    }
}
