//! Gauges of the drivers, for those who watch: how much the drivers have before them, what their work is
//! expected to take, and when it last failed.

use crate::Engine;
use crate::costs::Mode;
use crate::metrics::Work;
use crate::registered::RegisteredDriver;
use keyway_meter::gauge;
use std::sync::atomic::Ordering::Relaxed;

impl Engine {
    /// Sets the gauges that show how the drivers are, as it is this many seconds after 1970. Call it about
    /// once a second, from one thread: when a request failed is known no better than that.
    pub fn show(&self, now_unix_s: u64) {
        let registry = &self.inner.registry;
        for driver in registry.drivers().iter().chain([&registry.chain]) {
            if driver.queued {
                let backlog = gauge(&format!("engine.{}.backlog", driver.name));
                backlog.set(driver.backlog.load(Relaxed));
            }
            if !driver.on_caller {
                gauge(&format!("engine.{}.pending_most", driver.name)).set(driver.pending.most());
            }
            driver.works().iter().for_each(|work| work.show(driver, now_unix_s));
        }
        gauge("engine.pending_most").set(registry.pending.most());
    }
}

impl Work {
    fn show(&self, driver: &RegisteredDriver, now_unix_s: u64) {
        let gauge = |what: &str| gauge(&format!("engine.{}.{}.{what}", driver.name, self.label));
        let operations = self.operations.value();
        if self.costs.is_calibrated()
            && let Some(bytes) = self.bytes.value().checked_div(operations)
        {
            let bytes = usize::try_from(bytes).unwrap_or(usize::MAX);
            let predicted = self.costs.predict(Mode::Single, bytes) as u64;
            self.shown.predicted.get_or_init(|| gauge("predicted")).set(predicted);
        }
        let errors = self.errors.value();
        if errors != self.shown.errors.swap(errors, Relaxed) {
            self.shown.last_failure.get_or_init(|| gauge("last_failure")).set(now_unix_s);
        }
    }
}
