//! Programs that fork with a connection to the daemon open: neither process gets a result of the other's, and
//! none a wrong one.

use keyway_client::KeyClient;
use keyway_drivers::Pool;
use keyway_engine::{
    Algorithm, Cost, Demand, Derivation, Engine, Key, Nonces, Operation, Parameters, Queue,
    Request, Session, Task,
};
use keyway_lock::Unpoisoned;
use keyway_tests::cryptod::{Cryptod, PATIENCE, beside_neighbours};
use keyway_tests::{ALL_CALLERS, finish, keyway, nightly};
use rustix::process::{Pid, Signal, Uid, WaitOptions, kill_process, waitpid};
use rustix::thread::set_thread_uid;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, mpsc};
use std::thread;
use std::time::{Duration, Instant};

const SIGNS: Algorithm = Algorithm::EcdsaP256Sha256;
const SEALS: Algorithm = Algorithm::Aes128Gcm;
const SECRET: [u8; 16] = [7; 16];

/// The engines and sessions that a process has when it forks.
struct Parent {
    /// Without the daemon, to compare with.
    local: Engine,
    remote: Engine,
    /// Signs with a key that the daemon holds.
    named: Session,
    public_key: Vec<u8>,
    /// With a key that the engine has, at the daemon and nowhere else.
    clear: Session,
    _connection: keyway_drivers::remote::Remote,
}

impl Parent {
    fn new(cryptod: &Cryptod) -> Parent {
        let mut generate = Command::new(keyway());
        generate.args(["key", "generate", "web", "--algorithm", "ecdsa-p256-sha-256"]);
        generate.args(["--for", ALL_CALLERS, "--data"]).arg(cryptod.data());
        finish(&mut generate, "").expect(0);
        let (remote, connection) = cryptod.engine("forks");
        let named = remote.session(Parameters::new(SIGNS, Key::Named("web"))).unwrap();
        let public_key = named.public_key().unwrap();
        let clear = Parameters::new(SEALS, Key::Secret(&SECRET)).on(Demand::Named("remote"));
        let clear = remote.session(clear).unwrap();
        let local = keyway_drivers::engine();
        Parent { local, remote, named, public_key, clear, _connection: connection }
    }

    /// Signs and seals so often, and looks at each result; says what is wrong.
    fn works(&self, name: &str, rounds: u32) -> Result<(), String> {
        let reference = self.local.session(Parameters::new(SEALS, Key::Secret(&SECRET))).unwrap();
        for round in 0..rounds {
            let message = format!("{name} of {}: {round}", std::process::id()).into_bytes();
            let signature = self.named.sign(&message).map_err(|why| format!("sign: {why}"))?;
            let mut verify = Request::Verify {
                parameters: Default::default(),
                public_key: &self.public_key,
                message: &message,
                signature: &signature,
            };
            self.local.run(SIGNS, &mut verify).map_err(|why| format!("WRONG SIGNATURE: {why}"))?;
            let mut nonce = [0; 12];
            nonce[..4].copy_from_slice(&round.to_le_bytes());
            let (mut sealed, mut expected) = (message.clone(), message);
            let tag =
                self.clear.seal(&nonce, b"", &mut sealed).map_err(|why| format!("seal: {why}"))?;
            let expected_tag = reference.seal(&nonce, b"", &mut expected).unwrap();
            if (sealed, tag) != (expected, expected_tag) {
                return Err("WRONG CIPHERTEXT".to_owned());
            }
        }
        Ok(())
    }
}

/// One test at a time: a lock that the thread of another has while one forks is never free in the child.
fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    ALONE.lock().unpoisoned()
}

unsafe extern "C" {
    #[link_name = "fork"]
    fn system_fork() -> i32;
    fn _exit(status: i32) -> !;
}

/// A child, which does this and ends, whatever it holds a copy of.
fn fork(work: impl FnOnce() -> Result<(), String>) -> Pid {
    // SAFETY: the child has copies of everything and of one thread. It takes no lock that others may hold but
    // the allocator's, which the C library sees to, and it never returns from here.
    let child = unsafe { system_fork() };
    if child == 0 {
        let done = catch_unwind(AssertUnwindSafe(work));
        let status = match done {
            Ok(Ok(())) => 0,
            Ok(Err(why)) => {
                // Not by the test's own output, whose lock another thread may have had.
                let line = format!("a forked child: {why}\n");
                let _ = std::fs::write("/dev/stderr", line);
                1
            }
            Err(_) => 2,
        };
        // SAFETY: it ends this process and nothing else.
        unsafe { _exit(status) };
    }
    Pid::from_raw(child).expect("a child")
}

