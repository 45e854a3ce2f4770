//! Bind: who is this? (RFC 4511 § 4.2, RFC 4513 § 5, RFC 4616)

use super::conversation::{Answer, Conversation};
use crate::failure::{Failure, Result};
use crate::names::Name;
use crate::password::{self, Check, Verdict};
use crate::{ADMINISTRATOR_DN, Attempt, Credentials, Directory, Subject};
use keyway_codec::message::{Authentication, BindRequest, LdapResult, ResultCode};
use keyway_codec::sasl::{Identity, Plain};
use std::sync::Arc;
use zeroize::Zeroizing;

/// How far an authentication got without waiting.
enum Outcome {
    /// This is who it is.
    Known(Subject),
    /// This is who it is if the check says so.
    Checking(Check, Claim),
}

/// A password that is being checked.
struct Claim {
    attempt: Attempt,
    directory: Arc<Directory>,
    /// The entry; `None` if there is no such one.
    found: Option<Credentials>,
    password: Zeroizing<Vec<u8>>,
}

impl Claim {
    /// The bind's result, which does not say what was wrong, and who it is.
    fn end(
        self,
        verdict: Result<Verdict, password::Error>,
    ) -> (LdapResult<'static>, Option<Subject>) {
        match (verdict, self.found) {
            (Ok(Verdict::Right { outdated }), Some(found)) => {
                let upgrade = outdated.and_then(|outdated| {
                    self.directory.upgrade_password(&found, outdated, self.password)
                });
                if let Some(upgrade) = upgrade {
                    tokio::spawn(upgrade);
                }
                (LdapResult::success(), Some(found.subject))
            }
            (Ok(_), _) => (LdapResult::new(ResultCode::InvalidCredentials, ""), None),
            (Err(error), _) => (Failure::from(error).into(), None),
        }
    }
}

impl Conversation {
    /// A bind that was received when no other request is under way.
    pub(super) fn bind(&mut self, id: u32, request: &BindRequest<'_>) {
        match self.authenticate(request) {
            Ok(Outcome::Known(subject)) => {
                // Whom no password has shown was shown by his certificate.
                self.by_certificate = !subject.is_anonymous();
                self.bound(id, LdapResult::success(), Some(subject));
            }
            Ok(Outcome::Checking(Check::Known(verdict), claim)) => {
                self.trying = Some(claim.attempt);
                let (result, subject) = claim.end(Ok(verdict));
                self.bound(id, result, subject);
            }
            Ok(Outcome::Checking(Check::Pending(pending), claim)) => {
                self.trying = Some(claim.attempt);
                self.wait_for_bind(id, async move {
                    let (result, subject) = claim.end(pending.await);
                    Answer::Bind { result, subject }
                });
            }
            Err(failure) => self.bound(id, failure.into(), None),
        }
    }

    fn authenticate(&self, request: &BindRequest<'_>) -> Result<Outcome> {
        if request.version != 3 {
            return Err(Failure::new(ResultCode::ProtocolError, "only LDAPv3 is spoken here"));
        }
        match request.authentication {
            Authentication::Simple(password) => self.simple(request.name, password),
            Authentication::Sasl { mechanism, credentials } => {
                if mechanism.eq_ignore_ascii_case("PLAIN") {
                    self.plain(credentials)
                } else if mechanism.eq_ignore_ascii_case("EXTERNAL") {
                    self.external(credentials)
                } else {
                    Err(Failure::new(
                        ResultCode::AuthMethodNotSupported,
                        "this SASL mechanism is not known; see supportedSASLMechanisms",
                    ))
                }
            }
            Authentication::Other(_) => Err(Failure::new(
                ResultCode::AuthMethodNotSupported,
                "only simple and SASL binds are known",
            )),
        }
    }

    /// RFC 4513 § 5.1.
    fn simple(&self, name: &str, password: &[u8]) -> Result<Outcome> {
        match (name.is_empty(), password.is_empty()) {
            (true, true) => return Ok(Outcome::Known(Subject::anonymous())),
            // § 5.1.2: clients that forget the password would take this for a success.
            (false, true) => {
                return Err(Failure::new(
                    ResultCode::UnwillingToPerform,
                    "a bind with a name needs a password",
                ));
            }
            (true, false) => {
                return Err(Failure::new(
                    ResultCode::InvalidCredentials,
                    "a bind with a password needs a name",
                ));
            }
            (false, false) => {}
        }
        self.require_privacy()?;
        let name = Name::parse(&self.shared.directory.core().schema, name)?;
        let found = self.shared.directory.credentials_of(&name)?;
        self.check(&name.canonical(), found, password)
    }

    /// RFC 4616: `[authzid] NUL authcid NUL passwd`, in one step.
    fn plain(&self, credentials: Option<&[u8]>) -> Result<Outcome> {
        self.require_privacy()?;
        let Some(Plain { authorization, authentication, password }) =
            Plain::decode(credentials.unwrap_or_default())
        else {
            return Err(Failure::new(
                ResultCode::ProtocolError,
                "PLAIN needs [authzid] NUL authcid NUL passwd",
            ));
        };
        let dn = self.resolve(authentication)?;
        if !authorization.is_empty() && self.resolve(authorization)? != dn {
            return Err(not_yourself());
        }
        let found = match &dn {
            Some(dn) => self.shared.directory.credentials(dn)?,
            None => None,
        };
        self.check(&self.asked(authentication)?, found, password.as_bytes())
    }

