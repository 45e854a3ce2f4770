//! Requests that another server of the cluster does, and reads that wait for what their connection has written there.

use crate::carried::{Carried, OWN_WRITES, asked_for, reign_of};
use crate::forward::{Answered, Forwarder};
use crate::on_behalf::{ON_BEHALF, OnBehalf};
use crate::outcome::Answer;
use crate::requested_controls::RequestedControls;
use crate::session::Session;
use crate::writes::{Forwarding, Writes};
use keyway_cluster::own_writes::{Here, OwnWrites, Reading};
use keyway_codec::extended::{PASSWORD_MODIFY, PasswordModifyRequest};
use keyway_codec::message::{Message, Op, ResultCode, tag};
use keyway_server::controls::{POSITION, RequestControls, Written};
use keyway_server::{Failure, Subject};
use std::time::Duration;
use zeroize::Zeroizing;

/// A time that is none.
const SHORT: Duration = Duration::from_nanos(1);

impl Session {
    /// Takes a request that another server has sent, for the one who asks for it.
    pub(crate) fn dispatch_for_another(&mut self, message: &Message<'_>) {
        let value = |oid: &str| {
            let found = message.controls.iter().find(|control| control.oid == oid);
            found.map(|control| control.value.as_deref().unwrap_or_default())
        };
        let asker = value(ON_BEHALF).and_then(OnBehalf::decode);
        if self.shared.writes_elsewhere() {
            // Another server writes by now, or this one does not know: what it has may be older than what was written.
            let why = match &*self.shared.writes() {
                Writes::Refused(why) | Writes::Unavailable(why) => why.clone(),
                _ => "this server does not write any more, or not yet: ask again".to_owned(),
            };
            let failure = Failure::new(ResultCode::Unavailable, why);
            return self.answer(message.id, message.op.tag(), failure.into(), &[]);
        }
        let subject = match (&asker, &message.op) {
            (None, Op::UnbindRequest | Op::AbandonRequest(_) | Op::ExtendedRequest(_)) => {
                Ok(Subject::anonymous())
            }
            (_, Op::BindRequest(_)) | (None, _) => {
                let text = "a member of the cluster says on whose behalf it asks";
                Err(Failure::new(ResultCode::ProtocolError, text))
            }
            (Some(asker), _) => asker.subject(&self.shared.directory),
        };
        let subject = subject.and_then(|subject| {
            if let Some(value) = value(OWN_WRITES) {
                let malformed = || {
                    let text = "a member of the cluster does not say what a read is to see";
                    Failure::new(ResultCode::ProtocolError, text)
                };
                self.has_carried(&Carried::decode(value).ok_or_else(malformed)?)?;
            }
            Ok(subject)
        });
        let subject = match subject {
            Ok(subject) => subject,
            Err(why) => return self.answer(message.id, message.op.tag(), why.into(), &[]),
        };
        let own = std::mem::replace(&mut self.subject, subject);
        let from = self.from;
        self.asker = asker.map(|asker| asker.origin);
        if let Some(origin) = self.asker {
            self.from = origin.from;
        }
        let members = [ON_BEHALF, OWN_WRITES];
        let others = message.controls.iter().filter(|it| !members.contains(&it.oid)).cloned();
        self.dispatch(&Message {
            id: message.id,
            op: message.op.clone(),
            controls: others.collect(),
        });
        (self.subject, self.from, self.asker) = (own, from, None);
    }

    /// Sends a request to the server that writes, or refuses it, if it is not for this one; whether it did.
    pub(crate) fn send_elsewhere(
        &mut self,
        message: &Message<'_>,
        requested: &RequestedControls,
    ) -> bool {
        if !self.shared.writes_elsewhere() || !self.is_change(&message.op) {
            return false;
        }
        let failure = match &*self.shared.writes() {
            Writes::Here => return false,
            Writes::Forwarded(way) => {
                self.forward(message, &way.forwarder, requested, &Carried::default());
                return true;
            }
            Writes::Referred(url) => Failure {
                diagnostic: "this server follows another one, which takes changes".into(),
                ..Failure::referral(vec![url.clone()])
            },
            Writes::Refused(why) => Failure::new(ResultCode::UnwillingToPerform, why.clone()),
            Writes::Unavailable(why) => Failure::new(ResultCode::Unavailable, why.clone()),
        };
        self.fail(message.id, message.op.tag(), failure, requested);
        true
    }

    /// Whether an operation changes what all members have.
    fn is_change(&self, op: &Op<'_>) -> bool {
        let dn = match op {
            Op::AddRequest(add) => add.dn,
            Op::DeleteRequest(dn) => dn,
            Op::ModifyRequest(modify) => modify.dn,
            Op::ModifyDnRequest(rename) => rename.dn,
            Op::ExtendedRequest(request) if request.oid == PASSWORD_MODIFY => {
                // Others are refused here, as they would be there.
                let is_own = || {
                    let request = PasswordModifyRequest::decode(request.value);
                    request.is_ok_and(|request| request.user.is_none_or(str::is_empty))
                };
                return self.channel.private
                    && !self.subject.is_anonymous()
                    && (!self.must_change || is_own());
            }
            _ => return false,
        };
        !self.shared.directory.is_virtual(dn)
    }

