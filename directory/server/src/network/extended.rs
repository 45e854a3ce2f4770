//! Extended operations (RFC 4511 § 4.12): StartTLS, Who Am I, Password Modify, Cancel.

use super::asks::Asks;
use super::conversation::{Answer, Conversation, Ending};
use crate::failure::{Failure, Result};
use crate::log::Audit;
use crate::write::{Vetting, hashed_already};
use crate::{Directory, Subject};
use keyway_codec::extended::{
    CANCEL, CancelRequest, PASSWORD_MODIFY, PasswordModifyRequest, PasswordModifyResponse,
    START_TLS, WHO_AM_I,
};
use keyway_codec::message::{ExtendedRequest, LdapResult, ResultCode, tag};
use keyway_codec::password_policy::PasswordError;
use keyway_password::{BindHistory, Given, PasswordCheck};
use keyway_schema::EntryName;
use std::net::IpAddr;
use std::sync::Arc;
use zeroize::Zeroizing;

/// The operations that `supportedExtension` names where TLS is in use or can be had; the first only there.
const SUPPORTED: &[&str] = &[START_TLS, WHO_AM_I, PASSWORD_MODIFY, CANCEL];

type Value = Option<Zeroizing<Vec<u8>>>;

impl Conversation {
    /// The operations that `supportedExtension` names on this connection.
    pub(super) fn supported(&self) -> &'static [&'static str] {
        let has_tls = self.channel.tls || self.channel.can_start_tls;
        if has_tls { SUPPORTED } else { &SUPPORTED[1..] }
    }

    pub(super) fn extended(&mut self, id: u32, request: &ExtendedRequest<'_>, asks: Asks) {
        let outcome = match request.oid {
            START_TLS => self.start_tls(request),
            WHO_AM_I => self.who_am_i(request),
            CANCEL => self.cancel(request),
            PASSWORD_MODIFY => match self.password_modify(id, request, &asks) {
                Ok(()) => return,
                Err(failure) => Err(failure),
            },
            _ => Err(Failure::new(
                ResultCode::ProtocolError,
                "this extended operation is not known; see supportedExtension",
            )),
        };
        self.answer_extended(id, outcome, &asks);
    }

    /// RFC 4511 § 4.14.
    fn start_tls(&mut self, request: &ExtendedRequest<'_>) -> Result<Value> {
        let refused = |code, why| Err(Failure::new(code, why));
        if request.value.is_some() {
            return refused(ResultCode::ProtocolError, "StartTLS has no value");
        }
        if self.channel.tls {
            return refused(ResultCode::OperationsError, "this connection is in TLS already");
        }
        if !self.channel.can_start_tls {
            return refused(ResultCode::ProtocolError, "StartTLS is not offered here");
        }
        if self.in_flight() > 0 {
            return refused(
                ResultCode::OperationsError,
                "other requests are still being worked on",
            );
        }
        self.ending = Some(Ending::StartTls);
        Ok(None)
    }

    /// RFC 4532.
    fn who_am_i(&self, request: &ExtendedRequest<'_>) -> Result<Value> {
        if request.value.is_some() {
            return Err(Failure::new(ResultCode::ProtocolError, "Who am I? has no value"));
        }
        let who = self.subject.name().map(|name| format!("dn:{name}"));
        Ok(Some(Zeroizing::new(who.unwrap_or_default().into())))
    }

    /// RFC 3909. Only searches are stopped; anything else is too far gone.
    fn cancel(&mut self, request: &ExtendedRequest<'_>) -> Result<Value> {
        let malformed = |why: String| Failure::new(ResultCode::ProtocolError, why);
        let value = request.value.ok_or_else(|| malformed("Cancel needs a value".into()))?;
        let target = CancelRequest::decode(value).map_err(|error| malformed(error.to_string()))?.id;
        if self.take_search(target) {
            let canceled = LdapResult::new(ResultCode::Canceled, "");
            self.answer(target, tag::SEARCH_REQUEST, canceled, &[]);
            return Ok(None);
        }
        Err(if self.is_waiting(target) {
            Failure::new(ResultCode::TooLate, "it is being carried out")
        } else {
            Failure::new(ResultCode::NoSuchOperation, "nothing is under way by that message id")
        })
    }

    /// RFC 3062.
    fn password_modify(
        &mut self,
        id: u32,
        request: &ExtendedRequest<'_>,
        asks: &Asks,
    ) -> Result<()> {
        let PasswordModifyRequest { user, old, new } = PasswordModifyRequest::decode(request.value)
            .map_err(|error| Failure::new(ResultCode::ProtocolError, error.to_string()))?;
        // Who sends it may have meant to name somebody, or a password.
        if request.value.is_some() && user.is_none() && old.is_none() && new.is_none() {
            return Err(Failure::new(
                ResultCode::ProtocolError,
                "the request value is there and sets nothing; leave it out to have a password made",
            ));
        }
        self.require_privacy()?;
        let Some(own) = self.subject.name().map(|name| name.to_string()) else {
            return Err(Failure::new(ResultCode::StrongerAuthRequired, "bind first"));
        };
        let target = match user {
            None | Some("") => own.clone(),
            Some(user) => match self.resolve(user)? {
                found if self.must_change && found.as_ref() != Some(&own) => {
                    return Err(must_change());
                }
                found => found.ok_or_else(no_such_identity)?,
            },
        };
        if new.is_some_and(<[u8]>::is_empty) {
            return Err(Failure::new(
                ResultCode::ConstraintViolation,
                "a password cannot be empty; leave it out to have one made",
            ));
        }
        let generated = new.is_none();
        let new = match new {
            // As in a modify: what names a scheme is never taken for the password itself.
            Some(new) => match keyway_password::classify(new) {
                Ok(Given::Password(new)) => Zeroizing::new(new.to_vec()),
                Ok(Given::Hashed) => return Err(hashed_already()),
                Err(error) => {
                    return Err(Failure::new(ResultCode::ConstraintViolation, error.to_string()));
                }
            },
            None => self.shared.directory.shared.passwords.generate()?,
        };
        let audit = self
            .journal
            .change(id, &self.subject, || Some(crate::log::Change::new("password", &target)));
        let change = Change {
            directory: self.shared.directory.clone(),
            from: self.from,
            subject: self.subject.clone().traced(asks.trace.clone()),
            target,
            old: old.map(|old| Zeroizing::new(old.to_vec())),
            new,
            generated,
            audit,
        };
        let asks = asks.clone();
        self.wait_for(
            id,
            async move { Answer::Extended { result: change.carry_out().await, asks } },
        );
        Ok(())
    }
}

