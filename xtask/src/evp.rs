//! `cargo xtask evp`: OpenSSL's own tests of algorithms (`evp_test`), with libcrypto as it is and with our provider
//! preferred. The tests come from Debian's source package of OpenSSL, and are linked with the system's libcrypto.

use crate::peers::{self, Peer, peer};
use crate::shell::{built, cargo, root, run as sh};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The programs that fetch and build them.
const NEEDED: &[Peer] = &[
    peer("gcc", &["cc", "--version"]),
    peer("make", &["make", "--version"]),
    peer("perl", &["perl", "-MFindBin", "-e", "1"]),
    peer("dpkg-dev", &["dpkg-source", "--version"]),
    peer("libssl-dev", &["test", "-f", "/usr/include/openssl/evp.h"]),
];

/// Unpacks and builds them in the working directory, without what Debian leaves out of libcrypto. Only the headers of
/// the source are made.
const BUILD: &str = r#"
    set -e
    rm -rf source lists cache
    mkdir -p lists/partial cache/archives/partial
    site=$(apt-get indextargets --format '$(SITE)' | grep debian.org | grep -v security | head -n 1)
    . /etc/os-release
    echo "deb-src $site $VERSION_CODENAME main" > sources.list
    get() {
        apt-get -q -o Dir::Etc::sourcelist="$PWD/sources.list" -o Dir::Etc::sourceparts=- \
            -o Dir::State::lists="$PWD/lists" -o Dir::Cache="$PWD/cache" "$@"
    }
    get update
    get source --download-only openssl
    dpkg-source --no-check -x openssl_*.dsc source
    rm -r lists cache
    cd source
    ./Configure shared no-asm no-idea no-mdc2 no-rc5 > configured
    make build_generated > made
    mkdir objects
    cd objects
    cc -O1 -w -c -I../include -I../apps/include -I.. ../test/testutil/*.c ../apps/lib/opt.c
    ar rcs libtestutil.a *.o
    cc -O1 -w -I../include -I../apps/include -I.. ../test/evp_test.c libtestutil.a -o evp_test -lcrypto
    mv evp_test ../../evp_test
"#;

/// Runs them, and fails where the counts differ.
pub fn run() -> Result<(), String> {
    let folder = root().join("target/packages/openssl");
    if !folder.join("evp_test").exists() {
        peers::install(NEEDED)?;
        fs::create_dir_all(&folder).map_err(|why| format!("{}: {why}", folder.display()))?;
        sh(Command::new("sh").args(["-c", BUILD]).current_dir(&folder))?;
    }
    sh(cargo().args(["build", "--package", "keyway-openssl"]))?;
    let provider = built("debug")?.join("libkeyway_openssl.so");
    let keyway = format!("[keyway]\nmodule = {}\nactivate = 1\n[random]\n", provider.display());
    let with_ciphers = format!(
        "[keyway]\nmodule = {}\nciphers = yes\ndigests = yes\nactivate = 1\n\
         [random]\nrandom = KEYWAY\n",
        provider.display()
    );
    let configurations = [
        ("stock", "", "default = on\nlegacy = on\n", "[random]\n"),
        ("preferred", "?provider=keyway", "default = on\nlegacy = on\nkeyway = keyway\n", &*keyway),
        (
            "first and preferred",
            "?provider=keyway,?keyway.key!=yes",
            "keyway = keyway\ndefault = on\nlegacy = on\n",
            &keyway,
        ),
        (
            "preferred, with ciphers, digests and random bytes",
            "?provider=keyway",
            "default = on\nlegacy = on\nkeyway = keyway\n",
            &with_ciphers,
        ),
    ];
    let mut counts = Vec::new();
    for (name, properties, providers, rest) in configurations {
        let file = folder.join("evp.cnf");
        let text = format!(
            "openssl_conf = init\nconfig_diagnostics = 1\n[init]\nproviders = providers\nalg_section = algorithms\n\
             random = random\n[algorithms]\ndefault_properties = {properties}\n[providers]\n{providers}[on]\nactivate = 1\n{rest}"
        );
        fs::write(&file, text).map_err(|why| format!("{}: {why}", file.display()))?;
        let all = count(&folder, &file)?;
        let sum = |of: fn(&Count) -> u32| all.iter().map(of).sum::<u32>();
        let (tests, errors) = (sum(|it| it.tests), sum(|it| it.errors));
        let skipped = sum(|it| it.skipped);
        eprintln!("evp_test, {name}: {tests} tests, {errors} errors, {skipped} skipped");
        counts.push((name, all));
    }
    let [(_, stock), others @ ..] = &*counts else { return Ok(()) };
    for (name, all) in others {
        if let Some((one, other)) = stock.iter().zip(all).find(|(one, other)| one != other) {
            return Err(format!(
                "evp_test: stock has {one:?}, and with our provider {name} {other:?}"
            ));
        }
    }
    Ok(())
}

/// The results of a file of vectors.
#[derive(Debug, PartialEq, Eq)]
struct Count {
    file: String,
    tests: u32,
    errors: u32,
    skipped: u32,
}

fn count(folder: &Path, configuration: &Path) -> Result<Vec<Count>, String> {
    let vectors = folder.join("source/test/recipes/30-test_evp_data");
    let entries = fs::read_dir(&vectors).map_err(|why| format!("{}: {why}", vectors.display()))?;
    let mut files: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
    files.sort();
    let count = |file: &PathBuf| {
        let mut test = Command::new(folder.join("evp_test"));
        test.arg("-config").arg(configuration).arg(file).env_remove("OPENSSL_CONF");
        let output = test.output().map_err(|why| format!("evp_test: {why}"))?;
        let said = String::from_utf8_lossy(&output.stdout);
        let said = format!("{said}{}", String::from_utf8_lossy(&output.stderr));
        // "# Completed 77 tests with 0 errors and 0 skipped"
        let (_, line) = said.rsplit_once("Completed ").ok_or(format!("evp_test said: {said}"))?;
        let numbers: Vec<u32> =
            line.split(' ').filter_map(|word| word.trim().parse().ok()).collect();
        let [tests, errors, skipped, ..] = *numbers else {
            return Err(format!("evp_test said: {line}"));
        };
        Ok(Count { file: file.display().to_string(), tests, errors, skipped })
    };
    files.iter().map(count).collect()
}
