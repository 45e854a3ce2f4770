//! strongSwan's headers, for the plug-in of its charon: only Debian's source package has them. They are unpacked below the
//! target folder.

use crate::shell::{root, run as sh, strict};
use std::fs;
use std::process::Command;

/// Fetches them into the working directory: those of the version that is installed, from any of the system's lists that
/// are Debian's. One that has its update no more still has the release's, and both have one upstream version.
const FETCH: &str = r#"
    set -e
    rm -rf lists cache sources.list strongswan_* draft
    upstream=$(dpkg-query -W -f '${source:Upstream-Version}' strongswan-charon)
    mkdir -p lists/partial cache/archives/partial
    apt-get indextargets --format '$(ORIGIN) $(REPO_URI) $(CODENAME)' | sort -u | grep '^Debian ' |
        while read -r _ uri codename
        do echo "deb-src [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] $uri $codename main"
        done > sources.list
    test -s sources.list || { echo "apt has no list of Debian's: this is not Debian" >&2; exit 1; }
    with="-q -o Dir::Etc::sourcelist=$PWD/sources.list -o Dir::Etc::sourceparts=- -o Dir::State::lists=$PWD/lists
        -o Dir::Cache=$PWD/cache"
    apt-get $with update
    for version in $(apt-cache $with showsrc strongswan | sed -n 's/^Version: //p' | sort -u)
    do
        case $version in "$upstream"-*) apt-get $with source --download-only "strongswan=$version" && break;; esac
    done
    mkdir draft
    tar -xf "$(ls strongswan_*.orig.tar.* | grep -v asc)" --strip-components=1 --wildcards -C draft '*/src/*.h'
    rm -rf lists cache strongswan_*
    mv draft headers
"#;

/// Leaves the folder `headers`, once. That it cannot is an error only where nothing may be skipped.
pub fn fetch() -> Result<(), String> {
    match unpacked() {
        Err(why) if !strict() => {
            eprintln!("xtask: strongSwan's plug-in is neither built nor tested: {why}");
            Ok(())
        }
        result => result,
    }
}

fn unpacked() -> Result<(), String> {
    let folder = root().join("target/packages/strongswan");
    if folder.join("headers").exists() {
        return Ok(());
    }
    fs::create_dir_all(&folder).map_err(|why| format!("{}: {why}", folder.display()))?;
    sh(Command::new("sh").args(["-c", FETCH]).current_dir(folder))
}
