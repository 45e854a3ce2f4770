//! The thread that keeps a gateway going: it leases numbers before they are used up, says when lifetimes end, lets
//! inbound security associations go that a reload has left, looks at the paths, and keeps a NAT's mappings.

use crate::gateway::{Gateway, Running};
use crate::limits::{LOOK_EVERY, PATH_LOOKS, RECORD_LOOKS};
use crate::say::Say;
use crate::stop::Stop;
use keyway_esp::{KEEPALIVE, Life, Time};
use keyway_host::failure::plain;
use keyway_lock::Unpoisoned;
use std::sync::Mutex;
use std::time::Duration;

/// Works until it is to stop.
pub fn run(gateway: &Mutex<Gateway>, stop: &Stop) {
    let shared = gateway.lock().unpoisoned().shared.clone();
    let (mut looks, mut next) = (0_u64, Duration::ZERO);
    while !stop.is_asked() {
        gateway.lock().unpoisoned().lease();
        let now = shared.clock.shows();
        if now >= next {
            next = now + LOOK_EVERY;
            looks += 1;
            gateway.lock().unpoisoned().look(looks);
        }
        shared.wait_until_wanted(next.saturating_sub(shared.clock.shows()));
    }
}

impl Gateway {
    /// Leases numbers where half of the last ones are used.
    fn lease(&mut self) {
        let (clock, say) = (self.shared.clock, self.say);
        for it in &mut self.running {
            let Ok(out) = &it.out else { continue };
            let mut lease = out.lease.lock().unpoisoned();
            let left = out.sa.end().saturating_sub(out.sa.next_number());
            let is_over = out.sa.state(clock.now()) == Life::Ended;
            if left >= lease.size() / 2 || is_over {
                continue;
            }
            match lease.take(clock.shows()) {
                Ok(numbers) => {
                    out.sa.extend(numbers.end);
                    it.peer.set_low(lease.size() / 2);
                    if std::mem::take(&mut it.said.no_lease) {
                        say.tunnel("leased", &it.tunnel.name, "numbers can be leased again");
                    }
                }
                Err(why) if !it.said.no_lease => {
                    it.said.no_lease = true;
                    say.tunnel(
                        "no lease",
                        &it.tunnel.name,
                        format_args!(
                            "no numbers can be leased in {}: {}; {left} packets may still be sent: \
                         make room, or let \
                         this user write to the state folder",
                            lease.name(),
                            plain(&why)
                        ),
                    );
                }
                Err(_) => {}
            }
        }
    }

    /// What is done again and again.
    fn look(&mut self, looks: u64) {
        let now = self.shared.clock.now();
        let say = self.say;
        self.running.iter_mut().for_each(|it| say_lives(say, it, now));
        let shows = self.shared.clock.shows();
        let before = self.retired.len();
        self.retired.retain(|it| it.until > shows);
        if self.retired.len() < before
            && let Err(why) = self.publish()
        {
            say.note(why);
        }
        self.complete();
        self.keep_alive();
        if looks.is_multiple_of(PATH_LOOKS) {
            self.look_at_paths();
        }
        if looks.is_multiple_of(RECORD_LOOKS)
            && let Err(why) = self.keep_uses()
        {
            say.note(format_args!(
                "warning: the use of the keys cannot be written: {}; after a crash replays of the \
                 last packets would \
                 be taken",
                plain(&why)
            ));
        }
    }

    /// Sends a keepalive (RFC 3948 § 2.3) to peers that were sent nothing for a while.
    fn keep_alive(&mut self) {
        let Some(every) = self.configuration.outside.keepalive else { return };
        let now = self.shared.clock.shows();
        let Some(socket) = &mut self.sockets.udp else { return };
        for it in &mut self.running {
            if it.peer.to.port() == 0 {
                continue;
            }
            let sent = it.out.as_ref().map_or(0, |out| out.sa.use_().packets);
            if sent != it.kept_alive.0 {
                it.kept_alive = (sent, now);
            } else if now.saturating_sub(it.kept_alive.1) >= every {
                it.kept_alive = (sent, now);
                socket.push(it.peer.to, 0, &[&KEEPALIVE]);
            }
        }
        let sent = socket.flush();
        self.shared.figures.keepalives.add(sent.packets);
    }
}

/// Says of each key once that its lifetime comes to its end, and that it is over.
fn say_lives(say: Say, it: &mut Running, now: Time) {
    let out = it.out.as_ref().ok().map(|it| it.sa.state(now));
    let inbound = it.inbound.as_ref().ok().map(|it| it.sa.state(now));
    for (way, life, said) in [("out", out, &mut it.said.out), ("in", inbound, &mut it.said.inbound)]
    {
        let Some(life) = life.filter(|life| *said != Some(*life)) else { continue };
        *said = Some(life);
        let name = &it.tunnel.name;
        match life {
            Life::Fresh => {}
            Life::Soft => say.tunnel("expiring", name, format_args!(
                "{way}: the lifetime of its key is nearly over; write new keys with new SPIs on \
                 both sides, and keyway \
                 esp reload"
            )),
            Life::Ended => say.tunnel("ended", name, format_args!(
                "{way}: the lifetime of its key is over, or its numbers are used up, and no \
                 packet goes through; write \
                 new keys with new SPIs on both sides, and keyway esp reload"
            )),
        }
    }
}