/// Waits for a child, which has to have found everything right.
fn join(child: Pid) -> Result<(), String> {
    let begun = Instant::now();
    loop {
        match waitpid(Some(child), WaitOptions::NOHANG).unwrap() {
            Some((_, status)) if status.exit_status() == Some(0) => return Ok(()),
            Some((_, status)) => return Err(format!("a child ended with {status:?}")),
            None if begun.elapsed() > PATIENCE => {
                kill_process(child, Signal::KILL).unwrap();
                waitpid(Some(child), WaitOptions::empty()).unwrap();
                return Err("a child hangs".to_owned());
            }
            None => thread::sleep(Duration::from_millis(2)),
        }
    }
}

/// All tasks that a queue has under way.
fn collected(queue: &mut Queue) -> Result<Vec<Box<Task>>, String> {
    let (mut done, begun) = (Vec::new(), Instant::now());
    while queue.in_flight() > 0 {
        queue.wait(&mut done, Duration::from_secs(1));
        if begun.elapsed() > PATIENCE {
            return Err("tasks do not come back".to_owned());
        }
    }
    Ok(done)
}

/// Sixteen children, each with one of its own, and the parent sign at once, and so does another thread of the
/// parent's when it forks.
#[test]
fn children_and_their_parent_sign_at_once() {
    let _alone = alone();
    beside_neighbours(Cryptod::start(&[]), |cryptod| {
        let parent = Parent::new(cryptod);
        let rounds = if nightly() { 1_000 } else { 20 };
        parent.works("before", 1).unwrap();
        let over = AtomicBool::new(false);
        thread::scope(|scope| {
            let busy = scope.spawn(|| {
                while !over.load(Ordering::Relaxed) {
                    parent.works("beside", 1).unwrap();
                }
            });
            let children: Vec<Pid> = (0..16)
                .map(|_| {
                    fork(|| {
                        parent.works("child", rounds / 2)?;
                        let grandchild = fork(|| parent.works("grandchild", rounds));
                        parent.works("child", rounds)?;
                        join(grandchild)
                    })
                })
                .collect();
            let own = parent.works("parent", rounds);
            let ended: Vec<_> = children.into_iter().map(join).collect();
            over.store(true, Ordering::Relaxed);
            busy.join().unwrap();
            own.unwrap();
            ended.into_iter().for_each(|ended| ended.unwrap());
        });
        parent.works("after", 10).unwrap();
        parent
    });
}

/// Requests that are under way when a process forks are done in both, and right.
#[test]
fn a_queue_that_is_under_way_is_done_in_both() {
    let _alone = alone();
    beside_neighbours(Cryptod::start(&[]), |cryptod| {
        let parent = Parent::new(cryptod);
        let mut queue = parent.remote.queue(64);
        let mut tasks: Vec<_> = (0..40_u64)
            .map(|number| {
                let message = number.to_le_bytes().to_vec();
                Task::tagged(&parent.named, Operation::sign(&parent.named, message), number)
            })
            .collect();
        queue.submit(&mut tasks, false);
        let collect = |queue: &mut Queue| {
            let done = collected(queue)?;
            for task in &done {
                let used = task.result().map_err(|why| format!("sign: {why}"))?;
                let Operation::Sign { message, out, .. } = &task.operation else { unreachable!() };
                let (public_key, signature) = (&parent.public_key[..], &out[..used]);
                let mut verify = Request::Verify {
                    parameters: Default::default(),
                    public_key,
                    message,
                    signature,
                };
                parent.local.run(SIGNS, &mut verify).map_err(|_| "WRONG SIGNATURE".to_owned())?;
            }
            if done.len() == 40 { Ok(()) } else { Err(format!("{} came back", done.len())) }
        };
        let child = fork(|| collect(&mut queue));
        collect(&mut queue).unwrap();
        join(child).unwrap();
        drop(queue);
        parent
    });
}

