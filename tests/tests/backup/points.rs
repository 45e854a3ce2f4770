//! Restores to positions and times, of whole backups and of the changes between them.

use crate::site::{Site, json, keyway_with};
use crate::state::{check, export};
use crate::writers::{BASE, Replay, administrator, beside_writers, plant};
use keyway_tests::client::Client;
use keyway_tests::cryptod::eventually;
use keyway_tests::dice::{Dice, seed};
use keyway_tests::{Server, available, finish, nightly};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use std::fs;
use std::io::{BufRead, BufReader};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::{SystemTime, UNIX_EPOCH};

/// `keyway backup run`. Killed when dropped.
pub struct Run {
    child: Child,
    told: BufReader<ChildStdout>,
}

impl Run {
    pub fn begin(site: &Site, every: &str, full_every: &str) -> Run {
        let flags =
            ["--json", "--with", "keys,config", "--every", every, "--full-every", full_every];
        let mut run = site.command(&["backup", "run"], &flags);
        let mut child = run.arg("--data").arg(&site.data).stdout(Stdio::piped()).spawn().unwrap();
        let told = BufReader::new(child.stdout.take().unwrap());
        Run { child, told }
    }

    /// What it says next.
    pub fn next(&mut self) -> Value {
        let mut line = String::new();
        self.told.read_line(&mut line).unwrap();
        serde_json::from_str(&line).unwrap_or_else(|why| panic!("{line:?}: {why}"))
    }

    pub fn stop(mut self) {
        kill_process(Pid::from_raw(self.child.id() as i32).unwrap(), Signal::TERM).unwrap();
        assert!(self.child.wait().unwrap().success());
    }
}

