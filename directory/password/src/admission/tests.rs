use super::attempt::{Attempt, BindHistory, Way};
use super::brake::Brake;
use super::limits::*;
use super::line::Line;
use super::*;
use crate::limits::CHECKS_WAITING_MAX;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use tokio::sync::oneshot;

struct World {
    admission: Admission,
    brake: Brake,
}

fn world() -> World {
    World { admission: Admission::new(1), brake: Brake::new() }
}

fn address(number: u32) -> IpAddr {
    Ipv4Addr::from_bits(0x0a00_0000 + number).into()
}

fn failed(times: u8) -> BindHistory {
    BindHistory { proven: None, failures: times }
}

impl World {
    fn attempt(&self, from: u32, name: &str) -> Attempt {
        self.admission.attempt(address(from), name.as_bytes(), BindHistory::default())
    }

    fn may(&self, attempt: &Attempt, now_ms: u64) -> bool {
        self.brake.not_before_ms(attempt, Way::Stranger) <= now_ms
    }

    /// Whether it would be recognised now if its password was right.
    fn is_recognised(&self, attempt: &Attempt, now_ms: u64) -> bool {
        self.brake.is_proven(attempt, now_ms)
            && self.brake.not_before_ms(attempt, Way::Recognised) <= now_ms
    }

    /// A wrong password, now, as far as the brake lets it go.
    fn fail(&mut self, attempt: &Attempt, now_ms: u64) {
        if self.is_recognised(attempt, now_ms) {
            self.brake.begin(attempt, Way::Recognised, now_ms);
            self.brake.wrong(attempt, Way::Recognised, now_ms);
        }
        self.brake.begin(attempt, Way::Stranger, now_ms);
        self.brake.wrong(attempt, Way::Stranger, now_ms);
    }

    /// A right one, which needs to be recognised if it is known.
    fn succeed(&mut self, attempt: &Attempt, now_ms: u64) {
        let is_recognised = self.is_recognised(attempt, now_ms);
        let way = if is_recognised { Way::Recognised } else { Way::Stranger };
        self.brake.begin(attempt, way, now_ms);
        self.brake.right(attempt, way, now_ms);
    }

    /// Tries wrong passwords at every millisecond and says how many were tried.
    fn guess(&mut self, for_ms: u64, attempt: impl Fn(&World, u64) -> Attempt) -> u64 {
        let mut tried = 0;
        for now_ms in 0..for_ms {
            let attempt = attempt(self, now_ms);
            if self.may(&attempt, now_ms) {
                self.fail(&attempt, now_ms);
                tried += 1;
            }
        }
        tried
    }
}

#[test]
fn guesses_are_few_however_they_are_spread() {
    let one_name = world().guess(60_000, |world, _| world.attempt(1, "ada"));
    assert!((10..20).contains(&one_name), "{one_name}");
    let many_names = world().guess(60_000, |world, now| world.attempt(1, &now.to_string()));
    assert!((1_000..1_400).contains(&many_names), "{many_names}");
    let many_sources = world().guess(60_000, |world, now| world.attempt(now as u32, "ada"));
    assert!((300..450).contains(&many_sources), "{many_sources}");
    let one_network = world().guess(60_000, |world, now| {
        let source = Ipv6Addr::from_bits(0x2001_0db8_u128 << 96 | u128::from(now % 60_000) << 64);
        world.admission.attempt(source.into(), now.to_string().as_bytes(), BindHistory::default())
    });
    assert!((3_000..3_400).contains(&one_network), "{one_network}");
}

#[test]
fn an_address_within_a_network_is_no_new_source() {
    let world = world();
    let attempt = |address: u128| {
        let from = Ipv6Addr::from_bits(address).into();
        world.admission.attempt(from, b"ada", BindHistory::default())
    };
    let network = 0x2001_0db8_u128 << 96;
    assert_eq!(attempt(network | 1).pair, attempt(network | 2).pair);
    assert_ne!(attempt(network | 1).pair, attempt(network | 1 << 64).pair);
    let mapped = "::ffff:10.0.0.1".parse().unwrap();
    let mapped = world.admission.attempt(mapped, b"ada", BindHistory::default());
    assert_eq!(mapped.pair, world.attempt(1, "ada").pair);
}

