//! The identity that binds, and how: with a name and a password, or by a mechanism of SASL.

use super::section::Section;
use crate::error::Error;
use crate::limits::PASSWORD_BYTES_MAX;
use crate::request::Request;
use crate::text::Names;
use crate::trust::read_secret;
use keyway_codec::Op;
use keyway_codec::message::{Authentication, BindRequest, Control};
use keyway_codec::sasl::Plain;
use std::path::Path;
use zeroize::Zeroizing;

/// The keys of an account.
pub(crate) const KEYS: [&str; 6] = ["dn", "password", "password_file", "sasl", "user", "as"];

/// The identity that binds, and its credentials.
#[derive(Clone)]
pub(crate) enum Account {
    /// RFC 4513 § 5.1.
    Simple { dn: String, password: Zeroizing<String> },
    /// RFC 4616.
    Plain { user: String, identity: String, password: Zeroizing<String> },
    /// The identity that the certificate or the socket shows (RFC 4422, appendix A).
    External { identity: String },
}

impl Account {
    /// Reads `{ dn = "...", password = "..." }` (or with `password_file`), `{ sasl = "PLAIN", user =
    /// "...", password = "..." }`, `{ sasl = "EXTERNAL" }`; the last two may have `as`, the identity to
    /// act as.
    pub(crate) fn read(section: &mut Section<'_>, folder: &Path) -> Result<Account, Error> {
        let mechanism = section.text("sasl")?;
        let identity = section.text("as")?;
        if mechanism.is_none() && (identity.is_some() || section.get("user").is_some()) {
            return Err(section.error("user and as go with sasl = \"PLAIN\" or \"EXTERNAL\""));
        }
        if mechanism.is_some() && section.get("dn").is_some() {
            return Err(section.error("either dn or sasl, not both"));
        }
        let identity = identity.unwrap_or_default().to_owned();
        match mechanism.map(str::to_ascii_uppercase).as_deref() {
            None => {
                let dn = section.text("dn")?.ok_or_else(|| section.error("dn is missing"))?;
                Ok(Account::Simple { dn: dn.to_owned(), password: password(section, folder)? })
            }
            Some("PLAIN") => {
                let user = section.text("user")?.ok_or_else(|| {
                    section.error("user is missing: \"dn:uid=...\", \"u:name\" or a name")
                })?;
                let user = user.to_owned();
                Ok(Account::Plain { user, identity, password: password(section, folder)? })
            }
            Some("EXTERNAL") => Ok(Account::External { identity }),
            Some(other) => {
                let why = format!("\"PLAIN\" and \"EXTERNAL\" are known, not \"{other}\"");
                Err(section.error_of("sasl", why))
            }
        }
    }

    /// The bind.
    pub(crate) fn request(
        &self,
        controls: Vec<Control<'_>>,
        names: &mut Names<'_>,
    ) -> Result<Request, String> {
        let bind = |name: &str, authentication, names: &Names<'_>| {
            let bind = BindRequest { version: 3, name, authentication };
            Request::new(Op::BindRequest(bind), controls, names)
        };
        match self {
            Account::Simple { dn, password } => {
                let name = names.mark(dn)?;
                let password = Zeroizing::new(names.mark(password)?);
                Ok(bind(&name, Authentication::Simple(password.as_bytes()), names))
            }
            Account::Plain { user, identity, password } => {
                let (user, identity) = (names.mark(user)?, names.mark(identity)?);
                let password = Zeroizing::new(names.mark(password)?);
                let plain =
                    Plain { authorization: &identity, authentication: &user, password: &password };
                let mut message = Zeroizing::new(Vec::new());
                plain.encode(&mut message);
                let credentials = Some(message.as_slice());
                Ok(bind("", Authentication::Sasl { mechanism: "PLAIN", credentials }, names))
            }
            Account::External { identity } => {
                let identity = names.mark(identity)?;
                // With nothing in it rather than without: so the server need not ask for it.
                let credentials = Some(identity.as_bytes());
                Ok(bind("", Authentication::Sasl { mechanism: "EXTERNAL", credentials }, names))
            }
        }
    }
}

/// A password that is there, or in a file of which the last line end does not count.
fn password(section: &mut Section<'_>, folder: &Path) -> Result<Zeroizing<String>, Error> {
    match (section.text("password")?, section.text("password_file")?) {
        (Some(password), None) => Ok(Zeroizing::new(password.to_owned())),
        (None, Some(file)) => {
            let path = folder.join(file);
            let bytes = Zeroizing::new(read_secret(&path, PASSWORD_BYTES_MAX)?);
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
