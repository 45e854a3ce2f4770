//! A gateway's configuration: read, checked, and never applied in part. Every error says the line, what is wrong
//! there, and what to write instead.

mod key;
mod raw;
mod wrong;

pub use key::{Key, Keyed, ReadFile};
pub use wrong::Wrong;

use crate::limits::{
    CONFIGURATION_BYTES_MAX, INTERFACE_BYTES_MAX, KEEPALIVE_S_MAX, KEY_FILE_BYTES_MAX, MTU_MAX,
    MTU_MIN, QUEUES_MAX, RETIRE_S_MAX, SELECTORS_MAX, TUNNEL_NAME_BYTES_MAX, TUNNELS_MAX,
};
use keyway_esp::{Lifetime, Limit, Mode, Prefix, Selector, Suite};
use keyway_host::failure::{Failure, plain};
use raw::{Protocol, Raw};
use std::collections::HashMap;
use std::fs::File;
use std::io::{self, Read};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::ops::RangeInclusive;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Duration;
use toml::Spanned;
use wrong::Text;
use zeroize::Zeroizing;

/// A configuration in which everything fits.
#[derive(Clone, PartialEq)]
pub struct Configuration {
    /// The side of the clear text.
    pub device: Device,
    /// The side of the sealed text.
    pub outside: Outside,
    /// The daemon's socket, if keys are named.
    pub cryptod: Option<PathBuf>,
    /// The tunnels, in the order of the file.
    pub tunnels: Vec<Tunnel>,
    /// The files of keys that were read.
    pub files: Vec<PathBuf>,
}

/// `[device]`
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Device {
    /// The TUN device's name.
    pub name: String,
    /// Its addresses, each with the bits of its network.
    pub addresses: Vec<(IpAddr, u8)>,
    /// Its MTU in bytes; `None` for what the paths allow.
    pub mtu: Option<u32>,
    /// Its queues: threads a direction.
    pub queues: usize,
    /// Whether routes of the tunnels' remote selectors lead into it.
    pub routes: bool,
    /// How long an inbound SA that is in the file no more still takes packets.
    pub retire: Duration,
}

/// `[outside]`
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outside {
    /// Where UDP is received and sent from; `None` if all tunnels are raw ESP.
    pub listen: Option<SocketAddr>,
    /// Whether raw ESP (IP protocol 50) is received as well.
    pub esp: bool,
    /// The interface that outer sockets are bound to.
    pub interface: Option<String>,
    /// The mark of outer packets.
    pub mark: Option<u32>,
    /// The time between NAT keepalives; `None` for none.
    pub keepalive: Option<Duration>,
}

/// The other end of a tunnel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Remote {
    /// ESP in UDP (RFC 3948).
    Udp(SocketAddr),
    /// ESP as an IP protocol.
    Raw(IpAddr),
}

impl Remote {
    /// The address.
    pub fn address(self) -> IpAddr {
        match self {
            Remote::Udp(to) => to.ip(),
            Remote::Raw(to) => to,
        }
    }

    /// Address and port; a port of 0 is raw ESP.
    pub fn socket_address(self) -> SocketAddr {
        match self {
            Remote::Udp(to) => to,
            Remote::Raw(to) => SocketAddr::new(to, 0),
        }
    }
}

/// `[[tunnel]]`
#[derive(Clone, PartialEq)]
pub struct Tunnel {
    /// Its name.
    pub name: String,
    /// The line that it begins on.
    pub line: usize,
    /// Tunnel or transport mode.
    pub mode: Mode,
    /// This gateway's outer address.
    pub local: Option<IpAddr>,
    /// The other gateway's.
    pub remote: Remote,
    /// The algorithms.
    pub suite: Suite,
    /// Whether sequence numbers have 64 bits.
    pub esn: bool,
    /// The width of the window against replays.
    pub window: u32,
    /// The packets that belong into it.
    pub selectors: Vec<Selector>,
    /// The key of what goes out.
    pub out: Keyed,
    /// The key of what comes in.
    pub inbound: Keyed,
    /// How much both keys may be used.
    pub lifetime: Lifetime,
}

