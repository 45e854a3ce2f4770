//! Python's `ssl`: a program that forks after it has loaded and used its keys.

use super::Site;
use keyway_tests::{PYTHON, finish};

const FORKS: &str = r#"
import os, ssl, threading
NAMES = ("rsa", "ec", "ed")
def server(name):
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(name + ".crt", name + ".pem")
    return context
def client(name):
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.load_verify_locations(name + ".crt")
    return context
servers = {name: server(name) for name in NAMES}
clients = {name: client(name) for name in NAMES}
def shake(name):
    there, back = ssl.MemoryBIO(), ssl.MemoryBIO()
    ends = [clients[name].wrap_bio(back, there, server_hostname="localhost"),
            servers[name].wrap_bio(there, back, server_side=True)]
    for _ in range(10):
        for end in list(ends):
            try:
                end.do_handshake()
                ends.remove(end)
            except ssl.SSLWantReadError:
                pass
    assert not ends
def end(child):
    assert os.waitpid(child, 0)[1] == 0
def child(work):
    pid = os.fork()
    if pid == 0:
        try:
            work()
        except BaseException as why:
            print("a child:", why, flush=True)
            os._exit(1)
        os._exit(0)
    return pid
def work(depth):
    for _ in range(ROUNDS):
        for name in NAMES:
            shake(name)
    if depth:
        end(child(lambda: work(depth - 1)))
shake("ec")
# Threads that have used it are done when it forks: libcrypto's own locks would be held in the children.
threads = [threading.Thread(target=shake, args=("ec",)) for _ in range(4)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
children = [child(lambda: work(2)) for _ in range(16)]
work(0)
for pid in children:
    end(pid)
print("done")
"#;

#[test]
fn children_and_their_parent_sign_at_once() {
    let Some(site) = Site::with_keys(&["python:ssl"]) else { return };
    let rounds = if keyway_tests::nightly() { 50 } else { 5 };
    let program = FORKS.replace("ROUNDS", &rounds.to_string());
    let done = finish(site.command(PYTHON).args(["-c", &program]), "").expect(0);
    assert_eq!(done.out, "done\n");
    assert!(site.cryptod.stop().success());
}