impl Drop for Run {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// All changes that are in a folder's feed.
pub fn feed(site: &Site) -> Vec<Value> {
    let mut changes = keyway_with(&["directory", "changes", "--json"], &site.data);
    let shown = finish(&mut changes, "").expect(0).out;
    // The first line is about the feed.
    shown.lines().skip(1).map(|line| serde_json::from_str(line).unwrap()).collect()
}

pub fn position(of: &Value) -> u64 {
    of["position"].as_u64().unwrap_or_else(|| panic!("no position: {of}"))
}

/// Waits until the clock shows another one.
pub fn next_second() {
    let clock = || SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs();
    let second = clock();
    eventually("the clock goes on", || clock() > second);
}

/// A restore has exactly the changes of the positions up to where it ends.
#[test]
fn a_restore_to_a_point_has_the_changes_up_to_it_and_no_other() {
    let (clients, points, rounds) = if nightly() { (8, 12, 60) } else { (4, 4, 8) };
    let seed = seed("points");
    let mut dice = Dice::new(seed);
    let place = tempfile::tempdir().unwrap();
    let site = Site::in_folder(place.path());
    let server = Server::start(&site.data, &["--sample", "50"]);
    plant(&server, clients);
    let before = export(&site.data);
    let (journals, (mut run, name, first)) = beside_writers(&server, clients, seed, |count| {
        let mut run = Run::begin(&site, "100ms", "2s");
        let first = run.next();
        let name = first["backup"].as_str().unwrap().to_owned();
        (0..rounds).for_each(|_| count.advance(5));
        (run, name, position(&first))
    });
    let feed = feed(&site);
    let last = position(feed.last().unwrap());
    let (mut whole, mut pieces, mut saved) = (1, 0, 0);
    while saved < last {
        let told = run.next();
        match told["event"].as_str() {
            Some("backed up") => whole += 1,
            _ => (pieces, saved) = (pieces + 1, position(&told)),
        }
    }
    run.stop();
    assert!(server.stop().success());

    let mut replay = Replay::new(&journals);
    let mut made = vec![0; clients];
    // The clients' own changes, by position; the trees were planted before.
    let mut positions = vec![Vec::new(); clients];
    for change in feed.iter().skip(3 * clients) {
        let dn = change["dn"].as_str().unwrap();
        let owner = replay.owner(dn).unwrap_or_else(|| panic!("{change}"));
        let action = &journals[owner].changes[made[owner]].action;
        assert_eq!((action.kind(), action.dn()), (change["kind"].as_str().unwrap(), dn));
        positions[owner].push(position(change));
        made[owner] += 1;
    }
    let all: Vec<usize> = journals.iter().map(|journal| journal.changes.len()).collect();
    assert_eq!(made, all, "the feed has all changes");
    site.verify(&[]).expect(0);
    let listed = finish(&mut site.command(&["backup", "show"], &["--json", "--backup", &name]), "");
    let begun = json(&listed.expect(0))["time"].as_str().unwrap().to_owned();
    let mut times = 0;
    for point in 0..points {
        let to = place.path().join("restored");
        let chosen = first + dice.below((last - first + 1) as usize) as u64;
        let flags = match point % 3 {
            0 => {
                times += 1;
                let of = feed.iter().find(|change| position(change) >= chosen).unwrap();
                ["--at".to_owned(), of["time"].as_str().unwrap().to_owned()]
            }
            _ => ["--position".to_owned(), chosen.to_string()],
        };
        // The commit before the first that has a change of later.
        let is_later = |change: &&Value| match flags[0] == "--at" {
            true => change["time"].as_str().unwrap() > flags[1].as_str(),
            false => position(change) > chosen,
        };
        let wanted = feed.iter().find(is_later).map_or(last, |change| position(change) - 1);
        let restored = site.try_restore(&to, &[&flags[0], &flags[1]]);
        // The second in which the first backup was begun: it may be of later.
        if flags[0] == "--at" && flags[1] < begun && restored.code == 1 {
            assert!(restored.out.contains("no backup is as old"), "{}", restored.out);
            continue;
        }
        assert_eq!(position(&json(&restored.expect(0))), wanted, "{flags:?}");
        check(&to);
        let state = export(&to);
        let up_to = |of: &Vec<u64>| of.partition_point(|position| *position <= wanted);
        replay.assert_at(&state, &positions.iter().map(up_to).collect::<Vec<_>>());
        assert!(replay.others(&state) == replay.others(&before), "{flags:?}: other entries");
        fs::remove_dir_all(&to).unwrap();
    }
    let changes = feed.len();
    eprintln!(
        "points: {points} restores, {times} of them to times, {changes} changes, {whole} backups, {pieces} pieces"
    );
}

/// Stopped before it has the repository, a create is of no time before that of its state: a restore to a time has no
/// change that was made later.
#[test]
fn a_restore_to_a_time_has_nothing_of_later() {
    if !available(&["strace"]) {
        return;
    }
    let place = tempfile::tempdir().unwrap();
    let site = Site::in_folder(place.path());
    let server = Server::start(&site.data, &["--sample", "5"]);
    let mut client = administrator(&server);
    let add = |client: &mut Client, name: &str| {
        let dn = format!("cn={name},ou=Groups,{BASE}");
        client.add(&dn, &[("objectClass", &["device"]), ("cn", &[name])]).unwrap();
        position(feed(&site).last().unwrap())
    };
    add(&mut client, "first");
    let first = site.create();
    let first = first["backup"].as_str().unwrap();
    let state = export(&site.data);

    let create = site.create_command();
    let mut strace = Command::new("strace");
    let record = place.path().join("calls");
    strace.args(["-f", "-e", "trace=flock", "-e", "inject=flock:signal=STOP:when=1", "-o"]);
    strace.arg(&record).arg(create.get_program()).args(create.get_args()).stdout(Stdio::null());
    let mut strace = strace.spawn().unwrap();
    let mut held = None;
    eventually("it stops at its lock", || {
        let told = fs::read_to_string(&record).unwrap_or_default();
        let stop = told.lines().find(|line| line.contains("stopped by SIGSTOP"));
        held = stop.and_then(|line| Pid::from_raw(line.split_once(' ')?.0.parse().ok()?));
        held.is_some()
    });
    next_second();
    add(&mut client, "second");
    let of = feed(&site);
    let time = of.last().unwrap()["time"].as_str().unwrap();
    kill_process(held.unwrap(), Signal::CONT).unwrap();
    assert!(strace.wait().unwrap().success());
    assert!(server.stop().success());
    // The beginning of the second in which the change was made.
    let (before, _) = time.split_once('.').unwrap();
    let to = place.path().join("restored");
    // No changes were saved between the two, so that it is not known what there was then.
    let refused = site.try_restore(&to, &["--at", before]).expect(1);
    assert!(refused.out.contains(&format!("backup {first}")), "{}", refused.out);
    assert!(refused.out.contains("are missing in the repository"), "{}", refused.out);
    site.try_restore(&to, &["--backup", first]).expect(0);
    assert!(export(&to) == state);
}

/// A named backup is behind neither position nor time, and none is taken for another that cannot be read.
#[test]
fn a_backup_that_does_not_lead_to_a_point_is_refused() {
    let place = tempfile::tempdir().unwrap();
    let site = Site::in_folder(place.path());
    let server = Server::start(&site.data, &["--sample", "5"]);
    let mut client = administrator(&server);
    let mut made = Vec::new();
    for name in ["first", "second"] {
        let dn = format!("cn={name},ou=Groups,{BASE}");
        client.add(&dn, &[("objectClass", &["device"]), ("cn", &[name])]).unwrap();
        let told = site.create();
        made.push((
            told["backup"].as_str().unwrap().to_owned(),
            position(&told),
            export(&site.data),
        ));
    }
    assert!(server.stop().success());
    let to = place.path().join("restored");
    let [(first, at_first, state), (second, at_second, _)] = &made[..] else { unreachable!() };
    let (before, behind) = (at_first.to_string(), at_second.to_string());
    for point in [["--position", &before], ["--at", "2001-01-01"]] {
        let refused =
            site.try_restore(&to, &[&["--backup", second], &point[..]].concat()).expect(1);
        assert!(refused.out.contains("is of a state behind"), "{}", refused.out);
    }
    let manifest = site.repository.join("manifests").join(second);
    let mut bytes = fs::read(&manifest).unwrap();
    bytes[100] ^= 1;
    fs::write(&manifest, bytes).unwrap();
    for point in [["--position", &behind], ["--at", "0s"], ["--position", &before]] {
        let refused = site.try_restore(&to, &point).expect(1);
        assert!(refused.out.contains(&format!("add --backup {first}")), "{}", refused.out);
        assert!(refused.out.contains(second), "{}", refused.out);
    }
    site.try_restore(&to, &["--backup", first, "--position", &before]).expect(0);
    assert!(export(&to) == *state);
}
