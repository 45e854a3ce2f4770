use super::brake::Brake;
use super::limits::*;
use super::line::Line;
use super::*;
use std::net::{Ipv4Addr, Ipv6Addr};

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

fn failed(times: u8) -> Standing {
    Standing { proven: None, failures: times }
}

impl World {
    fn attempt(&self, from: u32, name: &str) -> Attempt {
        self.admission.attempt(address(from), name.as_bytes(), Standing::default())
    }

    fn may(&self, attempt: &Attempt, now_ms: u64) -> bool {
        self.brake.not_before_ms(attempt, now_ms) <= now_ms
    }

    /// A wrong password, now.
    fn fail(&mut self, attempt: &Attempt, now_ms: u64) {
        self.brake.begin(attempt, now_ms);
        self.brake.wrong(attempt, now_ms);
    }

    fn succeed(&mut self, attempt: &Attempt, now_ms: u64) {
        self.brake.begin(attempt, now_ms);
        self.brake.right(attempt, now_ms);
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
        world.admission.attempt(source.into(), now.to_string().as_bytes(), Standing::default())
    });
    assert!((3_000..3_400).contains(&one_network), "{one_network}");
}

#[test]
fn an_address_within_a_network_is_no_new_source() {
    let world = world();
    let attempt = |address: u128| {
        let from = Ipv6Addr::from_bits(address).into();
        world.admission.attempt(from, b"ada", Standing::default())
    };
    let network = 0x2001_0db8_u128 << 96;
    assert_eq!(attempt(network | 1).pair, attempt(network | 2).pair);
    assert_ne!(attempt(network | 1).pair, attempt(network | 1 << 64).pair);
    let mapped = "::ffff:10.0.0.1".parse().unwrap();
    let mapped = world.admission.attempt(mapped, b"ada", Standing::default());
    assert_eq!(mapped.pair, world.attempt(1, "ada").pair);
}

#[test]
fn an_owner_waits_for_his_own_failures_only() {
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
        assert!(world.may(&owner, 1), "{round}");
    }
    assert!(!world.may(&world.attempt(9_999, "ada"), 1));
    assert!(!world.may(&world.attempt(1, "bob"), 1));
    for _ in 0..255 {
        world.fail(&owner, 2);
    }
    assert!(!world.may(&owner, 2));
    assert!(world.may(&owner, 2 + PROVEN.most_ms));
    // The connection that showed the password does not wait for others at this address.
    let mut standing = Standing::default();
    standing.ended(&owner, true);
    let same = world.admission.attempt(address(1), b"ada", standing);
    assert!(world.may(&same, 2));
    standing.ended(&same, false);
    assert!(!world.may(&world.admission.attempt(address(1), b"ada", standing), 2));
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
        world.brake.begin(&attempt, 0);
    }
    assert!(!world.may(&attempt, 0));
    world.brake.right(&attempt, 0);
    assert!(world.may(&attempt, 0));
    for _ in 1..PAIR.free {
        world.brake.wrong(&attempt, 0);
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
        let owner = world.attempt(1, &number.to_string());
        world.succeed(&owner, 0);
        line.enter(Some(owner), false, true, number, 0);
        line.enter(Some(world.attempt(2, &number.to_string())), false, true, 1_000 + number, 0);
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
        line.enter(Some(world.attempt(1, "flooded")), false, true, number, 0);
    }
    line.enter(Some(world.attempt(1, "other")), false, true, 200, 0);
    line.enter(Some(world.attempt(2, "flooded")), false, true, 300, 0);
    for number in 400..410 {
        let from = address(1);
        let attempt = world.admission.attempt(from, b"third", failed(1));
        line.enter(Some(attempt), false, true, number, 0);
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
        assert!(line.enter(Some(world.attempt(1, "ada")), true, true, number, 0).1.is_none());
    }
    let (_, dropped) = line.enter(Some(world.attempt(2, "bob")), true, true, 100, 0);
    assert_eq!(dropped.map(|dropped| dropped.job), Some(0));
}

