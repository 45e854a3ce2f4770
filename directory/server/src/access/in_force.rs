//! The rules in force, from where they are written; they can be replaced.

use super::Rule;
use super::table::{Misfit, Table};
use keyway_lock::Unpoisoned;
use keyway_schema::Schema;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, RwLock};

/// The table in force. It can be replaced.
pub struct Access {
    table: RwLock<Arc<Table>>,
    /// Changes with the table, and with every group.
    pub(super) generation: AtomicU64,
    /// The rules that the table is made of.
    rules: Mutex<Rules>,
}

/// All rules but those that are built in.
struct Rules {
    /// Those of the configuration.
    configured: Vec<Rule>,
    /// Those that entries hold.
    stored: Vec<Rule>,
}

impl Access {
    /// Understands the rules of a configuration. The administrator may do everything, also if they do
    /// not say so: no other user could mend them.
    ///
    /// # Errors
    /// The parts that make no sense, with the line of the rule.
    pub fn new(rules: &[Rule], schema: &Schema) -> Result<Access, String> {
        let table = RwLock::new(Arc::new(Table::new(rules, &[], schema)?));
        let rules = Mutex::new(Rules { configured: rules.to_vec(), stored: Vec::new() });
        Ok(Access { table, generation: AtomicU64::new(1), rules })
    }

    /// Whether these could be the rules that entries hold.
    ///
    /// # Errors
    /// The parts of them that make no sense.
    pub(crate) fn check_stored(stored: &[Rule], schema: &Schema) -> Result<(), Misfit> {
        Table::new(&[], stored, schema).map(drop)
    }

    /// Puts other rules in the place of the configuration's.
    ///
    /// # Errors
    /// The parts of them that make no sense; then nothing changes.
    pub(crate) fn configure(&self, configured: &[Rule], schema: &Schema) -> Result<(), Misfit> {
        let mut rules = self.rules();
        let table = Table::new(configured, &rules.stored, schema)?;
        rules.configured = configured.to_vec();
        self.install(table);
        Ok(())
    }

    /// Puts other rules in the place of those that entries hold.
    ///
    /// # Errors
    /// As [`Access::check_stored`]; then nothing changes.
    pub(crate) fn store(&self, stored: Vec<Rule>, schema: &Schema) -> Result<(), Misfit> {
        let mut rules = self.rules();
        let table = Table::new(&rules.configured, &stored, schema)?;
        rules.stored = stored;
        self.install(table);
        Ok(())
    }

    fn rules(&self) -> MutexGuard<'_, Rules> {
        self.rules.lock().unpoisoned()
    }

    /// Those who call it hold the rules, so that tables follow each other as the rules do.
    fn install(&self, table: Table) {
        *self.table.write().unpoisoned() = Arc::new(table);
        self.generation.fetch_add(1, Ordering::Release);
    }

    /// Has the names and groups of all subjects looked up again, if rules ask for them.
    pub(crate) fn groups_changed(&self) {
        if self.table().asks_for_names() {
            self.generation.fetch_add(1, Ordering::Release);
        }
    }

    pub(super) fn table(&self) -> Arc<Table> {
        self.table.read().unpoisoned().clone()
    }
}
