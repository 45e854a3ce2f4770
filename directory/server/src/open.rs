//! Opening a directory, and turning it to other settings.

use crate::access::Access;
use crate::directory::Directory;
use crate::failure::Failure;
use crate::feed::{ChangeNote, Reason};
use crate::index::{Builder, Indexes, Kinds, State, required_indexes, turn};
use crate::integrity::Integrity;
use crate::locate::SpecialEntries;
use crate::log::stages;
use crate::naming::ADMINISTRATOR_DN;
use crate::naming_contexts::load_contexts;
use crate::open_error::OpenError;
use crate::policy::Policies;
use crate::redefine::{Redefinition, Stored, check_entries, install, put};
use crate::search::{Cookies, KeptReads, Unindexed};
use crate::settings::Settings;
use crate::state::{DirectoryState, Snapshot};
use crate::virtual_entries::VirtualTrees;
use crate::write::Upgrades;
use keyway_codec::message::ResultCode;
use keyway_engine::Engine;
use keyway_lock::Unpoisoned;
use keyway_meter::counter;
use keyway_password::Passwords;
use keyway_schema::{Composed, EntryName, SchemaError};
use keyway_store::{Store, Write};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, RwLock};
use tokio::sync::watch;

impl Directory {
    /// Opens the directory in a store.
    ///
    /// If the indexes are not those that the store has, they are built first, which takes as long as
    /// reading it all.
    ///
    /// # Errors
    /// The one at fault and why.
    pub fn open(store: Store, settings: &Settings, engine: Engine) -> Result<Self, OpenError> {
        let directory = Directory::make(store, settings, engine)?;
        directory.settle_schema()?;
        if !directory.begin_indexes()?.is_settled() {
            directory.finish_indexes()?;
        }
        directory.load_rules()?;
        Ok(directory)
    }

    /// Opens it for a server, which need not wait: [`Directory::build_indexes`] then builds what is
    /// missing in the background. Only what it cannot do without is built first.
    ///
    /// # Errors
    /// As [`Directory::open`].
    pub fn open_to_serve(
        store: Store,
        settings: &Settings,
        engine: Engine,
    ) -> Result<Self, OpenError> {
        let directory = Directory::make(store, settings, engine)?;
        directory.settle_schema()?;
        directory.begin_indexes()?;
        if !directory.has_needed_indexes() {
            directory.finish_indexes()?;
        }
        directory.load_rules()?;
        Ok(directory)
    }

    /// Opens it in a store that is only read: another process may have it open.
    ///
    /// # Errors
    /// As [`Directory::open`], and [`OpenError::Settings`] if it lacks indexes that cannot be done
    /// without.
    pub fn open_to_read(
        store: Store,
        settings: &Settings,
        engine: Engine,
    ) -> Result<Self, OpenError> {
        let directory = Directory::make(store, settings, engine)?;
        let stored = Stored::read(directory.store.read()?.view())?;
        if !stored.is(&directory.snapshot().composed) {
            return Err(OpenError::Settings(
                "[schema] and the files of the schema say something else than the store knows; it \
                 is taken at the server's next start or reload"
                    .into(),
            ));
        }
        let state = State::read(directory.store.read()?.view())?.unwrap_or_default();
        directory.read_indexes(&state.whole);
        match directory.has_needed_indexes() {
            true => {
                directory.load_rules()?;
                Ok(directory)
            }
            false => Err(OpenError::Settings(
                "[groups] or [integrity] want indexes that the store has not yet; they are made at \
                 the server's next start"
                    .into(),
            )),
        }
    }

    /// Looks whether a directory in this store could be opened with these settings. It changes nothing, and may
    /// be called beside a server.
    ///
    /// # Errors
    /// As [`Directory::open`].
    pub fn check_settings(
        store: Store,
        settings: &Settings,
        engine: Engine,
    ) -> Result<(), OpenError> {
        Directory::make(store, settings, engine)?.load_rules()
    }

