//! Security associations between a gateway and a guest, one pair for each way that ESP can be: as the gateway's
//! configuration, and as what `ip` makes of them in a kernel.

use std::fmt::Write;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// An algorithm, with its lengths in bytes.
#[derive(Debug)]
pub struct Suite {
    /// As the gateway names it.
    pub name: &'static str,
    /// As `ip xfrm state` names what encrypts.
    cipher: &'static str,
    key: usize,
    /// As `ip xfrm state` names what authenticates, where that is another, with the bits of its result.
    mac: Option<(&'static str, usize, usize)>,
}

const GCM: &str = "rfc4106(gcm(aes))";
const SHA_256: Option<(&str, usize, usize)> = Some(("hmac(sha256)", 32, 128));
const SHA_1: Option<(&str, usize, usize)> = Some(("hmac(sha1)", 20, 96));

pub const SUITES: [Suite; 7] = [
    Suite { name: "aes-128-gcm", cipher: GCM, key: 16, mac: None },
    Suite { name: "aes-256-gcm", cipher: GCM, key: 32, mac: None },
    Suite {
        name: "chacha20-poly1305",
        cipher: "rfc7539esp(chacha20,poly1305)",
        key: 32,
        mac: None,
    },
    Suite { name: "aes-128-cbc-hmac-sha-256", cipher: "cbc(aes)", key: 16, mac: SHA_256 },
    Suite { name: "aes-256-cbc-hmac-sha-256", cipher: "cbc(aes)", key: 32, mac: SHA_256 },
    Suite { name: "aes-128-cbc-hmac-sha-1", cipher: "cbc(aes)", key: 16, mac: SHA_1 },
    Suite { name: "aes-256-cbc-hmac-sha-1", cipher: "cbc(aes)", key: 32, mac: SHA_1 },
];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    Tunnel,
    Transport,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Family {
    V4,
    V6,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Side {
    Gateway,
    Guest,
}

/// The width of both windows against replays, in packets.
pub const WINDOW: u32 = 128;

/// A pair of security associations.
#[derive(Debug, Clone)]
pub struct Case {
    /// Tells it from the others, in its addresses, keys and SPIs.
    pub number: u16,
    /// Tells its keys and SPIs from those that it had before.
    pub generation: u8,
    pub suite: &'static Suite,
    pub mode: Mode,
    pub outer: Family,
    /// In transport mode that of the outside.
    pub inner: Family,
    pub esn: bool,
    pub encapsulated: bool,
}

/// Every way that there is.
pub fn all() -> Vec<Case> {
    use Family::{V4, V6};
    let shapes = [
        (Mode::Tunnel, V4, V4),
        (Mode::Tunnel, V4, V6),
        (Mode::Tunnel, V6, V4),
        (Mode::Tunnel, V6, V6),
        (Mode::Transport, V4, V4),
        (Mode::Transport, V6, V6),
    ];
    let mut cases = Vec::new();
    for suite in &SUITES {
        for (mode, outer, inner) in shapes {
            for (esn, encapsulated) in [(true, true), (true, false), (false, true), (false, false)]
            {
                let number = cases.len() as u16 + 1;
                cases.push(Case {
                    number,
                    generation: 0,
                    suite,
                    mode,
                    outer,
                    inner,
                    esn,
                    encapsulated,
                });
            }
        }
    }
    cases
}

impl Case {
    /// One line that says which it is.
    pub fn name(&self) -> String {
        let esn = if self.esn { "ESN" } else { "no ESN" };
        let how = if self.encapsulated { "UDP" } else { "raw" };
        let (suite, number) = (self.suite.name, self.number);
        format!(
            "case {number}: {suite}, {:?}, {:?} in {:?}, {esn}, {how}",
            self.mode, self.inner, self.outer
        )
    }

    /// Where its ESP packets come from and go to.
    pub fn outside(&self, side: Side) -> IpAddr {
        match (side, self.mode) {
            // Two policies for the same addresses would be one.
            (Side::Guest, Mode::Transport) => self.own(self.outer, [198, 18], 0x2001_0db8_0001),
            _ => link(side, self.outer),
        }
    }

    /// Where its inner packets come from and go to.
    pub fn inside(&self, side: Side) -> IpAddr {
        match (side, self.mode) {
            (_, Mode::Transport) => self.outside(side),
            (Side::Gateway, Mode::Tunnel) => gateway_inside(self.inner),
            (Side::Guest, Mode::Tunnel) => self.own(self.inner, [10, 2], 0xfd02_0000_0000),
        }
    }

    /// An address of it alone, in a network of 16 or 48 bits.
    fn own(&self, family: Family, v4: [u8; 2], v6: u128) -> IpAddr {
        let [high, low] = self.number.to_be_bytes();
        match family {
            Family::V4 => Ipv4Addr::new(v4[0], v4[1], high, low).into(),
            Family::V6 => Ipv6Addr::from_bits(v6 << 80 | u128::from(self.number)).into(),
        }
    }

    /// The SPI of what this side sends.
    pub fn spi(&self, from: Side) -> u32 {
        let base = if from == Side::Gateway { 0x0010_0000 } else { 0x8000_0000 };
        base + (u32::from(self.generation) << 16) + u32::from(self.number)
    }

    /// The keys of what this side sends, and the salt behind them if there is one.
    fn keys(&self, from: Side) -> Vec<u8> {
        let mac = self.suite.mac.map_or(4, |(_, bytes, _)| bytes);
        let mut state = u64::from(self.spi(from));
        let mut byte = || {
            // Steele, Lea and Flood's SplitMix.
            state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
            let mixed = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            ((mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb) >> 56) as u8
        };
        (0..self.suite.key + mac).map(|_| byte()).collect()
    }

    /// As `ip` names what this side sends.
    pub fn id(&self, from: Side) -> String {
        let (source, destination) = (self.outside(from), self.outside(from.other()));
        format!("src {source} dst {destination} proto esp spi {:#x}", self.spi(from))
    }

    /// What `ip` is to do for what this side sends, in a kernel that is this or the other side; `more` is for `ip` too.
    pub fn state(&self, from: Side, more: &str) -> String {
        let (id, keys, number) = (self.id(from), self.keys(from), self.number);
        let mut flags = Vec::new();
        if self.esn {
            flags.push("esn");
        }
        if self.mode == Mode::Tunnel {
            // Both families inside.
            flags.push("af-unspec");
        }
        let flags =
            if flags.is_empty() { flags.join("") } else { format!("flag {}", flags.join(" ")) };
        let cipher = self.suite.cipher;
        let algorithm = match self.suite.mac {
            None => format!("aead {cipher} 0x{} 128", hex(&keys)),
            Some((mac, _, bits)) => {
                let (key, mac_key) = keys.split_at(self.suite.key);
                format!("enc {cipher} 0x{} auth-trunc {mac} 0x{} {bits}", hex(key), hex(mac_key))
            }
        };
        let encap = if self.encapsulated { "encap espinudp 4500 4500 0.0.0.0" } else { "" };
        let mode = self.mode.name();
        format!(
            "xfrm state add {id} reqid {number} mode {mode} replay-window {WINDOW} {flags} {algorithm} {encap} {more}\n"
        )
    }

    /// What `ip` is to do so that packets between these addresses are to be in what a side sends.
    pub fn policy(
        &self,
        from: Side,
        direction: &str,
        source: IpAddr,
        destination: IpAddr,
    ) -> String {
        let (id, number, mode) = (self.id(from), self.number, self.mode.name());
        // What comes in may be of an earlier generation too.
        let id = if direction == "in" { id.split(" spi").next().unwrap_or_default() } else { &id };
        format!(
            "xfrm policy update src {source} dst {destination} dir {direction} priority 1000 \
             tmpl {id} reqid {number} mode {mode}\n"
        )
    }

    /// All that `ip` is to do in a kernel that is this side.
    pub fn linux(&self, side: Side) -> String {
        let of = |from: Side| {
            let direction = if from == side { "out" } else { "in" };
            let (source, destination) = (self.inside(from), self.inside(from.other()));
            self.state(from, "") + &self.policy(from, direction, source, destination)
        };
        of(side) + &of(side.other())
    }

    /// A `[[tunnel]]` of the gateway's configuration.
    pub fn gateway(&self) -> String {
        let port = if self.encapsulated { Some(4500) } else { None };
        let remote = match (self.outside(Side::Guest), port) {
            (remote, Some(port)) => std::net::SocketAddr::new(remote, port).to_string(),
            (remote, None) => remote.to_string(),
        };
        let bits = |address: IpAddr| if address.is_ipv4() { 32 } else { 128 };
        let (local, far) = (self.inside(Side::Gateway), self.inside(Side::Guest));
        let sa =
            |from| format!("spi = \"{:#x}\"\nkey = \"{}\"", self.spi(from), hex(&self.keys(from)));
        format!(
            r#"
[[tunnel]]
name = "case-{}"
mode = "{}"
local = "{}"
remote = "{remote}"
algorithm = "{}"
esn = {}
window = {WINDOW}
[[tunnel.selector]]
local = "{local}/{}"
remote = "{far}/{}"
[tunnel.out]
{}
[tunnel.in]
{}
"#,
            self.number,
            self.mode.name(),
            self.outside(Side::Gateway),
            self.suite.name,
            self.esn,
            bits(local),
            bits(far),
            sa(Side::Gateway),
            sa(Side::Guest),
        )
    }
}

impl Mode {
    fn name(self) -> &'static str {
        if self == Mode::Tunnel { "tunnel" } else { "transport" }
    }
}

impl Side {
    pub fn other(self) -> Side {
        if self == Side::Gateway { Side::Guest } else { Side::Gateway }
    }

