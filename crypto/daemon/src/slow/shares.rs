//! The order of slow work: next is the party that has had the least, by its weight (weighted fair queueing).
//! First among users, since a user makes any number of clients, then among the clients of that one.
//!
//! There are two lanes, each with its threads, so that a signature never stands behind passwords. In the long
//! one a user leaves a thread to other users, and a client one to its user's other clients. No job is taken
//! from a thread once it has begun: the processors' time is shared between threads by the system, and how long
//! a job may take is bounded ([`slow_cost_max`](crate::limits::ClientLimits::slow_cost_max)).

use crate::pump::ClientId;
use std::collections::{BTreeMap, VecDeque};

/// The owner of a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tag {
    pub user: u32,
    pub client: ClientId,
    /// How many times the time of others it gets.
    pub weight: u32,
}

/// How many threads jobs may have at a time.
#[derive(Clone, Copy, Debug)]
pub struct Lanes {
    short: usize,
    long: usize,
    long_of_user: usize,
    long_of_client: usize,
}

impl Lanes {
    /// In each lane a client may have as many as there are processors.
    pub fn of(processors: usize) -> Self {
        let [long_of_client, long_of_user, long] = [0, 1, 2].map(|more| processors + more);
        Lanes { short: processors, long, long_of_user, long_of_client }
    }

    /// For a token: as many threads as it has sessions, in one lane.
    pub fn of_token() -> Self {
        let short = keyway_token::limits::SESSIONS_MAX;
        Lanes { short, long: 0, long_of_user: 0, long_of_client: 0 }
    }

    /// Threads that are needed for all that may run at a time.
    pub fn threads(&self) -> usize {
        self.short + self.long
    }

    fn may_begin(&self, running: Running) -> Open {
        Open { short: running.short < self.short, long: running.long < self.long }
    }
}

/// In which lane a job may begin.
#[derive(Clone, Copy)]
struct Open {
    short: bool,
    long: bool,
}

/// Jobs that were taken and are not done.
#[derive(Clone, Copy, Default)]
struct Running {
    short: usize,
    long: usize,
}

impl Running {
    fn of(&mut self, ticket: &Ticket) -> &mut usize {
        if ticket.long { &mut self.long } else { &mut self.short }
    }

    fn any(self) -> bool {
        self.short + self.long > 0
    }
}

/// The jobs that wait, and the time that each user and client has had.
pub struct Shares<J> {
    lanes: Lanes,
    running: Running,
    waiting: usize,
    users: BTreeMap<u32, User<J>>,
    /// The time that the user whose turn was last had had by then. A user who comes anew begins
    /// there.
    clock: u64,
}

struct User<J> {
    had: Had,
    waiting: usize,
    clients: BTreeMap<ClientId, Client<J>>,
    clock: u64,
}

struct Client<J> {
    had: Had,
    short: VecDeque<Waiting<J>>,
    long: VecDeque<Waiting<J>>,
}

struct Waiting<J> {
    cost: u64,
    weight: u32,
    job: J,
}

/// The time that a user or a client has had, in nanoseconds by its weight, and its jobs that run
/// now.
#[derive(Clone, Copy, Default)]
struct Had {
    nanoseconds: u64,
    running: Running,
}

/// A job that was taken.
#[derive(Debug)]
pub struct Ticket {
    tag: Tag,
    cost: u64,
    long: bool,
}

impl Had {
    fn begin(&mut self, ticket: &Ticket) {
        self.nanoseconds = self.nanoseconds.saturating_add(by_weight(ticket.cost, ticket.tag));
        *self.running.of(ticket) += 1;
    }

    /// Counts the time that a job took, in the place of the time that it was expected to take.
    fn end(&mut self, ticket: &Ticket, took: u64) {
        let expected = by_weight(ticket.cost, ticket.tag);
        self.nanoseconds =
            (self.nanoseconds.saturating_sub(expected)).saturating_add(by_weight(took, ticket.tag));
        *self.running.of(ticket) -= 1;
    }
}

fn by_weight(nanoseconds: u64, tag: Tag) -> u64 {
    nanoseconds / u64::from(tag.weight.max(1))
}

impl<J> Client<J> {
    fn new(had: u64) -> Self {
        let had = Had { nanoseconds: had, ..Had::default() };
        Client { had, short: VecDeque::new(), long: VecDeque::new() }
    }

    fn waiting(&self) -> usize {
        self.short.len() + self.long.len()
    }

    /// Whether it has a job that may begin, where its user's may.
    fn may_begin(&self, open: Open, lanes: Lanes) -> bool {
        let long = open.long && self.had.running.long < lanes.long_of_client;
        (open.short && !self.short.is_empty()) || (long && !self.long.is_empty())
    }
}

impl<J> User<J> {
    fn open(&self, open: Open, lanes: Lanes) -> Open {
        Open { long: open.long && self.had.running.long < lanes.long_of_user, ..open }
    }

