//! `keyway esp up`: the gateway, wired.

use crate::association::Maker;
use crate::clock::Clock;
use crate::config::{self, Configuration};
use crate::control::{Control, Request};
use crate::gateway::{Gateway, mtu_of};
use crate::ike::serve::{IkeSockets, Listener, Server};
use crate::inward::Inward;
use crate::limits::{ASIDE_PACKETS, DAEMON_WAIT};
use crate::options::UpOptions;
use crate::outward::Outward;
use crate::reverse_path;
use crate::say::{Say, count};
use crate::state::StateFolder;
use crate::stop::Stop;
use crate::tables::{Peer, Shared, Sockets, View};
use crate::uses::Uses;
use crate::{keeper, privileges};
use keyway_drivers::remote::{Remote, RemoteOptions};
use keyway_engine::{Engine, Selection};
use keyway_host::failure::{Failure, plain};
use keyway_host::signals::{Asked, Signals};
use keyway_host::{notify, output, process_hardening};
use keyway_lock::Unpoisoned;
use keyway_packet_io::{Socket, SocketOptions, TunOptions, TunQueue};
use serde_json::{Value, json};
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::sync::mpsc::sync_channel;
use std::sync::{Arc, Mutex, Weak};
use std::thread::{self, JoinHandle};
use tokio::sync::mpsc;

/// The name of the page of counters in the state folder.
pub const METER: &str = "meter";

/// Carries packets until it is told to stop.
///
/// # Errors
/// Whatever keeps it from that.
pub fn run(options: &UpOptions) -> Result<(), Failure> {
    let say = Say { json: options.json };
    let configuration = config::read(&options.configuration)?;
    let records = Arc::new(StateFolder::open(&options.state)?);
    if let Err(why) = keyway_meter::open(Some(&options.state.join(METER))) {
        say.note(format_args!("warning: keyway top will not see the counters: {why}"));
    }
    let control = Control::open(&options.control)?;
    let mut sockets = sockets(&configuration)?;
    let ike = ike(&configuration, &sockets)?;
    let mtu = mtu(&configuration, &mut sockets, say);
    let device = &configuration.device;
    let (tun, queues) = keyway_packet_io::open(&TunOptions {
        name: device.name.clone(),
        queues: device.queues,
        mtu,
        addresses: device.addresses.clone(),
    })
    .map_err(Failure::new)?;
    process_hardening::lift_lock_limit();
    privileges::keep_what_is_needed(&configuration)?;
    process_hardening::lock_memory(true);
    if !options.no_sandbox {
        privileges::enter_sandbox(options, &configuration)?;
    }
    let conf = Path::new(reverse_path::OF_THE_SYSTEM);
    for warning in reverse_path::warnings(conf, &configuration) {
        say.note(warning);
    }
    let engine = keyway_drivers::engine();
    let clock = Clock::set();
    let uses = Uses::open(&records).map_err(|why| {
        Failure::new(format!(
            "cannot read {}: {why}; without it replays of earlier packets would be taken: give \
             both sides new keys and \
             remove it",
            options.state.join("use").display()
        ))
    })?;
    let port = configuration.outside.listen.map_or(0, |listen| listen.port());
    let shared = Arc::new(Shared::new(clock, port));
    let maker = Maker::new(engine.clone(), clock, records, uses);
    let own = sockets.try_clone().map_err(|why| cannot_start(&why))?;
    let cryptod = configuration.cryptod.clone();
    let gateway = Gateway::new(shared.clone(), configuration.clone(), maker, (tun, mtu), own, say);
    let gateway = Arc::new(Mutex::new(gateway));
    let remote = cryptod.map(|socket| connect(&engine, &socket, &gateway, say)).transpose()?;
    gateway.lock().unpoisoned().apply(configuration)?;
    let stop = Stop::new().map_err(|why| cannot_start(&why))?;
    let (ended, mut end) = mpsc::unbounded_channel();
    let has_cryptod = remote.is_some();
    let threads =
        Threads { engine: &engine, shared: &shared, stop: &stop, ended: &ended, has_cryptod };
    let mut threads = threads.start(queues, &sockets).map_err(|why| cannot_start(&why))?;
    let (kept, its_stop) = (gateway.clone(), stop.clone());
    let keeper = thread::Builder::new().name("keeper".into());
    let keeper = keeper.spawn(move || keeper::run(&kept, &its_stop));
    threads.push(keeper.map_err(|why| cannot_start(&why))?);
    if let Some((listener, sockets)) = ike {
        let server = Server::new(listener, sockets, gateway.clone(), shared.door.clone());
        let its_stop = stop.clone();
        let server = thread::Builder::new().name("ike".into()).spawn(move || server.run(&its_stop));
        threads.push(server.map_err(|why| cannot_start(&why))?);
    }
    let answers = Answers { gateway: gateway.clone(), path: options.configuration.clone(), say };
    let (asked, its_stop) = (answers.clone(), stop.clone());
    let controller = thread::Builder::new().name("control".into());
    let controller = controller.spawn(move || {
        control.serve(its_stop.as_fd(), |request| asked.answer(request));
    });
    threads.push(controller.map_err(|why| cannot_start(&why))?);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|why| cannot_start(&why))?;
    let outcome = runtime.block_on(async {
        let mut signals = Signals::catch()?;
        say_ready(options, &gateway)?;
        notify::ready(false);
        let outcome = loop {
            tokio::select! {
                asked = signals.next() => match asked {
                    Asked::End => break Ok(()),
                    Asked::Reload => drop(answers.answer(Request::Reload)),
                },
                Some(why) = end.recv() => break Err(Failure::new(format!(
                    "the device has gone: {}", plain(&why)
                ))),
            }
        };
        tokio::spawn(signals.end_at_next());
        outcome
    });
    notify::stopping();
    stop.ask();
    shared.want_keeper();
    for thread in threads {
        // One that has panicked has said so.
        let _ = thread.join();
    }
    drop(remote);
    if let Err(why) = gateway.lock().unpoisoned().keep_uses() {
        say.note(format_args!("warning: the use of the keys cannot be written: {}", plain(&why)));
    }
    outcome?;
    // The reader of the output may be gone; the stop succeeded all the same.
    let _ = match options.json {
        true => output::json(&json!({ "event": "stopped" })),
        false => output::text("stopped"),
    };
    Ok(())
}

