//! Bind: who is this? (RFC 4511 § 4.2, RFC 4513 § 5, RFC 4616)

use super::conversation::{Answer, Conversation};
use super::peer::PeerCredentials;
use crate::controls::ResponseControl;
use crate::failure::{Failure, Result};
use crate::names::Name;
use crate::password::{self, Check, Verdict};
use crate::policy::{Age, Event, Lock, Status, micros};
use crate::{ADMINISTRATOR_DN, Attempt, Credentials, Directory, Subject};
use keyway_codec::message::{
    Authentication, BindRequest, BindResponse, LdapResult, Op, ResultCode,
};
use keyway_codec::password_policy::{PasswordError, PasswordPolicyResponse, PasswordWarning};
use keyway_codec::sasl::{Identity, Plain};
use keyway_store::EntryId;
use std::sync::Arc;
use zeroize::Zeroizing;

/// How far an authentication got without waiting.
enum Outcome {
    /// This is who it is.
    Known(Subject),
    /// This is who it is if the check says so.
    Checking(Check, Box<Claim>),
}

/// A password that is being checked.
struct Claim {
    attempt: Attempt,
    directory: Arc<Directory>,
    /// The entry; `None` if there is no such one.
    found: Option<Credentials>,
    password: Zeroizing<Vec<u8>>,
    /// Since when this source is known to have the right password, in microseconds since 1970.
    trusted_since: Option<u64>,
}

/// How a bind ended.
pub(super) struct Bound {
    pub result: LdapResult<'static>,
    /// Who it is.
    pub subject: Option<Subject>,
    /// He may do nothing else before he has changed his password.
    pub must_change: bool,
    /// What the password policy has to say.
    pub policy: PasswordPolicyResponse,
}

impl Bound {
    fn of(result: impl Into<LdapResult<'static>>, subject: Option<Subject>) -> Bound {
        let (must_change, policy) = (false, PasswordPolicyResponse::default());
        Bound { result: result.into(), subject, must_change, policy }
    }

    /// Nobody, without a word of why.
    fn refused() -> Bound {
        Bound::of(LdapResult::new(ResultCode::InvalidCredentials, ""), None)
    }

    /// The same, and why for those who ask by control: the password was right.
    fn refused_by_policy(error: PasswordError) -> Bound {
        let mut bound = Bound::refused();
        bound.policy.error = Some(error);
        bound
    }
}

impl Claim {
    /// The bind's result, which does not say what was wrong, and who it is.
    fn end(mut self, verdict: Result<Verdict, password::Error>) -> Bound {
        let verdict = match verdict {
            Ok(verdict) => verdict,
            Err(error) => return Bound::of(Failure::from(error), None),
        };
        let Some(found) = self.found.take() else { return Bound::refused() };
        let now = micros(self.directory.core.now());
        let status = found.status(now);
        match verdict {
            Verdict::Wrong => {
                self.note_failure(&found, &status, now);
                Bound::refused()
            }
            Verdict::Right { outdated } => {
                let bound = self.right(&found, &status, now);
                if bound.subject.is_some() {
                    self.upgrade(&found, outdated);
                }
                bound
            }
        }
    }

    /// A wrong password counts where that may lock the account, until nobody is told any more.
    fn note_failure(&self, found: &Credentials, status: &Status, now: u64) {
        let counts = matches!(status.lock, None | Some(Lock::Failures { told: true, .. }));
        if let (true, true, Some(id)) = (counts, found.policy.locks(), found.subject.id()) {
            self.directory.note(id, Event::Failure(now));
        }
    }

    /// What a right password is good for.
    fn right(&self, found: &Credentials, status: &Status, now: u64) -> Bound {
        if is_shut(status, self.trusted_since) {
            return Bound::refused_by_policy(PasswordError::AccountLocked);
        }
        let mut bound = Bound::of(LdapResult::success(), Some(found.subject.clone()));
        if let Age::Expired { grace_left: 0 } = status.age {
            return Bound::refused_by_policy(PasswordError::PasswordExpired);
        }
        let warning_s = found.policy.expire_warning_s;
        let seconds = |seconds| u32::try_from(seconds).unwrap_or(i32::MAX as u32);
        bound.policy.warning = match status.age {
            Age::Expired { grace_left } => {
                Some(PasswordWarning::GraceLeft(seconds(grace_left - 1)))
            }
            Age::ExpiresIn(left) if left <= warning_s => {
                Some(PasswordWarning::ExpiresIn(seconds(left)))
            }
            _ => None,
        };
        if status.reset {
            bound.must_change = true;
            bound.policy.error = Some(PasswordError::ChangeAfterReset);
        }
        self.note_success(found, status, now);
        bound
    }

    /// Nothing is noted of most binds.
    fn note_success(&self, found: &Credentials, status: &Status, now: u64) {
        let account = &found.account;
        let grace = matches!(status.age, Age::Expired { .. });
        // A lock that holds all others holds after its owner was let through.
        let clears = status.lock.is_none() && account.has_failed();
        let notes = found.policy.max_idle_s > 0 && account.success_is_old(&found.policy, now);
        if let (true, Some(id)) = (grace || clears || notes, found.subject.id()) {
            self.directory.note(id, Event::Success { now, clears, grace, notes });
        }
    }

    fn upgrade(self, found: &Credentials, outdated: Option<usize>) {
        let upgrade = outdated
            .and_then(|outdated| self.directory.upgrade_password(found, outdated, self.password));
        if let Some(upgrade) = upgrade {
            tokio::spawn(upgrade);
        }
    }