    fn may_begin(&self, open: Open, lanes: Lanes) -> bool {
        let open = self.open(open, lanes);
        self.waiting > 0 && self.clients.values().any(|client| client.may_begin(open, lanes))
    }
}

impl<J> Shares<J> {
    pub fn new(lanes: Lanes) -> Self {
        Shares { lanes, running: Running::default(), waiting: 0, users: BTreeMap::new(), clock: 0 }
    }

    /// Whether all jobs are short.
    pub fn has_one_lane(&self) -> bool {
        self.lanes.long == 0
    }

    pub fn waiting(&self) -> usize {
        self.waiting
    }

    pub fn waiting_of(&self, user: u32) -> usize {
        self.users.get(&user).map_or(0, |user| user.waiting)
    }

    /// Puts a job behind those of its client.
    pub fn put(&mut self, tag: Tag, cost: u64, long: bool, job: J) {
        let clock = self.clock;
        let new = || {
            let had = Had { nanoseconds: clock, ..Had::default() };
            User { had, waiting: 0, clients: BTreeMap::new(), clock: 0 }
        };
        let user = self.users.entry(tag.user).or_insert_with(new);
        if user.waiting == 0 && !user.had.running.any() {
            // A user that asked for nothing has saved nothing up.
            user.had.nanoseconds = user.had.nanoseconds.max(clock);
        }
        let begins_at = user.clock;
        let client = user.clients.entry(tag.client).or_insert_with(|| Client::new(begins_at));
        if client.waiting() == 0 && !client.had.running.any() {
            client.had.nanoseconds = client.had.nanoseconds.max(begins_at);
        }
        let lane = if long { &mut client.long } else { &mut client.short };
        lane.push_back(Waiting { cost, weight: tag.weight, job });
        user.waiting += 1;
        self.waiting += 1;
    }

    /// Takes the job whose turn it is, if one may begin.
    pub fn take(&mut self) -> Option<(Ticket, J)> {
        let (open, lanes) = (self.lanes.may_begin(self.running), self.lanes);
        let users = self.users.iter_mut().filter(|(_, user)| user.may_begin(open, lanes));
        let (&user_number, user) = users.min_by_key(|(_, user)| user.had.nanoseconds)?;
        let open = user.open(open, lanes);
        let clients = user.clients.iter_mut().filter(|(_, client)| client.may_begin(open, lanes));
        let (&client_number, client) = clients.min_by_key(|(_, client)| client.had.nanoseconds)?;
        let short = if open.short { client.short.pop_front() } else { None };
        let (Waiting { cost, weight, job }, long) = match short {
            Some(waiting) => (waiting, false),
            None => (client.long.pop_front()?, true),
        };
        let tag = Tag { user: user_number, client: client_number, weight };
        let ticket = Ticket { tag, cost, long };
        self.clock = self.clock.max(user.had.nanoseconds);
        user.clock = user.clock.max(client.had.nanoseconds);
        client.had.begin(&ticket);
        user.had.begin(&ticket);
        user.waiting -= 1;
        self.waiting -= 1;
        *self.running.of(&ticket) += 1;
        Some((ticket, job))
    }

    /// A job that was taken is done, and has taken so many nanoseconds.
    pub fn done(&mut self, ticket: Ticket, took: u64) {
        *self.running.of(&ticket) -= 1;
        if let Some(user) = self.users.get_mut(&ticket.tag.user) {
            user.had.end(&ticket, took);
            if let Some(client) = user.clients.get_mut(&ticket.tag.client) {
                client.had.end(&ticket, took);
            }
        }
        self.forget_the_idle();
    }

    /// Takes back jobs that wait for a client.
    pub fn take_back(&mut self, tag: Tag, mut which: impl FnMut(&J) -> bool) -> Vec<J> {
        let mut taken = Vec::new();
        if let Some(user) = self.users.get_mut(&tag.user)
            && let Some(client) = user.clients.get_mut(&tag.client)
        {
            for lane in [&mut client.short, &mut client.long] {
                for waiting in std::mem::take(lane) {
                    match which(&waiting.job) {
                        true => taken.push(waiting.job),
                        false => lane.push_back(waiting),
                    }
                }
            }
            user.waiting -= taken.len();
            self.waiting -= taken.len();
        }
        self.forget_the_idle();
        taken
    }

    /// Takes back all that waits.
    pub fn take_all(&mut self) -> Vec<J> {
        let clients = self.users.values_mut().flat_map(|user| {
            user.waiting = 0;
            user.clients.values_mut()
        });
        let lanes = clients.flat_map(|client| [&mut client.short, &mut client.long]);
        self.waiting = 0;
        lanes.flat_map(std::mem::take).map(|waiting| waiting.job).collect()
    }