/// Whether a request changes a password, or protects one on its way: what is still allowed to
/// somebody who must change his first.
pub(super) fn changes_password(request: &ExtendedRequest<'_>) -> bool {
    [START_TLS, PASSWORD_MODIFY, CANCEL].contains(&request.oid)
}

/// What somebody hears who does anything else.
pub(super) fn must_change() -> Failure {
    let why = "the password was set by somebody else: change it first";
    let denied = ResultCode::InsufficientAccessRights;
    Failure::policy(denied, PasswordError::ChangeAfterReset, why)
}

/// Told also of an entry that the subject may not know of.
fn no_such_identity() -> Failure {
    Failure::new(ResultCode::NoSuchObject, "no entry is of that identity")
}

/// A password change that was asked for.
struct Change {
    directory: Arc<Directory>,
    from: IpAddr,
    subject: Subject,
    target: String,
    old: Option<Zeroizing<Vec<u8>>>,
    new: Zeroizing<Vec<u8>>,
    generated: bool,
    audit: Option<Audit>,
}

impl Change {
    async fn carry_out(mut self) -> Result<Value> {
        // Asked first, so that this is no way to try passwords of others.
        let allowed = self.directory.may_set_password(&self.subject, &self.target);
        allowed.map_err(|failure| match failure.code {
            ResultCode::NoSuchObject => no_such_identity(),
            _ => failure,
        })?;
        if let Some(old) = &self.old {
            self.check_old(old).await?;
        }
        let vetting = Vetting {
            subject: &self.subject,
            from: self.from,
            gave_old: self.old.is_some(),
            // What is made here is good enough.
            is_good: self.generated,
        };
        vetting.vet(&self.directory, &self.target, &self.new).await?;
        let hashed = self.directory.shared.passwords.hash(self.new.clone())?.await?;
        let audit = self.audit.take();
        let Change { directory, subject, target, .. } = &self;
        let gave_old = self.old.is_some();
        let set: Result<_> = directory.set_password(subject, target, hashed, gave_old, audit).await;
        set?;
        Ok(self.generated.then(|| response(&self.new)))
    }

    async fn check_old(&self, old: &Zeroizing<Vec<u8>>) -> Result<()> {
        let name = EntryName::parse(&self.directory.core().schema, &self.target)?;
        let found = self.directory.credentials_of(&name)?;
        let entry = found.as_ref().and_then(|found| found.subject.id());
        let values = found.map(|found| found.passwords).unwrap_or_default();
        let passwords = &self.directory.shared.passwords;
        // A connection tries many of these at once, so that how it has fared says nothing.
        let attempt = passwords.attempt(self.from, &name.canonical(), BindHistory::default());
        let verdict = match passwords.check(attempt, entry.map(|id| id.0), old.clone(), &values)? {
            PasswordCheck::Known(verdict) => verdict,
            PasswordCheck::Pending(pending) => pending.await?,
        };
        if verdict.is_right() {
            return Ok(());
        }
        Err(Failure::new(ResultCode::InvalidCredentials, "the old password is another"))
    }
}

fn response(generated: &[u8]) -> Zeroizing<Vec<u8>> {
    let mut value = Zeroizing::new(Vec::new());
    PasswordModifyResponse { generated: Some(generated) }.encode(&mut value);
    value
}