#[test]
fn an_owner_waits_for_failures_from_the_same_source_only() {
    let mut world = world();
    let owner = world.attempt(1, "ada");
    world.succeed(&owner, 0);
    for round in 0..100_000 {
        // Strangers elsewhere at his name, and strangers beside him at others.
        for stranger in
            [world.attempt(2 + round % 500, "ada"), world.attempt(1, &round.to_string())]
        {
            world.fail(&stranger, 1);
        }
        assert!(world.is_recognised(&owner, 1), "{round}");
    }
    assert!(!world.may(&world.attempt(9_999, "ada"), 1));
    assert!(!world.may(&world.attempt(1, "bob"), 1));
    // Those who guess at his name from his own source keep him waiting for a tenth of a second.
    for _ in 0..255 {
        world.brake.begin(&owner, Way::Recognised, 2);
        world.brake.wrong(&owner, Way::Recognised, 2);
    }
    assert!(!world.is_recognised(&owner, 2));
    assert!(world.is_recognised(&owner, 2 + RECOGNISED.most_ms));
    // The connection that showed the password does not wait for others at this address.
    let mut standing = BindHistory::default();
    standing.ended(&owner, true);
    let same = world.admission.attempt(address(1), b"ada", standing);
    assert!(world.may(&same, 2));
    standing.ended(&same, false);
    assert!(!world.may(&world.admission.attempt(address(1), b"ada", standing), 2));
}

/// For how long each of many wrong passwords from one source has to wait, in worlds that differ in which of
/// the names `0` to `7` has logged in from there before, and again each minute.
fn delays(owner: Option<u32>) -> Vec<u64> {
    let mut world = world();
    let mut delays = Vec::new();
    for round in 0..30_u64 {
        let mut now_ms = round * 60_000;
        if let Some(owner) = owner {
            let owner = world.attempt(1, &owner.to_string());
            assert!(round == 0 || world.is_recognised(&owner, now_ms));
            world.succeed(&owner, now_ms);
        }
        // So many names that the source is held up, then each of those, and the first more than others.
        for guess in 0..83_u32 {
            let name = if guess < 80 { guess } else { 0 };
            let attempt = world.attempt(1, &name.to_string());
            let at_ms = world.brake.not_before_ms(&attempt, Way::Stranger).max(now_ms);
            delays.push(at_ms - now_ms);
            now_ms = at_ms;
            world.fail(&attempt, now_ms);
        }
    }
    delays
}

#[test]
fn when_a_wrong_password_is_looked_at_does_not_tell_who_has_logged_in() {
    let without_login = delays(None);
    assert!(without_login.iter().any(|delay| *delay >= SOURCE.most_ms));
    assert!(without_login.iter().any(|delay| *delay >= PAIR.most_ms / 4));
    for owner in [0, 5] {
        assert!(delays(Some(owner)) == without_login, "{owner} is told");
    }
}

/// While others wait for their turn: a client that has logged in before from there is next no sooner.
#[test]
fn whose_turn_it_is_does_not_tell_who_has_logged_in() {
    // Names whose hashes share a place take turns as one: which do, is another with each key.
    let admission = Admission::new(1);
    let order = |owner: Option<u32>| {
        let mut world = World { admission: admission.clone(), brake: Brake::new() };
        if let Some(owner) = owner {
            let owner = world.attempt(1, &owner.to_string());
            world.succeed(&owner, 0);
        }
        let mut line = line(1_000);
        for number in 0..20 {
            let attempt = world.attempt(1, &number.to_string());
            line.enter(Some(attempt), Some(Way::Stranger), true, number, 1);
        }
        turns(&mut line, &mut world.brake, 1)
    };
    assert_eq!(order(Some(0)), order(None));
    assert_eq!(order(Some(13)), order(None));
}