/// A key that was made for a session is its parent's; nonces are not repeated; buffers are not shared.
#[test]
fn what_cannot_go_along_is_refused() {
    let _alone = alone();
    beside_neighbours(Cryptod::start(&[]), |cryptod| {
        let parent = Parent::new(cryptod);
        let made = Parameters::new(Algorithm::Ed25519, Key::Generate).on(Demand::Named("remote"));
        let made = parent.remote.session(made).unwrap();
        assert!(made.sign(b"text").is_ok());
        let key = || Parameters::new(SEALS, Key::Secret(&SECRET));
        let salted = parent.local.session(key().nonces(Nonces::Salted)).unwrap();
        let counter = Nonces::Counter { iv: [1; 12], from: 0 };
        let counted = parent.local.session(key().nonces(counter)).unwrap();
        salted.seal_next(b"", &mut [1; 16]).unwrap();
        counted.seal_next(b"", &mut [1; 16]).unwrap();
        let child = fork(|| {
            let refused = |what: &str, is_refused: bool| match is_refused {
                true => Ok(()),
                false => Err(format!("not refused: {what}")),
            };
            refused("a key of the parent's", made.sign(b"text").is_err())?;
            refused("salted nonces", salted.seal_next(b"", &mut [1; 16]).is_err())?;
            refused("counted nonces", counted.seal_next(b"", &mut [1; 16]).is_err())?;
            let anew = parent.local.session(key().nonces(Nonces::Salted)).unwrap();
            anew.seal_next(b"", &mut [1; 16])
                .map_err(|why| format!("a session of its own: {why}"))?;
            parent.works("child", 3)
        });
        join(child).unwrap();
        made.sign(b"text").unwrap();
        salted.seal_next(b"", &mut [1; 16]).unwrap();
        counted.seal_next(b"", &mut [1; 16]).unwrap();
        (parent, made)
    });
}

/// Slow work, awaited work, and a queue that has slow work under way: a child has threads of its own for what it
/// submits, while its parent's are busy, and so has its child.
#[test]
fn slow_work_of_a_child_is_done_there() {
    let _alone = alone();
    beside_neighbours(Cryptod::start(&[]), |cryptod| {
        let parent = Parent::new(cryptod);
        let engine = &parent.remote;
        let cost = Cost::Pbkdf2 { iterations: if nightly() { 200_000 } else { 20_000 } };
        let derives = Algorithm::Pbkdf2Sha256;
        let expected = derived(engine, cost).unwrap();
        let session = engine.session(Parameters::new(derives, Key::None)).unwrap();
        let task = |number| {
            let derive = Operation::derive(cost, PASSWORD.to_vec().into(), SALT, 32);
            Task::tagged(&session, derive, number)
        };
        let works = |engine: &keyway_engine::Engine| {
            for _ in 0..3 {
                if derived(engine, cost)? != expected {
                    return Err("WRONG KEY".to_owned());
                }
            }
            Ok(())
        };
        let mut queue = engine.queue(64);
        let mut tasks: Vec<_> = (0..8).map(task).collect();
        queue.submit(&mut tasks, false);
        let collect = |queue: &mut Queue, wanted: usize| {
            let done = collected(queue)?;
            let right = done.iter().all(|task| match &task.operation {
                Operation::Derive { out, .. } => task.result().is_ok() && **out == *expected,
                _ => false,
            });
            if right && done.len() == wanted { Ok(()) } else { Err(format!("{} came", done.len())) }
        };
        let over = AtomicBool::new(false);
        thread::scope(|scope| {
            let busy = scope.spawn(|| {
                while !over.load(Ordering::Relaxed) {
                    works(engine).unwrap();
                }
            });
            let children: Vec<Pid> = (0..4)
                .map(|_| {
                    fork(|| {
                        works(engine)?;
                        // Those that the parent's threads had not taken are here, the others the parent's.
                        collected(&mut queue)?;
                        let mut own: Vec<_> = (0..8).map(task).collect();
                        queue.submit(&mut own, false);
                        collect(&mut queue, 8)?;
                        let grandchild = fork(|| works(engine));
                        works(engine)?;
                        join(grandchild)
                    })
                })
                .collect();
            let own = collect(&mut queue, 8);
            let ended: Vec<_> = children.into_iter().map(join).collect();
            over.store(true, Ordering::Relaxed);
            busy.join().unwrap();
            own.unwrap();
            ended.into_iter().for_each(|ended| ended.unwrap());
        });
        drop(queue);
        parent
    });
}

