//! Debian's kernel, as the virtual machines of the tests boot it: unpacked below the target folder, not installed.

use crate::shell::{root, run as sh, strict};
use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

/// Fetches the newest one into the working directory, and unpacks it without the drivers of real hardware and other
/// large modules: all of it is 400 MB.
const FETCH: &str = r#"
    set -e
    rm -rf boot lib usr lists cache ./*.deb
    mkdir -p lists/partial cache/archives/partial
    with="-o Dir::State::lists=$PWD/lists -o Dir::Cache=$PWD/cache"
    apt-get -q $with update
    package=$(apt-cache $with depends linux-image-amd64 | sed -n 's/^ *Depends: \(linux-image-[0-9].*\)$/\1/p' | head -n 1)
    test -n "$package" || { echo "apt knows no linux-image-amd64: this is not Debian" >&2; exit 1; }
    apt-get -q $with download "$package"
    set -- fs/btrfs fs/ceph fs/cifs fs/nfs fs/nfsd fs/ocfs2 fs/xfs net/bluetooth net/mac80211 net/netfilter sound
    for folder in ata bluetooth gpu hid hwmon iio infiniband input isdn leds media message mfd misc mmc mtd \
        net/can net/ethernet net/hamradio net/phy net/usb net/wireless nvme parport pcmcia platform power scsi \
        staging target thunderbolt usb video
    do
        set -- "$@" "drivers/$folder"
    done
    for folder; do set -- "$@" "--exclude=*/kernel/$folder"; shift; done
    dpkg-deb --fsys-tarfile ./*.deb | tar -x "$@" --exclude='./usr/share/*'
    [ -d lib ] || mv usr/lib lib
    find lib -name '*.ko.xz' -exec xz -d {} +
    PATH=$PATH:/usr/sbin:/sbin depmod -b . "$(ls lib/modules)"
    rm -rf lists cache ./*.deb
"#;

/// Leaves `vmlinux` and `lib/modules/VERSION` in the folder, once. That it cannot is an error only where nothing may
/// be skipped.
pub fn fetch() -> Result<(), String> {
    match unpacked(&root().join("target/packages/linux")) {
        Err(why) if !strict() => {
            eprintln!("xtask: tests in virtual machines are skipped: {why}");
            Ok(())
        }
        result => result,
    }
}

fn unpacked(folder: &Path) -> Result<(), String> {
    let vmlinux = folder.join("vmlinux");
    if vmlinux.exists() {
        return Ok(());
    }
    if !cfg!(target_arch = "x86_64") {
        return Err("they boot a kernel for amd64".into());
    }
    fs::create_dir_all(folder).map_err(|why| format!("{}: {why}", folder.display()))?;
    sh(Command::new("sh").args(["-c", FETCH]).current_dir(folder))?;
    let boot = folder.join("boot");
    let mut images = fs::read_dir(&boot).map_err(|why| format!("{}: {why}", boot.display()))?;
    let image = images.next().and_then(Result::ok).ok_or("the package has no kernel")?;
    let image = fs::read(image.path()).map_err(|why| format!("the kernel: {why}"))?;
    let kernel = decompressed(payload(&image).ok_or("the kernel is no bzImage")?)?;
    // Last, and at once: it says that all is there.
    let draft = folder.join("vmlinux.new");
    fs::write(&draft, kernel)
        .and_then(|()| fs::rename(&draft, &vmlinux))
        .map_err(|why| format!("{}: {why}", vmlinux.display()))
}

/// The compressed kernel in a bzImage (Linux's x86 boot protocol 2.08), without its length at the end.
fn payload(image: &[u8]) -> Option<&[u8]> {
    let word = |at: usize| {
        let bytes = image.get(at..at + 4)?.try_into().ok()?;
        usize::try_from(u32::from_le_bytes(bytes)).ok()
    };
    if image.get(0x202..0x206)? != b"HdrS" {
        return None;
    }
    let sectors = usize::from(*image.get(0x1f1)?);
    let start = (sectors + 1) * 512 + word(0x248)?;
    image.get(start..start + word(0x24c)?.checked_sub(4)?)
}

fn decompressed(payload: &[u8]) -> Result<Vec<u8>, String> {
    let program = match payload {
        [0xfd, b'7', b'z', b'X', b'Z', ..] => "xz",
        [0x28, 0xb5, 0x2f, 0xfd, ..] => "zstd",
        _ => return Err("the kernel is compressed neither by xz nor by zstd".into()),
    };
    let mut command = Command::new(program);
    command.arg("-dc").stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = command.spawn().map_err(|why| format!("{program}: {why}"))?;
    let mut input = child.stdin.take().ok_or("no input")?;
    let output = std::thread::scope(|scope| {
        // A program that ends early says why itself.
        scope.spawn(move || input.write_all(payload));
        child.wait_with_output()
    });
    let output = output.map_err(|why| format!("{program}: {why}"))?;
    if output.status.success() {
        Ok(output.stdout)
    } else {
        Err(format!("{program}: {}", output.status))
    }
}
