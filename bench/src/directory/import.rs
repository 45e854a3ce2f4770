//! How long an import takes, and how large the store is that it leaves.

use crate::ldap::write_people;
use crate::report::Claim;
use crate::slapd::Slapd;
use keyway_tests::finish;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::process::Command;
use std::time::Instant;

/// Imports so many people into both, offline.
pub fn measure(folder: &Path, people: usize, password: &String) -> Result<Vec<Claim>, String> {
    let place = folder.join("import");
    fs::create_dir(&place).map_err(|why| format!("{}: {why}", place.display()))?;
    let ldif = place.join("people.ldif");
    write_people(&ldif, (0..people).map(|index| (format!("user{index:07}"), password)))?;
    eprintln!("importing {people} entries into Keyway, then into slapd");
    let data = place.join("keyway-data");
    let mut import = Command::new(keyway_tests::keyway());
    import.args(["directory", "import", "--data"]).args([&data, &ldif]);
    let begun = Instant::now();
    finish(&mut import, "").expect(0);
    let ours = [begun.elapsed().as_secs_f64()];
    let begun = Instant::now();
    let slapd = Slapd::load(&place, &ldif)?;
    let theirs = [begun.elapsed().as_secs_f64()];
    let sizes = ([mib(&data.join("store"))?], [mib(&slapd)?]);
    let claim = format!("import of {people} entries");
    Ok(vec![
        Claim::cost(&claim, "s", &ours, "slapadd -q", &theirs).demand(2.0),
        Claim::cost("the store it leaves", "MiB", &sizes.0, "slapd", &sizes.1).demand(1.0),
    ])
}

/// The size of the files of a folder on the disk, in MiB.
fn mib(folder: &Path) -> Result<f64, String> {
    let entries = fs::read_dir(folder).map_err(|why| format!("{}: {why}", folder.display()))?;
    let blocks = entries.flatten().filter_map(|entry| entry.metadata().ok());
    Ok(blocks.map(|it| it.blocks() * 512).sum::<u64>() as f64 / f64::from(1 << 20))
}
