//! Configurations as they are written: what is taken, and what is refused with its line and what helps.

use keyway_esp::{Mode, Suite};
use keyway_esp_gateway::config::{Configuration, Key, Remote, Wrong, parse, read};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::time::Duration;
use zeroize::Zeroizing;

/// The lines are numbered in the table below.
const GOOD: &str = r#"[device]
name = "esp0"
addresses = ["10.1.0.1/24", "fd01::1/64"]
[outside]
listen = "[::]:4500"
esp = true
[cryptod]
socket = "/run/keyway/cryptod.socket"
[[tunnel]]
name = "office"
remote = "198.51.100.1:4500"
algorithm = "aes-128-gcm"
lifetime = { seconds = 100, soft = 0.5 }
[[tunnel.selector]]
local = "10.1.0.0/24"
remote = "10.2.0.0/24"
protocol = "udp"
remote_ports = "1000-2000"
[tunnel.out]
spi = "0x1001"
key = "000102030405060708090a0b0c0d0e0f01020304"
[tunnel.in]
spi = "8193"
key = "100102030405060708090a0b0c0d0e0f"
salt = "01020305"
[[tunnel]]
name = "home"
mode = "transport"
local = "2001:db8::1"
remote = "2001:db8::2"
algorithm = "aes-256-cbc-hmac-sha-1"
esn = false
window = 64
selector = [{ local = "2001:db8::1/128", remote = "2001:db8::2" }]
out = { spi = "0x1002", key_file = "out.key" }
in = { spi = "0x2002", key_file = "in.key" }
[[tunnel]]
name = "held"
remote = "198.51.100.1"
algorithm = "chacha20-poly1305"
selector = [{ local = "10.1.0.0/24", remote = "10.3.0.0/24" }]
out = { spi = "0x1003", key_name = "held-out", salt = "01020304" }
in = { spi = "0x2003", key_name = "held-in", salt = "01020304" }
"#;

fn parsed(text: &str) -> Result<Configuration, Wrong> {
    parse(text, &mut |name| match name {
        "out.key" => Ok(Zeroizing::new(vec![1; 52])),
        "in.key" => Ok(Zeroizing::new("02".repeat(52).into_bytes())),
        _ => Err("there is no such file".to_owned()),
    })
}

/// Transport mode needs an interface, since its route would lead sealed packets back.
fn good() -> String {
    GOOD.replace("esp = true\n", "esp = true\ninterface = \"eth0\"\n")
}

#[test]
fn a_configuration_is_what_it_says() {
    let read = parsed(&good()).unwrap();
    assert_eq!((read.device.queues, read.device.mtu, read.device.routes), (1, None, true));
    assert_eq!(read.device.retire, Duration::from_secs(60));
    assert_eq!(read.outside.keepalive, Some(Duration::from_secs(20)));
    let [office, home, held] = &read.tunnels[..] else { panic!("{}", read.tunnels.len()) };
    assert_eq!((office.mode, office.esn, office.window), (Mode::Tunnel, true, 1024));
    assert_eq!((office.out.spi, office.inbound.spi), (0x1001, 8193));
    assert_eq!((office.out.salt, office.inbound.salt), ([1, 2, 3, 4], [1, 2, 3, 5]));
    let (soft, hard) = (office.lifetime.soft, office.lifetime.hard);
    assert_eq!((soft.seconds, hard.seconds, hard.bytes), (Some(50), Some(100), None));
    let selector = &office.selectors[0];
    assert_eq!((selector.protocol, selector.remote_ports.clone()), (Some(17), 1000..=2000));
    assert_eq!((home.mode, home.suite, home.esn), (Mode::Transport, Suite::Aes256CbcSha1, false));
    assert!(matches!(home.remote, Remote::Raw(_)) && matches!(office.remote, Remote::Udp(_)));
    assert!(matches!(&home.inbound.key, Key::Secret(key) if ***key == [2; 52]));
    assert!(matches!(&held.out.key, Key::Named(name) if name == "held-out"));
}