/// Reads the configuration at a path, and the keys that it names files of.
///
/// # Errors
/// The first that is wrong, with the file and the line; a file that others can read, where it has keys.
pub fn read(path: &Path) -> Result<Configuration, Failure> {
    let (text, mode) =
        file(path, CONFIGURATION_BYTES_MAX).map_err(|why| Failure::system("read", path, &why))?;
    let text = std::str::from_utf8(&text).map_err(|why| {
        Failure::new(format!("{}: byte {} is no UTF-8", path.display(), why.valid_up_to()))
    })?;
    let folder = path.parent().unwrap_or(Path::new("."));
    let mut files = Vec::new();
    let mut read_key = |name: &str| {
        let path = folder.join(name);
        files.push(path.clone());
        let (bytes, mode) = file(&path, KEY_FILE_BYTES_MAX).map_err(|why| plain(&why))?;
        match mode & 0o077 {
            0 => Ok(bytes),
            _ => Err(open_to_others(&path, mode)),
        }
    };
    let wrong = |why: &Wrong| Failure::new(format!("{}:{}: {}", path.display(), why.line, why.why));
    let mut read = parse(text, &mut read_key).map_err(|why| wrong(&why))?;
    let has_keys = toml::from_str::<Raw>(text).is_ok_and(|raw| {
        let tunnels = raw.tunnels.iter().map(Spanned::get_ref);
        tunnels.flat_map(|it| [&it.out, &it.inbound]).any(|it| it.get_ref().key.is_some())
    });
    if has_keys && mode & 0o077 != 0 {
        return Err(Failure::new(format!(
            "{}: it has keys, and {}",
            path.display(),
            open_to_others(path, mode)
        )));
    }
    read.files = files;
    Ok(read)
}

fn open_to_others(path: &Path, mode: u32) -> String {
    format!("others may open it (mode {:o}); chmod 600 {}", mode & 0o777, path.display())
}

/// The bytes of a file, and its mode.
fn file(path: &Path, bytes_max: u64) -> io::Result<(Zeroizing<Vec<u8>>, u32)> {
    let file = File::open(path)?;
    let found = file.metadata()?;
    if !found.is_file() {
        return Err(io::Error::other("it is not a file"));
    }
    let mut bytes = Zeroizing::new(Vec::with_capacity(found.len().min(bytes_max) as usize + 1));
    if file.take(bytes_max + 1).read_to_end(&mut bytes)? as u64 > bytes_max {
        return Err(io::Error::other(format!("it is longer than {bytes_max} bytes")));
    }
    Ok((bytes, found.mode()))
}

/// Checks the text of a configuration.
///
/// # Errors
/// The first that is wrong.
pub fn parse(text: &str, read_file: &mut ReadFile<'_>) -> Result<Configuration, Wrong> {
    let raw: Raw = toml::from_str(text).map_err(|why| {
        let span = why.span().unwrap_or(0..0);
        // The message may have several lines: what is wrong, and what was expected.
        Text(text).at(span, why.message().replace('\n', ", "))
    })?;
    Checker { text: Text(text), read_file }.configuration(&raw)
}

struct Checker<'c, 'r> {
    text: Text<'c>,
    read_file: &'c mut ReadFile<'r>,
}

impl Checker<'_, '_> {
    fn configuration(mut self, raw: &Raw) -> Result<Configuration, Wrong> {
        let device = self.device(&raw.device)?;
        let has_udp = raw.tunnels.iter().any(|it| is_udp(it.get_ref().remote.get_ref()));
        let outside = self.outside(raw.outside.as_ref(), has_udp)?;
        let cryptod = raw.cryptod.as_ref().map(|it| PathBuf::from(it.socket.get_ref()));
        if raw.tunnels.len() > TUNNELS_MAX {
            let why = format!("there are {} tunnels; {TUNNELS_MAX} is the most", raw.tunnels.len());
            return Err(self.text.at(0..0, why));
        }
        let mut tunnels = Vec::with_capacity(raw.tunnels.len());
        for raw in &raw.tunnels {
            tunnels.push(self.tunnel(raw, &outside, cryptod.is_some())?);
        }
        unique(self.text, &raw.tunnels, &tunnels)?;
        if device.routes && outside.interface.is_none() && outside.mark.is_none() {
            no_loop(self.text, &raw.tunnels, &tunnels, &device.name)?;
        }
        Ok(Configuration { device, outside, cryptod, tunnels, files: Vec::new() })
    }

