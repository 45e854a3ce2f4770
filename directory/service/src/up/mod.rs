//! `keyway up`: one cryptod and one ldapd on a data folder, started, watched, and ended in order.
//!
//! The supervisor has the data folder's lock and the listening sockets for as long as it runs, and
//! leaves both to the processes: while one is started again, no other process takes the folder, and clients
//! wait instead of being refused. Its own death takes the processes with it.

mod join;
mod process;
mod restarts;

use crate::ldapd;
use crate::ldif_source;
use crate::limits::{ALIVE_LOOK_EVERY, OTHER_CRYPTOD_LOOK_EVERY, STORE_AGAIN_PAUSE};
use crate::master::open_again;
use crate::options::UpOptions;
use keyway_config::Configuration;
use keyway_config::Given;
use keyway_folder::data::{Folder, name};
use keyway_folder::user::{self, Account, Half};
use keyway_host::failure::{Failure, plain};
use keyway_host::listeners::{Listen, Sockets, listen};
use keyway_host::notify;
use keyway_host::output;
use keyway_host::signals::{self, Asked, STATUS_AT_ONCE, Signals};
use keyway_host::supervised::{Inherited, Moved, STORE_STOPPED};
use keyway_log::{Logs, To};
use keyway_ring::Socket;
use keyway_server::log::{Severity, Value};
use process::{Process, Program, code, is_crash, words};
use restarts::{Next, Restarts};
use std::fs::File;
use std::os::fd::{AsFd, AsRawFd};
use std::path::PathBuf;
use std::process::{ExitCode, ExitStatus, Stdio};
use std::time::Instant;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::time::MissedTickBehavior;

/// Serves until it is told to stop. Returns the exit status; what a process of it could not do, that has
/// said.
///
/// # Errors
/// Whatever keeps it from serving.
pub fn run(arguments: &UpOptions) -> Result<ExitCode, Failure> {
    if let Some(follow) = &arguments.follow
        && let Some(status) = join::join(arguments, follow)?
    {
        return Ok(status);
    }
    let handed_over = Sockets::handed_over()?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|why| Failure::new(format!("cannot start: {}", plain(&why))))?;
    runtime.block_on(async {
        let hangup = signals::catch_hangup()?;
        // A file that is not there and a port that is taken are found before anything is made.
        let import =
            arguments.serve.import.as_deref().map(ldif_source::open).transpose()?.flatten();
        let given = Given::read(&arguments.serve.schema, &arguments.serve.folder)?;
        let master = arguments.master.as_ref().map(open_again).transpose()?.flatten();
        let is_handed_over = handed_over.is_some();
        let half = Half::Up(arguments.cryptod_user.as_ref());
        let (folder, configuration, sockets, account) =
            ldapd::prepare(&arguments.serve, handed_over, &given, half)?;
        let ends = signal(SignalKind::child());
        let ends = ends.map_err(|why| Failure::new(format!("cannot wait for processes: {why}")))?;
        let mut supervisor = Supervisor {
            arguments,
            cryptod: configuration.cryptod.is_none().then(|| Cryptod {
                socket: name::socket_at(folder.path()),
                account,
                process: Watched::default(),
            }),
            ldapd: Watched::default(),
            listen: wanted(&configuration),
            offered: None,
            is_handed_over,
            log: configuration.log,
            folder,
            sockets,
            import,
            master,
            program: Program::new()?,
            signals: Signals::catch_beside(hangup, None)?,
            ends,
        };
        match supervisor.start().await? {
            Begun::Ready => supervisor.serve().await,
            Begun::Ended(status) => Ok(status),
        }
    })
}

struct Supervisor<'a> {
    arguments: &'a UpOptions,
    folder: Folder,
    log: keyway_log::Settings,
    sockets: Sockets,
    /// Which addresses these were asked for, and the next ones until ldapd has them.
    listen: Wanted,
    offered: Option<(Wanted, Moved)>,
    /// The sockets are an init system's.
    is_handed_over: bool,
    /// The source of the entries of a first start.
    import: Option<File>,
    /// The file of cryptod's master key or passphrase, which only root may be able to open.
    master: Option<File>,
    program: Program,
    signals: Signals,
    /// Tells that a process has ended.
    ends: Signal,
    /// `None` if the configuration names another one.
    cryptod: Option<Cryptod>,
    ldapd: Watched,
}

/// The cryptod of the data folder.
struct Cryptod {
    socket: PathBuf,
    /// The user that it runs as, if not that of this process.
    account: Option<Account>,
    process: Watched,
}

