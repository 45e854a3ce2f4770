//! Three servers behind HAProxy for a program that people log in to, and changes of the writer while they do.

use crate::balancer::{Balancer, Way};
use crate::three::{Three, must_rejoin};
use keyway_tests::cryptod::eventually;
use keyway_tests::debian::{BASE, HOST, Machine, SECRET, TREE};
use std::fs;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// How many rounds of each kind there are at least before, between and after the changes.
const ROUNDS: usize = 20;
/// And how many at most in all.
const ROUNDS_MAX: usize = 20_000;
/// How long some rounds may take where others use the processors as well.
const PATIENCE: Duration = Duration::from_secs(600);
const LOOK_AGAIN: Duration = Duration::from_millis(20);
/// Users who are there from the start, beside those of the tree.
pub const USERS: usize = 500;

/// Like the guide's, but for cheap passwords.
fn settings() -> String {
    format!(
        "[password]\nmemory_kib = 64\npolicy = \"cn=default,ou=Policies,{BASE}\"\n\
         [tls]\nnames = [\"{HOST}\"]\n[cluster]\nown_writes = \"address\"\n"
    )
}

/// The servers, and HAProxy.
pub struct Applications {
    three: Three,
    front: Front,
}

/// What a program sees of them.
pub struct Front {
    pub balancer: Balancer,
    pub password: String,
    creating: Mutex<()>,
}

impl Front {
    /// Held while something is created. A change that no other server has yet is lost with a writer that is killed, which
    /// is known, and is not to happen here.
    pub fn creating(&self) -> MutexGuard<'_, ()> {
        self.creating.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What comes of a round.
type Round = Result<(), String>;

/// One that failed, and when it began and ended.
struct Failure {
    time: Range<Duration>,
    why: String,
}

/// Rounds of one kind.
#[derive(Default)]
struct Rounds {
    done: AtomicUsize,
    failures: Mutex<Vec<Failure>>,
}

impl Rounds {
    /// Does them until the end.
    fn run(&self, end: &AtomicBool, begun: Instant, round: impl Fn(usize) -> Round) {
        for number in 0..ROUNDS_MAX {
            if end.load(Ordering::Relaxed) {
                return;
            }
            let from = begun.elapsed();
            if let Err(why) = round(number) {
                let why = format!("round {number}: {why}");
                let failure = Failure { time: from..begun.elapsed(), why };
                self.failures.lock().unwrap().push(failure);
            }
            self.done.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Waits for some more.
    fn some(&self) {
        let wanted = self.done.load(Ordering::Relaxed) + ROUNDS;
        let begun = Instant::now();
        while self.done.load(Ordering::Relaxed) < wanted {
            assert!(begun.elapsed() < PATIENCE, "it does not go on");
            std::thread::sleep(LOOK_AGAIN);
        }
    }
}

impl Applications {
    /// With the machine's tree and `USERS` of [`user`], and an authority that the machine trusts.
    pub fn new(machine: &Machine) -> Applications {
        let tree = machine.folder().join("tree.ldif");
        let users: String = (0..USERS).map(|number| user(&known(number), number)).collect();
        fs::write(&tree, format!("{TREE}\n{users}")).unwrap();
        let flags = ["--import", tree.to_str().unwrap()];
        let three = Three::filled(&settings(), &flags, |_| ());
        machine.trust(&three.at(0).join("ca.pem"));
        let balancer = Balancer::start(&three, machine.folder(), Way::ByAddress);
        let front = Front { balancer, password: three.password(), creating: Mutex::default() };
        Applications { three, front }
    }

    pub fn front(&self) -> &Front {
        &self.front
    }

    /// Does rounds with users who are there and with new ones while the writer is changed on purpose and by its death. None
    /// may fail, but for so many at the moments of these: a program may not send again what was cut off on its way.
    pub fn change_the_writer(
        &mut self,
        cut_off_max: usize,
        known: impl Fn(usize) -> Round + Sync,
        new: impl Fn(&Front, usize) -> Round + Sync,
    ) {
        let Applications { three, front } = self;
        let (end, begun) = (AtomicBool::new(false), Instant::now());
        let all = [Rounds::default(), Rounds::default()];
        let cuts = std::thread::scope(|scope| {
            scope.spawn(|| all[0].run(&end, begun, &known));
            scope.spawn(|| all[1].run(&end, begun, |number| new(front, number)));
            // They end as well if this does not go on.
            let _end = Ends(&end);
            change(three, front, &all, begun)
        });
        let (mut cut_off, mut failed) = (Vec::new(), Vec::new());
        for (kind, rounds) in ["known", "new"].into_iter().zip(all) {
            eprintln!("{} rounds with {kind} users", rounds.done.into_inner());
            for Failure { time, why } in rounds.failures.into_inner().unwrap() {
                let is_cut_off =
                    cuts.iter().any(|cut| time.start < cut.end && cut.start < time.end);
                let list = if is_cut_off { &mut cut_off } else { &mut failed };
                list.push(format!("{time:?}: {why}"));
            }
        }
        eprintln!("cut off: {cut_off:#?}");
        assert!(failed.is_empty() && cut_off.len() <= cut_off_max, "{failed:#?}\n{cut_off:#?}");
    }
}

/// Returns when the first writer was stopped and the second one died.
fn change(
    three: &mut Three,
    front: &Front,
    all: &[Rounds],
    begun: Instant,
) -> [Range<Duration>; 2] {
    let go_on = |what: &str| {
        eprintln!("{:?}: {what}", begun.elapsed());
        all.iter().for_each(Rounds::some);
    };
    go_on("three servers");
    let from = begun.elapsed();
    three.stop(0);
    let stop = from..begun.elapsed();
    three.asked(1, "promote").unwrap();
    go_on("the writer was stopped, and another one promoted");
    bring_back(three, 0);
    go_on("three servers again");
    let death = {
        let _none = front.creating();
        three.wait_for_all();
        let from = begun.elapsed();
        three.kill(1);
        from..begun.elapsed()
    };
    all[0].some();
    eprintln!("{:?}: there was no writer", begun.elapsed());
    three.asked(2, "promote").unwrap();
    go_on("the writer was killed, and another one promoted");
    bring_back(three, 1);
    go_on("three servers in the end");
    let _none = front.creating();
    three.wait_for_all();
    [stop, death]
}

/// Starts a server that was the writer, and gives it the contents of the one that is.
fn bring_back(three: &mut Three, server: usize) {
    three.start(server);
    eventually("it follows", || {
        let status = three.status(server);
        if status.as_ref().is_ok_and(must_rejoin) {
            three.rejoin(server).unwrap();
        }
        status.is_ok_and(|status| status["is_connected"] == true)
    });
}

/// Says that it is the end when it is dropped.
struct Ends<'a>(&'a AtomicBool);

impl Drop for Ends<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// The name of a user who is there from the start.
pub fn known(number: usize) -> String {
    format!("known-{}", number % USERS)
}

/// A user, with the password of all, which need not be changed at once.
pub fn user(name: &str, number: usize) -> String {
    format!(
        "dn: uid={name},ou=People,{BASE}\nobjectClass: inetOrgPerson\nobjectClass: posixAccount\n\
         uid: {name}\ncn: {name}\nsn: Test\ngivenName: Some\nmail: {name}@example.com\n\
         uidNumber: {}\ngidNumber: 20001\nhomeDirectory: /home/{name}\nloginShell: /bin/sh\n\
         userPassword: {SECRET}\npwdPolicySubentry: cn=short,ou=Policies,{BASE}\n\n",
        30_000 + number
    )
}
