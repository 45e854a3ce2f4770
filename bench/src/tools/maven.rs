//! Peers in Java, from Maven's repository.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

const COPY: &str = "org.apache.maven.plugins:maven-dependency-plugin:3.6.1:copy-dependencies";

/// Java's class path with this artifact ("group:name:version") and all that it needs; fetched once,
/// and kept beside the program under test.
pub fn class_path(artifact: &str) -> Result<String, String> {
    let program = keyway_tests::keyway();
    let target = program.parent().and_then(Path::parent).unwrap_or(Path::new("."));
    let folder = target.join("peers").join(artifact.replace(':', "-"));
    let jars = folder.join("jars");
    if !jars.is_dir() {
        fetch(artifact, &folder, &jars)?;
    }
    Ok(format!("{}/*", jars.display()))
}

fn fetch(artifact: &str, folder: &Path, jars: &Path) -> Result<(), String> {
    let [group, name, version] = artifact.split(':').collect::<Vec<_>>()[..] else {
        return Err(format!("{artifact} is not group:name:version"));
    };
    let project = format!(
        "<project><modelVersion>4.0.0</modelVersion><groupId>keyway</groupId>\
         <artifactId>peer</artifactId><version>1</version><dependencies><dependency>\
         <groupId>{group}</groupId><artifactId>{name}</artifactId><version>{version}</version>\
         </dependency></dependencies></project>"
    );
    let written = fs::create_dir_all(folder).and_then(|()| fs::write(pom(folder), project));
    written.map_err(|why| format!("{}: {why}", folder.display()))?;
    // A download that was cut short is not taken for whole.
    let half = folder.join("half");
    let mut maven = Command::new("mvn");
    maven.args(["-q", "-B", "-f"]).arg(pom(folder)).arg(COPY);
    maven.arg(format!("-DoutputDirectory={}", half.display()));
    let done = maven.stdin(Stdio::null()).output().map_err(|_| {
        "mvn is not here; install the Debian packages maven and default-jre-headless".to_owned()
    })?;
    if !done.status.success() {
        let said = String::from_utf8_lossy(&done.stdout).trim().to_owned();
        return Err(format!("Maven does not fetch {artifact}: {said}"));
    }
    fs::rename(&half, jars).map_err(|why| format!("{}: {why}", jars.display()))
}

fn pom(folder: &Path) -> PathBuf {
    folder.join("pom.xml")
}

/// Which Java runs them.
pub fn java() -> String {
    let said = Command::new("java").arg("-version").output().map(|done| done.stderr);
    let said = String::from_utf8_lossy(&said.unwrap_or_default()).into_owned();
    said.lines().next().unwrap_or("no Java").to_owned()
}
