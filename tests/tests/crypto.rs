//! `keyway crypto`, as a user who wants to know what the machine can do calls it.

use keyway_tests::keyway;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::process::{Command, Output, Stdio};

fn crypto(arguments: &str) -> Output {
    let arguments = arguments.split_whitespace();
    Command::new(keyway()).arg("crypto").args(arguments).stdin(Stdio::null()).output().unwrap()
}

/// Its output, and its exit status, which has to be this.
#[track_caller]
fn text(arguments: &str, status: i32) -> String {
    let Output { status: ended, stdout, stderr } = crypto(arguments);
    let err = String::from_utf8(stderr).unwrap();
    assert_eq!(ended.code(), Some(status), "{arguments}: {err}");
    String::from_utf8(stdout).unwrap() + &err
}

#[track_caller]
fn json(arguments: &str, status: i32) -> Value {
    let output = crypto(&format!("{arguments} --json"));
    let (out, err) =
        (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert_eq!(output.status.code(), Some(status), "{arguments}: {out}{err}");
    serde_json::from_str(&out).unwrap_or_else(|why| panic!("{arguments}: {why}: {out}"))
}

fn named<'a>(list: &'a Value, driver: &str) -> &'a Value {
    let drivers = list["drivers"].as_array().unwrap();
    drivers.iter().find(|one| one["name"] == driver).unwrap_or_else(|| panic!("{driver}: {list}"))
}

fn has(list: &Value, name: &str) -> bool {
    list.as_array().is_some_and(|names| names.iter().any(|one| one == name))
}

#[test]
fn the_list_names_drivers_and_what_they_do() {
    let list = json("list --with pool:1 --with sim:bcm-5820=2 --with queued2003 --with fault:1", 0);
    let software = named(&list, "software");
    assert!(has(&software["algorithms"]["aead"], "aes-128-gcm"), "{software}");
    assert!(!has(&software["algorithms"]["cipher"], "3des-cbc"), "{software}");
    assert_eq!((&software["place"], &software["chosen"]), (&"caller".into(), &true.into()));
    assert_eq!(named(&list, "null")["chosen"], false);
    assert_eq!(named(&list, "pool")["place"], "host");
    assert_eq!(named(&list, "bcm-5820-1")["place"], "device");
    assert_eq!(named(&list, "queued2003")["queues"], true);
    named(&list, "fault");

    let shown = text("list", 0);
    for part in ["software", "null", "aead", "aes-128-gcm", "caller"] {
        assert!(shown.contains(part), "{part} is not in {shown}");
    }
    let legacy = json("list --legacy --with sim:hifn-7951 --algorithm 3des-cbc", 0);
    let card = named(&legacy, "hifn-7951-0");
    assert!(has(&card["algorithms"]["cipher"], "3des-cbc") && card["algorithms"]["mac"].is_null());
    assert!(has(&card["chains"], "3des-cbc+hmac-sha-1"), "{card}");
}

#[test]
fn costs_say_who_is_first_from_which_size_on() {
    let list = json("list --costs --algorithm sha-256 --with pool:1", 0);
    let costs = list["costs"].as_array().unwrap();
    let drivers: Vec<_> = costs.iter().map(|cost| cost["driver"].as_str().unwrap()).collect();
    assert!(drivers.contains(&"software") && drivers.contains(&"pool"), "{list}");
    assert!(
        costs.iter().all(|cost| cost["work"] == "sha-256" && cost["single"]["fixed_ns"].is_f64())
    );
    let crossover = &list["crossovers"][0];
    assert_eq!(
        (&crossover["work"], &crossover["first"][0]["from_bytes"]),
        (&"sha-256".into(), &1.into())
    );
    assert!(text("list --costs --algorithm sha-256 --driver software", 0).contains("ns/byte"));
}

#[test]
fn what_is_tested_is_verified() {
    let works = [
        "aes-128-gcm",
        "chacha20-poly1305",
        "aes-256-cbc",
        "aes-128-xts",
        "sha-256",
        "hmac-sha-1",
        "hkdf-sha-256",
        "x25519",
        "ml-kem-768",
        "ed25519",
        "deflate",
        "random",
        "aes-128-gmac",
        "aes-128-cbc+hmac-sha-1",
        "hmac-sha-256+aes-256-ctr",
        "zstd+aes-128-ctr+hmac-sha-256",
    ];
    let all: String = works.iter().map(|work| format!(" --algorithm {work}")).collect();
    for more in [
        "",
        "--policy queued2003",
        "--threads 2 --in-flight 8",
        "--threads 2 --in-flight 8 --policy queued2003",
        "--in-flight 40 --with pool:2 --driver pool",
    ] {
        let test = json(&format!("test --size 100 --count 21 {more} {all}"), 0);
        let runs = test["runs"].as_array().unwrap();
        assert_eq!((runs.len(), &test["left_out"]), (works.len(), &Value::Array(Vec::new())));
        assert_eq!(test["verified"], true);
        for (run, work) in runs.iter().zip(works) {
            assert_eq!((&run["work"], &run["operations"]), (&work.into(), &21.into()), "{more}");
            assert_eq!(run["errors"], serde_json::json!({}), "{work} {more}");
        }
        if more.contains("queued2003") {
            assert!(runs[0]["drivers"]["queued2003"].is_u64(), "{}", runs[0]);
        }
    }
}