    /// Its Ethernet address.
    pub fn ethernet(self) -> &'static str {
        if self == Side::Gateway { "02:00:00:00:00:01" } else { "02:00:00:00:00:02" }
    }
}

/// Its address on the link.
pub fn link(side: Side, family: Family) -> IpAddr {
    let last = if side == Side::Gateway { 1 } else { 2 };
    match family {
        Family::V4 => Ipv4Addr::new(192, 0, 2, last).into(),
        Family::V6 => Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, last.into()).into(),
    }
}

/// The gateway's address within tunnels.
pub fn gateway_inside(family: Family) -> IpAddr {
    match family {
        Family::V4 => Ipv4Addr::new(10, 1, 0, 1).into(),
        Family::V6 => Ipv6Addr::new(0xfd01, 0, 0, 0, 0, 0, 0, 1).into(),
    }
}

/// What `ip` is to do first, for a side with this device: addresses, and the other side's, so that nothing asks for it.
pub fn network(side: Side, device: &str, mtu: u32) -> String {
    let mut lines = format!("link set {device} mtu {mtu} up\n");
    for (family, bits) in [(Family::V4, 24), (Family::V6, 64)] {
        let (own, other) = (link(side, family), link(side.other(), family));
        let nodad = if family == Family::V6 { "nodad" } else { "" };
        let ethernet = side.other().ethernet();
        lines += &format!(
            "address add {own}/{bits} dev {device} {nodad}\n\
             neighbour replace {other} lladdr {ethernet} nud permanent dev {device}\n"
        );
    }
    lines
}

