//! `cargo xtask package`: the Debian package, made of the release program and what is in
//! `packaging`; and its trial, and the image's.

use crate::peers::{self, Peer, peer};
use crate::shell::{cargo, metadata, root, run as sh, succeeds};
use std::fmt::Write as _;
use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The programs that make it.
const MAKE: &[Peer] = &[
    peer("dpkg-dev", &["dpkg-shlibdeps", "--version"]),
    peer("binutils", &["strip", "--version"]),
];

/// The programs that try it.
const TRY: &[Peer] = &[
    peer("lintian", &["lintian", "--version"]),
    peer("systemd", &["systemd-analyze", "--version"]),
    peer("iproute2", &["ip", "-V"]),
    peer("buildah", &["buildah", "--version"]),
    peer("debootstrap", &["debootstrap", "--version"]),
];

/// Files as they are, where they go, and their modes.
const FILES: &[(&str, &str, u32)] = &[
    ("packaging/systemd/keyway.service", "lib/systemd/system/keyway.service", 0o644),
    ("packaging/systemd/keyway.socket", "lib/systemd/system/keyway.socket", 0o644),
    ("packaging/systemd/keyway-esp@.service", "lib/systemd/system/keyway-esp@.service", 0o644),
    ("packaging/systemd/keyway.sysusers", "usr/lib/sysusers.d/keyway.conf", 0o644),
    ("directory/config/src/default.toml", "etc/keyway/keyway.toml", 0o644),
    ("docs/guide", "usr/share/doc/keyway/guide", 0o644),
    ("packaging/debian/postinst", "DEBIAN/postinst", 0o755),
    ("packaging/debian/prerm", "DEBIAN/prerm", 0o755),
    ("packaging/debian/postrm", "DEBIAN/postrm", 0o755),
    ("packaging/debian/config", "DEBIAN/config", 0o755),
    ("packaging/debian/templates", "DEBIAN/templates", 0o644),
];

/// Libraries that other programs load, and where these look.
const MODULES: [(&str, &str); 3] = [
    ("libkeyway_openssl.so", "ossl-modules/keyway.so"),
    ("libkeyway_pkcs11.so", "pkcs11/keyway.so"),
    ("libkeyway_devcrypto.so", "keyway/libkeyway_devcrypto.so"),
];

/// Makes the package and says where it is.
pub fn run() -> Result<(), String> {
    peers::install(MAKE)?;
    let package = make()?;
    eprintln!("xtask: {}", package.display());
    Ok(())
}

/// Makes the package, has lintian look at it, and tries it on a copy of this system; builds the image
/// and runs it.
pub fn nightly() -> Result<(), String> {
    peers::install(MAKE)?;
    peers::install(TRY)?;
    let package = make()?;
    if succeeds("lintian", &["--version"]) {
        sh(Command::new("lintian").args(["--allow-root", "--fail-on", "error"]).arg(&package))?;
    }
    if !succeeds("sh", &["-c", "test $(id -u) = 0 && unshare --mount --net true"]) {
        eprintln!("xtask: the package is not tried: that takes root, and namespaces");
        return Ok(());
    }
    sh(Command::new(root().join("packaging/debian/try.sh")).arg(&package))?;
    if !succeeds("sh", &["-c", "command -v buildah && command -v debootstrap"]) {
        eprintln!("xtask: the image is not tried: that takes buildah and debootstrap");
        return Ok(());
    }
    sh(&mut Command::new(root().join("packaging/try-image.sh")))
}

