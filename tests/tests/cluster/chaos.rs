//! Three servers that are killed, paused, cut off and promoted while clients write through them.

use crate::clients::{Client, History, Outcome, Wrote};
use crate::relay::{CLIENTS, Way};
use crate::site::{check, export};
use crate::three::{SERVERS, Three, must_rejoin};
use keyway_tests::dice::{Dice, seed};
use keyway_tests::nightly;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

const CLIENTS_COUNT: usize = 4;
const SHORT: Duration = Duration::from_secs(25);
const NIGHTLY: Duration = Duration::from_secs(600);
/// How long they may take to come together when all is well again.
const SETTLED_WITHIN: Duration = Duration::from_secs(120);
/// Longer than members take to notice that another one is silent.
const LONG_MS: usize = 10_000;

/// A promotion: the next reign, and the place in the one before up to which it has all.
struct Promotion {
    to: (u64, String),
    from: (u64, String),
    position: u64,
}

/// Does what goes wrong.
struct Chaos {
    three: Three,
    dice: Dice,
    promotions: Vec<Promotion>,
    said: Vec<String>,
}

impl Chaos {
    fn step(&mut self) {
        let (one, other) = (self.dice.below(SERVERS), self.dice.below(SERVERS));
        let hold = match self.dice.below(6) {
            0 => LONG_MS,
            _ => 100 + self.dice.below(1500),
        };
        let hold = Duration::from_millis(hold as u64);
        match self.dice.below(10) {
            0 => {
                self.say(format!("kill {one}"));
                self.three.kill(one);
                self.three.start(one);
            }
            1 => {
                self.say(format!("kill {one} for {hold:?}"));
                self.three.kill(one);
                self.meanwhile(hold);
                self.three.start(one);
            }
            2 => {
                self.say(format!("pause {one} for {hold:?}"));
                self.three.pause(one);
                self.meanwhile(hold);
                self.three.resume(one);
            }
            3 | 4 => {
                let slow = Way::Slow(Duration::from_millis(self.dice.below(300) as u64));
                let way = *self.dice.one(&[Way::Cut, Way::Hole, slow]);
                self.say(format!("{way:?} between {one} and {other} for {hold:?}"));
                self.three.network.set(one, other, way);
                self.meanwhile(hold);
                self.three.network.heal();
            }
            5 | 6 => {
                let way = *self.dice.one(&[Way::Cut, Way::Hole]);
                let with_clients = self.dice.below(2) == 0;
                self.say(format!("{way:?} around {one} for {hold:?}, clients: {with_clients}"));
                let others = (0..SERVERS).filter(|other| *other != one);
                others.for_each(|other| self.three.network.set(one, other, way));
                if with_clients {
                    self.three.network.set(one, CLIENTS, way);
                }
                self.meanwhile(hold);
                self.three.network.heal();
            }
            7 => self.promote(one),
            _ => self.meanwhile(Duration::from_millis(500)),
        }
        self.mend();
    }

    /// What is wrong lasts this long; a member may be promoted in it.
    fn meanwhile(&mut self, hold: Duration) {
        thread::sleep(hold / 2);
        if self.dice.below(3) == 0 {
            let one = self.dice.below(SERVERS);
            self.promote(one);
        }
        thread::sleep(hold / 2);
    }

    fn promote(&mut self, server: usize) {
        if !self.three.is_up(server) {
            return;
        }
        // All that it has by now it has when it is promoted.
        let Ok(before) = self.three.status(server) else { return };
        let Ok(done) = self.three.asked(server, "promote") else { return };
        let text = |name: &str| before[name].as_str().unwrap().to_owned();
        let epoch = done["epoch"].as_u64().unwrap();
        self.say(format!("promoted {server} in epoch {epoch}"));
        self.promotions.push(Promotion {
            to: (epoch, text("member")),
            from: (before["epoch"].as_u64().unwrap(), text("writer")),
            position: before["position"].as_u64().unwrap(),
        });
    }

    /// Does what members say that an administrator has to do.
    fn mend(&mut self) {
        for server in 0..SERVERS {
            let status = self.three.status(server);
            if status.as_ref().is_ok_and(must_rejoin) {
                let done = self.three.rejoin(server);
                self.say(format!("rejoin {server}: {done:?}"));
            }
        }
    }

    fn say(&mut self, what: String) {
        self.said.push(what);
    }

    /// The reigns that the contents of now are of, and up to which position of each.
    fn reigns(&self, last: (u64, String)) -> BTreeMap<(u64, String), u64> {
        let mut all = BTreeMap::from([(last.clone(), u64::MAX)]);
        let mut reign = last;
        while let Some(promotion) = self.promotions.iter().find(|it| it.to == reign) {
            all.insert(promotion.from.clone(), promotion.position);
            reign = promotion.from.clone();
        }
        all
    }
}

