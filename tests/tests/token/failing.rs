//! Tokens that are pulled out, fail in the middle, or do not answer.

use super::using::{client, sign};
use super::{Site, Tokens, said, start};
use keyway_tests::cryptod::{Neighbour, eventually};
use keyway_tests::{ALL_CALLERS, finish, nightly};
use rustix::process::Signal;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Instant;

const CURVE: [&str; 4] = ["-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:P-256"];

/// A module before SoftHSM that fails as it is told to; `None` if it cannot be built here.
pub fn shim(tokens: &Tokens) -> Option<PathBuf> {
    if !Path::new("/usr/include/p11-kit-1/p11-kit/pkcs11.h").exists() {
        let ci = std::env::var("CI").is_ok_and(|value| value == "true" || value == "1");
        assert!(!ci, "nothing may be skipped in CI, but libp11-kit-dev is missing");
        eprintln!("left out: no libp11-kit-dev");
        return None;
    }
    let folder = tokens.path("shim");
    fs::create_dir(&folder).unwrap();
    fs::copy(&tokens.module, folder.join("real.so")).unwrap();
    let (source, module) =
        (concat!(env!("CARGO_MANIFEST_DIR"), "/tests/token/shim.c"), folder.join("shim.so"));
    let mut compile = Command::new("cc");
    compile.args(["-O1", "-fPIC", "-shared", "-I/usr/include/p11-kit-1", "-D_GNU_SOURCE", "-o"]);
    finish(compile.arg(&module).arg(source).arg("-ldl"), "").expect(0);
    Some(module)
}

pub fn set(shim: &Path, state: &str) {
    let folder = shim.parent().unwrap();
    fs::write(folder.join("new"), state).unwrap();
    fs::rename(folder.join("new"), folder.join("state")).unwrap();
}

/// A site with a key `web` that both tokens have; the first one is behind the shim.
fn two() -> Option<(Site, PathBuf)> {
    let tokens = Tokens::new(&["office", "cellar"], &["cc", "pkcs11-tool"])?;
    let key = tokens.private_key("key", &CURVE);
    tokens.import(&key, "office", "shared", "0a1b");
    tokens.import(&key, "cellar", "copy", "0a1b");
    let shim = shim(&tokens)?;
    let flags = tokens.flags(&[("office", &shim), ("cellar", &tokens.module)]);
    let site = Site::start(tokens, flags);
    let import = ["import", "web", "--algorithm", "ec-p256", "--for", ALL_CALLERS];
    site.key(&[&import[..], &["--in", "office,cellar", "--id", "0a1b"]].concat());
    Some((site, shim))
}

/// A site with a key `web` in one token, behind the shim, and a file `text`.
fn alone() -> Option<(Site, PathBuf)> {
    let tokens = Tokens::new(&["office"], &["cc"])?;
    let shim = shim(&tokens)?;
    let flags = tokens.flags(&[("office", &shim)]);
    let site = Site::start(tokens, flags);
    let made = ["generate", "web", "--algorithm", "ec-p256", "--for", ALL_CALLERS];
    site.key(&[&made[..], &["--in", "office"]].concat());
    fs::write(site.path("text"), "a text").unwrap();
    Some((site, shim))
}

#[test]
fn one_of_two_tokens_fails_in_the_middle_and_comes_back() {
    let Some((site, shim)) = two() else { return };
    assert!(site.key(&["list"]).contains("in office and cellar"));
    site.refused(&["rotate", "web"], "the key lives in several tokens");
    let (_connection, _engine, session) = client(&site);
    let local = keyway_drivers::engine();
    // They share the work.
    let signatures = || fs::read(shim.with_file_name("signatures")).unwrap().len();
    let before = signatures();
    sign(&local, &session, 40);
    assert!((before + 5..before + 35).contains(&signatures()), "{before} {}", signatures());
    let (rounds, done) = (if nightly() { 400 } else { 60 }, AtomicUsize::new(0));
    thread::scope(|scope| {
        for _ in 0..32 {
            scope.spawn(|| {
                for _ in 0..rounds {
                    sign(&local, &session, 1);
                    done.fetch_add(1, Ordering::Relaxed);
                }
            });
        }
        let past = |part: usize| {
            eventually("signatures", || done.load(Ordering::Relaxed) > part * rounds * 32 / 4);
        };
        past(1);
        set(&shim, "gone");
        past(2);
        set(&shim, "");
    });
    // Alone, the other one does it all; then it is the first one's turn.
    set(&shim, "gone");
    sign(&local, &session, 10);
    let said = site.said();
    assert!(said.contains("token office is gone"), "{said}");
    set(&shim, "");
    eventually("the token works again", || {
        sign(&local, &session, 1);
        site.said().trim_end().ends_with("token office works again")
    });
    drop(session);
    assert!(site.cryptod.stop().success());
}

