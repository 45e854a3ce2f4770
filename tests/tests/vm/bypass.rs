//! Guests sign with keys that stay on the host, through memory that they share with its daemon (`--vm`).

use super::site::{GONE, Known, Signing, TEXT, image, plug, with_process, with_program};
use keyway_tests::cryptod::eventually;
use keyway_tests::machines::Site;
use keyway_tests::vm::Vm;
use keyway_tests::{available, keyway, openssl_provider, pkcs11_module};
use rustix::process::Signal;
use std::path::Path;
use std::thread;

/// As the guide has it, with the first device in the place of a socket.
const OPENSSL: &str = "openssl_conf = init\n\n[init]\nproviders = providers\nalg_section = algorithms\n\n\
    [algorithms]\ndefault_properties = ?keyway.key!=yes\n\n[providers]\ndefault = default_provider\n\
    keyway = keyway_provider\n\n[default_provider]\nactivate = 1\n\n[keyway_provider]\n\
    module = /usr/lib/keyway-openssl.so\nsocket = /sys/bus/pci/devices\nactivate = 1\n";

#[test]
fn the_programs_of_a_guest_sign_and_its_memory_has_no_byte_of_the_keys() {
    if !available(&["pkcs11-tool"]) {
        return;
    }
    let Some(image) = image() else { return };
    let image = with_program(image, keyway(), "/usr/bin/keyway");
    let image = with_program(image, pkcs11_module(), "/usr/lib/keyway-pkcs11.so");
    let image = with_program(image, openssl_provider(), "/usr/lib/keyway-openssl.so")
        .program(Path::new("/usr/bin/openssl"))
        .program(Path::new("/usr/bin/pkcs11-tool"))
        .file("/etc/openssl.cnf", OPENSSL.as_bytes(), 0o644)
        .image();
    let site = Site::new(&["web"], &[]);
    let (ec, rsa) = (Known::p256(), Known::rsa());
    ec.import(&site, "ec", "ec-p256", "web");
    rsa.import(&site, "rsa", "rsa", "web");
    let vm = Vm::boot(&image, &[]);
    let sign = "keyway key sign ec /etc/text -o /tmp/signature --socket";
    let first = &format!("{sign} /sys/bus/pci/devices");
    let none = vm.run(first).expect(1).err;
    assert!(none.contains("no device of a Keyway daemon is in this virtual machine"), "{none}");
    plug(&vm, &site, "web");

    let signs = |known: &Known, command: &str| {
        let signed = vm.run(&format!("cd /tmp && {command} && base64 signature && rm signature"));
        known.verifies(TEXT, &signed.expect(0).out);
    };
    // The first device, and one by its place.
    signs(&ec, first);
    signs(&ec, &format!("{sign} $(dirname /sys/bus/pci/devices/*/resource2_wc)"));
    let openssl = "OPENSSL_CONF=/etc/openssl.cnf openssl dgst -sha256 -out signature -sign keyway";
    let tool = "pkcs11-tool --module /usr/lib/keyway-pkcs11.so --sign --input-file /etc/text \
        --output-file signature --signature-format openssl --mechanism";
    let devices = "KEYWAY_SOCKET=/sys/bus/pci/devices";
    signs(&ec, &format!("{openssl}:ec /etc/text"));
    signs(&rsa, &format!("{openssl}:rsa /etc/text"));
    signs(&ec, &format!("{devices} KEYWAY_KEYS=ec {tool} ECDSA-SHA256"));
    signs(&rsa, &format!("{devices} KEYWAY_KEYS=rsa {tool} SHA256-RSA-PKCS"));

    // A user of the guest's needs rights on the device.
    let nobody = format!("cd /tmp && su -s /bin/sh nobody -c '{first}'");
    let refused = vm.run(&nobody).expect(1).err;
    assert!(refused.contains("/resource2: Permission denied"), "{refused}");
    vm.run("chmod 666 /sys/bus/pci/devices/*/resource2 /sys/bus/pci/devices/*/resource0").expect(0);
    signs(&ec, &format!("su -s /bin/sh nobody -c '{first}'"));

    assert!(site.row("web").is_some_and(|row| row.requests >= 6));
    site.is_empty("web");
    for known in [&ec, &rsa] {
        known.is_not_in(&vm, &site);
    }
}

