//! The rules of a policy: the attributes of a `pwdPolicy` entry, understood.

use super::limits::{FAILURES_MAX, HISTORY_MAX, SECONDS_MAX};
use keyway_store::EntryRef;

/// A policy (draft-behera-ldap-password-policy-10 § 5.2). Times are in seconds; 0 is as if the
/// attribute were not there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Policy {
    pub min_age_s: u64,
    pub max_age_s: u64,
    pub in_history: usize,
    pub check_quality: u64,
    pub min_length: u64,
    pub max_length: u64,
    pub expire_warning_s: u64,
    pub grace_max: u64,
    pub grace_expiry_s: u64,
    pub lockout: bool,
    pub lockout_duration_s: u64,
    /// Failed binds that lock; 0 for no lockout.
    pub failures_max: usize,
    pub failure_interval_s: u64,
    pub must_change: bool,
    pub allow_user_change: bool,
    pub safe_modify: bool,
    pub max_idle_s: u64,
}

impl Policy {
    /// A policy that asks for nothing.
    pub const NONE: Policy = Policy {
        min_age_s: 0,
        max_age_s: 0,
        in_history: 0,
        check_quality: 0,
        min_length: 0,
        max_length: 0,
        expire_warning_s: 0,
        grace_max: 0,
        grace_expiry_s: 0,
        lockout: false,
        lockout_duration_s: 0,
        failures_max: 0,
        failure_interval_s: 0,
        must_change: false,
        allow_user_change: true,
        safe_modify: false,
        max_idle_s: 0,
    };

    /// The policy where no entry says anything: passwords have a least length, and no more.
    pub fn built_in(min_length: u32) -> Policy {
        let check_quality = u64::from(min_length > 0);
        Policy { check_quality, min_length: min_length.into(), ..Policy::NONE }
    }

    /// The policy of an entry. A number below 0 is 0.
    pub fn read(entry: &EntryRef<'_>) -> Policy {
        let mut policy = Policy::NONE;
        for (name, mut values) in entry.attributes() {
            if let (true, Some(value)) = (name.starts_with("pwd"), values.next()) {
                policy.set(name, value);
            }
        }
        policy
    }

    fn set(&mut self, name: &str, value: &[u8]) {
        let truth = value.eq_ignore_ascii_case(b"TRUE");
        let number = number(value);
        match name {
            "pwdMinAge" => self.min_age_s = number,
            "pwdMaxAge" => self.max_age_s = number,
            "pwdInHistory" => self.in_history = bounded(number, HISTORY_MAX),
            "pwdCheckQuality" => self.check_quality = number,
            "pwdMinLength" => self.min_length = number,
            "pwdMaxLength" => self.max_length = number,
            "pwdExpireWarning" => self.expire_warning_s = number,
            "pwdGraceAuthNLimit" => self.grace_max = number,
            "pwdGraceExpiry" => self.grace_expiry_s = number,
            "pwdLockout" => self.lockout = truth,
            "pwdLockoutDuration" => self.lockout_duration_s = number,
            "pwdMaxFailure" => self.failures_max = bounded(number, FAILURES_MAX),
            "pwdFailureCountInterval" => self.failure_interval_s = number,
            "pwdMustChange" => self.must_change = truth,
            "pwdAllowUserChange" => self.allow_user_change = truth,
            "pwdSafeModify" => self.safe_modify = truth,
            "pwdMaxIdle" => self.max_idle_s = number,
            _ => {}
        }
    }

    /// Whether failed binds lock accounts.
    pub fn locks(&self) -> bool {
        self.lockout && self.failures_max > 0
    }
}

/// A non-negative INTEGER; one that no clock can count in is as much as one can.
fn number(value: &[u8]) -> u64 {
    let text = str::from_utf8(value).unwrap_or_default();
    match text.parse::<i128>() {
        Ok(number) => u64::try_from(number.max(0)).unwrap_or(u64::MAX).min(SECONDS_MAX),
        Err(_) if text.bytes().all(|byte| byte.is_ascii_digit()) && !text.is_empty() => SECONDS_MAX,
        Err(_) => 0,
    }
}

fn bounded(number: u64, max: usize) -> usize {
    usize::try_from(number).unwrap_or(max).min(max)
}