#[test]
fn both_tokens_have_to_have_the_same_key() {
    let Some(tokens) = Tokens::new(&["office", "cellar"], &[]) else { return };
    for token in ["office", "cellar"] {
        let key = tokens.private_key("key", &CURVE);
        tokens.import(&key, token, "shared", "0a1b");
    }
    let site = tokens.site(&["office", "cellar"]);
    let import = ["import", "web", "--algorithm", "ec-p256", "--in", "office,cellar"];
    site.refused(
        &[&import[..], &["--id", "0a1b"]].concat(),
        "token cellar: its key is another one than that of token office: their public halves differ",
    );
    let mut one = import;
    one[5] = "office,attic";
    site.refused(&[&one[..], &["--id", "0a1b"]].concat(), "knows no token attic");
    assert!(site.cryptod.stop().success());
}

/// Whatever a token signs with, no wrong signature leaves the daemon: the other token signs, or none does.
#[test]
fn signatures_of_another_key_or_that_are_wrong_are_no_ones() {
    let Some((site, shim)) = two() else { return };
    fs::write(site.path("text"), "a text").unwrap();
    let signs = |name: &str| {
        for _ in 0..6 {
            site.key(&["sign", name, "text", "-o", "signature"]);
            site.key(&["verify", name, "text", "--signature", "signature"]);
        }
    };
    signs("web");
    set(&shim, "wrong");
    signs("web");
    let said = site.said();
    assert_eq!(
        said.matches("key web@1: token office has made a signature that does not fit").count(),
        1,
        "{said}"
    );
    for (name, algorithm) in [("r", "rsa-2048"), ("e", "ec-p256")] {
        let made = ["generate", name, "--algorithm", algorithm, "--in", "office"];
        set(&shim, "");
        site.key(&[&made[..], &["--for", ALL_CALLERS]].concat());
        set(&shim, "wrong");
        site.refused(&["sign", name, "text"], "cannot sign");
    }
    set(&shim, "");
    // Another key is put into its place in the cellar, and then in both.
    for (token, label) in [("cellar", "copy"), ("office", "shared")] {
        let other = site.tokens.private_key("other", &CURVE);
        site.tokens.delete(token, "0a1b");
        site.tokens.import(&other, token, label, "0a1b");
        match token {
            "cellar" => signs("web"),
            _ => site.refused(&["sign", "web", "text"], "cannot sign"),
        }
        let said = site.said();
        let told = format!("key web@1: token {token} has another key in its place");
        assert!(said.contains(&told), "{said}");
    }
    // One of the daemon's own that was replaced is not destroyed with the name.
    let (id, other) = (site.id_of("office", "e"), site.tokens.private_key("other", &CURVE));
    site.tokens.delete("office", &id);
    site.tokens.import(&other, "office", "e", &id);
    site.key(&["revoke", "e"]);
    site.key(&["delete", "e"]);
    assert!(site.keys_of("office").contains(&"e".to_owned()));
    assert!(site.said().contains("key e is deleted; token office has another key"));
    // Not one of another kind either.
    let id = site.id_of("office", "r");
    site.tokens.delete("office", &id);
    site.tokens.import(&other, "office", "r", &id);
    site.key(&["revoke", "r"]);
    site.key(&["delete", "r"]);
    assert!(site.keys_of("office").contains(&"r".to_owned()));
    assert!(site.cryptod.stop().success());
}

/// SoftHSM's token is a folder, and only another start of the module finds one that is back.
#[test]
fn a_token_that_was_away_is_found_again() {
    let Some(tokens) = Tokens::new(&["office", "cellar"], &[]) else { return };
    let key = tokens.private_key("key", &CURVE);
    tokens.import(&key, "office", "web", "0a1b");
    tokens.import(&key, "cellar", "web", "0a1b");
    let site = tokens.site(&["office", "cellar"]);
    for (name, tokens) in [("both", "office,cellar"), ("web", "office")] {
        let import =
            ["import", name, "--algorithm", "ec-p256", "--for", ALL_CALLERS, "--id", "0a1b"];
        site.key(&[&import[..], &["--in", tokens]].concat());
    }
    site.key(&["generate", "here", "--algorithm", "ec-p256", "--for", ALL_CALLERS]);
    fs::write(site.path("text"), "a text").unwrap();
    let signed = |name: &str| site.try_key(&["sign", name, "text", "-o", "signature"]).code == 0;
    let (folder, away) = (site.tokens.folder_of("office"), site.tokens.path("away"));
    assert!(signed("web") && signed("both") && signed("here"));
    fs::rename(&folder, &away).unwrap();
    for _ in 0..4 {
        assert!(!signed("web") && signed("both") && signed("here"));
    }
    site.refused(
        &["generate", "other", "--algorithm", "ec-p256", "--in", "office"],
        "shows no token office",
    );
    fs::rename(&away, &folder).unwrap();
    eventually("the token is found again", || signed("web"));
    assert!(signed("both") && signed("here"));
    assert!(site.cryptod.stop().success());
}

