//! Keys in drivers: one that a driver has under a name, and those that are gone when their associations are.

use crate::support::{ENGINE, NOW, outer, udp4};
use keyway_engine::{Algorithm, Driver, DriverSession, Engine, Error, Key, Request, Step};
use keyway_esp::{
    Dispatch, Inbound, InboundSa, InnerPacket, Lifetime, Mode, Opener, OutboundSa, SaError, SaKey,
    SaParameters, Sealer, Selectors, Suite,
};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

const KEY: [u8; 32] = [9; 32];

/// Has one key, `office`.
struct Held(Arc<dyn Driver>);

impl Driver for Held {
    fn name(&self) -> &str {
        "held"
    }

    fn supports(&self, steps: &[Algorithm]) -> bool {
        steps == [Algorithm::Aes256Gcm]
    }

    fn open(&self, steps: &[Step<'_>]) -> Result<Box<dyn DriverSession>, Error> {
        match *steps {
            [Step { algorithm, key: Key::Named("office") }] => {
                self.0.open(&[Step { algorithm, key: Key::Secret(&KEY) }])
            }
            _ => Err(Error::InvalidKey("there is no key of this name")),
        }
    }
}

#[test]
fn a_key_may_stay_where_it_is() {
    let driver = Arc::new(Held(keyway_drivers::software()));
    let engine = Engine::builder().driver(driver).build();
    let parameters = SaParameters {
        spi: 0x1001,
        suite: Suite::Aes256Gcm,
        key: SaKey::Named("office"),
        salt: [1; 4],
        mode: Mode::Tunnel,
        esn: true,
        lifetime: Lifetime::default(),
    };
    let strange = SaParameters { key: SaKey::Named("other"), ..parameters };
    let refused = OutboundSa::new(&engine, &strange, 1..100, 0, NOW);
    assert!(matches!(refused, Err(SaError::Engine(_))), "{refused:?}");
    let held = Arc::new(OutboundSa::new(&engine, &parameters, 1..100, 0, NOW).unwrap());
    // The peer has the key itself.
    let secret = SaParameters { key: SaKey::Secret(&KEY), ..parameters };
    let receiver = |engine: &Engine, parameters| {
        let sa = InboundSa::new(engine, &parameters, 64, Selectors::any(), NOW).unwrap();
        Inbound::new([Arc::new(sa)]).unwrap()
    };
    let receivers =
        [(&*ENGINE, receiver(&ENGINE, secret)), (&engine, receiver(&engine, parameters))];
    let packet = udp4(b"text");
    for dispatch in [Dispatch::Direct, Dispatch::Queued] {
        let mut sealer = Sealer::new(&engine, dispatch);
        sealer.push(&held, &InnerPacket::parse(&packet).unwrap(), 0).unwrap();
        let mut sealed = Vec::new();
        sealer.seal(NOW, |_, packet| packet.unwrap().write_to(&mut sealed));
        for (engine, inbound) in &receivers {
            let mut opener = Opener::new(engine, dispatch);
            opener.push(inbound, &sealed, outer(&packet)).unwrap();
            opener.open(NOW, |result, _| assert_eq!(result.unwrap(), packet, "{dispatch:?}"));
        }
    }
}

/// Counts the keys that it has.
struct Counting(Arc<dyn Driver>, Arc<AtomicUsize>);

struct Counted(Box<dyn DriverSession>, Arc<AtomicUsize>);

impl Driver for Counting {
    fn name(&self) -> &str {
        "counting"
    }

    fn supports(&self, steps: &[Algorithm]) -> bool {
        steps == [Algorithm::Aes256Gcm]
    }

    fn open(&self, steps: &[Step<'_>]) -> Result<Box<dyn DriverSession>, Error> {
        let session = self.0.open(steps)?;
        self.1.fetch_add(1, Ordering::Relaxed);
        Ok(Box::new(Counted(session, self.1.clone())))
    }
}

impl DriverSession for Counted {
    fn run(&self, request: &mut Request<'_>) -> Result<usize, Error> {
        self.0.run(request)
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.1.fetch_sub(1, Ordering::Relaxed);
    }
}

/// A thread that has used an association keeps its key, until it is told to let go or needs the task for another one.
#[test]
fn a_key_is_gone_when_all_have_let_go() {
    let keys = Arc::new(AtomicUsize::new(0));
    let driver = Arc::new(Counting(keyway_drivers::software(), keys.clone()));
    let engine = Engine::builder().driver(driver).build();
    let parameters = SaParameters {
        spi: 0x1001,
        suite: Suite::Aes256Gcm,
        key: SaKey::Secret(&KEY),
        salt: [1; 4],
        mode: Mode::Tunnel,
        esn: false,
        lifetime: Lifetime::default(),
    };
    let mut sealer = Sealer::new(&engine, Dispatch::Queued);
    let mut opener = Opener::new(&engine, Dispatch::Queued);
    let packet = udp4(b"text");
    for _ in 0..2 {
        let out = OutboundSa::new(&engine, &parameters, 1..100, 0, NOW).unwrap();
        let inside = InboundSa::new(&engine, &parameters, 64, Selectors::any(), NOW).unwrap();
        let inbound = Inbound::new([Arc::new(inside)]).unwrap();
        sealer.push(&Arc::new(out), &InnerPacket::parse(&packet).unwrap(), 0).unwrap();
        let mut sealed = Vec::new();
        sealer.seal(NOW, |_, packet| packet.unwrap().write_to(&mut sealed));
        opener.push(&inbound, &sealed, outer(&packet)).unwrap();
        opener.open(NOW, |result, _| assert_eq!(result.unwrap(), packet));
        drop(inbound);
        // Those of the second round have taken the places of the first.
        assert_eq!(keys.load(Ordering::Relaxed), 2);
    }
    sealer.release();
    assert_eq!(keys.load(Ordering::Relaxed), 1);
    opener.release();
    assert_eq!(keys.load(Ordering::Relaxed), 0);
}
