//! Clients that write and read over connections; a relay picks a server for each.

use std::time::Duration;

use super::event::Event;
use super::op::{Client, Op, OpKind, Reply, Session};
use super::world::World;

/// How long a client waits for a reply.
const PATIENCE: Duration = Duration::from_secs(4);

impl World {
    pub fn client_step(&mut self, at: usize) {
        if self.calm || self.clients[at].op.is_some() {
            return;
        }
        let ends = self.random.chance(5);
        if ends || self.clients[at].session.is_none() {
            // Where lag is measured the writer alone has clients: changes go on when it is cut off.
            let is_measured = self.options.bandwidth.is_some();
            let server = if is_measured { 0 } else { self.random.index(self.servers.len()) };
            let is_there = self.servers[server].process.is_some();
            let (boot, number) = (self.servers[server].boots, self.id());
            let session = is_there.then_some(Session { server, boot, number });
            self.clients[at] = Client { session, op: None, wrote: Vec::new() };
        }
        let Some(session) = self.clients[at].session else {
            let pause = self.random.between(50, 300);
            return self.after(pause, Event::Client { client: at });
        };
        let (number, delay) = (self.id(), self.random.between(1, 5));
        let kind = match self.random.chance(55) {
            true => OpKind::Write { key: self.random.below(50) as u32, write: number },
            false => OpKind::Read,
        };
        let op = Op { client: at, session: session.number, number, kind };
        self.clients[at].op = Some(number);
        self.after(delay, Event::Serve { server: session.server, boot: session.boot, op });
        self.after(PATIENCE, Event::ClientLate { client: at, op: number });
    }

    /// A reply is too late: whether the operation was done is not known.
    pub fn client_late(&mut self, at: usize, op: u64) {
        if self.clients[at].is_at(op) {
            self.clients[at] = Client::default();
            self.client_step(at);
        }
    }

    pub fn reply(&mut self, op: Op, reply: Reply) {
        let delay = self.random.between(1, 5);
        self.after(delay, Event::Reply { client: op.client, op: op.number, reply });
    }

    pub fn client_reply(&mut self, at: usize, op: u64, reply: Reply) -> Result<(), String> {
        if !self.clients[at].is_at(op) {
            return Ok(());
        }
        self.clients[at].op = None;
        match reply {
            Reply::Written(ack) => {
                self.clients[at].wrote.push(ack);
                self.checker.acknowledged(ack)?;
            }
            Reply::Read | Reply::Unavailable => {}
            Reply::Closed => self.clients[at] = Client::default(),
        }
        let pause = self.random.between(5, 150);
        self.after(pause, Event::Client { client: at });
        Ok(())
    }
}