    fn device(&self, raw: &raw::Device) -> Result<Device, Wrong> {
        let name = self.interface(&raw.name)?;
        let address = |at: &Spanned<String>| {
            let (address, bits) = at.get_ref().split_once('/')?;
            let address: IpAddr = address.parse().ok()?;
            let most = if address.is_ipv4() { 32 } else { 128 };
            Some((address, bits.parse().ok().filter(|bits| *bits <= most)?))
        };
        let addresses = raw.addresses.iter().map(|at| {
            address(at).ok_or_else(|| {
                let why = format!(
                    "{:?} is no address with its network's bits, like \"10.1.0.1/24\"",
                    at.get_ref()
                );
                self.text.wrong(at, why)
            })
        });
        let mtu = self.within(raw.mtu.as_ref(), "mtu", MTU_MIN..=MTU_MAX, "bytes")?;
        let queues = self.within(raw.queues.as_ref(), "queues", 1..=QUEUES_MAX as u64, "queues")?;
        let retire = self.within(raw.retire.as_ref(), "retire", 0..=RETIRE_S_MAX, "seconds")?;
        Ok(Device {
            name,
            addresses: addresses.collect::<Result<_, _>>()?,
            mtu: mtu.map(|mtu| mtu as u32),
            queues: queues.map_or(1, |queues| queues as usize),
            routes: raw.routes.unwrap_or(true),
            retire: Duration::from_secs(retire.unwrap_or(60)),
        })
    }

    fn outside(&self, raw: Option<&raw::Outside>, has_udp: bool) -> Result<Outside, Wrong> {
        let default = raw::Outside::default();
        let raw = raw.unwrap_or(&default);
        let listen = raw.listen.as_ref().map(|at| {
            at.get_ref().parse::<SocketAddr>().map_err(|_| {
                let why = format!(
                    "listen {:?} is no address and port, like \"0.0.0.0:4500\" or \"[::]:4500\"",
                    at.get_ref()
                );
                self.text.wrong(at, why)
            })
        });
        let mut listen = listen.transpose()?;
        let esp = raw.esp.as_ref().is_some_and(|it| *it.get_ref());
        if listen.is_none() && (has_udp || !esp) {
            listen = Some(SocketAddr::from((Ipv4Addr::UNSPECIFIED, 4500)));
        }
        let mark = self.within(raw.mark.as_ref(), "mark", 1..=u64::from(u32::MAX), "")?;
        let keepalive = self.within(
            raw.keepalive.as_ref(),
            "keepalive",
            0..=KEEPALIVE_S_MAX,
            "seconds (0 for none)",
        )?;
        let keepalive = keepalive.unwrap_or(20);
        Ok(Outside {
            listen,
            esp,
            interface: raw.interface.as_ref().map(|it| self.interface(it)).transpose()?,
            mark: mark.map(|mark| mark as u32),
            keepalive: (keepalive > 0).then(|| Duration::from_secs(keepalive)),
        })
    }

    fn tunnel(
        &mut self,
        at: &Spanned<raw::Tunnel>,
        outside: &Outside,
        has_cryptod: bool,
    ) -> Result<Tunnel, Wrong> {
        let raw = at.get_ref();
        let name = self.name(&raw.name)?;
        let mode = match raw.mode.as_ref().map(Spanned::get_ref).map(String::as_str) {
            None | Some("tunnel") => Mode::Tunnel,
            Some("transport") => Mode::Transport,
            Some(other) => {
                let at = raw.mode.as_ref().map_or(0..0, Spanned::span);
                return Err(self
                    .text
                    .at(at, format!("mode {other:?} is not \"tunnel\" or \"transport\"")));
            }
        };
        let local = raw.local.as_ref().map(|at| self.address(at, "local")).transpose()?;
        let remote = self.remote(&raw.remote, outside)?;
        if let (Some(address), Some(at)) = (local, &raw.local)
            && address.is_ipv4() != remote.address().is_ipv4()
        {
            return Err(self.text.wrong(
                at,
                format!(
                    "local {address} and remote {} are of two versions of IP",
                    remote.address()
                ),
            ));
        }
        let suite = Suite::from_name(raw.algorithm.get_ref()).ok_or_else(|| {
            let names: Vec<_> = Suite::ALL.iter().map(|suite| suite.name()).collect();
            let why =
                format!("algorithm {:?} is none of {}", raw.algorithm.get_ref(), names.join(", "));
            self.text.wrong(&raw.algorithm, why)
        })?;
        let window = self.within(raw.window.as_ref(), "window", 32..=8192, "packets")?;
        if raw.selectors.is_empty() || raw.selectors.len() > SELECTORS_MAX {
            let why = format!(
                "tunnel {name:?} has {} selectors; give it 1 to {SELECTORS_MAX} \
                 [[tunnel.selector]], which say what it carries",
                raw.selectors.len()
            );
            return Err(self.text.at(at.span(), why));
        }
        let selectors = raw.selectors.iter().map(|it| self.selector(it));
        let selectors = selectors.collect::<Result<Vec<_>, _>>()?;
        if mode == Mode::Transport {
            self.transport(raw, &selectors, local, remote)?;
        }
        let mut key = |side| key::keyed(self.text, side, suite, has_cryptod, self.read_file);
        let (out, inbound) = (key(&raw.out)?, key(&raw.inbound)?);
        Ok(Tunnel {
            name,
            line: self.text.at(at.span(), "").line,
            mode,
            local,
            remote,
            suite,
            esn: raw.esn.unwrap_or(true),
            window: window.map_or(1024, |window| window as u32),
            selectors,
            out,
            inbound,
            lifetime: self.lifetime(raw.lifetime.as_ref())?,
        })
    }