fn make() -> Result<PathBuf, String> {
    let packages = ["keyway", "keyway-openssl", "keyway-pkcs11", "keyway-devcrypto"];
    sh(cargo()
        .args(["build", "--release"])
        .args(packages.iter().flat_map(|it| ["--package", *it])))?;
    let (metadata, version) = (metadata()?, version()?);
    let target = metadata["target_directory"].as_str().ok_or("cargo names no target folder")?;
    let program = Path::new(target).join("release/keyway");
    let folder = root().join("target/debian");
    let staged = folder.join("root");
    match fs::remove_dir_all(&folder) {
        Err(why) if why.kind() != std::io::ErrorKind::NotFound => return Err(said(&folder, &why)),
        _ => {}
    }
    let installed = staged.join("usr/bin/keyway");
    make_folder(&installed)?;
    sh(Command::new("strip").arg("-o").arg(&installed).arg(&program))?;
    for (library, to) in MODULES {
        let module = staged.join(format!("usr/lib/{}/{to}", multiarch()?));
        make_folder(&module)?;
        let built = Path::new(target).join("release").join(library);
        sh(Command::new("strip").args(["--strip-unneeded", "-o"]).arg(&module).arg(&built))?;
        fs::set_permissions(&module, Permissions::from_mode(0o644))
            .map_err(|why| said(&module, &why))?;
    }
    for (from, to, mode) in FILES {
        copy(&root().join(from), &staged.join(to), *mode)?;
    }
    let date = output(Command::new("git").current_dir(root()).args(["log", "-1", "--format=%ct"]))?;
    documents(&staged, &installed, &version, &date)?;
    control(&folder, &staged, &version)?;
    let package = folder.join(format!("keyway_{version}_{}.deb", architecture()?));
    sh(Command::new("dpkg-deb")
        .args(["--root-owner-group", "-Zxz", "--build"])
        .args([&staged, &package])
        // Who builds the same again gets the same.
        .env("SOURCE_DATE_EPOCH", date))?;
    Ok(package)
}

/// The files that Debian wants in every package: copyright, changes, a manual page.
fn documents(staged: &Path, program: &Path, version: &str, date: &str) -> Result<(), String> {
    let doc = staged.join("usr/share/doc/keyway");
    let licence = read(&root().join("LICENSE-MIT"))?;
    let indented = licence.lines().map(|line| match line.trim() {
        "" => " .\n".to_owned(),
        line => format!(" {line}\n"),
    });
    let copyright = read(&root().join("packaging/debian/copyright"))?;
    let copyright = copyright.replace("@MIT@\n", &indented.collect::<String>());
    write(&doc.join("copyright"), &copyright, 0o644)?;
    let date = output(Command::new("date").args(["-u", "-R", "-d", &format!("@{date}")]))?;
    let changes = format!(
        "keyway ({version}) unstable; urgency=medium\n\n  * Version {version}; CHANGELOG.md in the \
         source has what is new.\n\n -- {}  {date}\n",
        maintainer()
    );
    write(&doc.join("changelog"), &changes, 0o644)?;
    let help = output(Command::new(program).arg("help"))?;
    let page = staged.join("usr/share/man/man1/keyway.1");
    write(&page, manual(&help, version), 0o644)?;
    sh(Command::new("gzip").args(["-9n"]).args([doc.join("changelog"), page]))
}

/// A manual page of what the program says of itself.
fn manual(help: &str, version: &str) -> String {
    let mut page = format!(
        ".TH KEYWAY 1 \"\" \"keyway {version}\" \"\"\n.SH NAME\nkeyway \\- directory server (LDAP) \
         whose cryptography goes through one engine\n.SH DESCRIPTION\nEach command has more: \
         \\fBkeyway help COMMAND\\fR. The guide is in /usr/share/doc/keyway/guide.\n.PP\n.nf\n"
    );
    for line in help.lines() {
        let line = line.replace('\\', "\\e").replace('-', "\\-");
        let dot = if line.starts_with(['.', '\'']) { "\\&" } else { "" };
        let _ = writeln!(page, "{dot}{line}");
    }
    page + ".fi\n"
}

/// The description of it that dpkg reads.
fn control(folder: &Path, staged: &Path, version: &str) -> Result<(), String> {
    let debian = staged.join("DEBIAN");
    let kib = output(Command::new("du").args(["-sk", "--apparent-size"]).arg(staged))?;
    let kib = kib.split_whitespace().next().unwrap_or("0");
    let template = read(&root().join("packaging/debian/control"))?;
    let control = template
        .replace("@VERSION@", version)
        .replace("@MAINTAINER@", &maintainer())
        .replace("@ARCHITECTURE@", &architecture()?)
        .replace("@INSTALLED_KIB@", kib)
        .replace("@LIBRARIES@", &libraries(folder, &staged.join("usr/bin/keyway"))?);
    write(&debian.join("control"), &control, 0o644)?;
    write(&debian.join("conffiles"), "/etc/keyway/keyway.toml\n", 0o644)?;
    let sums = "find etc lib usr -type f -print0 | sort -z | xargs -0 md5sum";
    let sums = output(Command::new("sh").args(["-c", sums]).current_dir(staged))?;
    write(&debian.join("md5sums"), &(sums + "\n"), 0o644)
}

