//! `--limit`, `--weight` and `--name-space`: what clients may have, and who gets how much.

use keyway_daemon::keys::{Who, is_vm_name};
use keyway_daemon::limits::{ClientLimits, SharedLimits, WEIGHT_MAX};
use keyway_daemon::{NameSpace, NameSpaces, Weights};
use keyway_host::failure::Failure;
use keyway_host::who;
use std::fs;
use std::path::Path;
use std::time::Duration;

/// A limit that an operator has set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limit {
    name: &'static str,
    value: u64,
}

/// Which there are, and the least that each can be.
const NAMES: [(&str, u64); 11] = [
    ("clients", 20),
    ("clients-of-user", 1),
    ("files", 100),
    ("files-of-user", 8),
    ("memory", 1 << 20),
    ("memory-of-user", 1 << 20),
    ("sessions", 1),
    ("sessions-of-user", 1),
    ("request-bytes", 4 << 10),
    ("slow-seconds", 1),
    ("slow-memory", 1 << 20),
];

/// Reads one: NAME=NUMBER.
///
/// # Errors
/// A sentence that says what it should look like.
pub fn limit(text: &str) -> Result<Limit, String> {
    let named = text.split_once('=').and_then(|(name, number)| {
        let known = NAMES.iter().find(|(known, _)| *known == name)?;
        Some((*known, number))
    });
    let Some(((name, least), number)) = named else {
        let names = NAMES.map(|(name, _)| name).join(", ");
        return Err(format!("it is not NAME=NUMBER, with one of these names: {names}"));
    };
    let value = number_of(number)
        .ok_or_else(|| format!("{number:?} is not a number, like 500, 512K, 100M or 10G"))?;
    if value < least {
        return Err(format!("{name} is {least} at least"));
    }
    Ok(Limit { name, value })
}

fn number_of(text: &str) -> Option<u64> {
    let (digits, shift) = match text.char_indices().next_back()? {
        (at, 'k' | 'K') => (&text[..at], 10),
        (at, 'm' | 'M') => (&text[..at], 20),
        (at, 'g' | 'G') => (&text[..at], 30),
        _ => (text, 0),
    };
    digits.parse::<u64>().ok()?.checked_mul(1 << shift)
}

/// The limits of this machine, with those that were set.
pub fn limits(set: &[Limit]) -> (ClientLimits, SharedLimits) {
    let (mut of_client, mut shared) = (ClientLimits::default(), SharedLimits::of_this_machine());
    let numbers = set.iter().map(|Limit { name, value }| {
        let number = usize::try_from(*value).unwrap_or(usize::MAX);
        (*name, *value, number)
    });
    for (name, _, number) in numbers.clone() {
        match name {
            "clients" => shared.clients = number,
            "files" => shared.files = number,
            "memory" => shared.region_bytes = number,
            "sessions" => shared.sessions = number,
            _ => {}
        }
    }
    let SharedLimits { clients, files, region_bytes, sessions, .. } = shared;
    shared = SharedLimits::shared_out(clients, files, region_bytes, sessions);
    for (name, value, number) in numbers {
        match name {
            "clients-of-user" => shared.clients_of_user = number,
            "files-of-user" => shared.files_of_user = number,
            "memory-of-user" => shared.region_bytes_of_user = number,
            "sessions-of-user" => shared.sessions_of_user = number,
            "request-bytes" => of_client.request_bytes = number,
            "slow-seconds" => of_client.slow_cost_max = Duration::from_secs(value),
            "slow-memory" => of_client.slow_memory_bytes = value,
            _ => {}
        }
    }
    of_client.bytes_in_flight = of_client.bytes_in_flight.max(of_client.request_bytes);
    (of_client, shared)
}

/// How many times the time of others a client gets, or requests with a key of the daemon.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Weight {
    whose: String,
    weight: u32,
}

/// Reads one: WHO=N.
///
/// # Errors
/// A sentence that says what it should look like.
pub fn weight(text: &str) -> Result<Weight, String> {
    let split = text.rsplit_once('=').filter(|(whose, _)| !whose.is_empty());
    let read = split.and_then(|(whose, weight)| Some((whose.to_owned(), weight.parse().ok()?)));
    match read {
        Some((whose, weight)) if (1..=WEIGHT_MAX).contains(&weight) => Ok(Weight { whose, weight }),
        _ => Err(format!("it is not WHO=N, with N from 1 to {WEIGHT_MAX}, like user:www-data=4")),
    }
}

/// All of them.
///
/// # Errors
/// If there is no such user, group or program, or it is none of them.
pub fn weights(all: &[Weight]) -> Result<Weights, Failure> {
    let mut weights = Weights::default();
    for Weight { whose, weight } in all {
        match whose.strip_prefix("key:") {
            Some(name) if keyway_engine::is_key_name(name) => {
                weights.keys.push((name.to_owned(), *weight));
            }
            Some(name) => return Err(Failure::usage(format!("no key can be called {name:?}"))),
            None => weights.clients.push((who_of(whose)?, *weight)),
        }
    }
    Ok(weights)
}