/// A process that is to run.
#[derive(Default)]
struct Watched {
    process: Option<Process>,
    restarts: Restarts,
    /// When it is to be started.
    due: Option<Instant>,
}

/// Addresses of LDAP and LDAPS.
type Wanted = [Listen; 2];

fn wanted(configuration: &Configuration) -> Wanted {
    [configuration.listen, configuration.listen_tls]
}

/// The result of a start.
enum Begun {
    Ready,
    Ended(ExitCode),
}

/// How all of it ends.
enum Over {
    /// ldapd has, and has said why.
    Ended(ExitStatus),
    /// A process ends again and again.
    GivenUp(Failure),
}

impl Supervisor<'_> {
    /// Starts both, one after the other.
    async fn start(&mut self) -> Result<Begun, Failure> {
        let mut hung_up = false;
        if let Some(cryptod) = &mut self.cryptod {
            if cryptod.is_others() {
                output::note(format_args!(
                    "the cryptod that listens at {} already is used",
                    cryptod.socket.display()
                ));
                cryptod.process.due = Some(Instant::now() + OTHER_CRYPTOD_LOOK_EVERY);
            } else {
                self.start_cryptod()?;
                let process = self.cryptod.as_mut().and_then(|it| it.process.process.as_mut());
                let process = process.ok_or_else(|| Failure::new("there is no process"))?;
                let hang_up = |_: &Process| hung_up = true;
                let may_hang = self.arguments.serve.allow_debugging;
                if !until_ready(process, "cryptod", may_hang, &mut self.signals, hang_up).await? {
                    return Err(why_not(process, "cryptod"));
                }
            }
        }
        self.start_ldapd(true)?;
        let process = self.ldapd.process.as_mut();
        let process = process.ok_or_else(|| Failure::new("there is no process"))?;
        let reload = |process: &Process| process.reload(&Moved::default());
        if hung_up {
            reload(process);
        }
        let may_hang = self.arguments.serve.allow_debugging;
        let ready = until_ready(process, "ldapd", may_hang, &mut self.signals, reload).await;
        if matches!(ready, Ok(true)) {
            self.import = None;
            notify::ready(false);
            user::warn_of_root(self.arguments.serve.user.as_ref());
            return Ok(Begun::Ready);
        }
        let status = process.wait().map_err(|why| Failure::new(plain(&why)))?;
        self.end_cryptod().await;
        ready?;
        match is_crash(status) {
            true => Err(Failure::new(format!("ldapd {} while it started", words(status)))),
            false => Ok(Begun::Ended(code(status))),
        }
    }

    /// Supervises both until an end is asked for, or one cannot be kept running.
    async fn serve(&mut self) -> Result<ExitCode, Failure> {
        let mut beats = tokio::time::interval(ALIVE_LOOK_EVERY);
        beats.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let over = loop {
            let cryptod = self.cryptod.as_ref().and_then(|it| it.process.due);
            let due = cryptod.into_iter().chain(self.ldapd.due).min();
            let pause = async {
                match due {
                    Some(due) => tokio::time::sleep_until(due.into()).await,
                    None => std::future::pending().await,
                }
            };
            let over = tokio::select! {
                asked = self.signals.next() => match asked {
                    Asked::End => return self.stop().await,
                    Asked::Reload => {
                        self.reload();
                        None
                    }
                },
                _ = self.ends.recv() => self.look(),
                () = moved(&mut self.ldapd) => {
                    self.take_offered();
                    None
                }
                _ = beats.tick() => {
                    self.kill_the_hung();
                    None
                }
                () = pause => self.start_due(),
            };
            if let Some(over) = over {
                break over;
            }
        };
        self.end_ldapd().await;
        self.end_cryptod().await;
        match over {
            Over::Ended(status) => Ok(code(status)),
            Over::GivenUp(failure) => Err(failure),
        }
    }

    /// Ends both in good order: ldapd first, which needs the other one until its end.
    async fn stop(&mut self) -> Result<ExitCode, Failure> {
        notify::stopping();
        let status = self.end_ldapd().await;
        self.end_cryptod().await;
        match status {
            Some(status) if is_crash(status) => {
                Err(Failure::new(format!("ldapd {} while it stopped", words(status))))
            }
            Some(status) if !status.success() => Ok(code(status)),
            _ => {
                ldapd::say_stopped(self.arguments.serve.json);
                Ok(ExitCode::SUCCESS)
            }
        }
    }

    /// Also lets go of the sockets: who connects meanwhile is refused and can go elsewhere, instead of waiting at a socket
    /// from which no process takes connections any more.
    async fn end_ldapd(&mut self) -> Option<ExitStatus> {
        self.sockets = Sockets::default();
        self.offered = None;
        let process = self.ldapd.process.take()?;
        Some(self.end(process).await)
    }

    async fn end_cryptod(&mut self) {
        if let Some(process) = self.cryptod.as_mut().and_then(|it| it.process.process.take()) {
            self.end(process).await;
        }
    }

    /// Asks a process to end and waits for it; one that hangs is killed. With a second signal all is
    /// over at once.
    async fn end(&mut self, mut process: Process) -> ExitStatus {
        process.ask_to_end();
        let mut beats = tokio::time::interval(ALIVE_LOOK_EVERY);
        beats.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            if let Some(status) = process.ended() {
                return status;
            }
            tokio::select! {
                _ = self.ends.recv() => {}
                _ = beats.tick() => {
                    if !self.arguments.serve.allow_debugging && process.hangs_ending() {
                        process.kill();
                        let id = process.id();
                        let text = format!("process {id} was asked to end and hangs, and is killed");
                        self.say(Severity::Error, "hang", &text);
                    }
                }
                () = self.signals.end() => std::process::exit(STATUS_AT_ONCE),
            }
        }
    }

    fn reload(&mut self) {
        self.offer();
        if let Some(ldapd) = &self.ldapd.process {
            let nothing = Moved::default();
            ldapd.reload(self.offered.as_ref().map_or(&nothing, |(_, moved)| moved));
        }
    }

    /// Binds the addresses that the configuration has instead of others now. Sockets that ldapd does not take are let
    /// go of at the next time.
    fn offer(&mut self) {
        self.offered = None;
        // If it is wrong, ldapd says so.
        let Ok(configuration) = Configuration::load(&self.folder) else { return };
        let next = wanted(&configuration.with_flags(&self.arguments.serve.overrides));
        if self.is_handed_over || next == self.listen {
            return;
        }
        let open = |at: usize, flag| match next[at] {
            address if address == self.listen[at] => Ok(None),
            address => address.map(|address| listen(address, flag)).transpose().map(Some),
        };
        let moved = open(0, "--listen")
            .and_then(|plain| Ok(Moved { plain, tls: open(1, "--listen-tls")? }));
        match moved {
            Ok(moved) => self.offered = Some((next, moved)),
            Err(why) => self.say(Severity::Error, "listen", &why.to_string()),
        }
    }

    /// Listens where ldapd does now, and nowhere else.
    fn take_offered(&mut self) {
        let Some((listen, Moved { plain, tls })) = self.offered.take() else { return };
        self.listen = listen;
        if let Some(plain) = plain {
            self.sockets.plain = plain;
        }
        if let Some(tls) = tls {
            self.sockets.tls = tls;
        }
    }

    /// Kills a process that hangs: it is started again then. Under a debugger it may be stopped for as long as
    /// that likes.
    fn kill_the_hung(&mut self) {
        if self.arguments.serve.allow_debugging {
            return;
        }
        let cryptod = self.cryptod.as_mut().and_then(|it| it.process.process.as_mut());
        let both = [("cryptod", cryptod), ("ldapd", self.ldapd.process.as_mut())];
        let mut hung = Vec::new();
        for (what, process) in both {
            if let Some(process) = process
                && process.ended().is_none()
                && process.hangs()
            {
                process.kill();
                hung.push(format!("{what} (process {}) hangs, and is killed", process.id()));
            }
        }
        hung.iter().for_each(|text| self.say(Severity::Error, "hang", text));
    }

    /// Sees which process has ended.
    fn look(&mut self) -> Option<Over> {
        if let Some((mut process, status)) =
            self.cryptod.as_mut().and_then(|it| it.process.take_ended())
        {
            if status.success() && self.is_succeeded() {
                return self.look();
            }
            let why = match process.was_ready() {
                true => words(status),
                false => match process.failure() {
                    Some(failure) => format!("did not start: {failure}"),
                    None => format!("{} before it was ready", words(status)),
                },
            };
            let next = self.cryptod.as_mut().map(|it| it.process.after(&process))?;
            if let Some(over) = self.again("cryptod", &process, &why, next) {
                return Some(over);
            }
        }
        let (mut process, status) = self.ldapd.take_ended()?;
        if status.code() == Some(i32::from(STORE_STOPPED)) && process.was_ready() {
            self.ldapd.due = Some(Instant::now() + STORE_AGAIN_PAUSE);
            let text = format!(
                "ldapd (process {}) could not go on with its store, and opens it again in {} s",
                process.id(),
                STORE_AGAIN_PAUSE.as_secs()
            );
            self.say(Severity::Error, "restart", &text);
            return None;
        }
        // One that was not ready may have found a cryptod that hangs, and is killed soon.
        if !is_crash(status) && process.was_ready() {
            return Some(Over::Ended(status));
        }
        let next = self.ldapd.after(&process);
        self.again("ldapd", &process, &words(status), next)
    }

    /// Whether another cryptod serves in the place of ours that has ended in good order, and if so says that.
    fn is_succeeded(&mut self) -> bool {
        let Some(cryptod) = &mut self.cryptod else { return false };
        if !cryptod.is_others() {
            return false;
        }
        cryptod.process.due = Some(Instant::now() + OTHER_CRYPTOD_LOOK_EVERY);
        let text = format!(
            "cryptod has handed over to one that was started with --take-over at {}; when that ends, one is \
             started here",
            cryptod.socket.display()
        );
        self.say(Severity::Info, "take-over", &text);
        true
    }

    /// Writes down that a process has ended, and what comes of it.
    fn again(&mut self, what: &str, process: &Process, why: &str, next: Next) -> Option<Over> {
        let id = process.id();
        match next {
            Next::Start(number, pause) => {
                let pause = match pause.as_millis() {
                    0 => "now".to_owned(),
                    pause => format!("in {pause} ms"),
                };
                let text = format!(
                    "{what} (process {id}) {why}; it is started again {pause} ({number} in a row)"
                );
                self.say(Severity::Error, "restart", &text);
                None
            }
            Next::GiveUp => {
                let text = format!("{what} (process {id}) {why}, again and again; giving up");
                self.say(Severity::Error, "restart", &text);
                Some(Over::GivenUp(Failure::new(format!(
                    "{text}; what was acknowledged is safe, and {} has what came before",
                    self.folder.path().join(&self.log.folder).join("error.log").display()
                ))))
            }
        }
    }

    /// Writes a line of the error log, and prints it too.
    fn say(&mut self, severity: Severity, event: &str, text: &str) {
        // It may have changed. If it is wrong, ldapd has said so.
        if let Ok(configuration) = Configuration::load(&self.folder) {
            self.log = configuration.log;
        }
        if self.log.to != To::Stderr {
            output::note(text);
        }
        match Logs::open(&self.folder, &self.log) {
            Ok(logs) => logs.say(severity, event, &[("text", Value::Text(text))]),
            Err(why) => output::note(why),
        }
    }

    /// Starts what is to be started by now.
    fn start_due(&mut self) -> Option<Over> {
        let now = Instant::now();
        if let Some(cryptod) = &mut self.cryptod
            && cryptod.process.due.is_some_and(|due| due <= now)
        {
            if cryptod.is_others() {
                cryptod.process.due = Some(now + OTHER_CRYPTOD_LOOK_EVERY);
            } else {
                cryptod.process.due = None;
                if let Err(why) = self.start_cryptod() {
                    return Some(Over::GivenUp(why));
                }
            }
        }
        if self.ldapd.due.is_some_and(|due| due <= now) {
            self.ldapd.due = None;
            self.offer();
            self.take_offered();
            if let Err(why) = self.start_ldapd(false) {
                return Some(Over::GivenUp(why));
            }
        }
        None
    }

    fn start_cryptod(&mut self) -> Result<(), Failure> {
        let Some(cryptod) = &mut self.cryptod else { return Ok(()) };
        let mut command = self.program.command("cryptod");
        command.arg("--json").arg("--data").arg(self.folder.path());
        if let Some(master) = &self.arguments.master {
            command.arg("--master").arg(master.to_string());
        }
        let serve = &self.arguments.serve;
        let flags =
            [("--allow-debugging", serve.allow_debugging), ("--no-sandbox", serve.no_sandbox)];
        command.args(flags.iter().filter(|(_, given)| *given).map(|(flag, _)| flag));
        // Its output is for this process.
        command.stdin(Stdio::null()).stdout(Stdio::piped());
        let (lock, master) = (self.folder.lock(), &self.master);
        let mut keys = [None, None];
        if let Some(account) = &cryptod.account {
            account.start_as(&mut command);
            // It cannot open them itself.
            let open = |name| File::open(self.folder.file(name)).ok();
            keys = [name::CA_KEY, name::SERVER_KEY].map(open);
        }
        let [ca_key, server_key] = &keys;
        let beside = [master, ca_key, server_key].into_iter().flatten().map(AsFd::as_fd);
        let files: Vec<_> = [lock].into_iter().chain(beside).collect();
        let started = Process::start(command, &files, |channel| Inherited {
            up: std::process::id(),
            channel,
            lock: lock.as_raw_fd(),
            ldap: None,
            ldaps: None,
            import: None,
            master: master.as_ref().map(AsRawFd::as_raw_fd),
            ca_key: ca_key.as_ref().map(AsRawFd::as_raw_fd),
            server_key: server_key.as_ref().map(AsRawFd::as_raw_fd),
            again: false,
            moves: false,
        });
        let process = started.map_err(|why| cannot_start("cryptod", &why))?;
        cryptod.process.process = Some(process);
        Ok(())
    }

    fn start_ldapd(&mut self, first: bool) -> Result<(), Failure> {
        let mut command = self.program.command("ldapd");
        command.args(self.arguments.serve.arguments(first));
        if let Some(cryptod) = &self.cryptod {
            command.arg("--cryptod").arg(&cryptod.socket);
        }
        let (lock, Sockets { plain, tls }) = (self.folder.lock(), &self.sockets);
        let number = |file: &Option<_>| file.as_ref().map(AsRawFd::as_raw_fd);
        let mut files = vec![lock];
        files.extend(plain.iter().chain(tls).map(AsFd::as_fd));
        files.extend(self.import.iter().map(AsFd::as_fd));
        let started = Process::start(command, &files, |channel| Inherited {
            up: std::process::id(),
            channel,
            lock: lock.as_raw_fd(),
            ldap: number(plain),
            ldaps: number(tls),
            import: self.import.as_ref().map(AsRawFd::as_raw_fd),
            master: None,
            ca_key: None,
            server_key: None,
            again: !first,
            moves: !self.is_handed_over,
        });
        let mut process = started.map_err(|why| cannot_start("ldapd", &why))?;
        // A pipe gives what it gives when it likes.
        if first && self.arguments.serve.import.is_some() {
            process.let_wait();
        }
        self.ldapd.process = Some(process);
        Ok(())
    }
}

