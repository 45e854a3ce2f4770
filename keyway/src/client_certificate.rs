//! `keyway admin certificate`: certificates for clients.

use crate::data_flag::Data;
use crate::value::small_within;
use clap::Args;
use keyway_folder::subject::CertificateSubject;
use keyway_host::failure::Failure;
use keyway_host::output;
use keyway_service::client_certificate;
use serde_json::json;
use std::path::PathBuf;

/// Issue a certificate to a client, with which it binds by SASL EXTERNAL
///
/// The authority of the data folder issues it, also while a server runs: its key is where it is, in cryptod
/// (which then has to run) or in DIR/ca.key. The client's key is made here and kept in FILE.key alone.
///
/// A client that shows it is the entry that its subject names, or the administrator if `[tls]`
/// administrators of DIR/keyway.toml has the subject or the fingerprint, which is printed. A subject has
/// each type of attribute once: for entries below two of dc, name an authority of your own in client_ca.
/// There is no revocation list of this authority: give short times, or use one of your own.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  keyway admin certificate cn=Ada
      ./Ada.pem and ./Ada.key, for a year
  keyway admin certificate uid=backup,o=Example --out /etc/backup/ldap --days 30
      /etc/backup/ldap.pem and ldap.key, for the entry of that name
  LDAPTLS_CACERT=keyway-data/ca.pem LDAPTLS_CERT=Ada.pem LDAPTLS_KEY=Ada.key \\
      ldapwhoami -Y EXTERNAL -H ldaps://localhost:1636
      what the server takes it for")]
pub struct ClientCertificate {
    #[command(flatten)]
    pub data: Data,
    /// Whose it is: a DN of cn, uid, ou, o, l, st, c and dc
    #[arg(value_name = "SUBJECT")]
    pub subject: CertificateSubject,
    /// Where it goes: FILE.pem, and its key FILE.key [default: the first value of the subject]
    #[arg(long, value_name = "FILE")]
    pub out: Option<PathBuf>,
    /// For how many days it is good
    #[arg(long, value_name = "N", default_value_t = 365, value_parser = small_within::<1, 3650>)]
    pub days: u16,
    /// Say what was made as one line of JSON
    #[arg(long)]
    pub json: bool,
}

/// Issues it.
///
/// # Errors
/// If the authority or its key is not there, or the files are there already.
pub fn run(arguments: &ClientCertificate) -> Result<(), Failure> {
    let ClientCertificate { data, subject, out, days, json } = arguments;
    let issued = client_certificate::issue(&data.folder, subject, out.as_deref(), *days)?;
    let dn = subject.dn().to_string();
    let (certificate, key) = (issued.certificate.display(), issued.key.display());
    let (fingerprint, ends) = (issued.fingerprint, issued.ends);
    if *json {
        return output::json(&json!({
            "event": "certificate_issued",
            "subject": dn,
            "certificate": certificate.to_string(),
            "key": key.to_string(),
            "fingerprint": fingerprint,
            "ends": ends,
        }));
    }
    output::text(format_args!("{dn}: {certificate} and {key}, until {ends}\n{fingerprint}"))
}
