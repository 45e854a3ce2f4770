//! A client that signs with a key that it never sees.

use keyway_daemon::{
    Admission, Daemon, Machines, NameSpaces, Options, Weights, keys::*, limits::*, listen,
};
use keyway_drivers::remote::{Remote, RemoteOptions};
use keyway_engine::{Algorithm, Demand, Key, Operation, Parameters, Request, Task};
use std::{error::Error, sync::Arc, time::Duration, time::SystemTime};

const ECDSA: Algorithm = Algorithm::EcdsaP256Sha256;

fn main() -> Result<(), Box<dyn Error>> {
    // The daemon, here in the same process: `keyway cryptod` and `keyway key generate`.
    let (place, engine) = (tempfile::tempdir()?, keyway_drivers::engine());
    let master = MasterKey::create_file(&place.path().join("master"), &engine)?;
    let (folder, master) = (place.path().join("keys"), Master::Key(&master));
    let keys = KeyStore::create(&folder, master, &engine, |what| eprintln!("{what}"))?;
    let by =
        Caller { uid: 0, gid: 0, groups: vec![], pid: 0, executable: Err(Unseen::Gone), vm: None };
    let spec = Spec { algorithms: &[ECDSA], purposes: Purpose::Sign.into() };
    keys.add("web", spec, Material::NEW, &by, SystemTime::now())?;
    keys.allow("web", &Who::ANY, spec.purposes, &by, SystemTime::now())?;
    let (admission, limits) = (Admission::default(), ClientLimits::default());
    let (keys, spin) = (Some(Arc::new(keys)), Duration::from_micros(50));
    let (shared, weights) = (SharedLimits::of_this_machine(), Weights::default());
    let socket = None;
    let (name_spaces, machines, pumps) = (NameSpaces::default(), Machines::default(), 1);
    let options = Options {
        admission,
        limits,
        shared,
        weights,
        name_spaces,
        keys,
        machines,
        socket,
        pumps,
        spin,
    };
    let path = place.path().join("socket");
    let _daemon = Daemon::start(&engine, listen(&path)?, options, Box::new(|_| {}))?;

    // The client. Its engine has the daemon as one more driver.
    let engine = keyway_drivers::engine();
    let remote = Remote::connect(&engine, RemoteOptions::new(&path, "example"))?;
    let web = engine.session(Parameters::new(ECDSA, Key::Named("web")))?;
    let (public_key, signature) = (&web.public_key()?[..], &web.sign(b"text")?[..]);
    engine.run(
        ECDSA,
        &mut Request::Verify {
            parameters: Default::default(),
            public_key,
            message: b"text",
            signature,
        },
    )?;

    // Large data lies where the daemon reaches it, and is worked on there.
    let mut data = remote.buffer(1 << 20)?;
    data.fill(7);
    let aes = Parameters::new(Algorithm::Aes128Gcm, Key::Secret(&[7; 16]));
    let aes = engine.session(aes.on(Demand::Named("remote")))?;
    let (mut queue, mut done) = (engine.queue(1), Vec::new());
    queue.submit(&mut vec![Task::new(&aes, Operation::seal([0; 12], b"", data))], false);
    queue.wait(&mut done, Duration::from_secs(10));
    assert_eq!(done[0].result()?, 1 << 20);
    Ok(())
}