    /// In transport mode the outer addresses are those of the packet itself.
    fn transport(
        &self,
        raw: &raw::Tunnel,
        selectors: &[Selector],
        local: Option<IpAddr>,
        remote: Remote,
    ) -> Result<(), Wrong> {
        let Some(local) = local else {
            return Err(self.text.wrong(
                &raw.remote,
                "transport mode needs local = \"ADDRESS\", \
                                                     this host's address, which its packets come \
                                                     from",
            ));
        };
        for (at, selector) in raw.selectors.iter().zip(selectors) {
            if !selector.local.contains(local) || !selector.remote.contains(remote.address()) {
                let why = format!(
                    "in transport mode packets go from {local} to {}; the selector has to contain \
                     both",
                    remote.address()
                );
                return Err(self.text.at(at.span(), why));
            }
        }
        Ok(())
    }

    fn remote(&self, at: &Spanned<String>, outside: &Outside) -> Result<Remote, Wrong> {
        let written = at.get_ref();
        let wrong = |why: String| self.text.wrong(at, why);
        let remote = match (written.parse::<SocketAddr>(), written.parse::<IpAddr>()) {
            (Ok(to), _) if to.port() != 0 => Remote::Udp(to),
            (_, Ok(to)) => Remote::Raw(to),
            _ => {
                return Err(wrong(format!(
                    "remote {written:?} is neither an address and port, like \
                     \"198.51.100.1:4500\" or \"[2001:db8::1]:4500\", nor an address alone (raw \
                     ESP)"
                )));
            }
        };
        if remote.address().is_unspecified() || remote.address().is_multicast() {
            return Err(wrong(format!("remote {written:?} is no address of one host")));
        }
        match (remote, outside.listen) {
            (Remote::Raw(_), _) if !outside.esp => Err(wrong(format!(
                "remote {written:?} has no port, so it is raw ESP: set [outside] esp = true, or \
                 name the port ({})",
                SocketAddr::new(remote.address(), 4500)
            ))),
            (Remote::Udp(to), Some(listen))
                if to.is_ipv4()
                    && listen.is_ipv6()
                    && listen.ip() != IpAddr::V6(Ipv6Addr::UNSPECIFIED) =>
            {
                Err(wrong(format!(
                    "remote {written:?} cannot be reached from [outside] listen = \"{listen}\"; \
                     listen on \"0.0.0.0:4500\" or on \"[::]:4500\", which is for both"
                )))
            }
            (Remote::Udp(to), Some(listen)) if to.is_ipv6() && listen.is_ipv4() => {
                Err(wrong(format!(
                    "remote {written:?} cannot be reached from [outside] listen = \"{listen}\"; \
                     listen on \"[::]:4500\", which is for both"
                )))
            }
            _ => Ok(remote),
        }
    }

