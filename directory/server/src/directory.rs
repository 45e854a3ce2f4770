//! The directory: a store, and what its entries mean.

use crate::access::{self, Access, Rights, Subject};
use crate::candidate::Candidate;
use crate::failure::{Failure, Result};
use crate::index::{Builder, IndexKind, IndexSetting, Indexes, Kinds, Retired, State, turn};
use crate::integrity::Integrity;
use crate::limits::{AUDIT_KEPT_MAX, NAMING_CONTEXTS_MAX};
use crate::locate::Standing;
use crate::log::stages;
use crate::log::{Kept, Log, kept};
use crate::made::MadeTrees;
use crate::naming::{self, NamingContext, Place, SYSTEM_DN};
use crate::policy::{self, Account, Policies, Policy, Status};
use crate::redefine::{Redefinition, Stored, check_entries, install, put};
use crate::search::{Cookies, Snapshots, Unindexed};
use crate::settings::Settings;
use crate::write::Upgrades;
use keyway_codec::message::ResultCode;
use keyway_engine::Engine;
use keyway_meter::{Counter, counter};
use keyway_password::Passwords;
use keyway_schema::operational;
use keyway_schema::{Changes, Composed, EntryName, NameError, Schema, SchemaError, Sources};
use keyway_store::{EntryId, Key, Names, Store, Write};
use std::cell::RefCell;
use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::SystemTime;

/// The administrator's name.
pub const ADMINISTRATOR_DN: &str = "cn=admin,cn=keyway";

/// The attribute that passwords are in.
pub const USER_PASSWORD: &str = "userPassword";

/// Rows of the store's meta table.
const META_CONTEXTS: &str = "naming-contexts";

/// A directory on a store. All threads use it at once; what is asked of it while it writes sees
/// the last committed state.
pub struct Directory {
    // It works on the store, so it goes first.
    pub(crate) builder: Builder,
    pub(crate) store: Store,
    pub(crate) shared: Arc<Shared>,
    pub(crate) current: Current,
}

/// The state of the schema that operations begin with. An operation keeps the one it has.
pub(crate) type Current = Arc<RwLock<Arc<Core>>>;

/// A state of the schema and the indexes, what follows from it, and what operations share.
#[derive(Clone)]
pub(crate) struct Core {
    pub schema: Arc<Schema>,
    pub integrity: Arc<Integrity>,
    pub indexes: Arc<Indexes>,
    pub standing: Arc<Standing>,
    /// When the schema last changed.
    pub schema_time: String,
    /// How often it has; writes that were prepared under another one are refused.
    pub generation: u64,
    /// The definitions that the schema was made of, and where they come from.
    pub composed: Arc<Composed>,
    pub sources: Sources,
    pub changes: Changes,
    pub shared: Arc<Shared>,
}

/// What operations share, also those that wait for the committer. It holds no store, so that the
/// store ends with the directory and not with the last job.
pub(crate) struct Shared {
    pub access: Access,
    pub passwords: Passwords,
    pub upgrade_passwords: AtomicBool,
    pub upgrades: Upgrades,
    pub policies: Policies,
    /// Indexes that were given up.
    pub retired: Arc<Retired>,
    /// Whether somebody builds indexes in the background. Held while a piece of it is done, and while
    /// it is settled what is to be built.
    pub building: Mutex<bool>,
    pub engine: Engine,
    pub cookies: Cookies,
    /// The states of the store that entries in pieces are read from.
    pub snapshots: Snapshots,
    /// Searches that no index helped.
    pub unindexed: Unindexed,
    /// What searches take, in nanoseconds.
    pub search_time: Counter,
    pub search_entries_max: AtomicU32,
    pub search_time_max_s: AtomicU32,
    pub log: Log,
    pub made: MadeTrees,
    pub clock: fn() -> SystemTime,
    /// What it was told last.
    pub settings: RwLock<Settings>,
    administrator: Vec<u8>,
    contexts: RwLock<Arc<[Arc<NamingContext>]>>,
    adding_context: Mutex<()>,
    names: Mutex<Vec<Names>>,
}