    /// RFC 4513 § 5.2.3: the certificate's subject names the entry, unless the settings say that it
    /// is the administrator's.
    fn external(&self, credentials: Option<&[u8]>) -> Result<Outcome> {
        let directory = &self.shared.directory;
        let is_administrator = self.shows_the_administrators_certificate();
        let subject = self.channel.certificate_subject.as_deref();
        let name = if is_administrator { Some(ADMINISTRATOR_DN) } else { subject };
        let Some(name) = name else {
            return Err(Failure::new(
                ResultCode::InappropriateAuthentication,
                "EXTERNAL needs TLS with a client certificate that has a subject",
            ));
        };
        let found = match directory.credentials(name) {
            Ok(found) => found,
            // It has types that are not in the schema, or values that are not of their type.
            Err(failure) if failure.code == ResultCode::InvalidDnSyntax => None,
            Err(failure) => return Err(failure),
        };
        let Some(found) = found else {
            return Err(Failure::new(
                ResultCode::InvalidCredentials,
                "the certificate's subject is no entry here",
            ));
        };
        if found.subject.is_administrator() && !is_administrator {
            return Err(Failure::new(
                ResultCode::InvalidCredentials,
                "the configuration does not name this certificate as the administrator's",
            ));
        }
        let authorization = std::str::from_utf8(credentials.unwrap_or_default());
        let itself = match authorization {
            Ok("") => true,
            Ok(authorization) => self.resolve(authorization)?.as_deref() == Some(&found.dn),
            Err(_) => false,
        };
        if itself { Ok(Outcome::Known(found.subject)) } else { Err(not_yourself()) }
    }

    fn shows_the_administrators_certificate(&self) -> bool {
        let subject = self.channel.certificate_subject.as_deref();
        let fingerprint = self.channel.certificate_fingerprint.as_ref();
        let core = self.shared.directory.core();
        let mut administrators = self.settings.administrators.iter();
        administrators.any(|one| one.is(fingerprint, subject, &core.schema))
    }

    /// The mechanisms that `supportedSASLMechanisms` names: those that can succeed on the
    /// connection.
    pub(super) fn mechanisms(&self) -> &'static [&'static str] {
        let has_subject = self.channel.certificate_subject.is_some();
        match (has_subject || self.shows_the_administrators_certificate(), self.channel.private) {
            (true, true) => &["EXTERNAL", "PLAIN"],
            (true, false) => &["EXTERNAL"],
            (false, true) => &["PLAIN"],
            (false, false) => &[],
        }
    }

    /// A password may cross only what nobody can listen to.
    pub(super) fn require_privacy(&self) -> Result<()> {
        if self.channel.private {
            return Ok(());
        }
        Err(Failure::new(
            ResultCode::ConfidentialityRequired,
            "passwords are taken over TLS only: use StartTLS or ldaps, and change this one",
        ))
    }

    /// Checks a password of the entry that was found by what was asked for.
    fn check(&self, asked: &[u8], found: Option<Credentials>, password: &[u8]) -> Result<Outcome> {
        let directory = self.shared.directory.clone();
        let passwords = &directory.shared.passwords;
        let attempt = passwords.attempt(self.from, asked, self.standing);
        let values = found.as_ref().map_or(&[][..], |found| &found.passwords);
        let password = Zeroizing::new(password.to_vec());
        let entry = found.as_ref().and_then(|found| found.subject.id());
        let check = passwords.check(attempt, entry, password.clone(), values)?;
        Ok(Outcome::Checking(check, Claim { attempt, directory, found, password }))
    }

    /// An identity in a form in which equal ones are equal, whether or not anybody has it: the
    /// brake on guessing must not tell.
    fn asked(&self, identity: &str) -> Result<Vec<u8>> {
        let core = self.shared.directory.core();
        let schema = &core.schema;
        match Identity::parse(identity) {
            Identity::Dn(dn) => Ok(Name::parse(schema, dn)?.canonical()),
            Identity::Uid(uid) => {
                let rule = schema.attribute("uid").and_then(|attribute| attribute.equality());
                let normal = rule.and_then(|rule| schema.normalize(rule, uid.as_bytes()));
                Ok([b"u:", normal.as_deref().unwrap_or(uid.as_bytes())].concat())
            }
        }
    }

    /// The DN that an identity stands for. `None` if no one entry has that uid, or no entry is
    /// named so.
    pub(super) fn resolve(&self, identity: &str) -> Result<Option<String>> {
        let directory = &self.shared.directory;
        match Identity::parse(identity) {
            Identity::Dn(dn) => Ok(directory.credentials(dn)?.map(|found| found.dn)),
            Identity::Uid(uid) => directory.dn_of_uid(uid),
        }
    }
}

fn not_yourself() -> Failure {
    Failure::new(ResultCode::InvalidCredentials, "nobody may act for another here")
}