#[test]
fn no_change_is_lost_while_servers_are_killed_paused_cut_off_and_promoted() {
    let seed = seed("chaos");
    let three = Three::new();
    let password = three.password();
    let mut pick = Dice::new(seed ^ 1);
    let address = three.clients(move || pick.below(SERVERS));
    let end = AtomicBool::new(false);
    let mut chaos =
        Chaos { three, dice: Dice::new(seed), promotions: Vec::new(), said: Vec::new() };
    let (begun, lasts) = (Instant::now(), if nightly() { NIGHTLY } else { SHORT });
    let histories: Vec<History> = thread::scope(|scope| {
        let clients: Vec<_> = (0..CLIENTS_COUNT)
            .map(|number| {
                let client = Client::new(number, &address, &password, seed, &end);
                scope.spawn(move || client.run())
            })
            .collect();
        while begun.elapsed() < lasts {
            chaos.step();
        }
        end.store(true, Ordering::Relaxed);
        clients.into_iter().map(|client| client.join().unwrap()).collect()
    });
    chaos.three.settle(SETTLED_WITHIN);
    let last = chaos.three.status(0).unwrap();
    let last = (last["epoch"].as_u64().unwrap(), last["writer"].as_str().unwrap().to_owned());
    let reigns = chaos.reigns(last);
    let own_changes = chaos.three.own_changes();
    (0..SERVERS).for_each(|server| chaos.three.stop(server));
    let exports: Vec<String> = (0..SERVERS).map(|server| export(&chaos.three.at(server))).collect();
    (0..SERVERS).for_each(|server| check(&chaos.three.at(server)));
    let mut wrong: Vec<String> = Vec::new();
    if exports.iter().any(|one| *one != exports[0]) {
        wrong.push("the contents differ".into());
    }
    let found = Found::new(&exports[0]);
    let mut counts = [0; 3];
    for history in &histories {
        wrong.extend(history.stale.iter().map(|it| format!("an old read: {it}")));
        for wrote in &history.wrote {
            let Outcome::Done { epoch, writer, position } = &wrote.outcome else { continue };
            counts[0] += 1;
            if found.has(wrote, &history.wrote) {
                continue;
            }
            counts[1] += 1;
            let until = reigns.get(&(*epoch, writer.clone()));
            if until.is_some_and(|until| position <= until) {
                wrong.push(format!("lost, though the next writer had it: {wrote:?}"));
            } else if !is_written_out(&own_changes, wrote) {
                wrong.push(format!("neither there nor in LDIF: {wrote:?}"));
            } else {
                counts[2] += 1;
            }
        }
        eprintln!(
            "{} connections, {} reads, {:#?}",
            history.connections, history.reads, history.refusals
        );
    }
    eprintln!("{:#?}\n{reigns:?}\n{counts:?} acknowledged, not there, in LDIF", chaos.said);
    assert!(wrong.is_empty(), "{wrong:#?}\n{}", chaos.three.logs());
    assert!(counts[0] > 100, "hardly any change was made");
}

/// The entries of clients, by their own names.
struct Found(BTreeMap<String, BTreeSet<String>>);

impl Found {
    fn new(export: &str) -> Found {
        let mut all = BTreeMap::new();
        for entry in export.replace("\n ", "").split("\n\n") {
            if let Some(name) = entry.lines().find_map(|line| line.strip_prefix("l: c")) {
                let lines = entry.lines().map(str::to_owned).collect();
                all.insert(format!("c{name}"), lines);
            }
        }
        Found(all)
    }

    /// Whether a change is there, or one has taken its entry away.
    fn has(&self, wrote: &Wrote, all: &[Wrote]) -> bool {
        let entry = self.0.get(&wrote.entry);
        match (&wrote.value, entry) {
            (None, entry) => entry.is_none(),
            (Some((name, value)), Some(entry)) => entry.contains(&format!("{name}: {value}")),
            (Some(_), None) => all.iter().any(|it| it.entry == wrote.entry && it.value.is_none()),
        }
    }
}

fn is_written_out(own_changes: &str, wrote: &Wrote) -> bool {
    match &wrote.value {
        Some((name, value)) => {
            own_changes.contains(&format!("\n{name}: {value}\n"))
                || own_changes.contains(&format!("\nnewrdn: {name}={value}\n"))
        }
        None => own_changes.contains(&format!("dn: {}\nchangetype: delete\n", wrote.dn)),
    }
}