    fn make(store: Store, settings: &Settings, engine: Engine) -> Result<Self, OpenError> {
        let stored = Stored::read(store.read()?.view())?;
        let composed =
            Composed::new(&settings.schema, &stored.changes).map_err(OpenError::Schema)?;
        let schema = composed.schema().map_err(OpenError::Schema)?;
        let access = Access::new(&settings.rules, &schema).map_err(OpenError::Settings)?;
        let (integrity, indexes) = required_indexes(settings, &schema)?;
        let contexts = load_contexts(&store, &schema)?;
        let administrator = EntryName::parse(&schema, ADMINISTRATOR_DN)?.canonical();
        let passwords = Passwords::new(engine.clone(), settings.password_cost)
            .timed_by(stages::lap_of_password);
        set_policy(&passwords, settings);
        let shared = Arc::new(DirectoryState {
            passwords,
            upgrade_passwords: settings.password_upgrade.into(),
            upgrades: Upgrades::default(),
            invalidated: Arc::default(),
            building: Mutex::new(false),
            policies: Policies::new(
                settings.password_policy.as_deref(),
                settings.password_min_length,
            ),
            cookies: Cookies::new(&engine).map_err(OpenError::Engine)?,
            kept_reads: KeptReads::default(),
            unindexed: Unindexed::default(),
            search_time: counter("search.time"),
            search_entries_max: settings.search_entries_max.into(),
            search_time_max_s: settings.search_time_max_s.into(),
            log: settings.log.clone(),
            virtual_trees: VirtualTrees::default(),
            clock: settings.clock,
            settings: RwLock::new(settings.clone()),
            contexts: RwLock::new(contexts.into()),
            adding_context: Mutex::default(),
            learnt: Mutex::default(),
            positions: watch::Sender::new(0),
            binds_taker: RwLock::default(),
            administrator,
            access,
            engine,
        });
        let is_new = !stored.is(&composed);
        let snapshot = Arc::new(Snapshot {
            schema_time: if is_new { shared.timestamp() } else { stored.time.clone() },
            generation: stored.generation + u64::from(is_new),
            sources: settings.schema.clone(),
            changes: stored.changes.clone(),
            shared: shared.clone(),
            special_entries: Arc::new(SpecialEntries::new(&schema, &indexes)),
            composed: Arc::new(composed),
            schema: Arc::new(schema),
            integrity: Arc::new(integrity),
            indexes: Arc::new(indexes),
        });
        let positions = shared.positions.clone();
        store.tell_positions(move |position, is_applied| {
            // Of a row that is applied more follows.
            if !is_applied {
                positions.send_replace(position);
            }
        });
        let current = Arc::new(RwLock::new(snapshot));
        Ok(Directory { builder: Builder::default(), store, shared, current })
    }

    /// Checks that the schema is one for what is stored, and notes it if it is another than before.
    fn settle_schema(&self) -> Result<(), OpenError> {
        let stored = Stored::read(self.store.read()?.view())?;
        let snapshot = self.snapshot();
        if stored.is(&snapshot.composed) {
            return Ok(());
        }
        if self.store.is_following() {
            return Err(OpenError::Settings(
                "[schema] and the files of the schema say something else than those of the server that writes: give \
                 this one the same"
                    .into(),
            ));
        }
        let before = stored.schema().map_err(OpenError::Schema)?;
        check_entries(self.store.read()?.view(), &before, &snapshot.schema)
            .map_err(contradicted)?;
        let note = ChangeNote::own(Reason::Server, self.now()).encode();
        Ok(self.store.write_now(move |write| {
            write.note(&note);
            put(write, &snapshot)
        })?)
    }

    /// Takes the access rules that entries hold.
    fn load_rules(&self) -> Result<(), OpenError> {
        let snapshot = self.snapshot();
        let rules = snapshot.stored_rules(self.store.read()?.view())?;
        snapshot
            .shared
            .access
            .store(rules, &snapshot.schema)
            .map_err(|why| OpenError::Settings(why.to_string()))
    }

    /// Takes from other settings all that can change while it is open: the schema, indexes, access rules,
    /// limits of searches, how passwords are stored, groups and integrity if what they need is indexed.
    /// Blocks until a changed schema is on the disk; indexes are built in the background. Says whether
    /// groups and integrity are as it was told.
    ///
    /// # Errors
    /// [`OpenError::Settings`] and the like; then nothing changes.
    pub fn reconfigure(&self, given: &Settings) -> Result<bool, OpenError> {
        let takes_integrity = self.turn_to(given)?;
        self.build_indexes();
        Ok(takes_integrity)
    }

