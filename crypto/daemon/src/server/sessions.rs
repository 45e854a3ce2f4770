//! Sessions and keys: opened, closed, carried elsewhere, looked after.

use super::budget::Share;
use super::changes::Changes;
use super::guest::Opened;
use super::state::{SendAway, Server};
use crate::keys::{self, Caller, Encoding, KeySession, Usable, Wanted};
use crate::managing;
use crate::pump::{ClientId, Command};
use crate::refusal::Refusal;
use keyway_engine::{Algorithm, Engine, Session};
use keyway_ring::control::{self, Answer, KeyAsk};
use keyway_ring::descriptor::{GENERATION_MAX, SessionHandle, Status};
use keyway_wire as wire;
use std::time::SystemTime;

/// The context that exported sessions are bound to, so that nothing else that is wrapped passes for
/// one.
const EXPORT_CONTEXT: &[u8] = b"keyway session 1";

impl Server {
    pub fn open(
        &mut self,
        id: ClientId,
        mut steps: Vec<control::Step>,
    ) -> Result<Answer, SendAway> {
        let limits = self.options.limits;
        let sessions_max = limits.sessions.min(keyway_ring::limits::SESSIONS_MAX);
        let guest = self.guest(id)?;
        if guest.sessions.used() >= sessions_max {
            let why = format!("a client has no more sessions than {sessions_max}");
            return Ok(Answer::refused(Status::Busy, why));
        }
        let caller = guest.caller.clone();
        if let Err(why) = self.may_add(id, Share::SESSION) {
            return Ok(why.into());
        }
        let mut generation = [0; 8];
        let drawn = self.engine.random(&mut generation);
        let made = drawn.map_err(Refusal::from).and_then(|()| generate(&self.engine, &mut steps));
        let opened =
            made.and_then(|is_generated| Ok((is_generated, self.session(&caller, &steps)?)));
        let (is_generated, (session, key)) = match opened {
            Ok(opened) => opened,
            Err(Refusal { status, why }) => return Ok(Answer::refused(status, why)),
        };
        let generation = u64::from_ne_bytes(generation) & GENERATION_MAX;
        let weight = self.options.weights.of_session(&steps);
        let guest = self.guest(id)?;
        let Ok(index) =
            u16::try_from(guest.sessions.insert(Opened { generation, steps, is_generated }))
        else {
            return Err(SendAway);
        };
        let handle = SessionHandle { index, generation };
        let signature_bytes_max = session.signature_bytes_max() as u32;
        let makes_nonces = key.as_ref().is_some_and(KeySession::makes_nonces);
        self.command(id, Command::Session { client: id, handle, session, key, weight });
        Ok(Answer::Session { session: handle, signature_bytes_max, makes_nonces })
    }

    /// Opens a session with what a client brought, or with a key that it named and may use.
    pub fn session(
        &self,
        caller: &Caller,
        steps: &[control::Step],
    ) -> Result<(Session, Option<KeySession>), Refusal> {
        let [control::Step { algorithm, key: control::Key::Named(name) }] = steps else {
            return Ok((wire::open(&self.engine, steps)?, None));
        };
        let (Some(keys), Ok(algorithm)) = (&self.options.keys, algorithm.parse()) else {
            let why = "the daemon holds no such key, or does not know the algorithm".to_owned();
            return Err(Refusal { status: Status::Unsupported, why });
        };
        // A name that is none is refused like one of no key.
        let (name, version) = keyway_engine::key_reference(name).unwrap_or((name, None));
        let granted = keys.granted(name, caller, algorithm);
        // A client that names a version wants the purposes that every version has.
        let purposes = match version {
            None => granted,
            Some(_) => granted.iter().filter(|purpose| !purpose.needs_newest()).collect(),
        };
        let wanted = Wanted { version, ..Wanted::new(algorithm, purposes) };
        let key = keys.session(name, caller, wanted, SystemTime::now())?;
        Ok((key.session().clone(), Some(key)))
    }

