//! A security association for packets that come in, and the table of these.

use crate::lifetime::{Counted, Life, Time, Use};
use crate::limits::WINDOW_PACKETS;
use crate::parameters::{Association, Mode, SaError, SaParameters};
use crate::selector::Selectors;
use crate::suite::Suite;
use crate::window::Window;
use keyway_engine::Engine;
use keyway_lock::Unpoisoned;
use rustc_hash::FxHashMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard};

/// A security association for packets that come in. Threads share it: its window is one.
pub struct InboundSa {
    association: Association,
    counted: Counted,
    window: Mutex<Window>,
    width: u32,
    selectors: Selectors,
}

impl InboundSa {
    /// `window`: how many numbers back from the highest received a packet may be, of [`WINDOW_PACKETS`]. `selectors`:
    /// which packets may come out, by their inner addresses; in transport mode these are the outer ones.
    ///
    /// # Errors
    /// If the parameters do not fit, or the engine refuses the key.
    pub fn new(
        engine: &Engine,
        parameters: &SaParameters<'_>,
        window: u32,
        selectors: Selectors,
        now: Time,
    ) -> Result<InboundSa, SaError> {
        if !WINDOW_PACKETS.contains(&window) {
            return Err(SaError::Window(window));
        }
        let mixed = |it: &&crate::selector::Selector| {
            it.local.address().is_ipv4() != it.remote.address().is_ipv4()
        };
        if let Some(selector) = selectors.0.iter().find(mixed) {
            return Err(SaError::Families(Box::new(selector.clone())));
        }
        Ok(InboundSa {
            association: Association::new(engine, parameters)?,
            counted: Counted::new(parameters.lifetime, now),
            window: Mutex::new(Window::new(window)),
            width: window,
            selectors,
        })
    }

    /// From now on `number` and all below count as received, if it is above all that were: for a caller that goes on
    /// with a key and remembers [`highest`](InboundSa::highest) of before.
    pub fn begin_after(&self, number: u64) {
        self.window().begin_after(number);
    }

    /// The highest number received; 0 before the first.
    pub fn highest(&self) -> u64 {
        self.window().highest()
    }

    /// How many numbers its window has.
    pub fn window_packets(&self) -> u32 {
        self.width
    }

    /// The number that it is known by.
    pub fn spi(&self) -> u32 {
        self.association.spi
    }

    /// Its algorithms.
    pub fn suite(&self) -> Suite {
        self.association.suite
    }

    /// Tunnel or transport.
    pub fn mode(&self) -> Mode {
        self.association.mode
    }

    /// Whether its numbers have 64 bits.
    pub fn esn(&self) -> bool {
        self.association.esn
    }

    /// Whether its key is used by its name ([`SaKey::Named`](crate::SaKey::Named)): the driver that has it may be slow, or hang.
    pub fn is_named(&self) -> bool {
        self.association.is_named
    }

    /// Which packets may come out.
    pub fn selectors(&self) -> &Selectors {
        &self.selectors
    }

    /// The authentic packets so far that were new.
    pub fn use_(&self) -> Use {
        self.counted.now()
    }

    /// Whether it is time for another one.
    pub fn state(&self, now: Time) -> Life {
        self.counted.life(now)
    }

    pub(crate) fn association(&self) -> &Association {
        &self.association
    }

    pub(crate) fn counted(&self) -> &Counted {
        &self.counted
    }

    pub(crate) fn window(&self) -> MutexGuard<'_, Window> {
        self.window.lock().unpoisoned()
    }
}

impl fmt::Debug for InboundSa {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = f.debug_struct("InboundSa");
        shown.field("spi", &self.spi()).field("suite", &self.suite()).field("mode", &self.mode());
        shown.field("window", &self.width).field("selectors", &self.selectors);
        shown.finish_non_exhaustive()
    }
}

/// The security associations for packets that come in, at one moment, by SPI.
#[derive(Clone, Debug, Default)]
pub struct Inbound {
    by_spi: FxHashMap<u32, Arc<InboundSa>>,
}

/// Two security associations have this SPI.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DuplicateSpi(pub u32);

impl fmt::Display for DuplicateSpi {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "two security associations have the SPI {} ({:#x})", self.0, self.0)
    }
}

impl std::error::Error for DuplicateSpi {}

impl Inbound {
    /// These security associations.
    ///
    /// # Errors
    /// If two of them have one SPI.
    pub fn new(
        associations: impl IntoIterator<Item = Arc<InboundSa>>,
    ) -> Result<Self, DuplicateSpi> {
        let mut by_spi = FxHashMap::default();
        for sa in associations {
            let spi = sa.spi();
            if by_spi.insert(spi, sa).is_some() {
                return Err(DuplicateSpi(spi));
            }
        }
        Ok(Inbound { by_spi })
    }

    /// The security association of this SPI.
    pub fn get(&self, spi: u32) -> Option<&Arc<InboundSa>> {
        self.by_spi.get(&spi)
    }

    /// The security association of an ESP packet.
    pub fn of_packet(&self, esp: &[u8]) -> Option<&Arc<InboundSa>> {
        self.get(u32::from_be_bytes(*esp.first_chunk()?))
    }

    /// All of them, in no order.
    pub fn iter(&self) -> impl Iterator<Item = &Arc<InboundSa>> {
        self.by_spi.values()
    }
}
