//! Clients that write at all servers in turn, and what they were answered.

use crate::site::{Site, add, add_in_time, connect, dn};
use keyway_tests::client::Client;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{scope, sleep};
use std::time::{Duration, Instant};

const CLIENTS: usize = 4;
/// Changes of a connection before the client goes to the next server.
const CHANGES_PER_CONNECTION: u32 = 25;
/// They turn away from a server that is stopped, so that they find the one that writes.
const PATIENCE: Duration = Duration::from_secs(10);
/// The machine is not to be busy with clients alone.
const PAUSE: Duration = Duration::from_millis(20);

#[derive(Default)]
struct Seen {
    acknowledged: BTreeSet<String>,
    tried: BTreeSet<String>,
    /// When the newest change began that was acknowledged, and its answer came.
    newest: Option<(Instant, Instant)>,
    /// How often changes failed, by what was said.
    failures: BTreeMap<String, usize>,
    wrong: Vec<String>,
}

/// What the clients share.
pub struct Load {
    addresses: Vec<String>,
    password: String,
    ends: AtomicBool,
    seen: Mutex<Seen>,
}

/// What was to be seen of it.
pub struct Done {
    acknowledged: BTreeSet<String>,
    tried: BTreeSet<String>,
    failures: BTreeMap<String, usize>,
}

/// Has clients write while `work` is done.
pub fn under_load<R>(site: &mut Site, work: impl FnOnce(&mut Site, &Load) -> R) -> (R, Done) {
    let load = Load {
        addresses: site.places.iter().map(|place| place.addresses[0].clone()).collect(),
        password: site.password().to_owned(),
        ends: AtomicBool::new(false),
        seen: Mutex::default(),
    };
    let writer = site.writer();
    for number in 0..CLIENTS {
        add_in_time(&format!("counter{number}"), || site.client(writer));
    }
    let made = scope(|scope| {
        for number in 0..CLIENTS {
            let load = &load;
            scope.spawn(move || load.work(number));
        }
        // Also where the work panics.
        let _ends = Ends(&load.ends);
        work(site, &load)
    });
    let seen = load.seen.into_inner().unwrap();
    let (done, tried) = (seen.acknowledged.len(), seen.tried.len());
    eprintln!("{done} of {tried} adds acknowledged; the others: {:?}", seen.failures);
    assert!(seen.wrong.is_empty(), "{:?}", seen.wrong);
    let Seen { acknowledged, tried, failures, .. } = seen;
    (made, Done { acknowledged, tried, failures })
}

struct Ends<'l>(&'l AtomicBool);

impl Drop for Ends<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

impl Load {
    /// When a change was answered that began after `from`.
    pub fn acknowledged_after(&self, from: Instant) -> Option<Instant> {
        let newest = self.seen.lock().unwrap().newest;
        newest.filter(|(begun, _)| *begun > from).map(|(_, answered)| answered)
    }

    /// How many changes were acknowledged.
    pub fn count(&self) -> usize {
        self.seen.lock().unwrap().acknowledged.len()
    }

    fn work(&self, client: usize) {
        let (mut at, mut number) = (client, 0);
        while !self.ends.load(Ordering::Relaxed) {
            at += 1;
            let address = &self.addresses[at % self.addresses.len()];
            let Ok(mut connection) = connect(address, &self.password, PATIENCE) else {
                sleep(PAUSE);
                continue;
            };
            for _ in 0..CHANGES_PER_CONNECTION {
                if self.ends.load(Ordering::Relaxed) {
                    return;
                }
                number += 1;
                let changed = self.change(&mut connection, client, number);
                sleep(PAUSE);
                if let Err(why) = changed {
                    *self.seen.lock().unwrap().failures.entry(why).or_default() += 1;
                    break;
                }
            }
        }
    }

    fn change(&self, connection: &mut Client, client: usize, number: u32) -> Result<(), String> {
        let uid = format!("w{client}n{number}");
        self.seen.lock().unwrap().tried.insert(uid.clone());
        let begun = Instant::now();
        add(connection, &uid)?;
        {
            let mut seen = self.seen.lock().unwrap();
            seen.acknowledged.insert(uid.clone());
            let newest = seen.newest.map_or(begun, |(newest, _)| newest);
            if newest <= begun {
                seen.newest = Some((begun, Instant::now()));
            }
        }
        match connection.read(&dn(&uid)) {
            Ok(1) => {}
            Ok(found) => self.wrong(format!("{uid} was written and read {found} times")),
            Err(why) if why.contains("noSuchObject") => {
                self.wrong(format!("{uid} was written and is not read"));
            }
            Err(why) => return Err(format!("read: {why}")),
        }
        let (counter, text) = (dn(&format!("counter{client}")), number.to_string());
        connection.replace_values(&counter, "description", &[&text])?;
        match connection.compare(&counter, "description", &text) {
            Ok(true) => Ok(()),
            Ok(false) => {
                self.wrong(format!("{counter}: {number} was written and is not read"));
                Ok(())
            }
            Err(why) => Err(format!("compare: {why}")),
        }
    }

    fn wrong(&self, what: String) {
        self.seen.lock().unwrap().wrong.push(what);
    }
}

impl Done {
    /// How often changes failed, by what was said.
    pub fn failures(&self) -> &BTreeMap<String, usize> {
        &self.failures
    }

    /// That all is there that was acknowledged, and nothing that was not asked for.
    pub fn check(&self, export: &str) {
        let there: BTreeSet<&str> = export
            .lines()
            .filter_map(|line| line.strip_prefix("dn: uid=w")?.split_once(','))
            .map(|(uid, _)| uid)
            .collect();
        let is_there = |uid: &&String| there.contains(&uid[1..]);
        let lost: Vec<_> = self.acknowledged.iter().filter(|uid| !is_there(uid)).collect();
        assert!(lost.is_empty(), "acknowledged, and lost: {lost:?}");
        let strange: Vec<_> =
            there.iter().filter(|uid| !self.tried.contains(&format!("w{uid}"))).collect();
        assert!(strange.is_empty(), "not asked for: {strange:?}");
    }
}
