//! Bind: the identity of a client. (RFC 4511 § 4.2, RFC 4513 § 5, RFC 4616)

use crate::outcome::Answer;
use crate::peer::PeerCredentials;
use crate::requested_controls::RequestedControls;
use crate::session::Session;
use keyway_codec::message::{
    Authentication, BindRequest, BindResponse, LdapResult, Op, ResultCode,
};
use keyway_codec::sasl::{Identity, Plain};
use keyway_password::PasswordCheck;
use keyway_schema::EntryName;
use keyway_server::log::stages::{self, Stage};
use keyway_server::{ADMINISTRATOR_DN, BindOutcome, Credentials, Failure, PendingBind, Subject};
type Result<T> = std::result::Result<T, Failure>;

/// The answer to a user who has more connections than others while all are taken.
const CONNECTIONS_TAKEN: &str = "all connections are taken, and no user has more than this one";

/// How far an authentication got without waiting.
enum Outcome {
    /// This is who it is.
    Known(Subject),
    /// This is who it is if the check says so.
    Checking(PasswordCheck, Box<PendingBind>),
}

impl Session {
    /// A bind that was received when no other request is under way.
    pub(crate) fn bind(
        &mut self,
        id: u32,
        request: &BindRequest<'_>,
        requested: RequestedControls,
    ) {
        // Whether passwords may cross it, and who is an administrator, is as the settings say now.
        self.settings = self.shared.settings();
        if !self.channel.tls {
            self.channel.private = self.settings.is_private(&self.request_log.origin.peer);
        }
        match self.authenticate(id, request) {
            Ok(Outcome::Known(subject)) => {
                // A user that no password has shown has shown a certificate.
                self.by_certificate = !subject.is_anonymous();
                self.bound(id, BindOutcome::of(LdapResult::success(), Some(subject)), &requested);
            }
            Ok(Outcome::Checking(PasswordCheck::Known(verdict), pending_bind)) => {
                self.trying = Some(pending_bind.attempt);
                self.bound(id, pending_bind.end(Ok(verdict)), &requested);
            }
            Ok(Outcome::Checking(PasswordCheck::Pending(pending), mut pending_bind)) => {
                self.trying = Some(pending_bind.attempt);
                self.wait_for_bind(id, async move {
                    let verdict = pending.await;
                    pending_bind.look_again();
                    let bound = Box::new(pending_bind.end(verdict));
                    stages::lap(Stage::Store);
                    Answer::Bind(bound, requested)
                });
            }
            Err(failure) => self.bound(id, BindOutcome::of(failure, None), &requested),
        }
    }

    /// Ends a bind: the session is the subject's from here on, or stays anonymous.
    pub(crate) fn bound(&mut self, id: u32, bound: BindOutcome, requested: &RequestedControls) {
        let BindOutcome { mut result, subject, must_change, policy, reason, locked } = bound;
        self.request_log.reason = reason;
        if let Some(dn) = locked {
            self.request_log.locked(&dn);
        }
        if let Some(attempt) = self.trying.take() {
            match result.code {
                ResultCode::Success => self.history.ended(&attempt, true),
                ResultCode::InvalidCredentials => self.history.ended(&attempt, false),
                // It was not tried.
                _ => {}
            }
        }
        let mut has_place = true;
        if let (ResultCode::Success, Some(subject)) = (result.code, subject) {
            self.must_change = must_change;
            self.become_subject(subject);
            has_place = self.may_stay();
            if !has_place {
                self.become_subject(Subject::anonymous());
                result = LdapResult::new(ResultCode::Busy, CONNECTIONS_TAKEN);
            }
        }
        let op = Op::BindResponse(BindResponse { result, server_sasl_credentials: None });
        self.put(id, op, &requested.with_policy(policy));
        if !has_place {
            self.disconnect(ResultCode::Busy, CONNECTIONS_TAKEN);
        }
    }

