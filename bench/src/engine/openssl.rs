//! `openssl speed` as a peer: one algorithm, one size, processor time.

use std::process::{Command, Stdio};

/// Nanoseconds an operation, measured for a second; `None` where it cannot be.
pub fn speed(cipher: &str, bytes: usize) -> Option<f64> {
    let output = Command::new("openssl")
        .args(["speed", "-mr", "-seconds", "1", "-bytes", &bytes.to_string(), "-evp", cipher])
        .stdin(Stdio::null())
        .stderr(Stdio::null())
        .output()
        .ok()?;
    // +F:number:name:bytes a second
    let said = String::from_utf8_lossy(&output.stdout);
    let line = said.lines().find(|line| line.starts_with("+F:"))?;
    let rate: f64 = line.rsplit(':').next()?.trim().parse().ok()?;
    (rate > 0.0).then(|| bytes as f64 * 1e9 / rate)
}

/// Its version; `None` where it is not installed.
pub fn version() -> Option<String> {
    let output = Command::new("openssl").arg("version").output().ok()?;
    let said = String::from_utf8_lossy(&output.stdout);
    Some(said.split(' ').take(2).collect::<Vec<_>>().join(" "))
}
