//! Passwords, which reports do not contain unless the user asked for them.
//!
//! A password becomes `*`, whatever its length. That happens once, where a message is decoded; what
//! comes after, views, filters and files, never has them.

use crate::parameters::{is_harmless, is_secret_control};
use keyway_codec::extended::{self, PasswordModifyRequest};
use keyway_codec::message::{
    Attribute, Authentication, ExtendedRequest, ExtendedResponse, is_password,
};
use keyway_codec::sasl::Plain;
use keyway_codec::secret::SECRETS;
use keyway_codec::{Filter, Message, Op};
use std::borrow::Cow;

/// Whether passwords are shown.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Secrets {
    /// `*` stands in their place.
    #[default]
    Hidden,
    /// They are, as they are.
    Shown,
}

/// The text in the place of a password.
pub use crate::parameters::STAR;

/// Attributes of other directories that hold passwords, beside those that a directory knows.
const OTHERS: [&str; 8] = [
    "trustAuthIncoming",
    "trustAuthOutgoing",
    "msDS-ManagedPassword",
    "ms-Mcs-AdmPwd",
    "msLAPS-Password",
    "msLAPS-EncryptedPassword",
    "olcDbIDAssertBind",
    "nsslapd-rootpw",
];

/// Attributes of change logs: their values are changes, to passwords too.
const CHANGES: [&str; 4] = ["changes", "reqMod", "reqOld", "reqData"];

/// Names of what is hidden that are part of other names too.
const PASSWORDS: [&str; 3] = ["userPassword", "authPassword", "pwdHistory"];

/// Whether values of this attribute are not to be seen.
#[must_use]
pub fn is_secret(description: &str) -> bool {
    is_password(description) || is_one_of(description, SECRETS) || is_one_of(description, &OTHERS)
}

fn is_one_of(description: &str, names: &[&str]) -> bool {
    let name = description.split(';').next().unwrap_or_default();
    names.iter().any(|other| name.eq_ignore_ascii_case(other))
}

/// Whether there is the name of such an attribute among these octets.
fn mentions_secret(octets: &[u8]) -> bool {
    let has = |name: &&str| {
        octets.windows(name.len()).any(|window| window.eq_ignore_ascii_case(name.as_bytes()))
    };
    PASSWORDS.iter().chain(SECRETS).chain(&OTHERS).any(has)
}

/// The message without its passwords. `scratch` has what of it is not as it came.
#[must_use]
pub fn hide<'a>(
    mut message: Message<'a>,
    secrets: Secrets,
    scratch: &'a mut Vec<u8>,
) -> Message<'a> {
    if secrets == Secrets::Shown {
        return message;
    }
    hide_controls(&mut message);
    match &mut message.op {
        Op::BindRequest(request) => hide_credentials(&mut request.authentication, scratch),
        Op::BindResponse(response) if response.server_sasl_credentials.is_some() => {
            response.server_sasl_credentials = Some(STAR);
        }
        Op::SearchRequest(request) => hide_assertions(&mut request.filter),
        Op::SearchResultEntry(entry) => entry.attributes.iter_mut().for_each(hide_values),
        Op::ModifyRequest(request) => {
            request.changes.iter_mut().for_each(|change| hide_values(&mut change.attribute));
        }
        Op::AddRequest(request) => request.attributes.iter_mut().for_each(hide_values),
        Op::CompareRequest(request) if is_secret(request.attribute) => request.value = STAR,
        Op::ExtendedRequest(request) => hide_parameters(request, scratch),
        Op::ExtendedResponse(response) => hide_answer(response),
        _ => {}
    }
    message
}

fn hide_credentials<'a>(authentication: &mut Authentication<'a>, scratch: &'a mut Vec<u8>) {
    match authentication {
        // An empty one is none: RFC 4513 § 5.1.2.
        Authentication::Simple(password) if !password.is_empty() => *password = STAR,
        Authentication::Sasl { mechanism, credentials: Some(credentials) } => {
            if mechanism.eq_ignore_ascii_case("EXTERNAL") || credentials.is_empty() {
                return;
            }
            match Plain::decode(credentials) {
                Some(plain) if mechanism.eq_ignore_ascii_case("PLAIN") => {
                    Plain { password: "*", ..plain }.encode(scratch);
                    *credentials = scratch;
                }
                _ => *credentials = STAR,
            }
        }
        _ => {}
    }
}

fn hide_parameters<'a>(request: &mut ExtendedRequest<'a>, scratch: &'a mut Vec<u8>) {
    let Some(value) = request.value.filter(|_| !is_harmless(request.oid)) else { return };
    let parameters = PasswordModifyRequest::decode(Some(value));
    request.value = Some(match parameters {
        Ok(parameters) if request.oid == extended::PASSWORD_MODIFY => {
            let star = |password: Option<&'a [u8]>| password.map(|_| STAR);
            let (old, new) = (star(parameters.old), star(parameters.new));
            PasswordModifyRequest { old, new, ..parameters }.encode(scratch);
            scratch
        }
        _ => STAR,
    });
}

fn hide_answer(response: &mut ExtendedResponse<'_>) {
    let Some(value) = response.value.as_deref().filter(|value| !value.is_empty()) else { return };
    // Who am I? has no name in its response, and an identity that is none of the others'.
    let is_identity = value.starts_with(b"dn:") || value.starts_with(b"u:");
    if !is_identity && !response.oid.as_deref().is_some_and(is_harmless) {
        response.value = Some(Cow::Borrowed(STAR));
    }
}

fn hide_values(attribute: &mut Attribute<'_>) {
    let is_change = is_one_of(&attribute.description, &CHANGES);
    let is_secret = is_secret(&attribute.description);
    for value in &mut attribute.values {
        if is_secret || (is_change && mentions_secret(value)) {
            *value = Cow::Borrowed(STAR);
        }
    }
}

fn hide_assertions(filter: &mut Filter<'_>) {
    let star = |attribute: &Cow<'_, str>, value: &mut Cow<'_, [u8]>| {
        if is_secret(attribute) {
            *value = Cow::Borrowed(STAR);
        }
    };
    match filter {
        Filter::And(terms) | Filter::Or(terms) => terms.iter_mut().for_each(hide_assertions),
        Filter::Not(term) => hide_assertions(term),
        Filter::Equality { attribute, value }
        | Filter::GreaterOrEqual { attribute, value }
        | Filter::LessOrEqual { attribute, value }
        | Filter::Approx { attribute, value }
        | Filter::Extensible { attribute: Some(attribute), value, .. } => star(attribute, value),
        Filter::Substrings { attribute, initial, any, last } if is_secret(attribute) => {
            *initial = Some(Cow::Borrowed(STAR));
            (*any, *last) = (Vec::new(), None);
        }
        _ => {}
    }
}

/// Entries and filters in controls may have passwords too.
fn hide_controls(message: &mut Message<'_>) {
    for control in &mut message.controls {
        let is_secret = is_secret_control(control.oid);
        if control.value.as_deref().is_some_and(|value| is_secret || mentions_secret(value)) {
            control.value = Some(Cow::Borrowed(STAR));
        }
    }
}