    /// A session as bytes that a daemon with the same wrapping key takes in.
    pub fn export(
        &mut self,
        id: ClientId,
        session: SessionHandle,
        under: &str,
    ) -> Result<Answer, SendAway> {
        let Some(keys) = self.options.keys.clone() else { return Ok(holds_none()) };
        let guest = self.guest(id)?;
        let opened = guest.sessions.get(usize::from(session.index));
        let Some(opened) = opened.filter(|opened| opened.generation == session.generation) else {
            return Ok(Answer::refused(Status::NoSession, "there is no such session"));
        };
        if opened.is_generated {
            let why = "a key that was generated in a session stays there";
            return Ok(Answer::refused(Status::Unsupported, why));
        }
        let bytes = control::encode(&opened.steps).map_err(|_| SendAway)?;
        let now = SystemTime::now();
        Ok(match keys.wrap(under, &guest.caller, EXPORT_CONTEXT, &bytes, now) {
            Ok(sealed) => Answer::Exported { sealed },
            Err(why) => Refusal::from(why).into(),
        })
    }

    pub fn import(&mut self, id: ClientId, under: &str, sealed: &[u8]) -> Result<Answer, SendAway> {
        let Some(keys) = self.options.keys.clone() else { return Ok(holds_none()) };
        let caller = self.guest(id)?.caller.clone();
        let now = SystemTime::now();
        match keys.unwrap(under, &caller, EXPORT_CONTEXT, sealed, now) {
            Ok(bytes) => match control::decode_steps(&bytes) {
                Ok(steps) => self.open(id, steps),
                Err(_) => Ok(Answer::refused(Status::InvalidRequest, "it is no session")),
            },
            Err(why) => Ok(Refusal::from(why).into()),
        }
    }

    /// Says what a client may do with a key.
    pub fn usable(&mut self, id: ClientId, name: &str) -> Result<Answer, SendAway> {
        let Some(keys) = self.options.keys.clone() else { return Ok(holds_none()) };
        let caller = &self.guest(id)?.caller;
        Ok(match keys.usable_by(name, caller, SystemTime::now()) {
            Ok(Usable { algorithms, purposes, version, .. }) => Answer::Usable {
                algorithms: algorithms.iter().map(|it| it.name().to_owned()).collect(),
                purposes: purposes.iter().map(|it| it.name().to_owned()).collect(),
                version,
            },
            Err(why) => Refusal::from(why).into(),
        })
    }

    /// Says which keys a client may use.
    pub fn granted(&mut self, id: ClientId, after: &str) -> Result<Answer, SendAway> {
        let Some(keys) = self.options.keys.clone() else { return Ok(holds_none()) };
        Ok(managing::granted(&keys, &self.guest(id)?.caller, after))
    }

    /// Says where a client may make keys.
    pub fn name_spaces(&mut self, id: ClientId) -> Result<Answer, SendAway> {
        let caller = self.guest(id)?.caller.clone();
        let prefixes = self.options.name_spaces.prefixes(&caller);
        Ok(Answer::NameSpaces { prefixes })
    }

    /// The certificates of a key that a client may use.
    pub fn certificates(&mut self, id: ClientId, name: &str) -> Result<Answer, SendAway> {
        let Some(keys) = self.options.keys.clone() else { return Ok(holds_none()) };
        let caller = self.guest(id)?.caller.clone();
        // Administrators need not be allowed to use a key.
        let certificates = match self.options.admission.administers(&caller) {
            true => keys.certificates(name),
            false => keys.certificates_for(name, &caller, SystemTime::now()),
        };
        Ok(match certificates {
            Ok(certificates) => Answer::Certificates { certificates },
            Err(why) => Refusal::from(why).into(),
        })
    }