fn cannot_start(why: &io::Error) -> Failure {
    Failure::new(format!("cannot start: {}", plain(why)))
}

/// The sockets that a configuration asks for.
fn sockets(configuration: &Configuration) -> Result<Sockets, Failure> {
    let outside = &configuration.outside;
    let options = |address| SocketOptions {
        interface: outside.interface.clone(),
        mark: outside.mark,
        ..SocketOptions::new(address)
    };
    let udp = outside.listen.map(|address| Socket::udp(&options(address))).transpose();
    let mut raw = Vec::new();
    if outside.esp {
        let locals = || configuration.tunnels.iter().filter_map(|it| it.local);
        let everywhere = [IpAddr::V4(Ipv4Addr::UNSPECIFIED), IpAddr::V6(Ipv6Addr::UNSPECIFIED)];
        for any in everywhere {
            // Where all tunnels have one address, packets come from that one.
            let mut locals = locals().filter(|it| it.is_ipv4() == any.is_ipv4());
            let first = locals.next();
            let address = first.filter(|first| locals.all(|it| it == *first)).unwrap_or(any);
            let is_wanted = configuration
                .tunnels
                .iter()
                .any(|it| it.remote.address().is_ipv4() == any.is_ipv4());
            if is_wanted || (configuration.tunnels.is_empty() && any.is_ipv4()) {
                let socket = Socket::raw(&options(SocketAddr::new(address, 0)));
                raw.push((any.is_ipv4(), socket.map_err(Failure::new)?));
            }
        }
    }
    Ok(Sockets { udp: udp.map_err(Failure::new)?, raw })
}