/// Waits until ldapd listens where it was told to.
async fn moved(ldapd: &mut Watched) {
    match &mut ldapd.process {
        Some(process) => process.moved().await,
        None => std::future::pending().await,
    }
}

impl Cryptod {
    /// Whether another process has started one there, or put one in the place of ours (--take-over).
    fn is_others(&self) -> bool {
        // One that is there and hangs is there.
        self.process.process.is_none() && Socket::connect(&self.socket).is_ok()
    }
}

impl Watched {
    /// The process, if it has ended.
    fn take_ended(&mut self) -> Option<(Process, ExitStatus)> {
        let status = self.process.as_mut()?.ended()?;
        Some((self.process.take()?, status))
    }

    /// Says when the next one is to be started after this one.
    fn after(&mut self, process: &Process) -> Next {
        let next = self.restarts.after(process.served());
        if let Next::Start(_, pause) = next {
            self.due = Some(Instant::now() + pause);
        }
        next
    }
}

/// Waits until a process is ready; `false` if it ends instead. An end that is asked for meanwhile is one at
/// once: what is being made is made to be cut short.
///
/// # Errors
/// It hung, and was killed.
async fn until_ready(
    process: &mut Process,
    what: &str,
    may_hang: bool,
    signals: &mut Signals,
    mut hang_up: impl FnMut(&Process),
) -> Result<bool, Failure> {
    let mut beats = tokio::time::interval(ALIVE_LOOK_EVERY);
    beats.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        let asked = tokio::select! {
            ready = process.ready() => return Ok(ready),
            asked = signals.next() => asked,
            _ = beats.tick() => {
                if !may_hang && process.hangs() {
                    process.kill();
                    return Err(Failure::new(format!(
                        "{what} (process {}) did nothing for half a minute before it was ready, and was killed: \
                         see whether the files of the data folder and its logs can be read and written \
                         (a FIFO, a file system of a network), and start again",
                        process.id()
                    )));
                }
                continue;
            }
        };
        match asked {
            Asked::Reload => hang_up(process),
            // It was, and so was who asks: the signal comes again, for an end in good order.
            Asked::End if process.was_ready() => {
                signals.put_back();
                return Ok(true);
            }
            Asked::End => std::process::exit(STATUS_AT_ONCE),
        }
    }
}

/// Why a process that has closed its channel could not be started.
fn why_not(process: &mut Process, what: &str) -> Failure {
    let status = process.wait();
    let said = process.failure();
    said.unwrap_or_else(|| match status {
        Ok(status) => Failure::new(format!("{what} {} while it started", words(status))),
        Err(why) => Failure::new(format!("{what} could not be started: {}", plain(&why))),
    })
}

fn cannot_start(what: &str, why: &std::io::Error) -> Failure {
    Failure::new(format!("cannot start {what}: {}", plain(why)))
}