#[test]
fn two_guests_have_their_own_keys_while_one_daemon_takes_over_from_another() {
    let Some(image) = image() else { return };
    let image = with_process(image).image();
    let mut site = Site::new(&["web", "db"], &[]);
    let keys = ["web", "db"].map(|name| {
        let key = Known::p256();
        key.import(&site, name, "ec-p256", name);
        (name, key)
    });
    let boot = |name| {
        let vm = Vm::boot(&image, &[]);
        plug(&vm, &site, name);
        vm
    };
    let (web, db) = thread::scope(|scope| {
        let web = scope.spawn(|| boot("web"));
        let db = boot("db");
        (web.join().unwrap(), db)
    });
    let (at_web, at_db) = (Signing::start(&web, "web", 0), Signing::start(&db, "db", 4));
    at_web.goes_on(&web);
    at_db.goes_on(&db);
    let refused = web.run(&Signing::command("db", 0, "2>&1")).expect(101).out;
    assert!(refused.contains("no driver that is there holds one of that name"), "{refused}");
    let audit = site.audit();
    let refusals: Vec<_> = audit.iter().filter(|line| line["vm"] == "web").collect();
    assert!(refusals.iter().any(|line| line["key"] == "db"), "{refusals:?}");
    let rows = ["web", "db"].map(|name| site.row(name).unwrap());
    for (row, vm) in rows.iter().zip([&web, &db]) {
        assert!(row.requests >= 40 && row.process == vm.pid() && row.keys == 1, "{row:?}");
    }

    for _ in 0..2 {
        let old = site.cryptod.take();
        site.start(&["--take-over"]);
        drop(old);
        at_web.goes_on(&web);
        at_db.goes_on(&db);
    }
    for (signing, vm, (_, key)) in [(at_web, &web, &keys[0]), (at_db, &db, &keys[1])] {
        let (count, errors) = signing.stop(vm, key);
        assert!(count >= 120 && errors.is_empty(), "{count} {errors:?}");
        key.is_not_in(vm, &site);
    }
    eventually("nothing is left", || {
        ["web", "db"].iter().all(|name| site.row(name).is_some_and(|row| row.sessions == 0))
    });
}

#[test]
fn a_guest_goes_on_after_the_daemon_was_killed() {
    let Some(image) = image() else { return };
    let image = with_process(image).image();
    let mut site = Site::new(&["web"], &[]);
    let key = Known::p256();
    key.import(&site, "web", "ec-p256", "web");
    let vm = Vm::boot(&image, &[]);
    plug(&vm, &site, "web");
    for depth in [0, 8] {
        let signing = Signing::start(&vm, "web", depth);
        signing.goes_on(&vm);
        site.cryptod.take().unwrap().signal(Signal::KILL);
        site.start(&[]);
        vm.unplug("keyway");
        plug(&vm, &site, "web");
        signing.goes_on(&vm);
        let (count, errors) = signing.stop(&vm, &key);
        assert!(count >= 80 && errors.iter().all(|why| why == GONE), "{count} {errors:?}");
    }
}

#[test]
fn a_guest_moves_from_one_daemon_to_another_while_it_signs() {
    let Some(image) = image() else { return };
    let image = with_process(image).image();
    let key = Known::p256();
    let sites = [(); 2].map(|()| Site::new(&["web"], &[]));
    sites.iter().for_each(|site| key.import(site, "web", "ec-p256", "web"));
    let vm = Vm::boot(&image, &[]);
    plug(&vm, &sites[0], "web");
    let signing = Signing::start(&vm, "web", 8);
    signing.goes_on(&vm);
    vm.unplug("keyway");
    eventually("the first daemon sees it", || sites[0].row("web").is_none());
    let vm = vm.migrate(&[]);
    plug(&vm, &sites[1], "web");
    signing.goes_on(&vm);
    assert!(sites[1].row("web").is_some_and(|row| row.requests >= 40));
    let (count, errors) = signing.stop(&vm, &key);
    assert!(count >= 80 && errors.iter().all(|why| why == GONE), "{count} {errors:?}");
    key.is_not_in(&vm, &sites[1]);
}
