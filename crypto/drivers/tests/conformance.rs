//! Every driver, also those of `keyway-test-drivers`, against the suite that every driver has to
//! pass. The null driver is left out: its outputs are never right, and are not meant to be.

use keyway_conformance::{Outcome, Plan, Report, run};
use keyway_drivers::limits::WRONG_FORGET;
use keyway_drivers::{Pool, Remember, Verifier, multibuffer_on, pool, simd_on, software};
use keyway_engine::{Algorithm, Driver};
use keyway_simd::CbcBackend;
use keyway_simd::packet::PacketBackend;
use keyway_test_drivers::{Card, fault, queued2003, simulated};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

/// Runs the suite, with software as the reference, and shows what failed.
fn passes(driver: Arc<dyn Driver>, plan: &Plan) -> Report {
    let report = run(driver.clone(), software(), plan, &mut |_| {});
    for check in &report.checks {
        if std::env::var_os("CONFORMANCE_SHOW").is_some() {
            println!("{:9.3} ms {check}", check.nanoseconds as f64 / 1e6);
        }
    }
    let failures: Vec<_> = report.failures().map(ToString::to_string).collect();
    assert!(report.passed(), "{}: {}\n{}", driver.name(), failures.len(), failures.join("\n"));
    let made = |outcome: &Outcome| matches!(outcome, Outcome::Passed { .. });
    let passed = report.checks.iter().filter(|check| made(&check.outcome)).count();
    assert!(passed > 0, "{} was not looked at", driver.name());
    report
}

/// Fewer algorithms and sizes, for drivers that have another do the work.
fn some() -> Plan {
    use Algorithm::*;
    let only = vec![
        Aes128Gcm,
        ChaCha20Poly1305,
        QuicAes128Gcm,
        QuicMaskChaCha20,
        Aes128Cbc,
        Aes256Ctr,
        HmacSha256,
        Sha256,
        HkdfSha256,
        X25519,
        Ed25519,
        MlKem768,
        Random,
        Pbkdf2Sha256,
        Zstd,
    ];
    Plan { rounds: 1, only: Some(only), ..Plan::default() }
}

#[test]
fn software_conforms() {
    passes(software(), &Plan { rounds: 1, ..Plan::default() });
}

#[test]
fn a_verifier_before_software_conforms() {
    // It goes on with each look, so that wrong passwords are forgotten: the jobs have many for one entry.
    let looks = AtomicU32::new(0);
    let clock = Box::new(move || WRONG_FORGET * looks.fetch_add(1, Ordering::Relaxed));
    passes(Verifier::new(software(), Remember::default(), clock).unwrap(), &some());
}

#[test]
fn multibuffer_conforms() {
    // Where the processor is not wide enough, the driver has to be right all the same.
    let backend = CbcBackend::detect().unwrap_or(CbcBackend::portable());
    passes(multibuffer_on(backend), &Plan::default());
}

#[test]
fn every_packet_backend_conforms() {
    for backend in PacketBackend::available() {
        passes(simd_on(backend), &Plan::default());
    }
}

#[test]
fn pool_conforms() {
    passes(pool("pool", software(), Pool { threads: 2, cores: None, depth: 64 }).unwrap(), &some());
}

#[test]
fn queued2003_conforms() {
    passes(queued2003(software()).unwrap(), &some());
}

#[test]
fn a_fault_driver_without_faults_conforms() {
    passes(fault("fault", software(), keyway_test_drivers::Plan::default()).0, &some());
}

#[test]
fn a_simulated_card_conforms() {
    let card = Card::broadcom_5820().also(&[Algorithm::Aes128Cbc, Algorithm::Sha256]);
    let driver = Arc::new(simulated("card", card, software()));
    passes(driver, &Plan { rounds: 1, ..Plan::default() });
}
