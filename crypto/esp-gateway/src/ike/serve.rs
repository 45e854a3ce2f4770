//! The thread that charon speaks to. It has the socket of UDP 500 as well, where IKE comes without ESP.

use crate::gateway::Gateway;
use crate::ike::door::Door;
use crate::ike::message::{self, Channel, MESSAGE_BYTES_MAX, Refusal, Request, Status, Welcome};
use crate::socket_file::SocketFile;
use crate::stop::{Stop, Waited};
use keyway_host::failure::Failure;
use keyway_lock::Unpoisoned;
use keyway_packet_io::Socket;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::net::sockopt::socket_peercred;
use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, SocketAddrUnix, SocketFlags, SocketType, accept_with,
    bind, connect, listen, recv, send, socket_with,
};
use rustix::process::geteuid;
use std::net::SocketAddr;
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;
use std::sync::{Arc, Mutex};
use zeroize::Zeroize;

/// Connections at once: charon has two.
const CONNECTIONS_MAX: usize = 8;
const FLAGS: SocketFlags = SocketFlags::CLOEXEC.union(SocketFlags::NONBLOCK);

/// The socket that charon finds. Its file goes with it.
pub struct Listener {
    socket: OwnedFd,
    _file: SocketFile,
}

impl Listener {
    /// At this path, for this user and root. Its folder is made if it is not there.
    ///
    /// # Errors
    /// If another gateway listens there, or the system refuses.
    pub fn open(path: &Path) -> Result<Listener, Failure> {
        let refused = |why: Errno| Failure::system("listen on", path, &why.into());
        let open = || socket_with(AddressFamily::UNIX, SocketType::SEQPACKET, FLAGS, None);
        let address = SocketAddrUnix::new(path).map_err(refused)?;
        if connect(&open().map_err(refused)?, &address).is_ok() {
            return Err(Failure::new(format!(
                "another gateway listens on {}; stop it, or name another socket in [ike]",
                path.display()
            )));
        }
        let socket = open().map_err(refused)?;
        let file = SocketFile::make(path, || Ok(bind(&socket, &address)?))?;
        // Nothing can connect before it listens.
        listen(&socket, 8).map_err(refused)?;
        Ok(Listener { socket, _file: file })
    }
}

/// The gateway's sockets, as IKE uses them.
pub struct IkeSockets {
    /// IKE without a marker; `None` where the configuration wants none.
    pub plain: Option<(u16, Socket)>,
    /// IKE beside ESP, for sending: other threads receive.
    pub shared: (SocketAddr, Socket),
}

struct Connection {
    socket: OwnedFd,
    /// What it is for, once it has said hello.
    channel: Option<Channel>,
}

/// The thread's things.
pub struct Server {
    listener: Listener,
    sockets: IkeSockets,
    gateway: Arc<Mutex<Gateway>>,
    door: Arc<Door>,
    connections: Vec<Connection>,
    /// The charon that is served, and whether it has had a connection for events.
    instance: Option<(u64, bool)>,
    message: Vec<u8>,
}

/// What becomes of a connection.
enum Then {
    Stays,
    Ends,
}

impl Server {
    /// One that nothing speaks to yet.
    pub fn new(
        listener: Listener,
        sockets: IkeSockets,
        gateway: Arc<Mutex<Gateway>>,
        door: Arc<Door>,
    ) -> Server {
        Server {
            listener,
            sockets,
            gateway,
            door,
            connections: Vec::new(),
            instance: None,
            message: vec![0; MESSAGE_BYTES_MAX],
        }
    }

    /// Works until it is to stop.
    pub fn run(mut self, stop: &Stop) {
        loop {
            let connections = self.connections.iter().map(|it| &it.socket as &dyn AsFd);
            let plain = self.sockets.plain.iter().map(|(_, it)| it as &dyn AsFd);
            let mut all: Vec<&dyn AsFd> = connections.chain(plain).collect();
            all.push(&self.listener.socket);
            if stop.wait(&all, None) == Waited::Stopped {
                self.door.close();
                return;
            }
            self.receive_plain();
            let mut at = 0;
            while at < self.connections.len() {
                match self.hear(at) {
                    Then::Stays => at += 1,
                    Then::Ends => self.end(at),
                }
            }
            self.accept();
        }
    }

    /// Hands over what came to UDP 500.
    fn receive_plain(&mut self) {
        let Some((port, socket)) = &mut self.sockets.plain else { return };
        let (door, port) = (&self.door, *port);
        // A socket in trouble is like one to which nothing came.
        let _ = socket.receive(|payload, received| {
            if let Some(to) = received.destination {
                // Without charon IKE's packets are lost, as without a listener.
                door.deliver(received.source, SocketAddr::new(to, port), payload);
            }
        });
    }

    fn accept(&mut self) {
        let Ok(socket) = accept_with(&self.listener.socket, FLAGS) else { return };
        let is_ours =
            socket_peercred(&socket).is_ok_and(|peer| peer.uid == geteuid() || peer.uid.is_root());
        if is_ours && self.connections.len() < CONNECTIONS_MAX {
            self.connections.push(Connection { socket, channel: None });
        }
    }

    fn end(&mut self, at: usize) {
        if self.connections.remove(at).channel == Some(Channel::Events) {
            self.door.close();
        }
    }

