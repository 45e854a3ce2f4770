//! PINs: read from files that no other user may read, and never tried again once they were refused.

use super::{PIN, Site, Tokens, said, start};
use keyway_tests::{ALL_CALLERS, finish, keyway, secret};
use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::process::Command;
use std::sync::Arc;

#[test]
fn a_wrong_pin_is_tried_once_and_keeps_no_other_key_from_being_used() {
    let Some(tokens) = Tokens::new(&["office"], &["cc"]) else { return };
    let Some(shim) = super::failing::shim(&tokens) else { return };
    let flags = tokens.flags(&[("office", &shim)]);
    let site = Site::start(tokens, flags);
    fs::write(site.path("text"), "a text").unwrap();
    let made = ["generate", "web", "--algorithm", "ec-p256", "--for", ALL_CALLERS];
    site.key(&[&made[..], &["--in", "office"]].concat());
    site.key(&["generate", "here", "--algorithm", "ec-p256", "--for", ALL_CALLERS]);
    let shim_folder = shim.parent().unwrap().to_owned();
    let logins = || fs::read(shim_folder.join("logins")).unwrap_or_default().len();
    fs::remove_file(shim_folder.join("logins")).unwrap();
    secret(&site.tokens.pin(), "4321\n");
    let site = site.restart();
    for _ in 0..3 {
        site.refused(&["sign", "web", "text"], "cannot sign");
        site.key(&["sign", "here", "text", "-o", "signature"]);
    }
    site.refused(
        &["generate", "other", "--algorithm", "rsa", "--in", "office"],
        "CKR_PIN_INCORRECT",
    );
    assert_eq!(logins(), 1);
    // The next start does not try it either.
    let site = site.restart();
    site.refused(&["sign", "web", "text"], "cannot sign");
    assert_eq!(logins(), 1);
    // Nor when the file was written anew and has the same PIN.
    secret(&site.tokens.pin(), "4321");
    let site = site.restart();
    site.refused(&["sign", "web", "text"], "cannot sign");
    assert_eq!(logins(), 1);
    let said = site.said();
    assert_eq!(said.matches("has refused the PIN in").count(), 3, "{said}");
    for part in ["C_Login; it was wrong at least once", "before this start", "is not tried again"] {
        assert!(said.contains(part), "{part}: {said}");
    }
    // One line's end is not the PIN's.
    secret(&site.tokens.pin(), &format!("{PIN}\r\n"));
    let site = site.restart();
    site.key(&["sign", "web", "text", "-o", "signature"]);
    site.key(&["verify", "web", "text", "--signature", "signature"]);
    assert!(site.cryptod.stop().success());
}

/// A module that ends the daemon in a login is asked once.
#[test]
fn a_pin_is_not_tried_again_after_the_daemon_has_died_of_it() {
    let Some(tokens) = Tokens::new(&["office"], &["cc"]) else { return };
    let Some(shim) = super::failing::shim(&tokens) else { return };
    super::failing::set(&shim, "end");
    let flags = tokens.flags(&[("office", &shim)]);
    let folder = Arc::new(tempfile::tempdir().unwrap());
    let logins = || fs::read(shim.with_file_name("logins")).unwrap_or_default().len();
    let mut command = Command::new(keyway());
    command.args(["cryptod", "--json", "--data"]).arg(folder.path().join("data")).args(&flags);
    command.env("SOFTHSM2_CONF", tokens.path("conf"));
    assert_eq!(finish(&mut command, "").code, 1);
    assert_eq!(logins(), 1);
    super::failing::set(&shim, "");
    let cryptod = start(&tokens, &folder, &flags);
    let told = said(&folder);
    assert!(told.contains("the daemon ended while the token was asked"), "{told}");
    assert_eq!(logins(), 1);
    assert!(cryptod.stop().success());
    // It was right, and the operator says so.
    let notes = folder.path().join("data/cryptod/tokens");
    let note = notes.join("6f6666696365.refused");
    assert!(told.contains(&format!("or remove {} if it is right", note.display())), "{told}");
    fs::remove_file(&note).unwrap();
    let cryptod = start(&tokens, &folder, &flags);
    assert_eq!((said(&folder), logins(), note.exists()), (told, 2, false));
    let mode = fs::metadata(notes.join("identities.key")).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    assert!(cryptod.stop().success());
}

#[test]
fn a_start_says_what_is_wrong_with_its_flags() {
    let Some(tokens) = Tokens::new(&["office"], &[]) else { return };
    let (module, pin) = (tokens.module.display().to_string(), tokens.pin().display().to_string());
    let refused = |arguments: &[&str], why: &str| {
        let mut command = Command::new(keyway());
        command.args(["cryptod", "--data"]).arg(tokens.path("data")).args(arguments);
        let refused = finish(command.env("SOFTHSM2_CONF", tokens.path("conf")), "");
        assert!(refused.code != 0 && refused.err.contains(why), "{why:?} in {}", refused.err);
    };
    let token = format!("office={module}");
    let pinned = format!("office={pin}");
    refused(&["--token", "office"], "it is not LABEL=FILE");
    refused(&["--token", "office=/none.so"], "name the library of the token's PKCS#11 module");
    refused(&["--token", &token, "--token", &token], "a token is named twice");
    refused(&["--token", &token, "--token-pin", "attic=x"], "no --token names a token attic");
    refused(&["--token", &token, "--token-pin", "office=/none"], "/none");
    let fifo = tokens.path("fifo");
    finish(Command::new("mkfifo").arg(&fifo), "").expect(0);
    let from_fifo = format!("office={}", fifo.display());
    refused(&["--token", &token, "--token-pin", &from_fifo], "is no plain file");
    fs::set_permissions(tokens.pin(), Permissions::from_mode(0o644)).unwrap();
    refused(&["--token", &token, "--token-pin", &pinned], "chmod go=");
    let other = format!("office={pin}");
    fs::set_permissions(tokens.pin(), Permissions::from_mode(0o600)).unwrap();
    refused(&["--token", &other], "cannot be loaded");
    fs::write(tokens.pin(), "\n1234").unwrap();
    refused(&["--token", &token, "--token-pin", &pinned], "the first line of");
}

#[test]
fn a_token_that_is_not_there_is_said_and_the_daemon_starts() {
    let Some(tokens) = Tokens::new(&["office"], &[]) else { return };
    let flags = tokens.flags(&[("attic", &tokens.module)]);
    let site = Site::start(tokens, flags);
    let said = said(&site.folder);
    assert!(said.contains("shows no token attic (it shows: office)"), "{said}");
    site.refused(
        &["generate", "web", "--algorithm", "rsa", "--in", "attic"],
        "shows no token attic",
    );
    site.key(&["generate", "here", "--algorithm", "ec-p256"]);
    assert!(site.cryptod.stop().success());
    // Without a PIN.
    let flags: Vec<_> = site.tokens.flags(&[("office", &site.tokens.module)]);
    let flags = [&flags[..2], &flags[4..]].concat();
    let cryptod = start(&site.tokens, &site.folder, &flags);
    assert!(super::said(&site.folder).contains("office wants a PIN"));
    assert!(cryptod.stop().success());
}
