//! What is counted, in the page of `keyway-meter`: packets and bytes each way, and drops by their cause.

use keyway_esp::Cause;
use keyway_meter::{Counter, counter};
use serde_json::{Map, Value, json};

/// Why the gateway drops a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    /// ESP's reason.
    Esp(Cause),
    /// It is one that the system itself sends on any device, to no host: no IP, to many receivers, of the link.
    Noise,
    /// It is a sealed packet of this gateway, which was routed into the device again.
    Loop,
    /// It belongs to a key exchange (RFC 3948 § 2.2), which this gateway has not.
    Ike,
    /// The device, or the network, did not take it.
    System,
}

impl Reason {
    /// All but those of ESP.
    const OWN: [Reason; 4] = [Reason::Noise, Reason::Loop, Reason::Ike, Reason::System];

    fn all() -> impl Iterator<Item = Reason> {
        Cause::ALL.into_iter().map(Reason::Esp).chain(Reason::OWN)
    }

    /// Its name in the meters.
    pub fn name(self) -> &'static str {
        match self {
            Reason::Esp(cause) => cause.name(),
            Reason::Noise => "noise",
            Reason::Loop => "loop",
            Reason::Ike => "ike",
            Reason::System => "system",
        }
    }
}

impl From<Cause> for Reason {
    fn from(cause: Cause) -> Reason {
        Reason::Esp(cause)
    }
}

/// The counters of packets, and of their bytes.
#[derive(Clone, Copy)]
struct Counted {
    packets: Counter,
    bytes: Counter,
}

impl Counted {
    fn new(name: &str) -> Counted {
        let of = |unit| counter(&format!("{name}.{unit}"));
        Counted { packets: of("packets"), bytes: of("bytes") }
    }

    fn add(self, packets: u64, bytes: u64) {
        self.packets.add(packets);
        self.bytes.add(bytes);
    }

    fn json(self) -> Value {
        json!({ "packets": self.packets.value(), "bytes": self.bytes.value() })
    }
}

/// The counters of a direction.
#[derive(Clone)]
pub struct Way {
    gone: Counted,
    dropped: Vec<(Reason, Counted)>,
}

impl Way {
    fn new(direction: &str) -> Way {
        let dropped = |reason: Reason| {
            (reason, Counted::new(&format!("esp.drop.{direction}.{}", reason.name())))
        };
        Way {
            gone: Counted::new(&format!("esp.{direction}")),
            dropped: Reason::all().map(dropped).collect(),
        }
    }

    /// Packets that went through, with so many bytes inside.
    pub fn gone(&self, packets: u64, bytes: u64) {
        self.gone.add(packets, bytes);
    }

    /// A packet of so many bytes that did not.
    pub fn dropped(&self, reason: impl Into<Reason>, bytes: usize) {
        self.many_dropped(reason, 1, bytes as u64);
    }

    /// Several.
    pub fn many_dropped(&self, reason: impl Into<Reason>, packets: u64, bytes: u64) {
        let reason = reason.into();
        if let Some((_, counted)) = self.dropped.iter().find(|(it, _)| *it == reason) {
            counted.add(packets, bytes);
        }
    }

    fn json(&self) -> Value {
        let mut value = self.gone.json();
        let seen = self.dropped.iter().filter(|(_, counted)| counted.packets.value() > 0);
        let dropped = seen.map(|(reason, counted)| (reason.name().to_owned(), counted.json()));
        value["dropped"] = Value::Object(dropped.collect::<Map<_, _>>());
        value
    }
}

/// All counters of a gateway.
#[derive(Clone)]
pub struct Figures {
    /// From the device to the network.
    pub out: Way,
    /// From the network to the device.
    pub inbound: Way,
    /// Messages to the inside that a packet is too big.
    pub too_big: Counter,
    /// NAT keepalives that were sent.
    pub keepalives: Counter,
}

impl Figures {
    /// Those of this process.
    pub fn new() -> Figures {
        Figures {
            out: Way::new("out"),
            inbound: Way::new("in"),
            too_big: counter("esp.too_big"),
            keepalives: counter("esp.keepalives"),
        }
    }

    /// Their values: each way, and the causes of which there was a packet.
    pub fn json(&self) -> Value {
        json!({
            "out": self.out.json(),
            "in": self.inbound.json(),
            "too_big": self.too_big.value(),
            "keepalives": self.keepalives.value(),
        })
    }
}

impl Default for Figures {
    fn default() -> Figures {
        Figures::new()
    }
}