    /// Takes one message of a connection.
    fn hear(&mut self, at: usize) -> Then {
        let Some(Connection { socket, channel }) = self.connections.get(at) else {
            return Then::Ends;
        };
        let received = recv(socket, &mut self.message, RecvFlags::DONTWAIT | RecvFlags::TRUNC);
        let (length, channel) = match received {
            Ok((_, 1..)) if received_whole(&received) => (received.map_or(0, |it| it.1), *channel),
            Err(Errno::AGAIN | Errno::INTR) => return Then::Stays,
            _ => return Then::Ends,
        };
        let mut message = std::mem::take(&mut self.message);
        let heard = message.get(..length).unwrap_or_default();
        let then = match channel {
            None => self.greet(at, heard),
            Some(Channel::Requests) => self.answer(at, heard),
            Some(Channel::Events) => self.pass_on(heard),
        };
        // It may have had a key.
        message.get_mut(..length).unwrap_or_default().zeroize();
        self.message = message;
        then
    }

    /// The first message of a connection.
    fn greet(&mut self, at: usize, heard: &[u8]) -> Then {
        let Ok((number, Request::Hello { version, channel, instance })) = message::request(heard)
        else {
            return Then::Ends;
        };
        let why = if version != message::VERSION {
            Some(format!(
                "its plug-in has version {version} of the messages, the gateway {}: take both from one release",
                message::VERSION
            ))
        } else if self.instance.is_some_and(|(served, _)| served != instance) && self.is_served(at)
        {
            Some("another charon has the gateway".to_owned())
        } else {
            None
        };
        if let Some(why) = why {
            let refusal = Refusal::new(Status::Failed, why);
            self.say(at, &message::refused(number, &refusal));
            return Then::Ends;
        }
        if self.instance.is_none_or(|(served, _)| served != instance) {
            self.instance = Some((instance, false));
            self.gateway.lock().unpoisoned().forget_negotiated();
        }
        // A second connection for the same replaces the first.
        let same = self.connections.iter().position(|it| it.channel == Some(channel));
        let mut is_new = false;
        if channel == Channel::Events {
            let events = self.connections.get(at).map(|it| it.socket.try_clone());
            let Some(Ok(events)) = events else { return Then::Ends };
            let had_events = self.instance.replace((instance, true));
            is_new = had_events.is_none_or(|(_, had)| !had);
            self.door.open(events);
        }
        let welcome = self.welcome(is_new);
        self.say(at, &message::welcome(number, &welcome));
        if let Some(connection) = self.connections.get_mut(at) {
            connection.channel = Some(channel);
        }
        if let Some(same) = same {
            self.connections.remove(same);
        }
        Then::Stays
    }

    /// Whether a connection other than this one is one of a charon that lives.
    fn is_served(&self, besides: usize) -> bool {
        self.connections
            .iter()
            .enumerate()
            .any(|(at, it)| at != besides && it.channel.is_some() && !is_hung_up(&it.socket))
    }

    fn welcome(&self, is_new: bool) -> Welcome {
        let gateway = self.gateway.lock().unpoisoned();
        let (address, _) = self.sockets.shared;
        // A socket of any IPv6 address has IPv4 too.
        let any = address.ip().is_unspecified();
        Welcome {
            is_new,
            is_udp_only: gateway.sockets.raw.is_empty(),
            families: (address.is_ipv4() || any, address.is_ipv6()),
            ports: (self.sockets.plain.as_ref().map(|(port, _)| *port), address.port()),
            device: gateway.tun.name().to_owned(),
        }
    }

    fn say(&self, at: usize, message: &[u8]) {
        if let Some(connection) = self.connections.get(at) {
            // One that does not read its answer waits for nothing.
            let _ = send(&connection.socket, message, SendFlags::DONTWAIT | SendFlags::NOSIGNAL);
        }
    }

    fn answer(&mut self, at: usize, heard: &[u8]) -> Then {
        let Ok((number, request)) = message::request(heard) else { return Then::Ends };
        let answer = self.gateway.lock().unpoisoned().negotiate(number, &request);
        self.say(at, &answer);
        Then::Stays
    }

    /// A packet that charon sends.
    fn pass_on(&mut self, heard: &[u8]) -> Then {
        let Ok(packet) = message::packet(heard) else { return Then::Ends };
        let IkeSockets { plain, shared } = &mut self.sockets;
        let socket = match plain {
            // charon leaves the port to us at first.
            Some((port, socket)) if packet.source.port() == *port || packet.source.port() == 0 => {
                socket
            }
            _ => &mut shared.1,
        };
        socket.push(packet.destination, 0, &[packet.payload]);
        // What is lost is sent again by charon.
        socket.flush();
        Then::Stays
    }
}

/// Whether the buffer had room for all of a message.
fn received_whole(received: &Result<(usize, usize), Errno>) -> bool {
    received.is_ok_and(|(written, length)| written == length)
}

/// Whether the other side of a connection is gone.
fn is_hung_up(socket: &OwnedFd) -> bool {
    let mut file = [PollFd::new(socket, PollFlags::empty())];
    let polled = poll(&mut file, Some(&Timespec::default()));
    let [file] = file;
    polled.is_ok() && file.revents().intersects(PollFlags::HUP | PollFlags::ERR)
}
