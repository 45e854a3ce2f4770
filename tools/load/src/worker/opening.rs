//! How a connection is opened: connect, StartTLS, TLS, bind.

use super::state::{SETUP_ID, State};
use super::stream::Stream;
use super::{REFUSED, Worker};
use crate::tally::Fault;
use crate::text::Drawn;
use fastrand::Rng;
use keyway_codec::message::{ExtendedRequest, Message, ResultCode};
use keyway_codec::{Op, extended};
use rustix::io::Errno;
use std::io;
use std::sync::atomic::Ordering;

/// RFC 4511 § A.2.
const INVALID_CREDENTIALS: u32 = 49;

impl Worker<'_> {
    /// Begins to open a connection that is closed.
    pub(super) fn open(&mut self, index: usize, now: u64) {
        let connection = &mut self.connections[index];
        connection.generation = connection.generation.wrapping_add(1);
        connection.state = State::Connecting;
        connection.is_answered = false;
        let group = &self.scenario.groups[connection.group];
        if group.has_account()
            && !connection.is_second
            && self.shared.is_refused.load(Ordering::Relaxed)
        {
            return self.fail(index, Fault::BindRefused(INVALID_CREDENTIALS), REFUSED, now);
        }
        connection.opening_ns = now;
        let token = u64::from(connection.generation) << 32 | index as u64;
        let address = &self.shared.servers[connection.server].address;
        let opened = Stream::open(address).and_then(|stream| {
            self.poller.add(&stream.socket, token)?;
            Ok(stream)
        });
        match opened {
            Ok(stream) => connection.stream = Some(stream),
            Err(why) => self.not_opened(index, &why, now),
        }
    }

    fn not_opened(&mut self, index: usize, why: &io::Error, now: u64) {
        let fault = match Errno::from_io_error(why) {
            Some(Errno::ADDRNOTAVAIL) => Fault::NoPorts,
            _ => Fault::Refused,
        };
        self.fail(index, fault, &why.to_string(), now);
    }

    /// Whether the connection is there by now; goes on with what comes next then.
    pub(super) fn connected(&mut self, index: usize, now: u64) -> bool {
        let Some(stream) = &self.connections[index].stream else { return false };
        match stream.connected() {
            Ok(false) => return false,
            Ok(true) => {}
            Err(why) => {
                self.not_opened(index, &why, now);
                return false;
            }
        }
        if self.shared.servers[self.connections[index].server].tls {
            return self.begin_tls(index, now);
        }
        if self.scenario.start_tls {
            let request = ExtendedRequest { oid: extended::START_TLS, value: None };
            let message = Message::new(SETUP_ID, Op::ExtendedRequest(request));
            let connection = &mut self.connections[index];
            message.encode(&mut connection.out);
            connection.state = State::StartTls;
            return true;
        }
        self.bind(index, now);
        true
    }

    fn begin_tls(&mut self, index: usize, now: u64) -> bool {
        let connection = &mut self.connections[index];
        let server = &self.shared.servers[connection.server];
        connection.state = State::Handshaking;
        connection.tls_ns = now;
        let begun = match (&mut connection.stream, &self.shared.tls, &server.name) {
            (Some(stream), Some(config), Some(name)) => stream.begin_tls(config, name.clone()),
            _ => Err(rustls::Error::General("no TLS for this URL".into())),
        };
        match begun {
            Ok(()) => true,
            Err(why) => {
                self.fail(index, Fault::TlsFailed, &why.to_string(), now);
                false
            }
        }
    }

    /// Sends the bind that connections of the group begin with, if they do.
    fn bind(&mut self, index: usize, now: u64) {
        let connection = &mut self.connections[index];
        let scenario = self.scenario;
        let bind = scenario.groups[connection.group].bind.as_ref();
        let Some((request, sources)) = bind.filter(|_| !connection.is_second) else {
            return self.ready(index, now);
        };
        let mut random = Rng::with_seed(self.random.u64(..));
        self.bind_values.resize(scenario.sources.len(), 0);
        for source in sources {
            self.bind_values[*source] = scenario.sources[*source].draw(&mut random);
        }
        let mut drawn = Drawn {
            sources: &scenario.sources,
            indices: &self.bind_values,
            taken: &[],
            random: &mut random,
            makers: &mut self.makers,
        };
        request.write(SETUP_ID, &mut drawn, &mut self.scratch, &mut connection.out);
        connection.state = State::Binding;
        self.dirty(index);
    }

    fn ready(&mut self, index: usize, now: u64) {
        let connection = &mut self.connections[index];
        connection.state = State::Ready;
        let took = now.saturating_sub(connection.opening_ns);
        self.tally.connections.opening.saturating_record(took);
        for user in std::mem::take(&mut connection.waiting) {
            self.send(user, index, now);
        }
    }

    /// The answer to what the connection begins with.
    pub(super) fn setup_answer(&mut self, index: usize, code: u32, now: u64) {
        let state = self.connections[index].state;
        let words = || format!("the server answered {}", ResultCode::from_code(code));
        match (state, code) {
            (State::StartTls, 0) => {
                self.begin_tls(index, now);
                self.dirty(index);
            }
            (State::StartTls, _) => {
                self.fail(index, Fault::TlsFailed, &format!("StartTLS: {}", words()), now);
            }
            (State::Binding, 0) => self.ready(index, now),
            (State::Binding, INVALID_CREDENTIALS)
                if self.scenario.groups[self.connections[index].group].has_account() =>
            {
                self.shared.is_refused.store(true, Ordering::Relaxed);
                self.fail(index, Fault::BindRefused(code), REFUSED, now);
            }
            (State::Binding, _) => {
                self.fail(index, Fault::BindRefused(code), &format!("bind: {}", words()), now);
            }
            _ => self.fail(index, Fault::Malformed, "an answer to no request", now),
        }
    }

    /// Whether TLS has come about, and goes on with what comes next then.
    pub(super) fn shaken_hands(&mut self, index: usize, now: u64) {
        if self.connections[index].state != State::Handshaking {
            return;
        }
        self.dirty(index);
        let connection = &self.connections[index];
        let stream = connection.stream.as_ref().filter(|stream| !stream.is_handshaking());
        let Some(stream) = stream else { return };
        let took = now.saturating_sub(connection.tls_ns);
        let tally = &mut self.tally.connections;
        match stream.was_resumed() {
            true => tally.tls_resumed += 1,
            false => tally.tls_full += 1,
        }
        tally.tls.saturating_record(took);
        tally.tls_slow += u64::from(u128::from(took) > self.scenario.slow_tls.as_nanos());
        self.bind(index, now);
    }
}