/// Clients that may make keys whose names begin in a certain way.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Space {
    prefix: String,
    whose: String,
}

/// Reads one: PREFIX=WHO.
///
/// # Errors
/// A sentence that says what it should look like.
pub fn name_space(text: &str) -> Result<Space, String> {
    let split = text.split_once('=').filter(|(_, whose)| !whose.is_empty());
    match split {
        // A prefix that ends in a letter would have names in it that were not meant: app and apple.
        Some((prefix, whose))
            if keyway_engine::is_key_name(prefix) && prefix.ends_with(['.', '-', '_']) =>
        {
            Ok(Space { prefix: prefix.to_owned(), whose: whose.to_owned() })
        }
        _ => Err("it is not PREFIX=WHO, with a prefix of names of keys that ends in '.', '-' or '_', like \
                  app.=user:www-data"
            .to_owned()),
    }
}

/// All of them.
///
/// # Errors
/// If there is no such user, group or program, or it is none of them; if one has names of another.
pub fn name_spaces(all: &[Space]) -> Result<NameSpaces, Failure> {
    let mut spaces: Vec<NameSpace> = Vec::new();
    for Space { prefix, whose } in all {
        let overlaps =
            |it: &&NameSpace| it.prefix.starts_with(prefix) || prefix.starts_with(&it.prefix);
        if let Some(other) = spaces.iter().find(overlaps) {
            let other = &other.prefix;
            return Err(Failure::usage(format!(
                "the name spaces {prefix} and {other} have names of each other"
            )));
        }
        spaces.push(NameSpace { prefix: prefix.clone(), clients: who_of(whose)? });
    }
    Ok(NameSpaces(spaces))
}

fn who_of(whose: &str) -> Result<Who, Failure> {
    let mut who = Who::ANY;
    if let Some(name) = whose.strip_prefix("vm:")
        && is_vm_name(name)
    {
        return Ok(Who { vm: Some(name.to_owned()), ..who });
    }
    for condition in whose.split('+') {
        match condition.split_once(':') {
            Some(("user", name)) => who.uid = Some(who::user(name)?),
            Some(("group", name)) => who.gid = Some(who::group(name)?),
            Some(("program", path)) if path.starts_with('/') => {
                let found = fs::canonicalize(path);
                let program =
                    found.map_err(|why| Failure::system("look at", Path::new(path), &why))?;
                who.executable = Some(program);
            }
            _ => {
                return Err(Failure::usage(format!(
                    "{condition:?} is not user:NAME, group:NAME, program:/PATH, vm:NAME (alone) or key:NAME"
                )));
            }
        }
    }
    Ok(who)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_are_read_and_set() {
        let set = |texts: &[&str]| {
            let read = texts.iter().map(|text| limit(text)).collect::<Result<Vec<_>, _>>();
            limits(&read.unwrap())
        };
        let (of_client, shared) = set(&["clients=40", "memory=2G", "slow-seconds=9"]);
        assert_eq!((shared.clients, shared.clients_of_user), (40, 10));
        assert_eq!((shared.region_bytes, shared.region_bytes_of_user), (2 << 30, 512 << 20));
        assert_eq!(of_client.slow_cost_max, Duration::from_secs(9));
        let (of_client, _) = set(&["request-bytes=1G"]);
        assert_eq!((of_client.request_bytes, of_client.bytes_in_flight), (1 << 30, 1 << 30));
        for wrong in
            ["", "clients", "clients=", "clients=few", "clients=1", "guests=40", "memory=9E"]
        {
            assert!(limit(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn weights_are_read_by_users_programs_and_keys() {
        let read = |texts: &[&str]| {
            weights(&texts.iter().map(|text| weight(text).unwrap()).collect::<Vec<_>>())
        };
        let Ok(weights) = read(&["user:7=3", "user:0+program:/proc/../bin/sh=9", "key:web=100"])
        else {
            panic!("they are weights")
        };
        assert_eq!(weights.clients[0], (Who { uid: Some(7), ..Who::ANY }, 3));
        assert_eq!((weights.clients[1].0.uid, weights.clients[1].1), (Some(0), 9));
        let shell = fs::canonicalize("/bin/sh").ok();
        assert_eq!(weights.clients[1].0.executable, shell);
        assert_eq!(weights.keys, [("web".to_owned(), 100)]);
        for wrong in ["user:7", "user:7=0", "=3", "key:web=101"] {
            assert!(weight(wrong).is_err(), "{wrong}");
        }
        for wrong in ["7=1", "program:sh=2", "key:No=3"] {
            assert!(read(&[wrong]).is_err(), "{wrong}");
        }
    }
}