/// The routes and addresses that these cases need of a kernel that does ESP itself.
pub fn ends(side: Side, device: &str, cases: &[Case]) -> String {
    let mut lines = String::new();
    let (v4, v6) = (link(side.other(), Family::V4), link(side.other(), Family::V6));
    if side == Side::Gateway {
        for family in [Family::V4, Family::V6] {
            lines += &format!("address add {} dev lo\n", gateway_inside(family));
        }
        for (network, via) in [("10.2.0.0/16", v4), ("fd02::/48", v6)] {
            lines += &format!("route add {network} via {via} dev {device}\n");
        }
        lines += &far(device);
    } else {
        for (family, via) in [(Family::V4, v4), (Family::V6, v6)] {
            lines += &format!("route add {} via {via} dev {device}\n", gateway_inside(family));
        }
        for case in cases {
            lines += &format!("address add {} dev lo\n", case.inside(Side::Guest));
        }
    }
    lines
}

/// The gateway's routes to the guest's outer addresses that are not on the link.
pub fn far(device: &str) -> String {
    let (v4, v6) = (link(Side::Guest, Family::V4), link(Side::Guest, Family::V6));
    format!(
        "route add 198.18.0.0/16 via {v4} dev {device}\n\
         route add 2001:db8:1::/48 via {v6} dev {device}\n"
    )
}

/// What `ip` is to do so that ESP in UDP passes the policies of transport mode.
pub fn let_encapsulated_in() -> String {
    let mut lines = String::new();
    for any in ["0.0.0.0/0", "::/0"] {
        for direction in ["in", "out"] {
            lines += &format!(
                "xfrm policy add src {any} dst {any} proto 17 dport 4500 dir {direction} priority 1\n"
            );
        }
    }
    lines
}

pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        write!(text, "{byte:02x}").expect("a string");
        text
    })
}
