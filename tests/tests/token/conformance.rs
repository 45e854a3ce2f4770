//! The suite that every driver has to pass. It brings its keys, and tokens have keys by name: a key that it brings is
//! put into a token first.

use super::{PIN, Tokens};
use base64::prelude::{BASE64_STANDARD, Engine as _};
use keyway_conformance::{Check, Outcome, Plan, run};
use keyway_drivers::software;
use keyway_engine::{Algorithm, Driver, DriverSession, Error, Key, Kind, Place, Selection, Step};
use keyway_lock::Unpoisoned;
use keyway_tests::nightly;
use keyway_token::{Pin, TokenKey, TokenOptions, Uses, Wanted};
use std::collections::HashMap;
use std::env;
use std::fs;
use std::path::PathBuf;
use std::process::Command;
use std::sync::{Arc, Mutex};

const TOKEN: &str = "office";
/// The folder of the tokens, for this test in a process of its own: SoftHSM finds it by the environment.
const FOLDER: &str = "KEYWAY_TEST_TOKENS";

/// A key as the suite brings it, and what it is for.
type Brought = (Vec<u8>, Algorithm);

/// The driver, which takes keys as bytes, too.
struct Filled {
    tokens: keyway_token::Tokens,
    /// The tokens as SoftHSM's tool has them.
    tool: Tokens,
    keys: Mutex<HashMap<Brought, Option<TokenKey>>>,
    software: Arc<dyn Driver>,
}

impl Filled {
    /// The name of a key that is in the token now.
    fn named(&self, algorithm: Algorithm, key: Key<'_>) -> Result<String, Error> {
        let unsupported = Error::Unsupported(algorithm);
        let uses = Uses { sign: true, decrypt: true, agree: true };
        let mut keys = self.keys.lock().unpoisoned();
        let name = format!("key{}", keys.len());
        let key = match key {
            Key::Generate if algorithm.is_rsa() => return Err(unsupported),
            Key::Generate => {
                let made = self.tokens.generate(TOKEN, &name, &[algorithm], uses, 2048);
                let made = made.expect("a key");
                // No other session has it.
                keys.insert((name.clone().into_bytes(), algorithm), None);
                made
            }
            Key::Pkcs8(der) => {
                let number = format!("{:08x}", keys.len() + 1);
                let taken = keys.entry((der.to_vec(), algorithm)).or_insert_with(|| {
                    let file = self.tool.path("key");
                    let text = BASE64_STANDARD.encode(der);
                    let lines: Vec<_> =
                        text.as_bytes().chunks(64).map(|it| str::from_utf8(it).unwrap()).collect();
                    let (begin, end) = ("-----BEGIN PRIVATE KEY-----", "-----END PRIVATE KEY-----");
                    fs::write(&file, format!("{begin}\n{}\n{end}\n", lines.join("\n"))).unwrap();
                    self.tool.try_import(&file, TOKEN, &name, &number).then_some(())?;
                    let wanted = Wanted::Label(name.clone());
                    self.tokens.adopt(&[TOKEN.to_owned()], &wanted, &[algorithm], uses).ok()
                });
                taken.clone().ok_or(Error::InvalidKey("the token does not take it"))?
            }
            _ => return Err(unsupported),
        };
        self.tokens.hold(&name, &key, &[algorithm]).expect("the token");
        Ok(name)
    }
}

impl Driver for Filled {
    fn name(&self) -> &str {
        self.tokens.name()
    }

    fn selection(&self) -> Selection {
        self.tokens.selection()
    }

    fn place(&self) -> Place {
        self.tokens.place()
    }

    /// All that SoftHSM does.
    fn supports(&self, steps: &[Algorithm]) -> bool {
        let lacks = [Algorithm::RsaOaep, Algorithm::RsaOaepSha256];
        self.tokens.supports(steps) && steps.iter().all(|step| !lacks.contains(step))
    }

    fn open(&self, steps: &[Step<'_>]) -> Result<Box<dyn DriverSession>, Error> {
        match *steps {
            [Step { key: Key::None, algorithm }] if algorithm.kind() != Kind::Exchange => {
                self.software.open(steps)
            }
            [Step { key, algorithm }] => {
                let name = self.named(algorithm, key)?;
                self.tokens.open(&[Step { algorithm, key: Key::Named(&name) }])
            }
            _ => Err(Error::Unsupported(Algorithm::Random)),
        }
    }
}

#[test]
fn the_driver_conforms() {
    let Some(folder) = env::var_os(FOLDER).map(PathBuf::from) else {
        let Some(tokens) = Tokens::new(&[TOKEN], &[]) else { return };
        let mut again = Command::new(env::current_exe().unwrap());
        again.args(["--exact", "conformance::the_driver_conforms", "--nocapture"]);
        again.env(FOLDER, tokens.folder.path()).env("SOFTHSM2_CONF", tokens.path("conf"));
        assert!(again.status().unwrap().success());
        return;
    };
    let tool = Tokens::at(folder);
    let secret = PIN.as_bytes().to_vec().into();
    let pin = Pin::new(&secret, tool.pin(), String::new(), tool.path("refused"));
    let (label, module) = (TOKEN.to_owned(), tool.module.clone());
    let options = TokenOptions { label, module, pin: Some(pin) };
    let report = Arc::new(|what: &str| panic!("{what}"));
    let tokens = keyway_token::Tokens::new(vec![options], software(), report).unwrap();
    let keys = Mutex::default();
    let driver = Arc::new(Filled { tokens, tool, keys, software: software() });
    let plan = Plan { rounds: if nightly() { 2 } else { 1 }, ..Plan::default() };
    let report = run(driver, software(), &plan, &mut |_| {});
    // The keys that it brings for exchanges are bare numbers, which SoftHSM's tool does not import. Those that the token
    // makes instead are nowhere else, so that no other driver goes on with them.
    let is_elsewhere = |check: &&Check| {
        check.name == "unregister" && check.algorithm.is_some_and(|it| it.kind() == Kind::Exchange)
    };
    let failures: Vec<_> = report.failures().filter(|check| !is_elsewhere(check)).collect();
    assert!(failures.is_empty(), "{failures:#?}");
    let passed = |check: &&Check| matches!(check.outcome, Outcome::Passed { .. });
    assert!(report.checks.iter().filter(passed).count() > 100);
}
