//! SIGINT and SIGTERM: the first asks for an end in good order, the second for one at once. SIGHUP
//! asks to read again what can change while a server runs, and so a terminal that is closed ends
//! nothing. A process that `keyway up` has started hears both from that, over its channel: what a
//! terminal or an init system sends to all processes at once ends the supervisor, which then ends the
//! others in order.

use crate::failure::{Failure, plain};
use crate::supervised::{self, Moved, RELOAD};
use nix::sys::signal::SigSet;
use std::io::ErrorKind;
use std::os::unix::net::UnixStream;
use tokio::signal::unix::{Signal, SignalKind, signal};

/// The exit status after a second signal: 128 and SIGINT's number, as shells have it.
pub const STATUS_AT_ONCE: i32 = 130;

/// The signals, from when it was made on.
pub struct Signals {
    interrupt: Signal,
    terminate: Signal,
    hangup: Signal,
    /// The channel of the supervisor, if there is one.
    channel: Option<tokio::net::UnixStream>,
    /// Listeners that are elsewhere now, and were not asked for yet.
    moved: Moved,
    /// An end was asked for, and not heeded yet.
    put_back: bool,
}

/// The request of a signal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Asked {
    /// An end.
    End,
    /// To read again what can change.
    Reload,
}

/// Begins to catch SIGHUP: who starts a server, which may take minutes the first time, may leave. SIGUSR1 and
/// SIGUSR2, which mean nothing to a server, do not end it from now on.
///
/// # Errors
/// If the system refuses.
pub fn catch_hangup() -> Result<Signal, Failure> {
    // Once caught, a signal stays so when its stream is dropped.
    drop((catch(SignalKind::user_defined1())?, catch(SignalKind::user_defined2())?));
    catch(SignalKind::hangup())
}

/// Has SIGHUP wait until what is returned is dropped, in this thread and for good in those that it starts.
pub fn hold_hangup() -> Held {
    let mut hangup = SigSet::empty();
    hangup.add(nix::sys::signal::Signal::SIGHUP);
    // If the system refuses, it comes as ever.
    let _ = hangup.thread_block();
    Held(hangup)
}

/// A signal that waits.
pub struct Held(SigSet);

impl Drop for Held {
    fn drop(&mut self) {
        let _ = self.0.thread_unblock();
    }
}

fn catch(kind: SignalKind) -> Result<Signal, Failure> {
    signal(kind).map_err(refused)
}

fn refused(why: std::io::Error) -> Failure {
    Failure::new(format!("cannot catch signals: {}", plain(&why)))
}

/// The effect of the second signal, and those after it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Second {
    /// Ends the process at once.
    Ends,
    /// As the first one did, asks for an end: who draws on a terminal puts that in order before.
    Asks,
}

/// Catches SIGINT and SIGTERM from now on, on a thread: the first has `asked` called, the second does
/// what is said here.
///
/// # Errors
/// If the system refuses.
pub fn at_end(second: Second, mut asked: impl FnMut() + Send + 'static) -> Result<(), Failure> {
    let cannot = |why| Failure::new(format!("cannot start: {}", plain(&why)));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(cannot)?;
    let mut signals = {
        let _inside = runtime.enter();
        Signals::catch()?
    };
    let watch = move || {
        runtime.block_on(async {
            loop {
                signals.next().await;
                asked();
                if second == Second::Ends {
                    break;
                }
            }
            signals.end_at_next().await
        })
    };
    std::thread::Builder::new().name("signals".to_owned()).spawn(watch).map_err(cannot)?;
    Ok(())
}

impl Signals {
    /// Begins to catch them. They no longer end the process by themselves.
    ///
    /// # Errors
    /// If the system refuses.
    pub fn catch() -> Result<Signals, Failure> {
        Signals::catch_beside(catch_hangup()?, None)
    }

    /// As [`catch`](Self::catch), where SIGHUP is caught already: one that came meanwhile is not
    /// forgotten. With a supervisor's channel, that and SIGHUP is what counts.
    ///
    /// # Errors
    /// If the system refuses.
    pub fn catch_beside(hangup: Signal, channel: Option<UnixStream>) -> Result<Signals, Failure> {
        let channel = channel.map(tokio::net::UnixStream::from_std);
        Ok(Signals {
            interrupt: catch(SignalKind::interrupt())?,
            terminate: catch(SignalKind::terminate())?,
            hangup,
            channel: channel.transpose().map_err(refused)?,
            moved: Moved::default(),
            put_back: false,
        })
    }

    /// Waits for the next one.
    pub async fn next(&mut self) -> Asked {
        if std::mem::take(&mut self.put_back) {
            return Asked::End;
        }
        let Signals { interrupt, terminate, hangup, channel, moved, .. } = self;
        let Some(channel) = channel else {
            return tokio::select! {
                _ = interrupt.recv() => Asked::End,
                _ = terminate.recv() => Asked::End,
                _ = hangup.recv() => Asked::Reload,
            };
        };
        loop {
            tokio::select! {
                _ = hangup.recv() => return Asked::Reload,
                heard = supervised::hear(channel) => match heard {
                    Ok(Some((RELOAD, _))) => return Asked::Reload,
                    Ok(Some((said, socket))) => drop(moved.hear(said, socket)),
                    Err(why) if why.kind() == ErrorKind::Interrupted => {}
                    _ => return Asked::End,
                },
            }
        }
    }

    /// Listeners that the supervisor has elsewhere now.
    pub fn moved(&mut self) -> Moved {
        std::mem::take(&mut self.moved)
    }

    /// The end that was asked for is asked for again.
    pub fn put_back(&mut self) {
        self.put_back = true;
    }

    /// Waits for one that asks for an end.
    pub async fn end(&mut self) {
        while self.next().await != Asked::End {}
    }

    /// Ends the process when the next one comes. A supervisor does that by itself.
    pub async fn end_at_next(mut self) -> ! {
        if self.channel.is_some() {
            std::future::pending::<()>().await;
        }
        self.end().await;
        std::process::exit(STATUS_AT_ONCE)
    }
}