/// The packages of the libraries that the program is linked with, and their versions.
fn libraries(folder: &Path, program: &Path) -> Result<String, String> {
    // It wants to be called where a source package is.
    let source = folder.join("source");
    write(
        &source.join("debian/control"),
        "Source: keyway\n\nPackage: keyway\nArchitecture: any\n",
        0o644,
    )?;
    let mut command = Command::new("dpkg-shlibdeps");
    let said = output(command.arg("-O").arg(program).current_dir(&source))?;
    let found = said.lines().find_map(|line| line.strip_prefix("shlibs:Depends="));
    found.map(str::to_owned).ok_or_else(|| format!("dpkg-shlibdeps names no library: {said}"))
}

/// The builder's name and address are taken as by Debian's other tools.
fn maintainer() -> String {
    let named = |name: &str, other: &str| std::env::var(name).unwrap_or_else(|_| other.to_owned());
    let name = named("DEBFULLNAME", "The authors of Keyway");
    format!("{name} <{}>", named("DEBEMAIL", "keyway@example.org"))
}

fn architecture() -> Result<String, String> {
    output(Command::new("dpkg").arg("--print-architecture"))
}

/// The name of the folder of libraries of this system's architecture.
fn multiarch() -> Result<String, String> {
    output(Command::new("dpkg-architecture").arg("-qDEB_HOST_MULTIARCH"))
}

fn version() -> Result<String, String> {
    let metadata = metadata()?;
    let packages = metadata["packages"].as_array().ok_or("cargo names no packages")?;
    let keyway = packages.iter().find(|package| package["name"] == "keyway");
    let version = keyway.and_then(|keyway| keyway["version"].as_str());
    Ok(version.ok_or("cargo names no version of keyway")?.to_owned())
}

/// Copies a file, or the files of a folder.
fn copy(from: &Path, to: &Path, mode: u32) -> Result<(), String> {
    if from.is_dir() {
        let entries = fs::read_dir(from).map_err(|why| said(from, &why))?;
        for entry in entries {
            let entry = entry.map_err(|why| said(from, &why))?;
            copy(&entry.path(), &to.join(entry.file_name()), mode)?;
        }
        return Ok(());
    }
    // The guide has pictures, which are no text.
    write(to, fs::read(from).map_err(|why| said(from, &why))?, mode)
}

fn read(path: &Path) -> Result<String, String> {
    fs::read_to_string(path).map_err(|why| said(path, &why))
}

fn write(path: &Path, text: impl AsRef<[u8]>, mode: u32) -> Result<(), String> {
    make_folder(path)?;
    fs::write(path, text).map_err(|why| said(path, &why))?;
    fs::set_permissions(path, Permissions::from_mode(mode)).map_err(|why| said(path, &why))
}

/// Makes the folders above a path, open to all whatever this user's mask is.
fn make_folder(path: &Path) -> Result<(), String> {
    let Some(folder) = path.parent().filter(|folder| !folder.exists()) else { return Ok(()) };
    make_folder(folder)?;
    fs::create_dir(folder).map_err(|why| said(folder, &why))?;
    fs::set_permissions(folder, Permissions::from_mode(0o755)).map_err(|why| said(folder, &why))
}

fn said(path: &Path, why: &std::io::Error) -> String {
    format!("{}: {why}", path.display())
}

/// The output of a command, without the last line's end.
fn output(command: &mut Command) -> Result<String, String> {
    let name = command.get_program().to_string_lossy().into_owned();
    let output = command.output().map_err(|why| format!("{name}: {why}"))?;
    match output.status.success() {
        true => Ok(String::from_utf8_lossy(&output.stdout).trim_end().to_owned()),
        false => Err(format!("{name}: {}", String::from_utf8_lossy(&output.stderr).trim_end())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_files_of_the_package_are_there() {
        let missing = FILES.iter().filter(|(from, ..)| !root().join(from).exists());
        assert_eq!(missing.count(), 0);
    }
}