/// A driver that works on threads of its own has none of them in a child: sessions go to another driver there.
#[test]
fn a_pool_of_threads_is_the_parents() {
    let _alone = alone();
    let pool = Pool { threads: 2, cores: None, depth: 16 };
    let pool = keyway_drivers::pool("pool", keyway_drivers::software(), pool).unwrap();
    let engine = Engine::builder().driver(pool).driver(keyway_drivers::software()).build();
    let key = || Parameters::new(SEALS, Key::Secret(&SECRET));
    let named = engine.session(key().on(Demand::Named("pool"))).unwrap();
    let any = engine.session(key()).unwrap();
    let expected = named.seal(&[1; 12], b"", &mut [1; 4_096]).unwrap();
    let child = fork(|| {
        if named.seal(&[1; 12], b"", &mut [1; 4_096]).is_ok() {
            return Err("it has no threads and works".to_owned());
        }
        let sealed = any.seal(&[1; 12], b"", &mut [1; 4_096]);
        let right = sealed.map_err(|why| format!("another driver: {why}"))? == expected;
        let mut queue = engine.queue(16);
        let task = |number| {
            let data = vec![1; 4_096];
            Task::tagged(&any, Operation::seal([1; 12], b"", data), number)
        };
        let mut tasks: Vec<_> = (0..16).map(task).collect();
        queue.submit(&mut tasks, false);
        let done = collected(&mut queue)?;
        let all = done.len() == 16 && done.iter().all(|task| task.result().is_ok());
        drop((queue, engine.clone()));
        if right && all { Ok(()) } else { Err(format!("{right}, {} came back", done.len())) }
    });
    join(child).unwrap();
    assert_eq!(named.seal(&[1; 12], b"", &mut [1; 4_096]), Ok(expected));
}

const PASSWORD: &[u8] = b"secret";
const SALT: &[u8] = b"0123456789abcdef";

/// A key that the slow class derives: submitted with a call, and awaited.
fn derived(engine: &Engine, cost: Cost) -> Result<Vec<u8>, String> {
    let derivation = Derivation {
        algorithm: Algorithm::Pbkdf2Sha256,
        cost,
        password: PASSWORD.to_vec().into(),
        salt: SALT.to_vec(),
        output_bytes: 32,
    };
    let (tell, told) = mpsc::channel();
    let done = Box::new(move |result| {
        let _ = tell.send(result);
    });
    engine.submit(derivation, done).map_err(|why| format!("submit: {why}"))?;
    let key = told.recv_timeout(PATIENCE).map_err(|_| "no thread takes it".to_owned())?;
    key.map(|key| key.to_vec()).map_err(|why| format!("derive: {why}"))
}

/// A child that has become another user has that user's rights and not its parent's: here none.
#[test]
fn a_child_is_let_in_as_who_it_is() {
    let _alone = alone();
    beside_neighbours(Cryptod::start(&[]), |cryptod| {
        let parent = Parent::new(cryptod);
        parent.works("parent", 1).unwrap();
        let child = fork(|| {
            let user = Uid::from_raw(4_242);
            set_thread_uid(user).map_err(|why| format!("this test is root's: {why}"))?;
            match parent.named.sign(b"text") {
                Ok(_) => Err("it signs with its parent's rights".to_owned()),
                Err(_) => Ok(()),
            }
        });
        join(child).unwrap();
        parent.works("parent", 1).unwrap();
        parent
    });
}

/// The client of modules in other programs: children and their children, while the parent's threads sign.
#[test]
fn a_key_client_forks() {
    let _alone = alone();
    let cryptod = Cryptod::start(&[]);
    let parent = Parent::new(&cryptod);
    let client = KeyClient::new(cryptod.socket().to_owned(), "forks");
    let key = client.find("web").unwrap();
    let signs = |rounds: u32| -> Result<(), String> {
        for round in 0..rounds {
            let message = format!("{}: {round}", std::process::id()).into_bytes();
            let mut out = [0; 128];
            let mut sign =
                Request::Sign { message: &message, parameters: Default::default(), out: &mut out };
            let used = client.run("web", &key.public_key, SIGNS, &mut sign);
            let used = used.map_err(|why| why.to_string())?;
            let (public_key, signature) = (&parent.public_key[..], &out[..used]);
            let (message, parameters) = (&message, Default::default());
            let mut verify = Request::Verify { public_key, message, parameters, signature };
            parent.local.run(SIGNS, &mut verify).map_err(|why| format!("WRONG: {why}"))?;
        }
        Ok(())
    };
    signs(1).unwrap();
    let over = AtomicBool::new(false);
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                while !over.load(Ordering::Relaxed) {
                    signs(10).unwrap();
                }
            });
        }
        let rounds = if nightly() { 20 } else { 2 };
        for _ in 0..rounds {
            let family = || {
                signs(20)?;
                let grandchild = fork(|| signs(20));
                signs(20)?;
                join(grandchild)
            };
            let children: Vec<_> = (0..16).map(|_| fork(family)).collect();
            signs(20).unwrap();
            for child in children {
                join(child).unwrap();
            }
        }
        over.store(true, Ordering::Relaxed);
    });
    assert!(cryptod.stop().success());
}
