//! Extended operations (RFC 4511 § 4.12): StartTLS, Who Am I, Password Modify, Cancel.

use crate::channel::Ending;
use crate::forward::NOTE_BINDS;
use crate::must_change;
use crate::outcome::Answer;
use crate::requested_controls::RequestedControls;
use crate::session::Session;
use keyway_codec::extended::{
    CANCEL, CancelRequest, PASSWORD_MODIFY, PasswordModifyRequest, PasswordModifyResponse,
    START_TLS, WHO_AM_I,
};
use keyway_codec::message::{ExtendedRequest, LdapResult, ResultCode, tag};
use keyway_server::log::AuditedChange;
use keyway_server::{Failure, PasswordModify, no_such_identity};
use zeroize::Zeroizing;

/// The operations that `supportedExtension` names where TLS is in use or can be had; the first only there.
const SUPPORTED: &[&str] = &[START_TLS, WHO_AM_I, PASSWORD_MODIFY, CANCEL];

type Value = Option<Zeroizing<Vec<u8>>>;

impl Session {
    /// The operations that `supportedExtension` names on this connection.
    pub(crate) fn supported(&self) -> &'static [&'static str] {
        let has_tls = self.channel.tls || self.channel.can_start_tls;
        if has_tls { SUPPORTED } else { &SUPPORTED[1..] }
    }

    pub(crate) fn extended(
        &mut self,
        id: u32,
        request: &ExtendedRequest<'_>,
        requested: RequestedControls,
    ) {
        let outcome = match request.oid {
            START_TLS => self.start_tls(request),
            WHO_AM_I => self.who_am_i(request),
            CANCEL => self.cancel(request),
            PASSWORD_MODIFY => match self.password_modify(id, request, &requested) {
                Ok(()) => return,
                Err(failure) => Err(failure),
            },
            NOTE_BINDS if self.channel.is_member => {
                let noted = self.shared.directory.note_binds(request.value.unwrap_or_default());
                return self.wait_for(id, async move {
                    Answer::Extended { result: noted.await.map(|()| None), requested }
                });
            }
            _ => Err(Failure::new(
                ResultCode::ProtocolError,
                "this extended operation is not known; see supportedExtension",
            )),
        };
        self.answer_extended(id, outcome, &requested);
    }

    /// RFC 4511 § 4.14.
    fn start_tls(&mut self, request: &ExtendedRequest<'_>) -> Result<Value, Failure> {
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
    fn who_am_i(&self, request: &ExtendedRequest<'_>) -> Result<Value, Failure> {
        if request.value.is_some() {
            return Err(Failure::new(ResultCode::ProtocolError, "Who am I? has no value"));
        }
        let who = self.subject.name().map(|name| format!("dn:{name}"));
        Ok(Some(Zeroizing::new(who.unwrap_or_default().into())))
    }

    /// RFC 3909. Only searches are stopped; anything else is too far gone.
    fn cancel(&mut self, request: &ExtendedRequest<'_>) -> Result<Value, Failure> {
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
        requested: &RequestedControls,
    ) -> Result<(), Failure> {
        let PasswordModifyRequest { user, old, new } = PasswordModifyRequest::decode(request.value)
            .map_err(|error| Failure::new(ResultCode::ProtocolError, error.to_string()))?;
        // Its client may have meant to name a user, or a password.
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
        // The new password is looked at first: to refuse it must not tell whether there is such an entry.
        if new.is_some_and(<[u8]>::is_empty) {
            return Err(Failure::new(
                ResultCode::ConstraintViolation,
                "a password cannot be empty; leave it out to have one made",
            ));
        }
        let generated = new.is_none();
        let new = match new {
            Some(new) => PasswordModify::given(new)?,
            None => self.shared.directory.passwords().generate().map_err(Failure::from)?,
        };
        let target = match user {
            None | Some("") => own.clone(),
            Some(user) => match self.resolve(user)? {
                found if self.must_change && found.as_ref() != Some(&own) => {
                    return Err(must_change::refusal());
                }
                found => found.ok_or_else(no_such_identity)?,
            },
        };
        let audit = self
            .request_log
            .change(id, &self.subject, || Some(AuditedChange::new("password", &target)));
        let modify = PasswordModify {
            origin: self.origin_of(id),
            subject: self.subject.clone().traced(requested.trace.clone()),
            target,
            old: old.map(|old| Zeroizing::new(old.to_vec())),
            new,
            is_generated: generated,
            audit,
        };
        let (directory, requested) = (self.shared.directory.clone(), requested.clone());
        self.wait_for(id, async move {
            let generated = modify.carry_out(&directory).await;
            let result = generated.map(|new| new.map(|new| response(&new)));
            Answer::Extended { result, requested }
        });
        Ok(())
    }
}

fn response(generated: &[u8]) -> Zeroizing<Vec<u8>> {
    let mut value = Zeroizing::new(Vec::new());
    PasswordModifyResponse { generated: Some(generated) }.encode(&mut value);
    value
}
