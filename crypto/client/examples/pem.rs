//! Writes the PEM file that names a key of cryptod, for programs that load files: `pem NAME > NAME.pem`.

use keyway_client::{KeyClient, KeyReference, socket_path};
use std::process::ExitCode;

fn main() -> ExitCode {
    let Some(name) = std::env::args().nth(1) else {
        eprintln!("usage: pem NAME");
        return ExitCode::from(2);
    };
    match KeyClient::new(socket_path(None), "pem").find(&name) {
        Ok(key) => {
            let reference = KeyReference { name: key.name, public_key: Some(key.public_key) };
            print!("{}", reference.to_pem());
            ExitCode::SUCCESS
        }
        Err(why) => {
            eprintln!("{why}");
            ExitCode::FAILURE
        }
    }
}