#[test]
fn right_passwords_wait_for_nothing() {
    let mut world = world();
    for round in 0..10_000 {
        let attempt = world.attempt(round % 3, &(round % 1_000).to_string());
        assert!(world.may(&attempt, 7));
        world.succeed(&attempt, 7);
    }
}

#[test]
fn attempts_at_once_are_no_way_around() {
    let mut world = world();
    let attempt = world.attempt(1, "ada");
    // They have begun and their ends are not known: they count as if they had failed.
    for _ in 0..PAIR.free {
        assert!(world.may(&attempt, 0));
        world.brake.begin(&attempt, Way::Stranger, 0);
    }
    assert!(!world.may(&attempt, 0));
    world.brake.right(&attempt, Way::Stranger, 0);
    assert!(world.may(&attempt, 0));
    for _ in 1..PAIR.free {
        world.brake.wrong(&attempt, Way::Stranger, 0);
    }
    assert!(world.may(&attempt, 0));
    world.fail(&attempt, 0);
    assert!(!world.may(&attempt, 0));
}

#[test]
fn failures_are_forgotten() {
    let mut world = world();
    let attempt = world.attempt(1, "ada");
    for _ in 0..255 {
        world.fail(&attempt, 0);
    }
    let later_ms = 30 * PAIR.forget_ms;
    for _ in 1..PAIR.free {
        world.fail(&attempt, later_ms);
        assert!(world.may(&attempt, later_ms));
    }
    let shown_ms = later_ms;
    world.succeed(&attempt, shown_ms);
    assert!(world.brake.is_proven(&attempt, shown_ms + PROVEN_MS - 1));
    assert!(!world.brake.is_proven(&attempt, shown_ms + PROVEN_MS));
}

#[test]
fn a_record_is_not_washed_out_by_many_small_ones() {
    let mut world = world();
    let attempt = world.attempt(1, "ada");
    for _ in 0..10 {
        world.fail(&attempt, 0);
    }
    for other in 0..200_000 {
        let other = world.attempt(2 + other, &other.to_string());
        world.fail(&other, 1);
    }
    assert!(!world.may(&attempt, 2));
}

/// A line of one thread; the job is the attempt's number.
fn line(waiting_max: usize) -> Line<u32> {
    Line::new(1, waiting_max)
}

/// Who has the next turns, one after the other.
fn turns(line: &mut Line<u32>, brake: &mut Brake, now_ms: u64) -> Vec<u32> {
    let mut turns = Vec::new();
    while let Some(next) = line.next(brake, now_ms) {
        turns.push(next.job);
        line.idle();
    }
    turns
}

#[test]
fn strangers_have_a_share_and_no_more() {
    let mut world = world();
    let mut line = line(1_000);
    for number in 0..100 {
        // His connection has shown the password.
        let mut standing = BindHistory::default();
        standing.ended(&world.attempt(1, &number.to_string()), true);
        let owner = world.admission.attempt(address(1), number.to_string().as_bytes(), standing);
        line.enter(Some(owner), None, true, number, 0);
        line.enter(Some(world.attempt(2, &number.to_string())), None, true, 1_000 + number, 0);
    }
    let turns = turns(&mut line, &mut world.brake, 0);
    let strangers = |turns: &[u32]| turns.iter().filter(|turn| **turn >= 1_000).count();
    assert_eq!(strangers(&turns[..40]), 40 / TURNS_PER_STRANGER as usize);
    assert_eq!(turns.len(), 200);
}

