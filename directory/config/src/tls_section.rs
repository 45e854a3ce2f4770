//! `[tls]`: certificates, versions and suites, and which clients are asked for a certificate.

use crate::limits::CERTIFICATES_MAX;
use crate::raw;
use crate::wrong::{NO_KEY_NAME, Wrong, choice, wrong};
use keyway_engine::is_key_name;
use keyway_folder::host_names;
use keyway_folder::limits::CERTIFICATE_NAMES_MAX;
use keyway_folder::tls::{Clients, Pair, ServerKey, Settings, Versions};
use keyway_tls::suites_by_name;
use rustls::CipherSuite;
use std::path::PathBuf;
use toml::Spanned;

/// The contents of the section.
pub fn settings(raw: &raw::Tls) -> Result<Settings, Wrong> {
    let clients =
        [("off", Clients::Off), ("optional", Clients::Optional), ("required", Clients::Required)];
    let clients = choice(&raw.client_certificates, &clients)?;
    let versions = versions(raw)?;
    let name =
        |text: &Spanned<String>| host_names::name(text.get_ref()).map_err(|why| wrong(text, why));
    let paths = |texts: &[String]| texts.iter().map(PathBuf::from).collect();
    if let Some(one_too_many) = raw.names.get(CERTIFICATE_NAMES_MAX) {
        let why = format!("there are more than {CERTIFICATE_NAMES_MAX} names");
        return Err(wrong(one_too_many, why));
    }
    Ok(Settings {
        files: files(raw)?,
        additional: additional(&raw.additional)?,
        versions,
        ciphers: ciphers(raw, versions)?,
        names: raw.names.iter().map(name).collect::<Result<_, _>>()?,
        clients,
        client_ca: paths(&raw.client_ca),
        client_crls: paths(&raw.client_crls),
    })
}

fn files(raw: &raw::Tls) -> Result<Option<Pair>, Wrong> {
    match (raw.certificate.get_ref().is_empty(), raw.key.get_ref().is_empty()) {
        (true, true) => Ok(None),
        (false, false) => Ok(Some(pair(&raw.certificate, &raw.key)?)),
        (false, true) => Err(wrong(&raw.certificate, "name the key's file too")),
        (true, false) => Err(wrong(&raw.key, "name the certificate's file too")),
    }
}

fn additional(raw: &[Spanned<raw::Pair>]) -> Result<Vec<Pair>, Wrong> {
    if let Some(one_too_many) = raw.get(CERTIFICATES_MAX) {
        let why = format!("there are more than {CERTIFICATES_MAX} certificates");
        return Err(wrong(one_too_many, why));
    }
    let read = |one: &Spanned<raw::Pair>| {
        let raw::Pair { certificate, key } = one.get_ref();
        match [certificate, key].into_iter().find(|text| text.get_ref().is_empty()) {
            Some(empty) => Err(wrong(empty, "it must be a path")),
            None => pair(certificate, key),
        }
    };
    raw.iter().map(read).collect()
}

fn pair(certificate: &Spanned<String>, key: &Spanned<String>) -> Result<Pair, Wrong> {
    let key = match key.get_ref().strip_prefix("cryptod:") {
        None => ServerKey::File(key.get_ref().into()),
        Some(name) if is_key_name(name) => ServerKey::Held(name.to_owned()),
        Some(_) => return Err(wrong(key, NO_KEY_NAME)),
    };
    Ok(Pair { certificate: certificate.get_ref().into(), key })
}

fn versions(raw: &raw::Tls) -> Result<Versions, Wrong> {
    let (mut tls13, mut tls12) = (false, false);
    for version in &raw.versions {
        match version.get_ref().as_str() {
            "1.3" => tls13 = true,
            "1.2" => tls12 = true,
            other => return Err(wrong(version, format!("\"{other}\" is not one of 1.3, 1.2"))),
        }
    }
    match (tls13, tls12) {
        (true, false) => Ok(Versions::Tls13),
        (false, true) => Ok(Versions::Tls12),
        // An empty list says nothing.
        _ => Ok(Versions::Both),
    }
}

fn ciphers(raw: &raw::Tls, versions: Versions) -> Result<Vec<CipherSuite>, Wrong> {
    let known: Vec<(String, CipherSuite)> = suites_by_name().collect();
    let read = |text: &Spanned<String>| {
        let found = known.iter().find(|(name, _)| name == text.get_ref());
        found.map(|(_, suite)| *suite).ok_or_else(|| {
            let names: Vec<_> = known.iter().map(|(name, _)| name.as_str()).collect();
            wrong(text, format!("\"{}\" is none of {}", text.get_ref(), names.join(", ")))
        })
    };
    let suites = raw.ciphers.iter().map(read).collect::<Result<Vec<_>, _>>()?;
    let Some(first) = raw.ciphers.first() else { return Ok(suites) };
    let is_tls12 = |text: &Spanned<String>| text.get_ref().starts_with("TLS_ECDHE_");
    let has_tls12 = raw.ciphers.iter().any(is_tls12);
    let has_tls13 = !raw.ciphers.iter().all(is_tls12);
    let lacking = match versions {
        Versions::Both | Versions::Tls13 if !has_tls13 => "1.3",
        Versions::Both | Versions::Tls12 if !has_tls12 => "1.2",
        _ => return Ok(suites),
    };
    let why = format!(
        "none of them is of TLS {lacking}, which versions has; name one, or take {lacking} out of versions"
    );
    Err(wrong(first, why))
}