#[test]
fn wrong_results_and_failures_are_told() {
    let test = json("test --driver null --algorithm sha-256 --size 64 --count 30", 1);
    assert_eq!(test["runs"][0]["errors"]["wrong-result"], 30, "{test}");
    text("test --driver null --algorithm sha-256 --size 64 --count 30 --no-verify", 0);
    let faulty = "test --with fault:5 --driver fault --algorithm aes-128-gcm --size 64";
    let test = json(&format!("{faulty} --count 5000 --in-flight 8"), 1);
    let failed = test["runs"][0]["errors"]["driver"].as_u64().unwrap();
    assert!((1..500).contains(&failed), "{test}");
    assert_eq!(test["runs"][0]["errors"].as_object().unwrap().len(), 1, "{test}");
    let test = json("test --algorithm rsa-pss-sha-256", 1);
    assert!(test["left_out"][0]["why"].as_str().unwrap().contains("--key"), "{test}");
}

#[test]
fn signatures_are_verified_by_modulus() {
    let test = "test --algorithm rsa-pkcs1-sha-256 --algorithm ed25519 --operation verify \
                --rsa-bits 2048,3072 --size 64 --count 20";
    let runs = json(test, 0)["runs"].clone();
    let runs = runs.as_array().unwrap();
    let bits: Vec<_> = runs.iter().map(|run| run["rsa_bits"].as_u64()).collect();
    assert_eq!(bits, [Some(2048), Some(3072), None]);
    for run in runs {
        assert_eq!((&run["operation"], &run["operations"]), (&"verify".into(), &20.into()));
        assert_eq!(run["errors"], serde_json::json!({}));
    }
    let fooled = json("test --driver null --algorithm ed25519 --operation verify --count 9", 1);
    assert_eq!(fooled["runs"][0]["errors"]["wrong-result"], 9, "{fooled}");
    assert!(text("test --algorithm sha-256 --operation verify", 2).contains("no signatures"));
    assert!(text("test --rsa-bits 1024", 2).contains("2048"));
}

#[test]
fn high_water_marks_are_shown() {
    let test = "test --with pool:1 --driver pool --algorithm sha-256 --size 64 --in-flight 16";
    let marks = json(&format!("{test} --count 200"), 0)["pending_most"].clone();
    let most = marks["drivers"]["pool"].as_u64().unwrap();
    assert!((1..=16).contains(&most) && marks["in_all"] == most, "{marks}");
    assert!(text(&format!("{test} --count 200"), 0).contains("under way at most: pool "));
}

#[test]
fn a_bench_has_the_sizes_of_protocols() {
    let few = "bench --algorithm sha-256 --driver software --seconds 0.01 --profile";
    for (profile, sizes) in [("ssh", vec![64]), ("ipsec", vec![40, 576, 1460])] {
        let bench = json(&format!("{few} {profile}"), 0);
        let cells = bench["cells"].as_array().unwrap().iter();
        let bytes: Vec<_> = cells.map(|cell| cell["bytes"].as_u64().unwrap()).collect();
        assert_eq!(bytes, sizes, "{profile}");
    }
}

#[test]
fn a_profile_says_what_it_costs() {
    let profiled = "test --profile --algorithm aes-128-gcm --size 1k --in-flight 4 --seconds 0.1";
    let test = json(profiled, 0);
    let profile = &test["runs"][0]["profile"];
    assert!(profile["cost_ns"].is_f64(), "{test}");
    let stages = profile["stages"].as_array().unwrap();
    let run = stages.iter().find(|one| one["stage"] == "run" && one["driver"] == "software");
    let run = run.unwrap_or_else(|| panic!("{test}"));
    let value = |name: &str| run[name].as_u64().unwrap();
    assert!(value("requests") > 0 && value("min_ns") <= value("p50_ns"));
    assert!(value("p50_ns") <= value("p99_ns") && value("p99_ns") <= value("max_ns"));
    assert!(text(profiled, 0).contains("timing them costs"));
}

#[test]
fn a_driver_passes_the_suite_or_fails_it() {
    let passed = json("test --driver software --conformance --algorithm sha-256", 0);
    assert_eq!(
        (&passed["conforms"], &passed["checks"][0]["work"]),
        (&true.into(), &"sha-256".into())
    );
    let failed = "test --with fault:1 --driver fault --conformance --algorithm sha-256";
    assert_eq!(json(failed, 1)["conforms"], false);
    let shown = text(failed, 1);
    assert!(shown.contains("FAILED") && shown.contains("does NOT conform"), "{shown}");
}