    pub fn close(&mut self, id: ClientId, session: SessionHandle) -> Result<(), SendAway> {
        let guest = self.guest(id)?;
        let is_it = |opened: &Opened| opened.generation == session.generation;
        if guest.sessions.remove_if(usize::from(session.index), is_it).is_some() {
            self.command(id, Command::CloseSession(id, session));
        }
        Ok(())
    }

    /// Does what an administrator wants done with the keys, or has it done.
    pub fn manage(&mut self, id: ClientId, ask: KeyAsk) -> Result<(), SendAway> {
        let guest = self.guest(id)?;
        let (caller, socket) = (guest.caller.clone(), guest.socket.clone());
        let Some(keys) = &self.options.keys else { return self.reply(id, &holds_none(), &[]) };
        let administers = self.options.admission.administers(&caller);
        let looks = matches!(ask, KeyAsk::List { .. } | KeyAsk::Public { .. });
        // An administrator who names the callers of a key decides as one.
        let decides = administers && ask.names_callers();
        let space = self.options.name_spaces.permits(&caller, &ask).filter(|_| !decides);
        if !administers && !looks && space.is_none() {
            if let Some((action, name)) = ask.change() {
                keys.refuse_change(action, name, &caller, SystemTime::now());
            }
            let mut why = "only the daemon's own user and root look after its keys".to_owned();
            let prefixes = self.options.name_spaces.prefixes(&caller);
            if !prefixes.is_empty() {
                why.push_str("; this client makes and destroys those whose names begin with ");
                why.push_str(&prefixes.join(" or "));
            }
            return self.reply(id, &Answer::refused(Status::Unsupported, why), &[]);
        }
        if looks {
            let (now, sight) = (SystemTime::now(), self.options.admission.witness.sight());
            let answer = match administers {
                true => managing::answer(keys, sight, None, &caller, ask, now),
                false => managing::look(keys, &caller, ask),
            };
            return self.reply(id, &answer, &[]);
        }
        let unfit = if self.guests.values().any(|guest| guest.takes_over) {
            Some("another daemon is about to take over; try again")
        } else if space.is_some() && keys.audit_is_full() {
            Some("the audit log is full: nothing is changed in name spaces until it is moved away")
        } else {
            None
        };
        if let Some(why) = unfit {
            return self.reply(id, &Answer::refused(Status::Busy, why), &[]);
        }
        let put = |changes: &mut Changes| match space {
            Some(space) => changes.ask_in(space.clone(), caller, ask, socket),
            None => changes.ask(caller, ask, socket),
        };
        match self.changes.as_mut().is_some_and(put) {
            true => Ok(()),
            false => {
                let why = "too many changes of keys wait; try again";
                self.reply(id, &Answer::refused(Status::Busy, why), &[])
            }
        }
    }
}

/// Makes the key of a session that is to have a new one, as if its client had brought it: so it is there to be
/// handed over to another daemon. Says whether it has made one.
fn generate(engine: &Engine, steps: &mut [control::Step]) -> Result<bool, Refusal> {
    let [control::Step { algorithm, key: key @ control::Key::Generate }] = steps else {
        return Ok(false);
    };
    let Ok(algorithm) = algorithm.parse::<Algorithm>() else { return Ok(false) };
    // The engine refuses an algorithm for which none can be made so.
    if let Some((encoding, material)) = keys::generate_for_session(algorithm, engine)? {
        let material = control::Secret::from(&material[..]);
        *key = match encoding {
            // None is made there for a session.
            Encoding::Token => return Ok(false),
            Encoding::Secret => control::Key::Secret(material),
            Encoding::Pkcs8 => control::Key::Pkcs8(material),
            Encoding::Pkcs1 => control::Key::Pkcs1(material),
            Encoding::Sec1 => control::Key::Sec1(material),
        };
    }
    Ok(true)
}

fn holds_none() -> Answer {
    Answer::refused(Status::Unsupported, "this daemon holds no keys; start it with a master key")
}
