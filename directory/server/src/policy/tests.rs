//! The consequences of a policy and of the state that is noted of an account.

use super::account::{Events, LockedTime};
use super::limits::SECONDS_MAX;
use super::time::SECOND;
use super::*;
use crate::failure::Failure;
use keyway_codec::password_policy::{AccountUsability, PasswordError, Unusable};
use proptest::prelude::*;

const NOW: u64 = 1_700_000_000 * SECOND;

fn lockout() -> Policy {
    Policy { lockout: true, failures_max: 3, lockout_duration_s: 60, ..Policy::NONE }
}

fn failed(policy: &Policy, times: &[u64]) -> Account {
    let events = Events { failures: times.to_vec(), ..Events::default() };
    Account::default().after(policy, &events)
}

fn seconds(times: &[u64]) -> Vec<u64> {
    times.iter().map(|time| NOW + time * SECOND).collect()
}

#[test]
fn a_lock_begins_with_the_last_failure_and_ends_by_itself() {
    let policy = lockout();
    let account = failed(&policy, &seconds(&[0, 1]));
    assert_eq!(account.status(&policy, NOW + SECOND).lock, None);
    let account = failed(&policy, &seconds(&[0, 1, 2]));
    let until = Some(NOW + 62 * SECOND);
    let lock = Lock::Failures { since: NOW + 2 * SECOND, until, told: true };
    assert_eq!(account.status(&policy, NOW + 3 * SECOND).lock, Some(lock));
    assert_eq!(account.status(&policy, NOW + 62 * SECOND).lock, None);
    // Failures from before the lock do not count after it.
    let account = failed(&policy, &seconds(&[0, 1, 2, 70]));
    assert_eq!(account.status(&policy, NOW + 71 * SECOND).lock, None);
    assert_eq!(account.failures.len(), 1);
    let forever = Policy { lockout_duration_s: 0, ..policy };
    let account = failed(&forever, &seconds(&[0, 1, 2]));
    let later = NOW + SECONDS_MAX * SECOND;
    assert!(matches!(account.status(&forever, later).lock, Some(Lock::Failures { .. })));
}

#[test]
fn old_failures_are_forgotten() {
    let policy = Policy { failure_interval_s: 10, ..lockout() };
    let account = failed(&policy, &seconds(&[0, 9, 11]));
    assert_eq!(account.status(&policy, NOW + 11 * SECOND).lock, None);
    let account = failed(&policy, &seconds(&[2, 9, 11]));
    assert!(account.status(&policy, NOW + 11 * SECOND).lock.is_some());
}

#[test]
fn without_a_lockout_nothing_is_locked_but_by_hand() {
    let account = Account { locked: Some(LockedTime::Since(NOW)), ..Account::default() };
    let by_hand = Some(Lock::Deliberate);
    assert_eq!(account.status(&Policy::NONE, NOW + SECOND).lock, by_hand);
    assert_eq!(account.status(&lockout(), NOW + SECOND).lock, by_hand);
    assert_eq!(account.status(&lockout(), NOW + 60 * SECOND).lock, None);
    // An account that a policy has locked is open when it locks no more.
    let account = failed(&lockout(), &seconds(&[0, 1, 2]));
    assert_eq!(account.status(&Policy::NONE, NOW + 3 * SECOND).lock, None);
    let idle = Policy { max_idle_s: 60, ..Policy::NONE };
    let account = Account { last_success: Some(NOW), ..Account::default() };
    assert_eq!(account.status(&idle, NOW + 60 * SECOND).lock, None);
    assert_eq!(account.status(&idle, NOW + 61 * SECOND).lock, by_hand);
    assert_eq!(
        Account::default().status(&idle, NOW).lock,
        None,
        "it is not known when the user was here"
    );
}

#[test]
fn a_password_without_a_time_does_not_expire() {
    let policy = Policy { max_age_s: 100, grace_max: 3, grace_expiry_s: 50, ..Policy::NONE };
    assert_eq!(Account::default().status(&policy, NOW).age, Age::Ageless);
    let account = Account { changed: Some(NOW), graces: vec![1], ..Account::default() };
    let age = |after_s| account.status(&policy, NOW + after_s * SECOND).age;
    assert_eq!(age(99), Age::ExpiresIn(1));
    assert_eq!(age(100), Age::Expired { grace_left: 2 });
    assert_eq!(age(150), Age::Expired { grace_left: 0 });
}

#[test]
fn usability_says_why_not() {
    let policy = Policy { max_age_s: 100, must_change: true, ..lockout() };
    let usability = |account: &Account| account.status(&policy, NOW).usability(NOW);
    assert_eq!(
        usability(&Account { changed: Some(NOW), ..Account::default() }),
        AccountUsability::Available { expires_in_s: Some(100) }
    );
    let reset = Account { reset: true, ..failed(&policy, &seconds(&[0, 0, 0])) };
    assert_eq!(
        usability(&reset),
        AccountUsability::NotAvailable(Unusable { reset: true, ..Unusable::default() }),
        "one failure three times is one, and no lock"
    );
}

#[test]
fn quality_is_length_variety_and_no_name() {
    use PasswordError::*;
    let policy = Policy { max_length: 12, ..Policy::built_in(8) };
    let check = |password: &str| {
        let names = ["Ada", "Lovelace", "adalove@example.com"].map(str::as_bytes);
        let result = quality::check(&policy, password.as_bytes(), names.into_iter());
        result.map_err(|Failure { password, .. }| password.unwrap())
    };
    assert_eq!(check("correct 1"), Ok(()));
    assert_eq!(check("\u{fc}\u{e4}\u{f6}\u{df}\u{fc}\u{e4}\u{f6}"), Err(PasswordTooShort));
    assert_eq!(check("\u{fc}\u{e4}\u{f6}\u{df}\u{fc}\u{e4}\u{f6}\u{df}"), Ok(()));
    assert_eq!(check("thirteen char"), Err(PasswordTooLong));
    assert_eq!(check("abcabcabc"), Err(InsufficientPasswordQuality));
    assert_eq!(check("1LOVELACE2"), Err(InsufficientPasswordQuality));
    assert_eq!(check("AdaLove123"), Err(InsufficientPasswordQuality));
    assert_eq!(check("Ada4all!"), Ok(()), "a short name may be a part of many words");
    let off = Policy { min_length: 100, ..Policy::NONE };
    assert!(quality::check(&off, b"x", std::iter::empty()).is_ok());
}

proptest! {
    /// The state that is read of an entry may have in it events that are also still pending: those of some
    /// commits at most, so of less than a second.
    #[test]
    fn what_happened_once_counts_once(
        offsets in prop::collection::btree_set(0..SECOND, 0..12),
        before in prop::collection::vec(0_u64..200, 0..8),
        interval in 0_u64..40,
        cleared: bool,
    ) {
        let policy = Policy { failure_interval_s: interval, ..lockout() };
        let failures = offsets.into_iter().map(|offset| NOW + 200 * SECOND + offset).collect();
        let before = failed(&policy, &seconds(&before));
        let events = Events { cleared, failures, ..Events::default() };
        let once = before.after(&policy, &events);
        let now = NOW + 201 * SECOND;
        prop_assert_eq!(
            once.clone().after(&policy, &events).status(&policy, now).lock,
            once.status(&policy, now).lock
        );
    }
}
