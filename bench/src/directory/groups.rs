//! The cost of adding a member to a group and deleting it again, by the size of the group.

use super::{keyway_account, slapd_account};
use crate::ldap::{Account, Load, PASSWORD, SLAPD_ADMIN, SUFFIX, drive, keyway};
use crate::report::{Claim, median};
use crate::slapd::Slapd;
use fastrand::Rng;
use keyway_tests::client::Client;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;

/// The name that `--only` selects it by.
pub const NAME: &str = "change of a group";
/// Members of each group.
const SIZES: [usize; 3] = [10, 1_000, 100_000];
/// The most that a change of the largest may cost of one of the smallest.
const RATIO_MAX: f64 = 1.5;

/// Loads groups into fresh servers and changes them by one member at a time, by turns.
pub fn measure(folder: &Path, rounds: usize, seconds: f64) -> Result<Vec<Claim>, String> {
    let place = folder.join("groups");
    fs::create_dir(&place).map_err(|why| format!("{}: {why}", place.display()))?;
    let ldif = place.join("groups.ldif");
    fs::write(&ldif, entries()).map_err(|why| format!("{}: {why}", ldif.display()))?;
    eprintln!("loading groups of {SIZES:?} members into Keyway and slapd");
    let ours = keyway(&place, &ldif, &[])?;
    let theirs = Slapd::start(&place, &ldif, SLAPD_ADMIN, PASSWORD, None)?;
    let password = ours.password();
    let account = keyway_account(&ours, &password)?;
    let (mut our_costs, mut their_costs) = (SIZES.map(|_| Vec::new()), SIZES.map(|_| Vec::new()));
    for round in 0..rounds {
        for (at, size) in SIZES.into_iter().enumerate() {
            eprintln!("round {}: {NAME} of {size}", round + 1);
            our_costs[at].push(change(&account, &ours.server_pids(), size, seconds)?);
            let peer = slapd_account(&theirs);
            their_costs[at].push(change(&peer, &[theirs.process.id()], size, seconds)?);
        }
    }
    let mut claims = Vec::new();
    for ((size, ours), theirs) in SIZES.iter().zip(&our_costs).zip(&their_costs) {
        let claim = format!("{NAME} of {size} by one member");
        claims.push(Claim::cost(&claim, "us CPU", ours, "slapd", theirs));
    }
    let ratio = [median(&our_costs[SIZES.len() - 1]) / median(&our_costs[0])];
    let claim = format!("{NAME} of {} beside one of {}", SIZES[SIZES.len() - 1], SIZES[0]);
    claims.push(Claim::at_most(&claim, "x", &ratio, RATIO_MAX));
    Ok(claims)
}

/// The server's processor time for one change of a group of this size, in microseconds.
fn change(
    account: &Account<'_>,
    processes: &[u32],
    size: usize,
    seconds: f64,
) -> Result<f64, String> {
    let connect = || {
        let mut client = Client::connect(account.address)?;
        client.bind(account.admin, account.password)?;
        Ok(client)
    };
    let group = group(size);
    let step = |client: &mut Client, random: &mut Rng| {
        let member = member(SIZES[SIZES.len() - 1] + random.usize(1..1_000_000));
        client.add_value(&group, "member", &member)?;
        client.delete_value(&group, "member", &member)
    };
    let driven = drive(Load { clients: 1, seconds }, processes, connect, step, |_| (0, 0))?;
    Ok(driven.cost_us / 2.0)
}

fn group(size: usize) -> String {
    format!("cn=group of {size},{SUFFIX}")
}

fn member(number: usize) -> String {
    format!("uid=user{number:07},ou=People,{SUFFIX}")
}

fn entries() -> String {
    let mut text = format!("dn: {SUFFIX}\nobjectClass: domain\ndc: example\n");
    for size in SIZES {
        // Writing to a String cannot fail.
        let _ =
            write!(text, "\ndn: {}\nobjectClass: groupOfNames\ncn: group of {size}\n", group(size));
        for number in 0..size {
            let _ = writeln!(text, "member: {}", member(number));
        }
    }
    text
}
