//! A key that a driver has, under a name: the association never sees it.

use crate::support::{ENGINE, NOW, outer, udp4};
use keyway_engine::{Algorithm, Driver, DriverSession, Engine, Error, Key, Step};
use keyway_esp::{
    Dispatch, Inbound, InboundSa, InnerPacket, Lifetime, Mode, Opener, OutboundSa, SaError, SaKey,
    SaParameters, Sealer, Selectors, Suite,
};
use std::sync::Arc;

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