    fn selector(&self, at: &Spanned<raw::Selector>) -> Result<Selector, Wrong> {
        let raw = at.get_ref();
        let prefix = |at: &Spanned<String>| {
            at.get_ref()
                .parse::<Prefix>()
                .map_err(|why| self.text.wrong(at, format!("{:?}: {why}", at.get_ref())))
        };
        let (local, remote) = (prefix(&raw.local)?, prefix(&raw.remote)?);
        if local.address().is_ipv4() != remote.address().is_ipv4() {
            return Err(self.text.wrong(
                &raw.remote,
                "local and remote of a selector are of one \
                                                     version of IP; write one selector for each",
            ));
        }
        let protocol = raw.protocol.as_ref().map(|at| self.protocol(at)).transpose()?;
        let has_ports = matches!(protocol, Some(6 | 17 | 33 | 132 | 136));
        let ports = |at: &Option<Spanned<String>>| match at {
            None => Ok(0..=u16::MAX),
            Some(at) if !has_ports => Err(self.text.wrong(
                at,
                "ports need protocol = \"tcp\", \"udp\", \"sctp\", \"dccp\" or \"udplite\"",
            )),
            Some(at) => self.ports(at),
        };
        let (local_ports, remote_ports) = (ports(&raw.local_ports)?, ports(&raw.remote_ports)?);
        Ok(Selector { local, remote, protocol, local_ports, remote_ports })
    }

    fn protocol(&self, at: &Spanned<Protocol>) -> Result<u8, Wrong> {
        let number = match at.get_ref() {
            Protocol::Number(number) => u8::try_from(*number).ok(),
            Protocol::Name(name) => {
                PROTOCOLS.iter().find(|(it, _)| it == name).map(|(_, number)| *number)
            }
        };
        number.ok_or_else(|| {
            let names: Vec<_> = PROTOCOLS.iter().map(|(name, _)| *name).collect();
            self.text.wrong(
                at,
                format!("protocol is none of {}, nor a number from 0 to 255", names.join(", ")),
            )
        })
    }

    fn ports(&self, at: &Spanned<String>) -> Result<RangeInclusive<u16>, Wrong> {
        let written = at.get_ref();
        let (first, last) = written.split_once('-').unwrap_or((written, written));
        let number = |text: &str| text.trim().parse::<u16>().ok();
        match (number(first), number(last)) {
            (Some(first), Some(last)) if first <= last => Ok(first..=last),
            _ => Err(self.text.wrong(
                at,
                format!(
                    "ports {written:?} are neither one, like \"53\", \
                                                  nor a range, like \"1000-2000\""
                ),
            )),
        }
    }

    fn lifetime(&self, raw: Option<&raw::Lifetime>) -> Result<Lifetime, Wrong> {
        let Some(raw) = raw else { return Ok(Lifetime { soft: NO_LIMIT, hard: NO_LIMIT }) };
        let soft = raw.soft.as_ref();
        let fraction = soft.map_or(0.9, |it| *it.get_ref());
        if let Some(at) = soft.filter(|_| !(0.0..=1.0).contains(&fraction)) {
            return Err(self.text.wrong(
                at,
                "soft is no fraction from 0.0 to 1.0, like 0.9: at \
                                            which part of its lifetime the gateway warns",
            ));
        }
        let all = 1..=u64::MAX;
        let hard = Limit {
            seconds: self.within(raw.seconds.as_ref(), "seconds", all.clone(), "")?,
            packets: self.within(raw.packets.as_ref(), "packets", all.clone(), "")?,
            bytes: self.within(raw.bytes.as_ref(), "bytes", all, "")?,
        };
        let part = |limit: Option<u64>| limit.map(|limit| (limit as f64 * fraction) as u64);
        let soft = Limit {
            seconds: part(hard.seconds),
            packets: part(hard.packets),
            bytes: part(hard.bytes),
        };
        Ok(Lifetime { soft, hard })
    }

    fn address(&self, at: &Spanned<String>, what: &str) -> Result<IpAddr, Wrong> {
        at.get_ref().parse().map_err(|_| {
            self.text.wrong(
                at,
                format!("{what} {:?} is no IP address, like \"192.0.2.1\"", at.get_ref()),
            )
        })
    }

    fn interface(&self, at: &Spanned<String>) -> Result<String, Wrong> {
        let name = at.get_ref();
        let is_name = !name.is_empty()
            && name.len() <= INTERFACE_BYTES_MAX
            && !matches!(name.as_str(), "." | "..")
            && name.bytes().all(|byte| byte.is_ascii_graphic() && !b"/:%".contains(&byte));
        match is_name {
            true => Ok(name.clone()),
            false => Err(self.text.wrong(
                at,
                format!(
                    "{name:?} is no name of an interface: 1 to \
                                                      {INTERFACE_BYTES_MAX} letters, digits and \
                                                      dashes"
                ),
            )),
        }
    }