    fn authenticate(&mut self, id: u32, request: &BindRequest<'_>) -> Result<Outcome> {
        if request.version != 3 {
            return Err(Failure::new(ResultCode::ProtocolError, "only LDAPv3 is spoken here"));
        }
        match request.authentication {
            Authentication::Simple(password) => self.simple(id, request.name, password),
            Authentication::Sasl { mechanism, credentials } => {
                if mechanism.eq_ignore_ascii_case("PLAIN") {
                    self.plain(id, credentials)
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
    fn simple(&mut self, id: u32, name: &str, password: &[u8]) -> Result<Outcome> {
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
        let name = self.shared.directory.entry_name(name)?;
        let found = self.shared.directory.credentials_of(&name)?;
        self.request_log.lap(id, Stage::Store);
        self.check(&name.name().canonical(), found, password)
    }

    /// RFC 4616: `[authzid] NUL authcid NUL passwd`, in one step.
    fn plain(&mut self, id: u32, credentials: Option<&[u8]>) -> Result<Outcome> {
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
        let asked = self.asked(authentication)?;
        self.request_log.lap(id, Stage::Store);
        self.check(&asked, found, password.as_bytes())
    }

    /// RFC 4513 § 5.2.3: the certificate's subject names the entry, unless the settings say that it
    /// is the administrator's.
    fn external(&self, credentials: Option<&[u8]>) -> Result<Outcome> {
        let directory = &self.shared.directory;
        if let Some(peer) = self.channel.credentials {
            return self.by_peer_credentials(peer, credentials);
        }
        let is_administrator = self.shows_the_administrators_certificate();
        let subject = self.channel.certificate_subject.as_deref();
        let name = if is_administrator { Some(ADMINISTRATOR_DN) } else { subject };
        let Some(name) = name else {
            return Err(Failure::new(
                ResultCode::InappropriateAuthentication,
                "EXTERNAL needs TLS with a client certificate that has a subject, or a Unix socket",
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
        self.by_other_means(found, credentials)
    }

    /// The system says whose process it is at the other end of the socket.
    fn by_peer_credentials(
        &self,
        peer: PeerCredentials,
        credentials: Option<&[u8]>,
    ) -> Result<Outcome> {
        let (directory, local) = (&self.shared.directory, &self.settings.local);
        let dn = match local.administrators.contains(&peer.uid) {
            true => Some(ADMINISTRATOR_DN.to_owned()),
            false if local.by_uid_number => directory.dn_of_uid_number(peer.uid)?,
            false => None,
        };
        let found = match dn {
            Some(dn) => directory.credentials(&dn)?,
            None => None,
        };
        if let Some(found) = found {
            return self.by_other_means(found, credentials);
        }
        let dn = peer.dn();
        let itself = match std::str::from_utf8(credentials.unwrap_or_default()) {
            Ok("") => true,
            Ok(authorization) => authorization.strip_prefix("dn:") == Some(&dn),
            Err(_) => false,
        };
        // It has no entry, and owns none.
        let subject = Subject::without_entry(&dn);
        if itself { Ok(Outcome::Known(subject)) } else { Err(not_yourself()) }
    }

    /// A user that needed no password. A disabled one is so by any means.
    fn by_other_means(&self, found: Credentials, authorization: Option<&[u8]>) -> Result<Outcome> {
        if self.shared.directory.is_disabled(&found) {
            return Err(Failure::new(ResultCode::InvalidCredentials, "the account is disabled"));
        }
        let itself = match std::str::from_utf8(authorization.unwrap_or_default()) {
            Ok("") => true,
            Ok(authorization) => self.resolve(authorization)?.as_deref() == Some(&found.dn),
            Err(_) => false,
        };
        if itself { Ok(Outcome::Known(found.subject)) } else { Err(not_yourself()) }
    }

    fn shows_the_administrators_certificate(&self) -> bool {
        let subject = self.channel.certificate_subject.as_deref();
        let fingerprint = self.channel.certificate_fingerprint.as_ref();
        let schema = self.shared.directory.schema();
        let mut administrators = self.settings.administrators.iter();
        administrators.any(|one| one.is(fingerprint, subject, &schema))
    }

    /// The mechanisms that `supportedSASLMechanisms` names: those that can succeed on the
    /// connection.
    pub(crate) fn mechanisms(&self) -> &'static [&'static str] {
        let channel = &self.channel;
        let is_known = channel.certificate_subject.is_some() || channel.credentials.is_some();
        match (is_known || self.shows_the_administrators_certificate(), channel.private) {
            (true, true) => &["EXTERNAL", "PLAIN"],
            (true, false) => &["EXTERNAL"],
            (false, true) => &["PLAIN"],
            (false, false) => &[],
        }
    }

    /// A password may cross only a channel to which no other can listen.
    pub(crate) fn require_privacy(&self) -> Result<()> {
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
        let attempt = self.shared.directory.passwords().attempt(self.from, asked, self.history);
        let (check, pending) = self.shared.directory.check_bind(attempt, found, password)?;
        Ok(Outcome::Checking(check, Box::new(pending)))
    }

    /// An identity in a form in which equal ones are equal, whether or not an entry has it: the
    /// brake on guessing must not tell.
    fn asked(&self, identity: &str) -> Result<Vec<u8>> {
        let schema = &*self.shared.directory.schema();
        match Identity::parse(identity) {
            Identity::Dn(dn) => Ok(EntryName::parse(schema, dn)?.canonical()),
            Identity::Uid(uid) => {
                let rule = schema.attribute("uid").and_then(|attribute| attribute.equality());
                let normal = rule.and_then(|rule| schema.normalize(rule, uid.as_bytes()));
                Ok([b"u:", normal.as_deref().unwrap_or(uid.as_bytes())].concat())
            }
        }
    }

    /// The DN that an identity stands for. `None` if no one entry has that uid, or no entry is
    /// named so.
    pub(crate) fn resolve(&self, identity: &str) -> Result<Option<String>> {
        let directory = &self.shared.directory;
        match Identity::parse(identity) {
            Identity::Dn(dn) => Ok(directory.credentials(dn)?.map(|found| found.dn)),
            Identity::Uid(uid) => directory.dn_of_uid(uid),
        }
    }
}

fn not_yourself() -> Failure {
    Failure::new(ResultCode::InvalidCredentials, "no user may act for another here")
}