/// What charon reaches the gateway by, and IKE's sockets.
fn ike(
    configuration: &Configuration,
    sockets: &Sockets,
) -> Result<Option<(Listener, IkeSockets)>, Failure> {
    let Configuration { outside, ike, .. } = configuration;
    let (Some(ike), Some(listen), Some(udp)) = (ike, outside.listen, &sockets.udp) else {
        return Ok(None);
    };
    let plain = |port| {
        let socket = Socket::udp(&SocketOptions {
            interface: outside.interface.clone(),
            mark: outside.mark,
            ..SocketOptions::new(SocketAddr::new(listen.ip(), port))
        });
        let socket = socket.map_err(|why| {
            Failure::new(format!(
                "{why}; another IKE daemon may have it, or set port = 0 in [ike] for none"
            ))
        });
        socket.map(|socket| (port, socket))
    };
    let plain = ike.port.map(plain).transpose()?;
    let shared = udp.try_clone().map_err(|why| cannot_start(&why))?;
    let listener = Listener::open(&ike.socket)?;
    Ok(Some((listener, IkeSockets { plain, shared: (listen, shared) })))
}

/// The device's MTU: the file's, or what all paths take.
fn mtu(configuration: &Configuration, sockets: &mut Sockets, say: Say) -> u32 {
    if let Some(mtu) = configuration.device.mtu {
        return mtu;
    }
    let mut peers = Vec::new();
    for tunnel in &configuration.tunnels {
        let to = tunnel.remote.socket_address();
        match sockets.path_mtu(to) {
            Ok(mtu) => {
                let peer = Peer::new(to, None, tunnel.suite, tunnel.mode);
                peer.set_path(mtu);
                peers.push(peer);
            }
            Err(why) => say.tunnel(
                "no route",
                &tunnel.name,
                format_args!("no route leads to {} now: {}", to.ip(), plain(&why)),
            ),
        }
    }
    mtu_of(peers.iter())
}

/// Connects to the daemon, and waits a moment for it. Whenever it comes back, what could not be made is made.
fn connect(
    engine: &Engine,
    socket: &Path,
    gateway: &Arc<Mutex<Gateway>>,
    say: Say,
) -> Result<Remote, Failure> {
    let shown = socket.display().to_string();
    let options = RemoteOptions {
        at_once: false,
        selection: Selection::Named,
        ..RemoteOptions::new(socket, "esp")
    };
    let weak: Weak<Mutex<Gateway>> = Arc::downgrade(gateway);
    let tell = {
        let shown = shown.clone();
        move |is_there: bool| {
            let Some(gateway) = weak.upgrade() else { return };
            let mut gateway = gateway.lock().unpoisoned();
            gateway.has_daemon = is_there;
            match is_there {
                true => say.note(format_args!("cryptod at {shown} is there")),
                false => say.note(format_args!(
                    "cryptod at {shown} has gone: packets under its keys are dropped until it is \
                     back"
                )),
            }
        }
    };
    let remote = Remote::connect_and_tell(engine, options, tell)
        .map_err(|why| Failure::new(format!("cannot use cryptod at {shown}: {}", plain(&why))))?;
    remote.wait(DAEMON_WAIT);
    let is_there = remote.driver().is_some();
    gateway.lock().unpoisoned().has_daemon = is_there;
    if !is_there {
        say.note(format_args!(
            "no cryptod answers at {shown} yet: tunnels with its keys wait for it"
        ));
    }
    Ok(remote)
}

struct Threads<'t> {
    engine: &'t Engine,
    shared: &'t Arc<Shared>,
    stop: &'t Stop,
    ended: &'t mpsc::UnboundedSender<io::Error>,
    /// Keys are in a daemon, perhaps.
    has_cryptod: bool,
}