    /// Looks again at an account that others may have locked while its password was derived.
    fn look_again(&mut self) {
        let Some(found) = self.found.as_ref().filter(|found| found.policy.locks()) else { return };
        if let Ok(Some(found)) = self.directory.credentials(&found.dn) {
            self.found = Some(found);
        }
    }
}

/// Whether an account is closed to a source that is known to have its password since then, if it is.
///
/// What strangers did does not lock out who was there before them: his password is compared, and a
/// source that fails itself is a stranger (see [`Passwords::trusted_ms`](crate::password::Passwords)).
fn is_shut(status: &Status, trusted_since: Option<u64>) -> bool {
    match status.lock {
        None => false,
        Some(Lock::Deliberate) => true,
        Some(Lock::Failures { since, .. }) => trusted_since.is_none_or(|trusted| trusted >= since),
    }
}

impl Conversation {
    /// A bind that was received when no other request is under way. `asks` says whether the password
    /// policy control was given.
    pub(super) fn bind(&mut self, id: u32, request: &BindRequest<'_>, asks: bool) {
        match self.authenticate(request) {
            Ok(Outcome::Known(subject)) => {
                self.bound(id, Bound::of(LdapResult::success(), Some(subject)), asks);
            }
            Ok(Outcome::Checking(Check::Known(verdict), claim)) => {
                self.trying = Some(claim.attempt);
                self.bound(id, claim.end(Ok(verdict)), asks);
            }
            Ok(Outcome::Checking(Check::Pending(pending), mut claim)) => {
                self.trying = Some(claim.attempt);
                self.wait_for_bind(id, async move {
                    let verdict = pending.await;
                    claim.look_again();
                    Answer::Bind(Box::new(claim.end(verdict)), asks)
                });
            }
            Err(failure) => self.bound(id, Bound::of(failure, None), asks),
        }
    }

    /// Ends a bind: the session is the subject's from here on, or stays anonymous.
    pub(super) fn bound(&mut self, id: u32, bound: Bound, asks: bool) {
        let Bound { result, subject, must_change, policy } = bound;
        if let Some(attempt) = self.trying.take() {
            match result.code {
                ResultCode::Success => self.standing.ended(&attempt, true),
                ResultCode::InvalidCredentials => self.standing.ended(&attempt, false),
                // It was not tried.
                _ => {}
            }
        }
        if let (ResultCode::Success, Some(subject)) = (result.code, subject) {
            (self.subject, self.must_change) = (subject, must_change);
        }
        let controls: Vec<_> = asks.then(|| ResponseControl::policy(policy)).into_iter().collect();
        let op = Op::BindResponse(BindResponse { result, server_sasl_credentials: None });
        self.put(id, op, &controls);
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
            (true, true) => return Ok(Outcome::Known(Subject::Anonymous)),
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
        let name = Name::parse(self.shared.directory.schema(), name)?;
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
        // It has no entry, and is nobody's owner.
        let subject = Subject::User { dn: dn.as_str().into(), id: EntryId(u64::MAX) };
        if itself { Ok(Outcome::Known(subject)) } else { Err(not_yourself()) }
    }

    /// Somebody who needed no password. Whoever is disabled is so by any means.
    fn by_other_means(&self, found: Credentials, authorization: Option<&[u8]>) -> Result<Outcome> {
        let now = micros(self.shared.directory.core.now());
        if found.status(now).lock == Some(Lock::Deliberate) {
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
        let schema = &self.shared.directory.core.schema;
        let mut administrators = self.settings.administrators.iter();
        administrators.any(|one| one.is(fingerprint, subject, schema))
    }

    /// The mechanisms that `supportedSASLMechanisms` names: those that can succeed on the connection.
    pub(super) fn mechanisms(&self) -> &'static [&'static str] {
        let channel = &self.channel;
        let is_known = channel.certificate_subject.is_some() || channel.credentials.is_some();
        match (is_known || self.shows_the_administrators_certificate(), channel.private) {
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
        let passwords = &directory.core.passwords;
        let attempt = passwords.attempt(self.from, asked, self.standing);
        let password = Zeroizing::new(password.to_vec());
        let entry = found.as_ref().and_then(|found| found.subject.id());
        let now = micros(directory.core.now());
        let trusted_since = match &found {
            Some(found) if found.policy.locks() => passwords.trusted_ms(&attempt),
            _ => None,
        };
        // Rather too late: the brake's clock goes by milliseconds.
        let trusted_since =
            trusted_since.map(|ms| now.saturating_sub(ms.saturating_sub(1) * 1_000));
        // Of an account that is as good as not there no password is compared. It takes as long.
        let is_there = |found: &&Credentials| {
            let status = found.status(now);
            let told = !matches!(status.lock, Some(Lock::Failures { told: false, .. }));
            told || !is_shut(&status, trusted_since)
        };
        let compared = found.as_ref().filter(is_there);
        let values = compared.map_or(&[][..], |found| &found.passwords);
        let check = passwords.check(attempt, entry, password.clone(), values)?;
        let claim = Claim { attempt, directory, found, password, trusted_since };
        Ok(Outcome::Checking(check, Box::new(claim)))
    }

    /// An identity in a form in which equal ones are equal, whether or not anybody has it: the
    /// brake on guessing must not tell.
    fn asked(&self, identity: &str) -> Result<Vec<u8>> {
        let schema = self.shared.directory.schema();
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