/// Why a directory could not be opened.
#[derive(Debug)]
pub enum OpenError {
    /// The schema's definitions are at fault.
    Schema(SchemaError),
    /// The settings are at fault; the text says where.
    Settings(String),
    /// The settings name an attribute that is not known.
    UnknownAttribute(String),
    /// The store could not be read or written, or holds what this program does not understand.
    Store(String),
    /// The engine is at fault.
    Engine(keyway_engine::Error),
}

impl fmt::Display for OpenError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            OpenError::Schema(error) => error.fmt(f),
            OpenError::Settings(why) | OpenError::Store(why) => f.write_str(why),
            OpenError::UnknownAttribute(name) => write!(f, "there is no attribute \"{name}\""),
            OpenError::Engine(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for OpenError {}

impl From<keyway_store::Error> for OpenError {
    fn from(error: keyway_store::Error) -> Self {
        OpenError::Store(error.to_string())
    }
}

impl From<NameError> for OpenError {
    fn from(error: NameError) -> Self {
        OpenError::Store(error.to_string())
    }
}

impl From<Failure> for OpenError {
    fn from(failure: Failure) -> Self {
        OpenError::Store(failure.diagnostic)
    }
}

/// What a bind needs to know of an entry.
#[derive(Clone)]
pub struct Credentials {
    /// Whom the entry stands for.
    pub subject: Subject,
    /// The entry's DN as it is written in the directory.
    pub dn: String,
    /// Its stored passwords.
    pub passwords: Vec<Vec<u8>>,
    pub(crate) account: Account,
    pub(crate) policy: Arc<Policy>,
}

impl Credentials {
    /// What the account is good for now.
    pub(crate) fn status(&self, now: u64) -> Status {
        self.account.status(&self.policy, now)
    }
}

impl Directory {
    /// Opens the directory in a store.
    ///
    /// If the indexes are not those that the store has, they are built first, which takes as long as
    /// reading it all.
    ///
    /// # Errors
    /// Who is at fault and why.
    pub fn open(store: Store, settings: &Settings, engine: Engine) -> Result<Self, OpenError> {
        let directory = Directory::make(store, settings, engine)?;
        directory.settle_schema()?;
        if !directory.begin_indexes()?.is_settled() {
            directory.finish_indexes()?;
        }
        directory.load_rules()?;
        Ok(directory)
    }

    /// The same for a server, which need not wait: [`Directory::build_indexes`] then builds what is
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

    /// The same for a store that is only read: somebody else may have it open.
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
        if !stored.is(&directory.core().composed) {
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
        let (integrity, indexes) = indexes(settings, &schema)?;
        let contexts = load_contexts(&store, &schema)?;
        let administrator = EntryName::parse(&schema, ADMINISTRATOR_DN)?.canonical();
        let passwords = Passwords::new(engine.clone(), settings.password_cost)
            .timed_by(stages::lap_of_password);
        set_policy(&passwords, settings);
        let shared = Arc::new(Shared {
            passwords,
            upgrade_passwords: settings.password_upgrade.into(),
            upgrades: Upgrades::default(),
            retired: Arc::default(),
            building: Mutex::new(false),
            policies: Policies::new(
                settings.password_policy.as_deref(),
                settings.password_min_length,
            ),
            cookies: Cookies::new(&engine).map_err(OpenError::Engine)?,
            snapshots: Snapshots::default(),
            unindexed: Unindexed::default(),
            search_time: counter("search.time"),
            search_entries_max: settings.search_entries_max.into(),
            search_time_max_s: settings.search_time_max_s.into(),
            log: settings.log.clone(),
            made: MadeTrees::default(),
            clock: settings.clock,
            settings: RwLock::new(settings.clone()),
            contexts: RwLock::new(contexts.into()),
            adding_context: Mutex::default(),
            names: Mutex::default(),
            administrator,
            access,
            engine,
        });
        let is_new = !stored.is(&composed);
        let core = Arc::new(Core {
            schema_time: if is_new { shared.timestamp() } else { stored.time.clone() },
            generation: stored.generation + u64::from(is_new),
            sources: settings.schema.clone(),
            changes: stored.changes.clone(),
            shared: shared.clone(),
            standing: Arc::new(Standing::new(&schema, &indexes)),
            composed: Arc::new(composed),
            schema: Arc::new(schema),
            integrity: Arc::new(integrity),
            indexes: Arc::new(indexes),
        });
        let current = Arc::new(RwLock::new(core));
        Ok(Directory { builder: Builder::default(), store, shared, current })
    }

    /// Checks that the schema is one for what is stored, and notes it if it is another than before.
    fn settle_schema(&self) -> Result<(), OpenError> {
        let stored = Stored::read(self.store.read()?.view())?;
        let core = self.core();
        if stored.is(&core.composed) {
            return Ok(());
        }
        let before = stored.schema().map_err(OpenError::Schema)?;
        check_entries(self.store.read()?.view(), &before, &core.schema).map_err(contradicted)?;
        Ok(self.store.write_now(move |write| put(write, &core))?)
    }

    /// Takes the access rules that entries hold.
    fn load_rules(&self) -> Result<(), OpenError> {
        let core = self.core();
        let rules = core.stored_rules(self.store.read()?.view())?;
        core.shared
            .access
            .store(rules, &core.schema)
            .map_err(|why| OpenError::Settings(why.to_string()))
    }

    /// The state of the schema as it is now.
    pub(crate) fn core(&self) -> Arc<Core> {
        self.current.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// What of the schema's files and sets is taken for something else than they say, for people.
    pub fn schema_warnings(&self) -> Vec<String> {
        let core = self.core();
        let of_files = core.composed.warnings.iter().cloned();
        of_files.chain(core.schema.warnings().iter().map(ToString::to_string)).collect()
    }

    /// Takes what can change while it is open from other settings: the schema, indexes, access rules,
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
        let is_building = shared.building.lock().unwrap_or_else(PoisonError::into_inner);
        let core = self.core();
        // What stays until the next start.
        let held = shared.settings.read().unwrap_or_else(PoisonError::into_inner).clone();
        let takes_integrity = core.has_indexes_of(given);
        let integrity = if takes_integrity { given.integrity.clone() } else { held.integrity };
        let settings = Settings { integrity, ..given.clone() };
        let (sources, changes) = (settings.schema.clone(), core.changes.clone());
        let redefinition = Redefinition::new(&core, sources, changes, &settings)
            .map_err(|failure| OpenError::Settings(failure.diagnostic))?;
        let next = redefinition.as_ref().map(Redefinition::next);
        let schema = &next.as_ref().unwrap_or(&core).schema;
        Access::new(&settings.rules, schema).map_err(OpenError::Settings)?;
        // What waits for the next start is to be right then.
        indexes(given, schema)?;
        let (_, made) = indexes(&settings, schema)?;
        let (wanted, none) = (made.kinds(), Kinds::new());
        let job = move |write: &mut Write<'_>| {
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
        *shared.settings.write().unwrap_or_else(PoisonError::into_inner) = settings;
        self.follow(&state, |whole| install(shared, &self.current, next, Some(whole)))?;
        drop(is_building);
        Ok(takes_integrity)
    }

    /// Whether the engine holds the key that new passwords are to be peppered with, if there is
    /// one. What needs no such password can be done without it, so that [`Directory::open`] does
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

    /// Ends it: what was accepted is on the disk when this returns, and the store can be opened
    /// again.
    ///
    /// # Errors
    /// The store's; what was acknowledged before is safe all the same.
    pub fn close(self) -> Result<()> {
        self.builder.stop();
        Ok(self.store.close()?)
    }

    /// Why the store takes no more changes, if it does not: the directory has to be opened again.
    pub fn failed(&self) -> Option<String> {
        self.store.failed()
    }

    /// How passwords are made and checked.
    pub fn passwords(&self) -> &Passwords {
        &self.shared.passwords
    }

    /// The schema as it is now.
    pub fn schema(&self) -> Arc<Schema> {
        self.core().schema.clone()
    }

    /// The log that the settings gave it.
    pub fn log(&self) -> &Log {
        &self.shared.log
    }

    /// The engine that does its cryptography.
    pub fn engine(&self) -> &Engine {
        &self.shared.engine
    }

    /// The clock that the settings gave it.
    pub fn clock(&self) -> fn() -> SystemTime {
        self.shared.clock
    }

    /// The time, by its clock.
    pub fn now(&self) -> SystemTime {
        self.shared.now()
    }

    /// DNs of the naming contexts of users.
    pub fn naming_contexts(&self) -> Vec<String> {
        let contexts = self.shared.contexts();
        let own = contexts.iter().filter(|context| !context.is_system);
        own.map(|context| context.text.clone()).collect()
    }

    /// DNs of all naming contexts, the server's own among them.
    pub fn all_naming_contexts(&self) -> Vec<String> {
        self.shared.contexts().iter().map(|context| context.text.clone()).collect()
    }

    /// How many entries there are in the naming contexts of users.
    ///
    /// # Errors
    /// The store's.
    pub fn entry_count(&self) -> Result<u64> {
        let read = self.store.read()?;
        let view = read.view();
        let mut own = 0;
        for context in self.shared.contexts().iter().filter(|context| context.is_system) {
            if let Some(top) = view.child(EntryId::ROOT, &context.component)? {
                own += view.postings(&Key::subtree(top), EntryId::ROOT)?.count() as u64;
            }
        }
        Ok(view.entry_count()?.saturating_sub(own))
    }

    /// Holds the tree from this DN downwards from now on. Its top entry is to be added.
    ///
    /// Blocks until it is on the disk.
    ///
    /// # Errors
    /// `entryAlreadyExists` if a naming context is or holds this DN, or lies below it;
    /// `invalidDNSyntax`, `unwillingToPerform`, or the store's.
    pub fn add_naming_context(&self, dn: &str) -> Result<()> {
        let core = &*self.core();
        let name = naming::of_context(&core.schema, dn)?;
        // Held over the commit, so that of two contexts added at once none is forgotten. Those who
        // only read do not wait.
        let _turn = core.shared.adding_context.lock().unwrap_or_else(PoisonError::into_inner);
        let held = core.shared.contexts();
        let within = |one: &NamingContext| name.is_within(&one.name) || one.name.is_within(&name);
        if let Some(other) = held.iter().find(|one| within(one)) {
            let text = format!("\"{dn}\" overlaps the naming context \"{}\"", other.text);
            return Err(Failure::new(ResultCode::EntryAlreadyExists, text));
        }
        if held.len() >= NAMING_CONTEXTS_MAX {
            let text = format!("there are {NAMING_CONTEXTS_MAX} naming contexts already");
            return Err(Failure::new(ResultCode::AdminLimitExceeded, text));
        }
        let mut contexts = held.to_vec();
        contexts.push(Arc::new(NamingContext::new(name)));
        let row = contexts_row(&contexts);
        self.store
            .write_now(move |write| Ok::<_, Failure>(write.meta_put(META_CONTEXTS, &row)?))?;
        *core.shared.contexts.write().unwrap_or_else(PoisonError::into_inner) = contexts.into();
        Ok(())
    }

    /// Lines of the audit log that are not known to be on the disk: those of the changes before a cut of power.
    /// A caller that takes them over writes those that the log does not have.
    ///
    /// # Errors
    /// The store's.
    pub fn kept_lines(&self) -> Result<Vec<Kept>> {
        let (kept, next) = kept::all(self.store.read()?.view())?;
        self.shared.log.said(next);
        Ok(kept)
    }

    /// Brings lines of the audit log to the disk, and forgets those that are kept for as long as they are not
    /// there. Where that fails again and again, the oldest beyond [`AUDIT_KEPT_MAX`] go all the same. It waits
    /// for the disk.
    ///
    /// # Errors
    /// The store's.
    pub fn settle_audit(&self) -> Result<()> {
        let until = self.shared.log.said_until();
        let first = kept::first(self.store.read()?.view())?;
        let until = match until > first {
            false => return Ok(()),
            true if self.shared.log.sync() => until,
            true => until.saturating_sub(AUDIT_KEPT_MAX),
        };
        match until > first {
            true => self.store.write_now(move |write| kept::forget(write, until)),
            false => Ok(()),
        }
    }

    /// What a bind as this DN is checked against; `None` if there is no such entry.
    ///
    /// # Errors
    /// `invalidDNSyntax`, or the store's.
    pub fn credentials(&self, dn: &str) -> Result<Option<Credentials>> {
        self.credentials_of(&EntryName::parse(&self.core().schema, dn)?)
    }

    /// As [`Directory::credentials`], for a name that has been understood.
    ///
    /// # Errors
    /// The store's.
    pub fn credentials_of(&self, name: &EntryName) -> Result<Option<Credentials>> {
        let pending = &self.shared.policies.pending;
        loop {
            let written = pending.written();
            let found = self.stored_credentials(name)?.map(|mut found| {
                if let (false, Some(id)) = (found.subject.is_administrator(), found.subject.id()) {
                    found.account = pending.apply(&found.policy, id, found.account);
                }
                found
            });
            // What was written meanwhile is in neither of the two.
            if pending.written() == written {
                return Ok(found);
            }
        }
    }

    /// Whether the password policy lets a subject do nothing before it has changed its password. Where
    /// that cannot be known it does not.
    pub fn must_change(&self, subject: &Subject) -> bool {
        let Some(dn) = subject.name() else { return false };
        match self.credentials(&dn) {
            Ok(Some(found)) => found.status(policy::micros(self.core().shared.now())).reset,
            _ => true,
        }
    }

    /// Whether a DN is that of a subject's own entry.
    pub fn is_entry_of(&self, subject: &Subject, dn: &str) -> bool {
        let found = self.credentials(dn).ok().flatten();
        found.is_some_and(|found| found.subject.id() == subject.id())
    }

    fn stored_credentials(&self, name: &EntryName) -> Result<Option<Credentials>> {
        let core = &*self.core();
        let contexts = core.shared.contexts();
        let Place::Inside { context, below } = naming::place(&contexts, name) else {
            return Ok(None);
        };
        let read = self.store.read()?;
        let view = read.view();
        let id = match naming::resolve(view, context, name, below) {
            Ok(id) => id,
            Err(failure) if failure.code == ResultCode::NoSuchObject => return Ok(None),
            Err(failure) => return Err(failure),
        };
        let Some(entry) = view.entry(id)? else { return Ok(None) };
        let dn = core.shared.with_names(|names| view.dn_of(&entry, &mut names.borrow_mut()))?;
        let passwords = entry.values(USER_PASSWORD).map(<[u8]>::to_vec).collect();
        let subject = match name.canonical() == core.shared.administrator {
            true => Subject::administrator(&dn, id),
            false => Subject::user(&dn, id),
        };
        // No policy is the server's own entries': whoever mends things has to get in.
        let (policy, account) = match context.is_system {
            true => (Arc::new(Policy::NONE), Account::default()),
            false => {
                let own = policy::subentry(&entry);
                let policy = core.shared.policies.of(core, view, Some(read.version()), own)?;
                (policy, Account::read(&core.schema, &entry))
            }
        };
        Ok(Some(Credentials { subject, dn, passwords, account, policy }))
    }

    /// Whether the subject may set the password of this entry.
    ///
    /// # Errors
    /// `insufficientAccessRights` if not, or `noSuchObject` if the subject may not know of the entry,
    /// `invalidDNSyntax`, or the store's.
    pub fn may_set_password(&self, subject: &Subject, dn: &str) -> Result<()> {
        let core = &*self.core();
        let name = EntryName::parse(&core.schema, dn)?;
        let contexts = core.shared.contexts();
        let denied = || Failure::denied("set this password");
        let Place::Inside { context, below } = naming::place(&contexts, &name) else {
            return Err(denied());
        };
        self.refresh(subject)?;
        let rights = core.permissions(subject, context.place());
        let read = self.store.read()?;
        let view = read.view();
        let told = |failure| core.disclosed(view, &rights, (context, &name, below), failure);
        let id = naming::resolve(view, context, &name, below).map_err(told)?;
        let entry = view.entry(id)?.ok_or_else(denied)?;
        let allowed = core.shared.with_names(|names| {
            let candidate = Candidate::stored(core, id, entry, view, names);
            let may = rights.may(Rights::WRITE, USER_PASSWORD, &candidate)?
                || rights.may(Rights::RESET, USER_PASSWORD, &candidate)?;
            if may { Ok(()) } else { Err(denied()) }
        });
        allowed.map_err(told)
    }

    /// Looks up again what access rules say of a subject, if they or a group have changed.
    ///
    /// # Errors
    /// The store's.
    pub fn refresh(&self, subject: &Subject) -> Result<()> {
        if self.shared.access.is_fresh(subject) {
            return Ok(());
        }
        self.core().look_up(subject, self.store.read()?.view())
    }
}

impl Core {
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

impl Shared {
    /// The naming contexts as they are now.
    pub fn contexts(&self) -> Arc<[Arc<NamingContext>]> {
        self.contexts.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The time as entries are stamped with it.
    pub fn timestamp(&self) -> String {
        operational::generalized_time((self.clock)())
    }

    /// What the time is.
    pub fn now(&self) -> SystemTime {
        (self.clock)()
    }

    /// A fresh UUID in text.
    pub fn uuid(&self) -> Result<String> {
        let mut random = [0; 16];
        self.engine.random(&mut random)?;
        Ok(operational::uuid_v4(random))
    }

    /// Lends a cache of names; what others have learnt is used again.
    pub fn with_names<T>(&self, f: impl FnOnce(&RefCell<Names>) -> T) -> T {
        let lock = || self.names.lock().unwrap_or_else(PoisonError::into_inner);
        let names = RefCell::new(lock().pop().unwrap_or_default());
        let result = f(&names);
        lock().push(names.into_inner());
        result
    }

    /// Whether a name is one of those that the server itself needs.
    pub fn is_own(&self, name: &EntryName) -> bool {
        let canonical = name.canonical();
        canonical == self.administrator || name.text().eq_ignore_ascii_case(SYSTEM_DN)
    }
}

impl NamingContext {
    /// Where its entries are, as access rules see it.
    pub fn place(&self) -> access::Place {
        if self.is_system { access::Place::System } else { access::Place::Data }
    }
}

/// What settings say of references and groups, and the indexes that they ask for.
pub(crate) fn indexes(
    settings: &Settings,
    schema: &Schema,
) -> Result<(Integrity, Indexes), OpenError> {
    let integrity = Integrity::new(&settings.integrity, schema).map_err(OpenError::Settings)?;
    let mut indexed = integrity.indexed(schema, &settings.indexes);
    index_rules(&mut indexed);
    if let Some(one) = indexed.iter().find(|one| schema.attribute(&one.attribute).is_none()) {
        return Err(OpenError::UnknownAttribute(one.attribute.clone()));
    }
    let indexes = Indexes::new(&indexed, schema).map_err(OpenError::Settings)?;
    Ok((integrity, indexes))
}

/// Entries that hold access rules are found by an index, whatever the settings say.
fn index_rules(indexed: &mut Vec<IndexSetting>) {
    match indexed.iter_mut().find(|one| one.attribute.eq_ignore_ascii_case(access::RULE)) {
        Some(one) => drop(one.kinds.insert(IndexKind::Presence)),
        None => indexed.push(IndexSetting::new(access::RULE, &[IndexKind::Presence])),
    }
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

/// The contexts that a store holds; the server's own is always the first.
fn load_contexts(store: &Store, schema: &Schema) -> Result<Vec<Arc<NamingContext>>, OpenError> {
    let read = store.read()?;
    let row = read.view().meta_get(META_CONTEXTS)?.unwrap_or_default();
    let text = str::from_utf8(row)
        .map_err(|_| OpenError::Store("the list of naming contexts is not text".into()))?;
    let stored = text.split('\0').filter(|text| !text.is_empty());
    std::iter::once(SYSTEM_DN)
        .chain(stored)
        .map(|text| Ok(Arc::new(NamingContext::new(EntryName::parse(schema, text)?))))
        .collect()
}

fn contexts_row(contexts: &[Arc<NamingContext>]) -> Vec<u8> {
    let stored = contexts.iter().filter(|context| !context.is_system);
    // A NUL is always escaped in a DN's text form.
    stored.map(|context| context.text.as_str()).collect::<Vec<_>>().join("\0").into_bytes()
}
