//! Operations are asked for and answered without asking for memory: not one in a hundred does.

use keyway_load::{Event, Interrupt, Scenario, run};
use keyway_test_allocator::of_all_threads;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::sync::Arc;
use std::thread;

/// Answers everything with success, and asks for no memory itself. Ids here have up to three octets.
fn serve(mut stream: TcpStream) {
    let (mut input, mut out) = ([0; 1 << 14], [0; 1 << 14]);
    let mut held = 0;
    while let Ok(bytes @ 1..) = stream.read(&mut input[held..]) {
        held += bytes;
        let (mut used, mut length) = (0, 0);
        while held >= used + 2 && held >= used + 2 + usize::from(input[used + 1]) {
            let id = &input[used + 2..used + 4 + usize::from(input[used + 3])];
            let answer = [0x65, 7, 10, 1, 0, 4, 0, 4, 0];
            out[length] = 0x30;
            out[length + 1] = (id.len() + answer.len()) as u8;
            out[length + 2..length + 2 + id.len()].copy_from_slice(id);
            length += 2 + id.len();
            out[length..length + answer.len()].copy_from_slice(&answer);
            length += answer.len();
            used += 2 + usize::from(input[used + 1]);
        }
        input.copy_within(used..held, 0);
        held -= used;
        if stream.write_all(&out[..length]).is_err() {
            return;
        }
    }
}

#[test]
fn an_operation_asks_for_no_memory() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            thread::spawn(move || serve(stream));
        }
    });
    let text = format!(
        "threads = 1\n[target]\nurls = [\"ldap://127.0.0.1:{port}\"]\n\
         [data]\nuser = {{ range = [0, 99] }}\n[connections]\ncount = 2\nin_flight = 16\n\
         [[phase]]\nfor = \"500ms\"\n[[job]]\nname = \"search\"\n\
         steps = [{{ search = {{ base = \"dc=a\", filter = \"(uid=user.{{user}})\" }} }}]\n"
    );
    let scenario = Scenario::parse(&text, "test", Path::new("")).unwrap();
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let mut before = 0;
    let outcome = run(&scenario, &provider, &Interrupt::default(), &mut |event| {
        if let Event::Begun { .. } = event {
            before = of_all_threads();
        }
    });
    let asked = of_all_threads() - before;
    let outcome = outcome.unwrap();
    let (done, errors) = (outcome.recorded.done(), outcome.recorded.errors());
    assert!(errors == 0 && done > 1_000, "{done} done, {errors} failed");
    // The lines of each second, the result.
    assert!(asked < 500 + done / 100, "{asked} allocations for {done} operations");
}