impl Threads<'_> {
    /// Two for each queue, and two more where keys are in a daemon.
    fn start(&self, queues: Vec<TunQueue>, sockets: &Sockets) -> io::Result<Vec<JoinHandle<()>>> {
        let mut threads = Vec::new();
        for (number, queue) in queues.into_iter().enumerate() {
            let (mut in_aside, mut out_aside) = (None, None);
            if self.has_cryptod {
                let (aside, packets) = sync_channel(ASIDE_PACKETS);
                let inward = Inward::new(self.engine, self.view(), queue.try_clone()?, None);
                let thread = named(format!("in-keyed {number}"));
                threads.push(thread.spawn(move || inward.run_aside(&packets))?);
                in_aside = Some(aside);
                let (aside, packets) = sync_channel(ASIDE_PACKETS);
                let (queue, sockets) = (queue.try_clone()?, sockets.try_clone()?);
                let outward = Outward::new(self.engine, self.view(), queue, sockets, None);
                let thread = named(format!("out-keyed {number}"));
                threads.push(thread.spawn(move || outward.run_aside(&packets))?);
                out_aside = Some(aside);
            }
            let inward = Inward::new(self.engine, self.view(), queue.try_clone()?, in_aside);
            let (incoming, stop) = (sockets.try_clone()?, self.stop.clone());
            let thread = named(format!("in {number}"));
            threads.push(thread.spawn(move || inward.run(incoming, &stop))?);
            let sockets = sockets.try_clone()?;
            let outward = Outward::new(self.engine, self.view(), queue, sockets, out_aside);
            let (stop, ended) = (self.stop.clone(), self.ended.clone());
            let thread = named(format!("out {number}"));
            threads.push(thread.spawn(move || {
                if let Err(why) = outward.run(&stop) {
                    // At the end nothing hears it.
                    let _ = ended.send(why);
                }
            })?);
        }
        Ok(threads)
    }

    fn view(&self) -> View {
        View::new(self.shared)
    }
}

fn named(name: String) -> thread::Builder {
    thread::Builder::new().name(name)
}

/// What answers requests.
#[derive(Clone)]
struct Answers {
    gateway: Arc<Mutex<Gateway>>,
    path: PathBuf,
    say: Say,
}

impl Answers {
    fn answer(&self, request: Request) -> Value {
        let mut gateway = self.gateway.lock().unpoisoned();
        match request {
            Request::Status => gateway.status(),
            Request::Reload => match gateway.reload(&self.path) {
                Ok(done) => {
                    self.say.note(format_args!("reloaded: {done}"));
                    json!({ "done": done })
                }
                Err(why) => {
                    self.say.note(format_args!("not reloaded: {why}"));
                    json!({ "failed": why.to_string() })
                }
            },
        }
    }
}

fn say_ready(options: &UpOptions, gateway: &Mutex<Gateway>) -> Result<(), Failure> {
    let gateway = gateway.lock().unpoisoned();
    let (device, tunnels) = (gateway.tun.name(), gateway.running.len());
    let listen = gateway.configuration.outside.listen;
    let listen = listen.map(|address| address.to_string());
    let control = options.control.display();
    if options.json {
        return output::json(&json!({
            "event": "ready",
            "device": device,
            "mtu": gateway.mtu,
            "tunnels": tunnels,
            "listen": listen,
            "esp": gateway.configuration.outside.esp,
            "control": control.to_string(),
            "pid": std::process::id(),
        }));
    }
    let raw = gateway.configuration.outside.esp.then(|| "ESP (IP protocol 50)".to_owned());
    let outside: Vec<_> = listen.map(|it| format!("UDP {it}")).into_iter().chain(raw).collect();
    output::text(format_args!(
        "ready: {} between {device} (MTU {}) and {}; keyway esp status asks \
         {control}",
        count(tunnels),
        gateway.mtu,
        outside.join(" and "),
    ))
}
