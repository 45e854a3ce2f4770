//! Connections in order, requests out of order, and cuts between any two.

use std::time::Duration;

use super::event::Event;
use super::wire::{Conn, Message, Rpc, RpcReply};
use super::world::World;

/// Octets of a row.
const ROW: u64 = 1_000;
/// Octets of another frame.
const FRAME: u64 = 200;

impl World {
    fn delay(&mut self) -> Duration {
        if self.options.bandwidth.is_some() {
            // A good network, in which the time is that of the line.
            return Duration::from_micros(100 + self.random.below(400));
        }
        match self.random.chance(3) {
            true => self.random.between(1, 400),
            false => self.random.between(1, 8),
        }
    }

    /// Opens a connection; the one that opens hears of it.
    pub fn connect(&mut self, server: usize, target: Option<usize>) {
        let boot = self.servers[server].boots;
        let conn = self.id();
        let delay = self.delay();
        match target {
            Some(target) if self.is_cut(server, target) => {}
            Some(target) => {
                self.servers[server].connecting(conn);
                self.after(delay, Event::Connected { server, boot, conn, target });
            }
            None => self.after(delay, Event::Closed { server, boot, conn: 0 }),
        }
    }

    /// The target is asked.
    pub fn connected(&mut self, server: usize, boot: u64, conn: u64, target: usize) {
        let is_there = self.servers[target].process.is_some() && !self.is_cut(server, target);
        if self.servers[server].boots != boot || self.servers[server].process.is_none() {
            return;
        }
        if !is_there {
            self.after(Duration::ZERO, Event::Closed { server, boot, conn });
            return;
        }
        let ends = [(server, boot), (target, self.servers[target].boots)];
        self.conns.insert(conn, Conn { ends, last: [self.now; 2], is_dead: false });
        self.follow_connected(server, conn);
    }

    /// Sends from one side to the other.
    pub fn send(&mut self, conn: u64, from: usize, message: Message) {
        let delay = self.delay();
        let Some(it) = self.conns.get(&conn) else { return };
        let cut = self.is_cut(it.ends[0].0, it.ends[1].0);
        let now = self.now;
        let Some(it) = self.conns.get_mut(&conn) else { return };
        it.is_dead |= cut;
        if it.is_dead {
            return;
        }
        let side = 1 - from;
        let sender = &mut self.servers[it.ends[from].0];
        if let Some(bandwidth) = self.options.bandwidth {
            let octets = if matches!(message, Message::Row(_)) { ROW } else { FRAME };
            sender.sends_until = sender.sends_until.max(now)
                + Duration::from_nanos(octets * 1_000_000_000 / bandwidth);
        }
        let sent = sender.sends_until.max(now);
        it.last[side] = it.last[side].max(sent + delay) + Duration::from_nanos(1);
        let at = it.last[side];
        self.at(at, Event::Deliver { conn, side, message });
    }

    pub fn deliver(&mut self, conn: u64, side: usize, message: Message) -> Result<(), String> {
        let Some(it) = self.conns.get(&conn) else { return Ok(()) };
        let (server, boot) = it.ends[side];
        if it.is_dead || self.is_cut(it.ends[0].0, it.ends[1].0) {
            if let Some(it) = self.conns.get_mut(&conn) {
                it.is_dead = true;
            }
            return Ok(());
        }
        if self.servers[server].process.is_none() || self.servers[server].boots != boot {
            return Ok(());
        }
        match side {
            0 => self.follower_frame(server, conn, message),
            _ => self.writer_frame(server, conn, message),
        }
    }

    /// Ends a connection from one side; the other hears of it if it can.
    pub fn close(&mut self, conn: u64, from: usize) {
        let delay = self.delay();
        let Some(it) = self.conns.remove(&conn) else { return };
        let (server, boot) = it.ends[1 - from];
        let cut = self.is_cut(it.ends[0].0, it.ends[1].0);
        if !cut && !it.is_dead {
            let at = it.last[1 - from].max(self.now + delay);
            self.at(at, Event::Closed { server, boot, conn });
        }
    }

    /// All connections of a server that is no more. Without power it sends no ends.
    pub fn close_all(&mut self, server: usize, says_so: bool) {
        let of = |conn: &Conn| conn.ends.iter().position(|end| end.0 == server);
        let conns: Vec<_> =
            self.conns.iter().filter_map(|(id, conn)| Some((*id, of(conn)?))).collect();
        for (id, side) in conns {
            match says_so {
                true => self.close(id, side),
                false => {
                    if let Some(conn) = self.conns.get_mut(&id) {
                        conn.is_dead = true;
                    }
                }
            }
        }
    }

    /// Sends a request.
    pub fn ask(&mut self, from: usize, to: usize, rpc: Rpc) -> u64 {
        let (id, delay) = (self.id(), self.delay());
        if !self.is_cut(from, to) {
            let boot = self.servers[from].boots;
            self.after(delay, Event::Rpc { from, boot, to, id, rpc });
        }
        id
    }

    /// Sends an answer.
    pub fn answer(&mut self, from: usize, to: usize, boot: u64, id: u64, reply: RpcReply) {
        let delay = self.delay();
        if !self.is_cut(from, to) {
            self.after(delay, Event::RpcReply { to, boot, id, from, reply });
        }
    }
}