    /// Forgets who has nothing here and owes nothing.
    fn forget_the_idle(&mut self) {
        let clock = self.clock;
        self.users.retain(|_, user| {
            let clock_of_clients = user.clock;
            user.clients.retain(|_, client| {
                let owes = client.had.nanoseconds > clock_of_clients && user.waiting > 0;
                owes || client.waiting() > 0 || client.had.running.any()
            });
            user.had.nanoseconds > clock || !user.clients.is_empty()
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LONG: u64 = 1_000_000_000;
    const SHORT: u64 = 1_000_000;

    /// One thread for each lane.
    const ONE: Lanes = Lanes { short: 1, long: 1, long_of_user: 1, long_of_client: 1 };

    fn tag(user: u32, client: ClientId) -> Tag {
        Tag { user, client, weight: 1 }
    }

    fn put(shares: &mut Shares<&'static str>, tag: Tag, jobs: usize, name: &'static str) {
        (0..jobs).for_each(|_| shares.put(tag, LONG, true, name));
    }

    /// Lets so many jobs be done, one after the other as threads become free, and counts whose they were.
    fn served(shares: &mut Shares<&'static str>, jobs: usize) -> BTreeMap<&'static str, usize> {
        let (mut under_way, mut counts) = (VecDeque::new(), BTreeMap::new());
        for _ in 0..jobs {
            while let Some((ticket, name)) = shares.take() {
                *counts.entry(name).or_insert(0) += 1;
                under_way.push_back(ticket);
            }
            let Some(ticket) = under_way.pop_front() else { break };
            let took = ticket.cost;
            shares.done(ticket, took);
        }
        under_way.into_iter().for_each(|ticket| shares.done(ticket, LONG));
        counts
    }

    #[test]
    fn what_is_short_does_not_stand_behind_what_is_long() {
        let mut shares = Shares::new(Lanes::of(2));
        put(&mut shares, tag(1, 1), 64, "long");
        let mut begun = Vec::new();
        while let Some((ticket, _)) = shares.take() {
            begun.push(ticket);
        }
        // Threads are left to the short, one to other users, one to other clients of this one.
        assert_eq!(begun.len(), 2);
        shares.put(tag(1, 1), SHORT, false, "short");
        assert_eq!(shares.take().unwrap().1, "short");
        put(&mut shares, tag(1, 2), 1, "another client's");
        assert_eq!(shares.take().unwrap().1, "another client's");
        put(&mut shares, tag(2, 3), 1, "another user's");
        assert_eq!(shares.take().unwrap().1, "another user's");
        assert!(shares.take().is_none());
    }

    #[test]
    fn users_share_by_cost_and_not_by_clients_or_requests() {
        let mut shares = Shares::new(ONE);
        for client in 0..10 {
            put(&mut shares, tag(1, client), 40, "many clients");
        }
        put(&mut shares, tag(2, 100), 400, "one client");
        let counts = served(&mut shares, 100);
        assert!(counts["many clients"].abs_diff(counts["one client"]) <= 2, "{counts:?}");
        // And clients of one user share that user's part.
        let mut shares = Shares::new(ONE);
        put(&mut shares, tag(1, 1), 400, "first");
        put(&mut shares, tag(1, 2), 400, "second");
        let counts = served(&mut shares, 100);
        assert!(counts["first"].abs_diff(counts["second"]) <= 2, "{counts:?}");
    }

    #[test]
    fn a_weight_is_a_multiple_of_the_time() {
        let mut shares = Shares::new(ONE);
        put(&mut shares, Tag { weight: 3, ..tag(1, 1) }, 400, "three");
        put(&mut shares, tag(2, 2), 400, "one");
        let counts = served(&mut shares, 100);
        assert!(counts["three"].abs_diff(75) <= 2, "{counts:?}");
    }

    #[test]
    fn what_was_expected_wrongly_is_paid_for_afterwards() {
        let mut shares = Shares::new(ONE);
        // One says that its work is nothing, and takes as long as the other's.
        for _ in 0..400 {
            shares.put(tag(1, 1), 1, true, "liar");
            shares.put(tag(2, 2), LONG, true, "honest");
        }
        let mut counts = BTreeMap::new();
        for _ in 0..100 {
            let (ticket, name) = shares.take().unwrap();
            *counts.entry(name).or_insert(0) += 1;
            shares.done(ticket, LONG);
        }
        assert!(counts["liar"] <= 52, "{counts:?}");
    }

    #[test]
    fn who_was_away_has_saved_nothing_up_and_who_is_gone_is_forgotten() {
        let mut shares = Shares::new(ONE);
        put(&mut shares, tag(1, 1), 100, "first");
        served(&mut shares, 50);
        put(&mut shares, tag(2, 2), 100, "second");
        let counts = served(&mut shares, 40);
        assert!(counts["first"] >= 15, "{counts:?}");
        let left = shares.take_back(tag(2, 2), |_| true).len();
        assert_eq!(shares.waiting_of(2), 0);
        assert!(left > 0 && shares.take_back(tag(2, 2), |_| true).is_empty());
        shares.take_all();
        assert_eq!((shares.waiting(), shares.running.any()), (0, false));
        assert!(shares.take().is_none());
    }
}