#[test]
fn sources_names_and_newer_connections_take_turns() {
    let mut world = world();
    let mut line = line(1_000);
    for number in 0..100 {
        line.enter(Some(world.attempt(1, "flooded")), None, true, number, 0);
    }
    line.enter(Some(world.attempt(1, "other")), None, true, 200, 0);
    line.enter(Some(world.attempt(2, "flooded")), None, true, 300, 0);
    for number in 400..410 {
        let from = address(1);
        let attempt = world.admission.attempt(from, b"third", failed(1));
        line.enter(Some(attempt), None, true, number, 0);
    }
    let turns = turns(&mut line, &mut world.brake, 0);
    let at = |number| turns.iter().position(|turn| *turn == number).unwrap();
    assert!(at(300) <= 1 && at(200) <= 2, "{turns:?}");
    // The newest first, and those who have failed last.
    assert!(at(99) < at(0) && at(0) < at(400), "{turns:?}");
}

#[test]
fn a_full_line_turns_away_who_crowds_it() {
    let world = world();
    let mut line = line(10);
    for number in 0..10 {
        assert!(
            line.enter(Some(world.attempt(1, "ada")), Some(Way::Stranger), true, number, 0)
                .1
                .is_none()
        );
    }
    let (_, dropped) = line.enter(Some(world.attempt(2, "bob")), Some(Way::Stranger), true, 100, 0);
    assert_eq!(dropped.map(|dropped| dropped.job), Some(0));
}

#[test]
fn only_new_passwords_wait_for_ever() {
    let mut world = world();
    let mut line = line(10);
    line.idle_threads = 0;
    line.enter(None, None, true, 1, 0);
    line.enter(Some(world.attempt(1, "ada")), Some(Way::Stranger), true, 2, 0);
    assert!(line.next(&mut world.brake, 0).is_none());
    assert!(line.expired(WAIT_MAX_MS - 1).is_none());
    assert_eq!(line.expired(WAIT_MAX_MS).map(|expired| expired.job), Some(2));
    assert!(line.expired(u64::MAX).is_none());
    assert_eq!(line.hashes(), 1);
}

/// 200 connections that bind again as soon as they are answered, on one thread that takes 20 ms
/// for each, and a client from the same address that binds once a second.
struct Flood {
    world: World,
    line: Line<(u32, Way)>,
    now_ms: u64,
    /// Since when the good one waits, and his places in the line.
    good: Option<(u64, Vec<u64>)>,
    waited_ms: Vec<u64>,
}

/// Who is the good one.
const GOOD: u32 = 200;

impl Flood {
    fn enter(&mut self, who: u32, name: &str, history: BindHistory) {
        let attempt = self.world.admission.attempt(address(1), name.as_bytes(), history);
        let mut ways = vec![Way::Stranger];
        if self.world.is_recognised(&attempt, self.now_ms) {
            self.world.brake.begin(&attempt, Way::Recognised, self.now_ms);
            if self.end(who, &attempt, Way::Recognised) {
                return;
            }
        } else if self.world.brake.is_proven(&attempt, self.now_ms) {
            ways.push(Way::Recognised);
        }
        for way in ways {
            let thread = way == Way::Stranger;
            let line = &mut self.line;
            let (place, _) = line.enter(Some(attempt), Some(way), thread, (who, way), self.now_ms);
            if let (GOOD, Some((_, places))) = (who, &mut self.good) {
                places.push(place);
            }
        }
    }

    /// An attempt has begun and is compared; whether that is the good one's end.
    fn end(&mut self, who: u32, attempt: &Attempt, way: Way) -> bool {
        if who < GOOD {
            self.world.brake.wrong(attempt, way, self.now_ms);
            return false;
        }
        self.world.brake.right(attempt, way, self.now_ms);
        let (since_ms, places) = self.good.take().expect("he waits");
        self.waited_ms.push(self.now_ms - since_ms);
        places.into_iter().for_each(|place| {
            self.line.leave(place);
        });
        true
    }
}