#[test]
fn nobody_waits_for_ever_but_new_passwords() {
    let mut world = world();
    let mut line = line(10);
    line.idle_threads = 0;
    line.enter(None, false, true, 1, 0);
    line.enter(Some(world.attempt(1, "ada")), true, true, 2, 0);
    assert!(line.next(&mut world.brake, 0).is_none());
    assert!(line.expired(WAIT_MAX_MS - 1).is_none());
    assert_eq!(line.expired(WAIT_MAX_MS).map(|expired| expired.job), Some(2));
    assert!(line.expired(u64::MAX).is_none());
    assert_eq!(line.hashes(), 1);
}

/// 200 connections that bind again as soon as they are answered, on one thread that takes 20 ms
/// for each, and somebody from the same address who binds once a second.
fn flood(floods_at: fn(u32, u64) -> String, good: fn(u64) -> String) -> Vec<u64> {
    let mut world = world();
    let mut line = line(WAITING_MAX);
    let mut standings = [Standing::default(); 200];
    let mut working: Option<(u32, Attempt, u64)> = None;
    let mut good_since_ms = None;
    let mut waited_ms = Vec::new();
    let enter = |line: &mut Line<u32>, admission: &Admission, name: String, who, standing, now| {
        let attempt = admission.attempt(address(1), name.as_bytes(), standing);
        line.enter(Some(attempt), true, true, who, now);
    };
    for who in 0..200 {
        enter(&mut line, &world.admission, floods_at(who, 0), who, failed(0), 0);
    }
    for now_ms in 0..20_000 {
        if let Some((who, attempt, _)) = working.take_if(|(_, _, end_ms)| *end_ms == now_ms) {
            line.idle();
            if who == 200 {
                world.brake.right(&attempt, now_ms);
                waited_ms.extend(good_since_ms.take().map(|since_ms: u64| now_ms - since_ms));
            } else {
                world.brake.wrong(&attempt, now_ms);
                let standing = &mut standings[who as usize];
                standing.ended(&attempt, false);
                enter(&mut line, &world.admission, floods_at(who, now_ms), who, *standing, now_ms);
            }
        }
        if now_ms % 1_000 == 500 && good_since_ms.is_none() {
            good_since_ms = Some(now_ms);
            enter(&mut line, &world.admission, good(now_ms), 200, failed(0), now_ms);
        }
        while let Some(expired) = line.expired(now_ms) {
            let who = expired.job;
            assert_ne!(who, 200);
            enter(&mut line, &world.admission, floods_at(who, now_ms), who, failed(3), now_ms);
        }
        if let Some(next) = line.next(&mut world.brake, now_ms) {
            working = next.attempt.map(|attempt| (next.job, attempt, now_ms + 20));
        }
    }
    waited_ms
}

#[test]
fn a_flood_leaves_good_binds_under_a_second() {
    let nobody = |_, _| "nobody".to_owned();
    let anybody = |who, now_ms| format!("{who} {now_ms}");
    let ada = |_, _| "ada".to_owned();
    let mix = |who: u32, now_ms: u64| match who % 3 {
        0 => "nobody".to_owned(),
        1 => "ada".to_owned(),
        _ => format!("{who} {now_ms}"),
    };
    for (what, floods_at) in [
        ("nobody", nobody as fn(u32, u64) -> String),
        ("anybody", anybody),
        ("one victim", ada),
        ("a mix", mix),
    ] {
        for good in [|_| "ada".to_owned(), |now_ms| format!("good {now_ms}")] {
            let waited_ms = flood(floods_at, good);
            let late = waited_ms.iter().filter(|waited_ms| **waited_ms >= 1_000).count();
            // Once somebody waits long: a victim, or who shares a place of the table by chance. What
            // he would have done in those 10 of 20 seconds is not counted.
            assert!(waited_ms.len() >= 10 && late <= 1, "{what}: {waited_ms:?}");
        }
    }
}

#[tokio::test]
async fn who_leaves_before_the_answer_has_failed() {
    let admission = Admission::new(1);
    let attempt = admission.attempt(address(1), b"ada", Standing::default());
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
    let attempt = admission.attempt(address(1), b"ada", Standing::default());
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