    fn name(&self, at: &Spanned<String>) -> Result<String, Wrong> {
        let name = at.get_ref();
        let is_name = !name.is_empty()
            && name.len() <= TUNNEL_NAME_BYTES_MAX
            && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte));
        match is_name {
            true => Ok(name.clone()),
            false => Err(self.text.wrong(
                at,
                format!(
                    "name {name:?}: a tunnel's name has letters, \
                                                      digits, dashes, dots and underscores, \
                                                      {TUNNEL_NAME_BYTES_MAX} at most"
                ),
            )),
        }
    }

    fn within(
        &self,
        at: Option<&Spanned<u64>>,
        what: &str,
        range: RangeInclusive<u64>,
        unit: &str,
    ) -> Result<Option<u64>, Wrong> {
        let Some(at) = at else { return Ok(None) };
        if range.contains(at.get_ref()) {
            return Ok(Some(*at.get_ref()));
        }
        let (least, most) = range.into_inner();
        let unit = if unit.is_empty() { String::new() } else { format!(" {unit}") };
        Err(self.text.wrong(at, format!("{what} is not from {least} to {most}{unit}")))
    }
}

/// No limit at all.
const NO_LIMIT: Limit = Limit { bytes: None, packets: None, seconds: None };

/// Protocols by name (IANA's numbers).
const PROTOCOLS: [(&str, u8); 9] = [
    ("icmp", 1),
    ("ipip", 4),
    ("tcp", 6),
    ("udp", 17),
    ("dccp", 33),
    ("gre", 47),
    ("icmpv6", 58),
    ("sctp", 132),
    ("udplite", 136),
];

fn is_udp(remote: &str) -> bool {
    remote.parse::<SocketAddr>().is_ok()
}

/// No route of a selector may lead to another gateway: its sealed packets would come back.
fn no_loop(
    text: Text<'_>,
    raw: &[Spanned<raw::Tunnel>],
    tunnels: &[Tunnel],
    device: &str,
) -> Result<(), Wrong> {
    let inside = || tunnels.iter().flat_map(|it| &it.selectors).map(|it| it.remote);
    for (at, tunnel) in raw.iter().map(Spanned::get_ref).zip(tunnels) {
        let remote = tunnel.remote.address();
        if let Some(inside) = inside().find(|it| it.contains(remote)) {
            let why = format!(
                "the route of selector {inside} would lead the sealed packets for {remote} back into \
                 {device}; set [outside] interface = \"eth0\" (the one that leads there), or mark = 51 \
                 with: ip rule add not fwmark 51 lookup 51, and the routes of the selectors in \
                 table 51 (routes = false)"
            );
            return Err(text.wrong(&at.remote, why));
        }
    }
    Ok(())
}

/// Names, SPIs and keys that have to differ.
fn unique(text: Text<'_>, raw: &[Spanned<raw::Tunnel>], tunnels: &[Tunnel]) -> Result<(), Wrong> {
    let (mut names, mut inbound, mut out, mut keys) =
        (HashMap::new(), HashMap::new(), HashMap::new(), HashMap::new());
    for (at, tunnel) in raw.iter().map(Spanned::get_ref).zip(tunnels) {
        let name = &tunnel.name;
        if names.insert(name, ()).is_some() {
            return Err(text.wrong(&at.name, format!("two tunnels have the name {name:?}")));
        }
        if let Some(other) = inbound.insert(tunnel.inbound.spi, name) {
            let why =
                format!("tunnel {other:?} receives under this SPI already; each needs its own");
            return Err(text.wrong(&at.inbound.get_ref().spi, why));
        }
        if let Some(other) = out.insert((tunnel.remote.address(), tunnel.out.spi), name) {
            let why = format!(
                "tunnel {other:?} sends under this SPI to {} already; each needs its own",
                tunnel.remote.address()
            );
            return Err(text.wrong(&at.out.get_ref().spi, why));
        }
        for (keyed, side, way) in
            [(&tunnel.out, &at.out, "out"), (&tunnel.inbound, &at.inbound, "in")]
        {
            let (key, salt): (&[u8], _) = match &keyed.key {
                Key::Secret(key) => (key, Some(keyed.salt)),
                // One that numbers packets counts for its name, whatever the salt.
                Key::Named(name) => (name.as_bytes(), None),
            };
            if let Some((other, other_way)) = keys.insert((key, salt, tunnel.suite), (name, way)) {
                let why = format!(
                    "this is the key of tunnel {other:?}, {other_way}; two that number their \
                     packets under one key give its secrets away, so each direction needs its own"
                );
                return Err(text.at(side.span(), why));
            }
        }
    }
    Ok(())
}