#[test]
fn what_is_wrong_is_told_with_its_line_and_what_helps() {
    let good = good();
    for (from, to, line, part) in [
        ("name = \"esp0\"", "name = \"esp/0\"", 2, "no name of an interface"),
        ("10.1.0.1/24", "10.1.0.1", 3, "10.1.0.1/24"),
        ("\"fd01::1/64\"", "\"fd01::1/129\"", 3, "fd01::1/129"),
        ("addresses", "adresses", 3, "adresses"),
        ("listen = \"[::]:4500\"", "listen = \"4500\"", 5, "0.0.0.0:4500"),
        ("listen = \"[::]:4500\"", "listen = \"[::1]:4500\"", 12, "which is for both"),
        ("esp = true", "esp = false", 31, "esp = true"),
        ("esp = true", "esp = true\nmark = 0", 7, "mark is not from 1"),
        ("esp = true", "esp = true\nkeepalive = 4000", 7, "0 for none"),
        ("name = \"office\"", "name = \"of fice\"", 11, "a tunnel's name has"),
        ("name = \"home\"", "name = \"office\"", 28, "two tunnels"),
        ("\"198.51.100.1:4500\"", "\"office\"", 12, "198.51.100.1:4500"),
        ("\"198.51.100.1:4500\"", "\"0.0.0.0:4500\"", 12, "no address of one host"),
        ("\"aes-128-gcm\"", "\"aes-128-ccm\"", 13, "chacha20-poly1305"),
        ("\"aes-128-gcm\"", "\"aes-256-gcm\"", 22, "36 bytes, the last 4 the salt"),
        ("seconds = 100", "seconds = 0", 14, "seconds is not from 1"),
        ("soft = 0.5", "soft = 2.0", 14, "like 0.9"),
        ("soft = 0.5", "hours = 1", 14, "hours"),
        ("\"10.1.0.0/24\"\nremote", "\"10.1.0.1/24\"\nremote", 16, "10.1.0.0/24"),
        ("\"10.2.0.0/24\"", "\"fd00::/64\"", 17, "one selector for each"),
        ("\"udp\"", "\"upd\"", 18, "icmp, ipip, tcp"),
        ("\"udp\"", "256", 18, "0 to 255"),
        ("protocol = \"udp\"\n", "", 18, "ports need protocol"),
        ("1000-2000", "2000-1000", 19, "1000-2000"),
        ("\"0x1001\"", "\"0xff\"", 21, "0x100"),
        ("\"0x1001\"", "\"1001h\"", 21, "0x100"),
        ("0c0d0e0f01020304", "0c0d0e0f0102030", 22, "hexadecimal"),
        ("salt = \"01020305\"", "salt = \"010203\"", 26, "4 bytes"),
        ("salt = \"01020305\"", "", 25, "the last 4 the salt"),
        ("key = \"10", "key_name = \"K10", 25, "64 at most"),
        (
            "key = \"100102030405060708090a0b0c0d0e0f\"\nsalt = \"01020305\"",
            "key = \"000102030405060708090a0b0c0d0e0f01020304\"",
            23,
            "each direction needs its own",
        ),
        ("\"transport\"", "\"trunnel\"", 29, "\"transport\""),
        ("local = \"2001:db8::1\"\nremote", "remote", 30, "transport mode needs local"),
        ("local = \"2001:db8::1\"\nremote", "local = \"192.0.2.1\"\nremote", 30, "two versions"),
        ("2001:db8::1/128", "2001:db8::9/128", 35, "the selector has to contain both"),
        ("window = 64", "window = 16", 34, "from 32 to 8192"),
        ("\"out.key\"", "\"none.key\"", 36, "there is no such file"),
        ("key_file = \"out.key\"", "key_name = \"out\"", 36, "is none; use key"),
        ("key_file = \"out.key\"", "salt = \"01020304\"", 36, "has no salt"),
        ("key_file = \"out.key\"", "key = \"00\", key_file = \"out.key\"", 36, "name the key once"),
        ("\"0x2002\"", "\"8193\"", 37, "receives under this SPI already"),
        ("key_name = \"held-in\"", "key_name = \"held-out\"", 44, "each direction needs its own"),
        ("\"held-out\", salt = \"01020304\"", "\"held-out\"", 43, "needs its salt"),
        ("[cryptod]\nsocket = \"/run/keyway/cryptod.socket\"\n", "", 41, "[cryptod]"),
    ] {
        let text = good.replacen(from, to, 1);
        assert_ne!(text, good, "{from}");
        let Err(why) = parsed(&text) else { panic!("taken: {from} as {to}") };
        assert!(why.why.contains(part), "{from} as {to}: {why}");
        // Where a part was left out, what follows has moved.
        let moved = to.lines().count().abs_diff(from.lines().count().max(1));
        assert!(why.line.abs_diff(line) <= moved, "{from} as {to}: {why}, not line {line}");
    }
    for text in ["", "[device]\n", "[device\n", "\u{0}", "[device]\nname = \"esp0\"\ntunnel = 1\n"]
    {
        assert!(parsed(text).is_err(), "{text:?}");
    }
    let none = parsed("[device]\nname = \"esp0\"\n").unwrap();
    assert_eq!(none.outside.listen.unwrap().port(), 4500);
}

#[test]
fn sealed_packets_do_not_come_back() {
    let why = parsed(GOOD).err().unwrap();
    assert!(why.why.contains("interface = \"eth0\"") && why.why.contains("ip rule"), "{why}");
    parsed(&GOOD.replace("esp = true", "esp = true\nmark = 51")).unwrap();
    parsed(&GOOD.replace("addresses", "routes = false\naddresses")).unwrap();
}

#[test]
fn files_with_keys_are_their_owners_alone() {
    let place = tempfile::tempdir().unwrap();
    let at = |name: &str| place.path().join(name);
    let set = |name: &str, mode| {
        fs::set_permissions(at(name), fs::Permissions::from_mode(mode)).unwrap();
    };
    fs::write(at("esp.toml"), good()).unwrap();
    fs::write(at("out.key"), [1; 52]).unwrap();
    fs::write(at("in.key"), "02".repeat(52)).unwrap();
    set("esp.toml", 0o600);
    set("out.key", 0o600);
    set("in.key", 0o640);
    let refused = |part: &str| {
        let why = read(&at("esp.toml")).err().unwrap().to_string();
        assert!(why.contains(part) && why.contains("chmod 600"), "{why}");
    };
    refused("in.key");
    set("in.key", 0o600);
    read(&at("esp.toml")).unwrap();
    set("esp.toml", 0o604);
    refused("it has keys");
    // One that only names files is for all to read.
    let text = good();
    let named = &text[..text.find("[[tunnel]]\nname = \"office\"").unwrap()];
    let home = &text[text.find("[[tunnel]]\nname = \"home\"").unwrap()..];
    fs::write(at("esp.toml"), format!("{named}{home}")).unwrap();
    read(&at("esp.toml")).unwrap();
}