#[test]
fn a_bench_is_a_table_and_a_picture() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("bench.svg");
    let few = "bench --algorithm sha-256 --algorithm aes-128-cbc+hmac-sha-1 --size 64 --size 1k \
               --driver software --driver null --direct --in-flight 8 --seconds 0.01";
    let bench = json(&format!("{few} --svg {}", file.display()), 0);
    let cells = bench["cells"].as_array().unwrap();
    assert_eq!(cells.len(), 2 * 2 * 2 * 2, "{bench}");
    assert!(cells.iter().all(|cell| cell["ns_per_operation"].as_f64().unwrap() > 0.0));
    let svg = fs::read_to_string(&file).unwrap();
    assert_eq!(well_formed(&svg).matches("polyline").count(), 8);
    assert!(svg.contains("nanoseconds an operation") && svg.contains("prefers-color-scheme"));
    let shown = text(few, 0);
    assert!(shown.contains("sha-256, digest, 8 in flight") && shown.contains("NS/OP"), "{shown}");
}

/// Its elements in order; every one that is opened is closed.
fn well_formed(xml: &str) -> String {
    let (mut open, mut seen) = (Vec::new(), String::new());
    for (index, part) in xml.split('<').enumerate().skip(1) {
        let (tag, _) = part.split_once('>').unwrap_or_else(|| panic!("{part}"));
        assert_eq!(tag.matches('"').count() % 2, 0, "{tag}");
        let name: String = tag.chars().take_while(|c| !c.is_whitespace()).collect();
        if let Some(name) = name.strip_prefix('/') {
            assert_eq!(open.pop().as_deref(), Some(name), "part {index}");
        } else {
            seen += &format!("{name} ");
            if !tag.ends_with('/') {
                open.push(name);
            }
        }
    }
    assert!(open.is_empty(), "{open:?}");
    seen
}

#[test]
fn bad_arguments_are_told_before_anything_is_measured() {
    let folder = tempfile::tempdir().unwrap();
    let nowhere = folder.path().join("no/bench.svg");
    let nowhere = format!("bench --svg {}", nowhere.display());
    for (arguments, status, part) in [
        ("test --algorithm aes-129-gcm", 2, "keyway crypto list"),
        ("test --algorithm sha-256+aes-128-cbc", 2, "a chain has"),
        ("test --algorithm zstd+aes-128-cbc", 2, "whole blocks"),
        ("test --size 0", 2, "1 to 16m"),
        ("test --in-flight 0", 2, "1 to 65536"),
        ("test --threads 0", 2, "0"),
        ("test --in-flight 4 --direct", 2, "cannot be used with"),
        ("test --count 1 --seconds 1", 2, "cannot be used with"),
        ("test --driver gpu", 2, "there is no driver gpu; there are "),
        ("test --conformance", 2, "--driver"),
        ("test --size 16m --in-flight 4096", 2, "memory"),
        ("test --key nothing.pem", 1, "nothing.pem"),
        ("list --with pool:0", 2, "pool:THREADS"),
        ("list --with sim:gpu", 2, "hifn-7751"),
        ("list --with pool:1 --with pool:1", 2, "of that name"),
        ("list --with pool:1@9999", 1, "processor 9999"),
        ("bench --driver gpu", 2, "gpu"),
        (&nowhere, 1, "bench.svg"),
    ] {
        let Output { status: ended, stdout, stderr } = crypto(arguments);
        let err = String::from_utf8(stderr).unwrap();
        assert_eq!(ended.code(), Some(status), "{arguments}: {err}");
        assert!(err.contains(part) && err.lines().count() == 1, "{arguments}: {err}");
        assert!(stdout.is_empty(), "{arguments}");
    }
    let mut command = Command::new(keyway());
    command.args(["crypto", "list"]).env("KEYWAY_SIMD", "abacus");
    let Output { status, stderr, .. } = command.output().unwrap();
    let err = String::from_utf8(stderr).unwrap();
    assert!(status.code() == Some(2) && err.contains("KEYWAY_SIMD=abacus"), "{err}");
    assert!(err.contains("there are portable"), "{err}");
    assert!(!text("test --algorithm 3des-cbc", 1).is_empty());
    text("test --algorithm 3des-cbc --legacy --count 5 --size 64", 0);
}

#[test]
fn an_interrupt_ends_it_with_what_there_is() {
    let sizes: String = (0..30).map(|size| format!(" --size {}", 64 + size)).collect();
    let mut child = Command::new(keyway())
        .args(["crypto", "test", "--seconds", "0.5"])
        .args(sizes.split_whitespace())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut output = BufReader::new(child.stdout.take().unwrap());
    let (mut first, mut rest) = (String::new(), String::new());
    output.read_line(&mut first).unwrap();
    output.read_line(&mut first).unwrap();
    assert!(first.contains("aes-128-gcm"), "{first}");
    kill_process(Pid::from_child(&child), Signal::INT).unwrap();
    output.read_to_string(&mut rest).unwrap();
    assert!(child.wait().unwrap().success());
    assert!(rest.lines().count() < 29, "{rest}");
}

#[test]
fn it_needs_no_reader() {
    let mut child =
        Command::new(keyway()).args(["crypto", "list"]).stdout(Stdio::piped()).spawn().unwrap();
    drop(child.stdout.take());
    assert!(child.wait().unwrap().success());
}