    /// Takes settings; indexes are not built yet.
    pub(crate) fn turn_to(&self, given: &Settings) -> Result<bool, OpenError> {
        let shared = &*self.shared;
        self.check_pepper(given)?;
        let is_building = shared.building.lock().unpoisoned();
        let snapshot = self.snapshot();
        // These stay until the next start.
        let held = shared.settings.read().unpoisoned().clone();
        let takes_integrity = snapshot.has_indexes_of(given);
        let integrity = if takes_integrity { given.integrity.clone() } else { held.integrity };
        let settings = Settings { integrity, ..given.clone() };
        let (sources, changes) = (settings.schema.clone(), snapshot.changes.clone());
        let redefinition = Redefinition::new(&snapshot, sources, changes, &settings)
            .map_err(|failure| OpenError::Settings(failure.diagnostic))?;
        let next = redefinition.as_ref().map(Redefinition::next);
        let schema = &next.as_ref().unwrap_or(&snapshot).schema;
        Access::new(&settings.rules, schema).map_err(OpenError::Settings)?;
        // Settings that wait for the next start are to be right then.
        required_indexes(given, schema)?;
        let (_, made) = required_indexes(&settings, schema)?;
        let (wanted, none) = (made.kinds(), Kinds::new());
        let note = ChangeNote::own(Reason::Server, self.now()).encode();
        let job = move |write: &mut Write<'_>| {
            write.note(&note);
            redefinition.iter().try_for_each(|one| one.apply(write))?;
            turn(write, &wanted, &none)
        };
        let state = self.store.write_now(job).map_err(contradicted)?;
        set_policy(&shared.passwords, &settings);
        let default = settings.password_policy.as_deref();
        shared.policies.set(default, settings.password_min_length);
        shared.upgrade_passwords.store(settings.password_upgrade, Ordering::Relaxed);
        shared.search_entries_max.store(settings.search_entries_max, Ordering::Relaxed);
        shared.search_time_max_s.store(settings.search_time_max_s, Ordering::Relaxed);
        *shared.settings.write().unpoisoned() = settings;
        self.follow(&state, |whole| install(shared, &self.current, next, Some(whole)))?;
        drop(is_building);
        Ok(takes_integrity)
    }

    /// Whether the engine holds the key that new passwords are to be peppered with, if there is
    /// one. Other work can be done without it, so that [`Directory::open`] does
    /// not ask.
    ///
    /// # Errors
    /// [`OpenError::Settings`] if it does not.
    pub fn check_pepper(&self, settings: &Settings) -> Result<(), OpenError> {
        let pepper = settings.password_pepper.as_deref();
        self.shared.passwords.check_pepper(pepper).map_err(|why| match pepper {
            Some(name) => OpenError::Settings(format!("[password] pepper: \"{name}\": {why}")),
            None => OpenError::Engine(why),
        })
    }
}

impl Snapshot {
    /// Whether groups and integrity as these settings have them find what they need.
    fn has_indexes_of(&self, settings: &Settings) -> bool {
        let integrity = Integrity::new(&settings.integrity, &self.schema);
        let needed = integrity.map(|integrity| integrity.indexed(&self.schema, &[]));
        let made = needed.and_then(|needed| Indexes::new(&needed, &self.schema));
        made.is_ok_and(|made| made.kinds().is_subset(&self.indexes.whole()))
    }
}

fn set_policy(passwords: &Passwords, settings: &Settings) {
    let Settings { password_cost, password_accept, password_pepper, .. } = settings;
    passwords.set_policy(*password_cost, password_accept, password_pepper.as_deref());
}

/// The schema's files or sets do not fit what is stored.
fn contradicted(failure: Failure) -> OpenError {
    if failure.code != ResultCode::UnwillingToPerform {
        return failure.into();
    }
    OpenError::Schema(SchemaError {
        definition: "the sets that are switched on and the files of the schema".into(),
        why: failure.diagnostic,
    })
}