fn flood(floods_at: fn(u32, u64) -> String, good: fn(u64) -> String) -> Vec<u64> {
    let (world, line) = (world(), Line::new(1, 2 * CHECKS_WAITING_MAX));
    let mut flood = Flood { world, line, now_ms: 0, good: None, waited_ms: Vec::new() };
    let mut standings = [BindHistory::default(); GOOD as usize];
    let mut working: Option<(u32, Attempt, u64)> = None;
    for who in 0..GOOD {
        flood.enter(who, &floods_at(who, 0), failed(0));
    }
    for now_ms in 0..20_000 {
        flood.now_ms = now_ms;
        if let Some((who, attempt, _)) = working.take_if(|(_, _, end_ms)| *end_ms == now_ms) {
            flood.line.idle();
            if who < GOOD {
                flood.end(who, &attempt, Way::Stranger);
                let standing = &mut standings[who as usize];
                standing.ended(&attempt, false);
                flood.enter(who, &floods_at(who, now_ms), *standing);
            } else if flood.good.is_some() {
                flood.end(who, &attempt, Way::Stranger);
            }
        }
        if now_ms % 1_000 == 500 && flood.good.is_none() {
            flood.good = Some((now_ms, Vec::new()));
            flood.enter(GOOD, &good(now_ms), failed(0));
        }
        while let Some(expired) = flood.line.expired(now_ms) {
            let (who, way) = expired.job;
            assert_ne!(who, GOOD);
            if way == Way::Stranger {
                flood.enter(who, &floods_at(who, now_ms), failed(3));
            }
        }
        while let Some(next) = flood.line.next(&mut flood.world.brake, now_ms) {
            let (attempt, (who, way)) = (next.attempt.expect("an attempt"), next.job);
            match way {
                Way::Recognised => drop(flood.end(who, &attempt, way)),
                Way::Stranger => working = Some((who, attempt, now_ms + 20)),
            }
        }
    }
    flood.waited_ms
}

#[test]
fn a_flood_leaves_good_binds_under_a_second() {
    let absent = |_, _| "absent".to_owned();
    let any_name = |who, now_ms| format!("{who} {now_ms}");
    let ada = |_, _| "ada".to_owned();
    let mix = |who: u32, now_ms: u64| match who % 3 {
        0 => "absent".to_owned(),
        1 => "ada".to_owned(),
        _ => format!("{who} {now_ms}"),
    };
    for (what, floods_at) in [
        ("an absent user", absent as fn(u32, u64) -> String),
        ("any name", any_name),
        ("one victim", ada),
        ("a mix", mix),
    ] {
        for good in [|_| "ada".to_owned(), |now_ms| format!("good {now_ms}")] {
            let waited_ms = flood(floods_at, good);
            let late = waited_ms.iter().filter(|waited_ms| **waited_ms >= 1_000).count();
            // Once a client waits long: a victim, or one that shares a place of the table by chance. What
            // he would have done in those 10 of 20 seconds is not counted.
            assert!(waited_ms.len() >= 10 && late <= 1, "{what}: {waited_ms:?}");
        }
    }
}

#[tokio::test]
async fn who_leaves_before_the_answer_has_failed() {
    let admission = Admission::new(1);
    let attempt = admission.attempt(address(1), b"ada", BindHistory::default());
    for _ in 0..PAIR.free {
        drop(admission.begin_now(attempt).expect("it is free"));
    }
    assert!(admission.begin_now(attempt).is_none());
    // The brake lets it begin after the first delay.
    admission.begin(attempt).await.expect("it begins").ended(true);
    admission.begin_now(attempt).expect("it is free").ended(true);
}

#[tokio::test]
async fn a_place_that_is_given_up_is_free_and_a_turn_comes_back() {
    let admission = Admission::new(1);
    let attempt = admission.attempt(address(1), b"ada", BindHistory::default());
    let wait = || {
        let (sender, receiver) = oneshot::channel();
        let job = Box::new(move |turn| drop(sender.send(turn)));
        (admission.wait_for_thread(attempt, true, job), receiver)
    };
    let (_first, turn) = wait();
    let turn: Turn = turn.await.unwrap().unwrap();
    let (second, never) = wait();
    let (_third, later) = wait();
    drop(second);
    assert!(never.await.is_err());
    drop(turn);
    assert!(later.await.unwrap().is_ok());
}
