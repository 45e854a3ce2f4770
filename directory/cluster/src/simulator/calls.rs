//! Calls of etcd and their answers, any of which may be lost.

use super::etcd::Call;
use super::event::Event;
use super::options::Broken;
use super::world::{ETCD, World};

impl World {
    /// Calls etcd.
    pub fn call(&mut self, from: usize, call: Call) -> u64 {
        let (id, delay) = (self.id(), self.random.between(1, 10));
        let boot = self.servers[from].boots;
        if !self.is_cut(from, ETCD) && !self.random.chance(u64::from(!self.calm)) {
            self.after(delay, Event::Etcd { from, boot, id, call });
        }
        id
    }

    pub fn etcd_call(&mut self, from: usize, boot: u64, id: u64, call: Call) {
        let (now, nonce, delay) = (self.now, self.random.next(), self.random.between(1, 10));
        let is_fenced = !self.is_broken(Broken::EtcdTransaction);
        let Some(etcd) = self.etcd.as_mut().filter(|etcd| etcd.is_up) else { return };
        let heard = etcd.call(call, now, nonce, is_fenced);
        if !self.is_cut(from, ETCD) && !self.random.chance(u64::from(!self.calm)) {
            self.after(delay, Event::EtcdReply { to: from, boot, id, heard });
        }
    }
}
