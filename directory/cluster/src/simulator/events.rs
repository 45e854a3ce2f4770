//! From the start of a run to its end: each event goes to the step that it is for.

use std::time::Duration;

use super::event::Event;
use super::options::Options;
use super::world::World;

impl World {
    /// A cluster whose servers and clients begin.
    pub fn begun(seed: u64, options: Options) -> World {
        let mut world = World::new(seed, options);
        for at in 0..world.servers.len() {
            world.start(at);
        }
        for client in 0..world.clients.len() {
            world.after(Duration::from_millis(client as u64), Event::Client { client });
        }
        world
    }

    /// Runs to the end: first with faults, then until all is healed.
    pub fn run(&mut self) -> Result<(), String> {
        let end = Duration::from_secs(self.options.seconds);
        let first = self.random.between(500, 3000);
        self.after(first, Event::Fault);
        self.run_until(end)?;
        self.heal()
    }

    pub fn run_until(&mut self, end: Duration) -> Result<(), String> {
        while let Some(event) = self.next_until(end) {
            self.handle(event)?;
        }
        self.now = end;
        Ok(())
    }

    fn handle(&mut self, event: Event) -> Result<(), String> {
        match event {
            Event::Tick { server, boot } => self.tick(server, boot)?,
            Event::Deliver { conn, side, message } => self.deliver(conn, side, message)?,
            Event::Connected { server, boot, conn, target } => {
                self.connected(server, boot, conn, target)
            }
            Event::Closed { server, boot, conn } => self.closed(server, boot, conn),
            Event::Rpc { from, boot, to, id, rpc } => self.rpc_came(from, boot, to, id, rpc)?,
            Event::RpcReply { to, boot, id, from, reply } => {
                self.rpc_reply(to, boot, id, from, reply)?
            }
            Event::Synced { server, boot } => self.synced(server, boot)?,
            Event::Client { client } => self.client_step(client),
            Event::ClientLate { client, op } => self.client_late(client, op),
            Event::Serve { server, boot, op } => self.serve(server, boot, op)?,
            Event::Reply { client, op, reply } => self.client_reply(client, op, reply)?,
            Event::Etcd { from, boot, id, call } => self.etcd_call(from, boot, id, call),
            Event::EtcdReply { to, boot, id, heard } => self.etcd_reply(to, boot, id, heard)?,
            Event::Fault => self.fault()?,
            Event::Start { server } => {
                if self.servers[server].process.is_none() && !self.servers[server].is_ended {
                    self.start(server);
                }
            }
            Event::Mend { one, other } => {
                self.cuts.remove(&(one, other));
            }
            Event::EtcdBack => {
                if let Some(etcd) = &mut self.etcd {
                    etcd.is_up = true;
                }
            }
        }
        Ok(())
    }
}