#[test]
fn a_token_that_does_not_answer_holds_up_no_other_key() {
    let Some((site, shim)) = two() else { return };
    for (name, options) in [("alone", &["--in", "cellar"][..]), ("rsa", &[])] {
        let algorithm = if name == "rsa" { "rsa" } else { "ec-p256" };
        let made = ["generate", name, "--algorithm", algorithm, "--for", ALL_CALLERS];
        site.key(&[&made[..], options].concat());
    }
    let (_connection, _engine, session) = client(&site);
    let local = keyway_drivers::engine();
    fs::write(site.path("text"), "a text").unwrap();
    set(&shim, "hang");
    thread::scope(|scope| {
        // As many as wait for the token.
        for _ in 0..24 {
            scope.spawn(|| sign(&local, &session, 2));
        }
        let neighbours = Neighbour::all(&site.cryptod);
        for _ in 0..5 {
            for name in ["alone", "rsa"] {
                site.key(&["sign", name, "text", "-o", "signature"]);
                site.key(&["verify", name, "text", "--signature", "signature"]);
            }
        }
        neighbours.iter().for_each(Neighbour::goes_on);
        if !nightly() {
            set(&shim, "");
        }
        // Else they wait for as long as a token may take, and then the other token signs.
    });
    if nightly() {
        assert!(site.said().contains("token office does not answer"), "{}", site.said());
        let begun = Instant::now();
        sign(&local, &session, 10);
        assert!(begun.elapsed() < keyway_tests::cryptod::PATIENCE);
        set(&shim, "");
    }
    sign(&local, &session, 10);
    drop(session);
    assert!(site.cryptod.stop().success());
}

#[test]
fn a_daemon_ends_although_a_token_does_not_answer() {
    let Some((site, shim)) = two() else { return };
    let (_connection, _engine, session) = client(&site);
    set(&shim, "hang");
    thread::scope(|scope| {
        let results: Vec<_> =
            (0..16).map(|_| scope.spawn(|| session.sign(b"text").is_err())).collect();
        // The other token has signed for half of them.
        eventually("some wait", || results.iter().filter(|it| it.is_finished()).count() >= 4);
        assert!(site.cryptod.stop().success());
        assert!(results.into_iter().any(|result| result.join().unwrap()));
    });
}

/// CKR_SESSION_HANDLE_INVALID, CKR_SESSION_CLOSED, CKR_USER_NOT_LOGGED_IN, CKR_OBJECT_HANDLE_INVALID and
/// CKR_KEY_HANDLE_INVALID.
#[test]
fn a_session_that_was_lost_is_opened_again_without_a_word() {
    let Some((site, shim)) = alone() else { return };
    for code in [0xb3, 0xb0, 0x101, 0x82, 0x60] {
        set(&shim, &format!("lost {code}"));
        site.key(&["sign", "web", "text", "-o", "signature"]);
        site.key(&["verify", "web", "text", "--signature", "signature"]);
        assert!(!shim.with_file_name("state").exists(), "{code:#x}");
    }
    assert_eq!(site.said(), "");
    assert!(site.cryptod.stop().success());
}

#[test]
fn a_trouble_of_a_token_is_told_once_with_the_key_and_the_modules_word() {
    let Some((site, shim)) = alone() else { return };
    for (code, name) in [(5, "CKR_GENERAL_ERROR"), (0x68, "CKR_KEY_FUNCTION_NOT_PERMITTED")] {
        set(&shim, &format!("fails {code}"));
        for _ in 0..5 {
            site.refused(&["sign", "web", "text"], "cannot sign");
        }
        let (said, line) =
            (site.said(), format!("key web@1: token office has refused that: {name}"));
        assert_eq!(said.matches(&line).count(), 1, "{said}");
    }
    assert_eq!(site.said().lines().count(), 2);
    set(&shim, "");
    site.key(&["sign", "web", "text", "-o", "signature"]);
    assert!(site.cryptod.stop().success());
}

/// A module may stay in any call: the daemon starts, serves other keys, and ends.
#[test]
fn a_module_that_never_returns_holds_up_neither_the_start_nor_the_end() {
    let Some((site, shim)) = alone() else { return };
    site.key(&["generate", "here", "--algorithm", "ec-p256", "--for", ALL_CALLERS]);
    let Site { tokens, folder, flags, cryptod } = site;
    set(&shim, "stay");
    assert!(cryptod.stop().success());
    assert!(said(&folder).contains("shim.so does not end (C_Finalize)"), "{}", said(&folder));
    set(&shim, "deaf");
    let cryptod = start(&tokens, &folder, &flags);
    let site = Site { tokens, folder, flags, cryptod };
    site.key(&["sign", "here", "text", "-o", "signature"]);
    // That is said of a token that was waited for.
    assert!(!site.said().contains("does not answer"), "{}", site.said());
    assert!(site.cryptod.stop().success());
}

#[test]
fn a_key_that_a_token_does_not_get_done_holds_up_no_end() {
    let Some((site, shim)) = alone() else { return };
    set(&shim, "deaf");
    thread::scope(|scope| {
        let make = ["generate", "other", "--algorithm", "ec-p256", "--in", "office"];
        let site = &site;
        let made = scope.spawn(move || site.try_key(&make));
        eventually("the token is asked", || shim.with_file_name("deaf").exists());
        site.cryptod.signal(Signal::TERM);
        let made = made.join().unwrap();
        // As it says when the time is up that a key may take.
        assert!(made.code != 0 && !made.err.contains("has made no key within"), "{}", made.err);
    });
    assert!(site.cryptod.stop().success());
}
