//! Other people's programs: clients that the tests use, servers that the benchmarks measure.

use crate::linux;
use crate::shell::{cargo, root, run, strict, succeeds};
use std::fs;
use std::path::Path;
use std::process::Command;

/// A Debian package, and a command that succeeds when what we want of it is there.
pub struct Peer {
    package: &'static str,
    probe: &'static [&'static str],
}

pub const fn peer(package: &'static str, probe: &'static [&'static str]) -> Peer {
    Peer { package, probe }
}

/// The programs that the end-to-end tests use.
pub const TEST: &[Peer] = &[
    peer("ldap-utils", &["ldapsearch", "-VV"]),
    peer("python3-ldap", &["/usr/bin/python3", "-c", "import ldap"]),
    peer("python3-ldap3", &["/usr/bin/python3", "-c", "import ldap3"]),
    peer("openssl", &["openssl", "version"]),
    peer("gcc", &["cc", "--version"]),
    peer("libssl-dev", &["test", "-f", "/usr/include/openssl/evp.h"]),
    peer("haproxy", &["test", "-x", "/usr/sbin/haproxy"]),
    peer("nginx", &["test", "-x", "/usr/sbin/nginx"]),
    peer("stunnel4", &["test", "-x", "/usr/bin/stunnel"]),
    peer("apache2-bin", &["test", "-x", "/usr/sbin/apache2"]),
    peer("postgresql", &["sh", "-c", "ls /usr/lib/postgresql/*/bin/initdb && command -v psql"]),
    peer("curl", &["curl", "--version"]),
    peer("lmdb-utils", &["mdb_stat", "-V"]),
    peer("strace", &["strace", "-V"]),
    peer("xfsprogs", &["mkfs.xfs", "-V"]),
    peer("python3-venv", &["/usr/bin/python3", "-c", "import venv, ensurepip"]),
    peer("valgrind", &["valgrind", "--version"]),
    peer("swtpm", &["swtpm", "--version"]),
    peer("tpm2-tools", &["tpm2_unseal", "--version"]),
    peer("slapd", &["test", "-x", "/usr/sbin/slapd"]),
    peer("openssh-client", &["sh", "-c", "command -v ssh && command -v ssh-add"]),
    peer("openssh-server", &["test", "-x", "/usr/sbin/sshd"]),
    peer("opensc", &["sh", "-c", "command -v pkcs11-tool"]),
    peer("softhsm2", &["sh", "-c", "command -v softhsm2-util"]),
    peer("gnutls-bin", &["sh", "-c", "command -v p11tool && command -v certtool"]),
    peer("libnss3-tools", &["sh", "-c", "command -v certutil && command -v modutil"]),
    peer("libnss3-dev", &["test", "-f", "/usr/include/nss/pkcs11.h"]),
    peer("libp11-kit-dev", &["test", "-f", "/usr/include/p11-kit-1/p11-kit/pkcs11.h"]),
    peer("default-jdk-headless", &["sh", "-c", "command -v javac"]),
    peer("tcpdump", &["tcpdump", "--version"]),
    peer("tmux", &["tmux", "-V"]),
    peer("gdb", &["gdb", "--version"]),
    peer("tshark", &["tshark", "--version"]),
    peer("chromium", &["chromium", "--version"]),
    peer("chromium-driver", &["chromedriver", "--version"]),
    peer("fonts-dejavu-core", &["test", "-d", "/usr/share/fonts/truetype/dejavu"]),
    peer("qemu-system-x86", &["qemu-system-x86_64", "--version"]),
    peer("user-mode-linux", &["test", "-x", "/usr/bin/linux.uml"]),
    peer("busybox-static", &["busybox", "true"]),
    peer("iproute2", &["ip", "-V"]),
    // Programs in those have no debug information.
    peer("binutils", &["strip", "--version"]),
    // To unpack the kernel of the virtual machines.
    peer("kmod", &["test", "-x", "/usr/sbin/depmod"]),
    peer("xz-utils", &["xz", "--version"]),
    // An IKE daemon, and what it needs for ESP without the kernel's.
    peer("strongswan-charon", &["test", "-x", "/usr/lib/ipsec/charon"]),
    peer("strongswan-swanctl", &["sh", "-c", "command -v swanctl"]),
    peer(
        "libcharon-extra-plugins",
        &["sh", "-c", "ls /usr/lib/ipsec/plugins/*-kernel-libipsec.so"],
    ),
    // To build etcd; one that is older than the module asks for gets a newer one by itself, from 1.21 on.
    peer("golang-go", &["sh", "-c", "command -v go || test -x /usr/local/go/bin/go"]),
    peer("libstrongswan-standard-plugins", &["sh", "-c", "ls /usr/lib/ipsec/plugins/*-openssl.so"]),
];

/// The programs that the longer tests use beside those.
pub const NIGHTLY: &[Peer] = &[
    peer("btrfs-progs", &["mkfs.btrfs", "--version"]),
    peer("g++", &["c++", "--version"]),
    peer("debootstrap", &["debootstrap", "--version"]),
];

/// The programs that the benchmarks compare with.
const BENCH: &[Peer] = &[
    peer("slapd", &["test", "-x", "/usr/sbin/slapd"]),
    peer("389-ds-base", &["test", "-x", "/usr/sbin/ns-slapd"]),
    peer("ldap-utils", &["ldapsearch", "-VV"]),
    peer("dpdk-dev", &["test", "-x", "/usr/bin/dpdk-test-crypto-perf"]),
    peer("openssl", &["openssl", "version"]),
    peer("gcc", &["cc", "--version"]),
    peer("libssl-dev", &["test", "-f", "/usr/include/openssl/evp.h"]),
    peer("libipsec-mb-dev", &["test", "-f", "/usr/include/intel-ipsec-mb.h"]),
    peer("strace", &["strace", "-V"]),
    peer("p11-kit", &["p11-kit", "--version"]),
    peer("p11-kit-modules", &["sh", "-c", "ls /usr/lib/*/pkcs11/p11-kit-client.so"]),
    peer("libp11-kit-dev", &["test", "-d", "/usr/include/p11-kit-1"]),
    peer("softhsm2", &["softhsm2-util", "--version"]),
    // To build BoringSSL.
    peer("cmake", &["cmake", "--version"]),
    peer("g++", &["c++", "--version"]),
    peer("libclang-dev", &["sh", "-c", "ldconfig -p | grep -Eq 'libclang(-[0-9]+)?[.]so'"]),
    peer("qemu-system-x86", &["qemu-system-x86_64", "--version"]),
    peer("busybox-static", &["busybox", "true"]),
    // To unpack the kernel of the virtual machines.
    peer("kmod", &["test", "-x", "/usr/sbin/depmod"]),
    peer("xz-utils", &["xz", "--version"]),
    peer("iproute2", &["ip", "-V"]),
    peer("charon-systemd", &["test", "-x", "/usr/sbin/charon-systemd"]),
    // Its plug-in for IPsec in user space.
    peer(
        "libcharon-extra-plugins",
        &["test", "-f", "/etc/strongswan.d/charon/kernel-libipsec.conf"],
    ),
    peer("strongswan-swanctl", &["test", "-x", "/usr/sbin/swanctl"]),
    peer("wireguard-tools", &["wg", "--version"]),
    // To build wireguard-go.
    peer("golang-go", &["sh", "-c", "command -v go || test -x /usr/local/go/bin/go"]),
];

/// The user-space WireGuards that the gateway is measured beside. Debian's wireguard-go is of 2022, which is before it
/// used the offloads of a TUN device; boringtun is in no package.
const BORINGTUN: &str = "0.7.1";
const WIREGUARD_GO: &str = "v0.0.0-20260522210424-ecfc5a8d5446";

/// Installs what the benchmarks compare with and builds what is in no package: BoringSSL, WireGuards.
pub fn bench() -> Result<(), String> {
    install(BENCH)?;
    linux::fetch()?;
    for (name, built) in [("boringtun", boringtun()), ("wireguard-go", wireguard_go())] {
        match built {
            Err(why) if !strict() => eprintln!("xtask: {name} is not measured: {why}"),
            result => result?,
        }
    }
    if let Err(why) = ipsec_mb() {
        if strict() {
            return Err(why);
        }
        eprintln!("xtask: ipsec-mb's calls for QUIC are not measured: {why}");
    }
    // clang's library does not always bring its own headers.
    let headers = Command::new("cc").arg("-print-file-name=include").output();
    let headers = headers.map_err(|why| format!("cc: {why}"))?.stdout;
    let headers = String::from_utf8_lossy(&headers);
    let mut build = cargo();
    build.current_dir(root().join("bench/boringssl")).args(["build", "--release"]);
    build.env("BINDGEN_EXTRA_CLANG_ARGS", format!("-I{}", headers.trim()));
    match run(build.env_remove("CARGO_TARGET_DIR")) {
        Err(why) if !strict() => {
            eprintln!("xtask: BoringSSL is not measured: {why}");
            Ok(())
        }
        result => result,
    }
}

fn boringtun() -> Result<(), String> {
    let folder = root().join("target/tools").join(format!("boringtun-cli-{BORINGTUN}"));
    if folder.join("bin/boringtun-cli").exists() {
        return Ok(());
    }
    let mut install = cargo();
    install.args(["install", "boringtun-cli", "--locked", "--version", BORINGTUN, "--root"]);
    run(install.arg(folder))
}

fn wireguard_go() -> Result<(), String> {
    let programs = root().join(format!("target/tools/wireguard-go-{WIREGUARD_GO}/bin"));
    if programs.join("wireguard").exists() {
        return Ok(());
    }
    let go = if succeeds("go", &["version"]) { "go" } else { "/usr/local/go/bin/go" };
    let module = format!("golang.zx2c4.com/wireguard@{WIREGUARD_GO}");
    run(Command::new(go).args(["install", &module]).env("GOBIN", programs))
}

/// Unpacks ipsec-mb 2.0 below the target folder: the release of Debian that most have is without
/// calls for QUIC, the next is not. Nothing of it is installed.
fn ipsec_mb() -> Result<(), String> {
    const SCRIPT: &str = r#"
        mkdir -p lists/partial cache/archives/partial
        site=$(apt-get indextargets --format '$(SITE)' | grep -v security | head -n 1)
        echo "deb $site trixie main" > sources.list
        get() {
            apt-get -q -o Dir::Etc::sourcelist="$PWD/sources.list" -o Dir::Etc::sourceparts=- \
                -o Dir::State::lists="$PWD/lists" -o Dir::Cache="$PWD/cache" "$@"
        }
        get update && get download libipsec-mb-dev libipsec-mb2 || exit
        rm -r lists cache
        for package in *.deb; do dpkg-deb -x "$package" . || exit; done
    "#;
    let folder = root().join("target/packages/ipsec-mb");
    if folder.join("usr/include").exists() {
        return Ok(());
    }
    fs::create_dir_all(&folder).map_err(|why| format!("{}: {why}", folder.display()))?;
    run(Command::new("sh").args(["-c", SCRIPT]).current_dir(folder))
}

/// Installs what is missing, with Debian's package manager and as root (or with a sudo that asks
/// nothing). A package that cannot be installed is said; it is an error only where nothing may be skipped.
pub fn install(peers: &[Peer]) -> Result<(), String> {
    let missing = |peers: &[Peer]| -> Vec<&'static str> {
        let absent = |peer: &&Peer| !succeeds(peer.probe[0], &peer.probe[1..]);
        peers.iter().filter(absent).map(|peer| peer.package).collect()
    };
    let wanted = missing(peers);
    if wanted.is_empty() {
        return Ok(());
    }
    if let Some(apt) = apt() {
        let get = |arguments: &[&str]| {
            let mut command = Command::new(apt[0]);
            command.args(&apt[1..]).args(["-q", "-y"]).args(arguments);
            // A server that a package starts on installation is not wanted.
            run(command.env("DEBIAN_FRONTEND", "noninteractive").env("RUNLEVEL", "1"))
        };
        let mut arguments = vec!["install", "--no-install-recommends"];
        arguments.extend(&wanted);
        let done = get(&["update"]).and_then(|()| get(&arguments));
        if let Err(why) = done {
            eprintln!("xtask: {why}");
        }
    }
    let still = missing(peers);
    if still.is_empty() {
        return Ok(());
    }
    let names = still.join(" ");
    if strict() {
        return Err(format!("these Debian packages are needed and could not be had: {names}"));
    }
    eprintln!(
        "xtask: not installed, what needs them is skipped: {names}\n\
         xtask: on Debian or Ubuntu: sudo apt-get install {names}"
    );
    Ok(())
}

fn apt() -> Option<&'static [&'static str]> {
    if !Path::new("/usr/bin/apt-get").exists() {
        None
    } else if succeeds("sh", &["-c", "test $(id -u) = 0"]) {
        Some(&["apt-get"])
    } else if succeeds("sudo", &["-n", "true"]) {
        Some(&["sudo", "-n", "apt-get"])
    } else {
        None
    }
}