    fn forward(
        &mut self,
        message: &Message<'_>,
        forwarder: &Forwarder,
        requested: &RequestedControls,
        carried: &Carried,
    ) {
        let who = self.subject.name().map(|dn| dn.to_string());
        let who = who.zip(self.subject.id().map(|id| id.0));
        let origin = self.origin_of(message.id);
        let asker = OnBehalf { who, over: self.subject.came(), origin };
        let answered = forwarder.forward(&message.op, &message.controls, &asker, carried);
        let (request, requested) = (message.op.tag(), requested.clone());
        self.wait_for(message.id, async move {
            Answer::Forwarded { request, result: answered.await, requested }
        });
    }

    /// Gives a client the answers of the server that writes.
    pub(crate) fn answer_forwarded(
        &mut self,
        id: u32,
        request: u8,
        result: Result<Answered, Failure>,
        requested: &RequestedControls,
    ) {
        let answered = match result {
            Ok(answered) => answered,
            Err(failure) => return self.fail(id, request, failure, requested),
        };
        let is_read = matches!(request, tag::SEARCH_REQUEST | tag::COMPARE_REQUEST);
        if let (Some(written), false) = (answered.written, is_read) {
            self.has_written(written);
        }
        for bytes in answered.messages {
            match Message::decode(&bytes) {
                Ok(Message { op, mut controls, .. }) => {
                    controls.retain(|control| requested.position || control.oid != POSITION);
                    self.put_with(id, op, controls);
                }
                Err(why) => {
                    let text = format!("the answer of the server that writes: {why}");
                    let failure = Failure::new(ResultCode::Other, text);
                    return self.fail(id, request, failure, requested);
                }
            }
        }
    }

    /// Reads of this connection see what it has written, up to this place.
    fn has_written(&mut self, Written { position, reign }: Written) {
        let reign = reign_of(reign);
        self.wrote.wrote(reign, position);
        let writes = self.shared.writes();
        if let Writes::Forwarded(Forwarding { by_address: true, .. }) = &*writes
            && let Ok((applied, row)) = self.shared.here()
        {
            let here = Here { applied, row: row.as_ref(), is_following: true };
            self.shared.written.note(self.from, (reign, position), &here);
        }
    }

    /// Has a request wait until this server has all that its client has written, or names; whether it has to, or is
    /// answered.
    pub(crate) fn wait_for_own_writes(
        &mut self,
        message: &Message<'_>,
        controls: &RequestControls<'_>,
    ) -> bool {
        let is_read =
            matches!(message.op, Op::SearchRequest(_) | Op::CompareRequest(_) | Op::BindRequest(_));
        let named = controls.position.flatten();
        let nothing = OwnWrites::default();
        let is_known = named.is_none() && self.wrote == nothing && self.shared.written.is_empty();
        if !is_read || is_known {
            return false;
        }
        let (wait, is_following) = match &*self.shared.writes() {
            Writes::Forwarded(way) => (way.wait, true),
            // It is another history's, or has not come yet: no other server can be asked.
            _ => (Duration::ZERO, false),
        };
        let Ok((applied, row)) = self.shared.here() else { return false };
        let here = Here { applied, row: row.as_ref(), is_following };
        let asked = asked_for(named, row.as_ref());
        let all = [self.wrote, self.shared.written.of(self.from), asked];
        let mut position = None;
        for own in all {
            let reading = own.reading(&here, Duration::ZERO, Duration::ZERO, wait.max(SHORT));
            match reading {
                Reading::Now => {}
                Reading::Lost if own == self.wrote => {
                    let text = "a change of this connection was lost with the server that had made it: read again what \
                                is there";
                    self.disconnect(ResultCode::Unavailable, text);
                    return true;
                }
                // What is named, or what another connection of the address has written, will not come.
                Reading::Lost => {}
                Reading::Wait { .. } | Reading::Forward => {
                    position = position.max(own.all().map(|write| write.position).max());
                }
            }
        }
        let Some(position) = position else {
            self.wrote = nothing;
            return false;
        };
        let mut bytes = Zeroizing::new(Vec::new());
        message.encode(&mut bytes);
        if position <= applied {
            // It is of a reign that does not follow on what is here: waiting does not bring it.
            self.take_again(&bytes, false);
            return true;
        }
        let directory = self.shared.directory.clone();
        let waiting = async move {
            let reached = directory.reaches(position, wait).await;
            Answer::Again { message: bytes, reached }
        };
        match message.op {
            Op::BindRequest(_) => self.wait_for_bind(message.id, waiting),
            _ => self.wait_for(message.id, waiting),
        }
        true
    }

    /// Goes on with a request that has waited.
    pub(crate) fn take_again(&mut self, bytes: &[u8], reached: bool) {
        let Ok(message) = Message::decode(bytes) else { return };
        if reached {
            return self.dispatch(&message);
        }
        let (id, request) = (message.id, message.op.tag());
        let understood = RequestControls::parse(request, &message.controls).and_then(|controls| {
            let carried = self.carried(controls.position.flatten())?;
            Ok((self.requested_controls(&controls)?, carried))
        });
        let (requested, carried) = match understood {
            Ok(understood) => understood,
            Err(failure) => return self.answer(id, request, failure.into(), &[]),
        };
        match &*self.shared.writes() {
            Writes::Forwarded(way) if request != tag::BIND_REQUEST => {
                self.forward(&message, &way.forwarder, &requested, &carried);
            }
            _ => {
                let text = "this server has not yet come to the position that this is to be seen from; try again";
                self.fail(id, request, Failure::new(ResultCode::Busy, text), &requested);
            }
        }
    }
}
