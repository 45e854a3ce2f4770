//! Programs that are in no package of Debian's and in a repository of Maven's: fetched by its name for them, once.

use super::{KEPT, Machine};
use crate::finish;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

const COPY: &str = "org.apache.maven.plugins:maven-dependency-plugin:3.6.1:copy";

impl Machine {
    /// The file of Maven's coordinates `GROUP:NAME:VERSION:TYPE`, which has this SHA-256.
    ///
    /// # Errors
    /// If Maven does not fetch it.
    ///
    /// # Panics
    /// If it is another file, which is removed.
    pub fn fetched(&self, artifact: &str, hash: &str) -> Result<PathBuf, String> {
        let words: Vec<&str> = artifact.split(':').collect();
        let [_, name, version, kind] = words[..] else { panic!("{artifact}: not four words") };
        fs::create_dir_all(KEPT).expect("a folder");
        let folder = Path::new(KEPT).canonicalize().expect("a folder");
        let file = folder.join(format!("{name}-{version}.{kind}"));
        if !file.exists() {
            let mut maven = self.inside("mvn");
            maven.args(["-q", "-B", COPY]).arg(format!("-Dartifact={artifact}"));
            maven.arg(format!("-DoutputDirectory={}", folder.display())).current_dir(&folder);
            let done = finish(&mut maven, "");
            if done.code != 0 {
                return Err(format!("Maven does not fetch {artifact}: {}", done.out));
            }
        }
        let sum = finish(Command::new("sha256sum").arg(&file), "").expect(0).out;
        if !sum.starts_with(hash) {
            fs::remove_file(&file).expect("it was there");
            panic!("{artifact} is not what it was: {sum}");
        }
        Ok(file)
    }
}
