//! That neither a branch nor an address depends on a secret, in two ways.
//!
//! *Step by step*: a child does an operation twice in the same memory, with other keys and other
//! plaintext, and its parent runs it instruction by instruction (ptrace). Every instruction's
//! address, and every address that it reads or writes, must be the same both times. That is exact
//! for these two secrets, and works with every register there is; it says nothing of secrets that
//! were not tried.
//!
//! *Marked*: valgrind's memcheck is told that secrets are undefined, follows them through all
//! arithmetic, and complains about each branch and each address that depends on them. That is for
//! all secrets, but valgrind has neither VAES nor AVX-512, so that it is for one backend only.
//!
//! Without a test harness, since a child is this program again, and has one thread.

#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
fn main() {
    linux::main();
}

#[cfg(not(all(target_arch = "x86_64", target_os = "linux")))]
fn main() {}

#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
mod linux {
    use iced_x86::{Decoder, DecoderOptions, InstructionInfoFactory, Register, UsedMemory};
    use keyway_simd::packet::{
        Aead, Open, PacketBackend, PacketKey, Phases, Protect, Seal, TAG_BYTES, Unprotect,
    };
    use nix::errno::Errno;
    use nix::libc::user_regs_struct;
    use nix::sys::ptrace;
    use nix::sys::signal::{self, Signal};
    use nix::sys::wait::{WaitStatus, waitpid};
    use nix::unistd::Pid;
    use std::alloc::{GlobalAlloc, Layout, System};
    use std::cell::UnsafeCell;
    use std::collections::HashMap;
    use std::env;
    use std::fs::File;
    use std::hint::black_box;
    use std::io::{Read, Write};
    use std::os::unix::fs::FileExt;
    use std::process::{Command, Stdio};
    use std::sync::atomic::{AtomicBool, Ordering};

    const OPERATIONS: [&str; 6] = ["keys", "seal", "open", "protect", "unprotect", "mask"];
    const AEADS: [Aead; 3] = [Aead::Aes128Gcm, Aead::Aes256Gcm, Aead::ChaCha20Poly1305];
    /// Some blocks, many, and more than go between two reductions; all with odd ends.
    const SIZES: [usize; 3] = [21, 300, 601];
    /// Those that a backend takes side by side: as many registers each, and a block each.
    const UNIFORM: [usize; 8] = [300, 301, 302, 303, 21, 22, 23, 64];
    const BLOCKS: [usize; 8] = [5, 16, 7, 8, 9, 10, 11, 16];
    /// One for which more powers are worth it.
    const BULK: [usize; 1] = [4_121];
    /// As many as have their headers' masks from ChaCha20 together.
    const MASKED: [usize; 16] = [21; 16];
    /// So many of these five are batches for a backend, the last of them of packets only.
    const BATCHES: usize = 5;
    /// A short header's, with a packet number of 2 bytes.
    const HEADER_BYTES: usize = 11;
    const BUFFER_BYTES: usize = HEADER_BYTES + BULK[0] + TAG_BYTES;

    /// Places for keys' memory on the heap, which is in the same one each time: the first that is free.
    struct Places([(UnsafeCell<Place>, AtomicBool); 4]);

    #[repr(align(64))]
    struct Place(#[expect(dead_code, reason = "only its address is used")] [u8; 4096]);

    // SAFETY: who has set a place's flag is the only one who has the place.
    #[allow(unsafe_code)]
    unsafe impl Sync for Places {}

    #[global_allocator]
    static PLACES: Places =
        Places([const { (UnsafeCell::new(Place([0; 4096])), AtomicBool::new(false)) }; 4]);

    // SAFETY: a place is as large and as aligned as what it is given for, and given to one at a
    // time; all else is the system's.
    #[allow(unsafe_code)]
    unsafe impl GlobalAlloc for Places {
        unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
            let fits = layout.align() == align_of::<Place>() && layout.size() <= size_of::<Place>();
            let mut free = self.0.iter().filter(|_| fits);
            match free.find(|(_, taken)| !taken.swap(true, Ordering::Acquire)) {
                Some((place, _)) => place.get().cast(),
                // SAFETY: as the caller says.
                None => unsafe { System.alloc(layout) },
            }
        }

        unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
            match self.0.iter().find(|(place, _)| place.get().cast() == at) {
                Some((_, taken)) => taken.store(false, Ordering::Release),
                // SAFETY: as the caller says, and it came from there.
                None => unsafe { System.dealloc(at, layout) },
            }
        }
    }

    pub fn main() {
        let arguments: Vec<String> = env::args().collect();
        match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
            [_, "--stepped", backend, aead, operation, batch] => {
                stepped(backend, aead, operation, batch);
            }
            [_, "--marked"] => marked(),
            _ => {
                step_by_step();
                under_memcheck();
            }
        }
    }

    /// Whether the code is ours: the library's backend is not, nor is its ChaCha20-Poly1305.
    fn ours(backend: PacketBackend, aead: Aead, operation: &str) -> bool {
        let header = matches!(operation, "keys" | "mask");
        backend.name() != "portable" && (aead != Aead::ChaCha20Poly1305 || header)
    }

    /// How an operation's secrets are told from the rest.
    #[derive(Clone, Copy, PartialEq)]
    enum Watched {
        No,
        Stepped,
        Marked,
    }

    impl Watched {
        /// The code between two of these is looked at.
        fn edge(self) {
            if self == Watched::Stepped {
                signal::raise(Signal::SIGUSR1).unwrap();
            }
        }

        fn hide(self, bytes: &mut [u8]) {
            if self == Watched::Marked {
                client_request(MAKE_UNDEFINED, bytes);
            }
        }

        fn show(self, bytes: &mut [u8]) {
            if self == Watched::Marked {
                client_request(MAKE_DEFINED, bytes);
            }
        }
    }

    #[cfg(debug_assertions)]
    fn unhide(verdict: &mut bool) {
        let mut byte = [u8::from(*verdict)];
        Watched::Marked.show(&mut byte);
        *verdict = byte[0] == 1;
    }

    /// Does an operation with secrets that this number stands for. Called again, it has the same
    /// memory.
    #[inline(never)]
    fn operate<const N: usize>(
        backend: PacketBackend,
        [aead, header_aead]: [Aead; 2],
        operation: &str,
        sizes: [usize; N],
        secret: u8,
        watched: Watched,
    ) {
        let mut key = [0_u8; 32];
        let mut header_key = [0_u8; 32];
        for (at, (a, b)) in key.iter_mut().zip(&mut header_key).enumerate() {
            *a = secret.wrapping_mul(at as u8).wrapping_add(secret);
            *b = !*a ^ (at as u8);
        }
        let key = &mut key[..aead.key_bytes()];
        let header_key = &mut header_key[..header_aead.key_bytes()];
        watched.hide(key);
        // A received header's mask is known once the packet is: so are the length of its number and
        // what follows from that.
        if operation != "unprotect" {
            watched.hide(header_key);
        }
        if operation == "keys" {
            watched.edge();
            let made = (backend.header_key(header_aead, header_key), backend.aead_key(aead, key));
            watched.edge();
            assert!(made.0.is_ok() && made.1.is_ok());
            return;
        }
        let header_key = backend.header_key(header_aead, header_key).unwrap();
        if operation == "mask" {
            let sample = black_box([7; 16]);
            watched.edge();
            let mut mask = backend.mask(&header_key, &sample);
            watched.edge();
            watched.show(&mut mask);
            assert!(mask != [0; 5]);
            return;
        }
        let key = PacketKey::new(backend.aead_key(aead, key).unwrap(), [secret; 12]);
        let mut buffers = [[secret; BUFFER_BYTES]; N];
        let mut tags = [[0; TAG_BYTES]; N];
        let mut bytes = sizes.into_iter();
        let mut buffers = buffers.each_mut().map(|buffer| &mut buffer[..bytes.next().unwrap()]);
        if matches!(operation, "seal" | "open") {
            let aad = [5; HEADER_BYTES];
            for data in &mut buffers {
                watched.hide(data);
            }
            if operation == "seal" {
                watched.edge();
            }
            let mut parts = buffers.iter_mut().zip(&mut tags);
            let mut seals = sizes.map(|_| {
                let (data, tag) = parts.next().unwrap();
                Seal { key: key.key(), nonce: [3; 12], aad: &aad, data, tag }
            });
            backend.seal(&mut seals).unwrap();
            if operation == "seal" {
                watched.edge();
            }
            for (data, tag) in buffers.iter_mut().zip(&mut tags) {
                watched.show(data);
                watched.show(tag);
            }
            if operation == "seal" {
                return;
            }
            let mut parts = buffers.iter_mut().zip(&tags);
            let mut opens = sizes.map(|_| {
                let (data, tag) = parts.next().unwrap();
                let authentic = false;
                Open { key: key.key(), nonce: [3; 12], aad: &aad, data, tag: *tag, authentic }
            });
            watched.edge();
            backend.open(&mut opens).unwrap();
            watched.edge();
            return;
        }
        let mut packets = [[secret; BUFFER_BYTES]; N];
        let mut bytes = sizes.iter().map(|bytes| HEADER_BYTES + bytes + TAG_BYTES);
        let mut packets = packets.each_mut().map(|buffer| &mut buffer[..bytes.next().unwrap()]);
        for packet in &mut packets {
            packet[..HEADER_BYTES].fill(0x41);
            watched.hide(&mut packet[HEADER_BYTES..]);
        }
        let mut parts = packets.iter_mut();
        let mut protects = sizes.map(|_| {
            let (packet, number) = (&mut **parts.next().unwrap(), 9);
            Protect {
                key: &key,
                header_key: &header_key,
                number,
                header_bytes: HEADER_BYTES,
                packet,
            }
        });
        if operation == "protect" {
            watched.edge();
        }
        backend.protect(&mut protects).unwrap();
        if operation == "protect" {
            watched.edge();
            return;
        }
        for packet in &mut packets {
            watched.show(packet);
        }
        let mut parts = packets.iter_mut();
        let mut unprotects = sizes.map(|_| {
            let number_at = HEADER_BYTES - 2;
            let packet = &mut **parts.next().unwrap();
            Unprotect::new(Phases::only(&key), &header_key, Some(8), number_at, packet)
        });
        watched.edge();
        backend.unprotect(&mut unprotects);
        watched.edge();
        if watched == Watched::Stepped {
            assert!(unprotects.iter().all(|unprotect| unprotect.verdict.is_ok()));
        }
    }

    /// The child's part: once to fill caches of what processor this is, then twice to be compared.
    fn stepped(backend: &str, aead: &str, operation: &str, batch: &str) {
        println!();
        std::io::stdin().read_exact(&mut [0]).unwrap();
        let backend = PacketBackend::named(backend).unwrap();
        let aead = AEADS[aead.parse::<usize>().unwrap()];
        for (secret, watched) in
            [(0x33, Watched::No), (0, Watched::Stepped), (0xb5, Watched::Stepped)]
        {
            let (secret, watched) = (black_box(secret), black_box(watched));
            let aeads = [aead; 2];
            match batch {
                "0" => operate(backend, aeads, operation, SIZES, secret, watched),
                "1" => operate(backend, aeads, operation, UNIFORM, secret, watched),
                "2" => operate(backend, aeads, operation, BLOCKS, secret, watched),
                "3" => operate(backend, aeads, operation, BULK, secret, watched),
                _ => {
                    let aeads = [aead, Aead::ChaCha20Poly1305];
                    operate(backend, aeads, operation, MASKED, secret, watched);
                }
            }
        }
    }

    fn step_by_step() {
        for backend in PacketBackend::available() {
            // Keys are made by the same code for all, which memcheck sees.
            for operation in &OPERATIONS[1..] {
                // Only one backend takes more than one message at a time.
                let batches = match (backend.name(), *operation) {
                    ("avx512", "protect" | "unprotect") => BATCHES,
                    ("avx512", "seal" | "open") => BATCHES - 1,
                    _ => 1,
                };
                for (number, aead) in AEADS.into_iter().enumerate() {
                    if !ours(backend, aead, operation) {
                        continue;
                    }
                    for batch in 0..batches {
                        let name =
                            format!("{operation} of {aead:?} in {} ({batch})", backend.name());
                        let (number, batch) = (number.to_string(), batch.to_string());
                        let arguments = ["--stepped", backend.name(), &number, operation, &batch];
                        let Some(traces) = traces(&arguments) else { return };
                        compare(&name, &traces);
                    }
                }
            }
        }
    }

    /// Two traces are the same.
    fn compare(name: &str, traces: &[Vec<Step>]) {
        let [first, second] = traces else { panic!("{name}: two traces") };
        let same = first.iter().zip(second).take_while(|(a, b)| a == b).count();
        assert!(
            same == first.len() && same == second.len(),
            "{name}: at step {same} of {} and {}: {:x?}, {:x?}",
            first.len(),
            second.len(),
            first.get(same),
            second.get(same)
        );
        assert!(same > 50, "{name}: only {same} steps");
        println!("{name}: {same} steps");
    }

    /// An instruction's address, and those that it reads or writes.
    type Step = (u64, Vec<u64>);

    /// The steps of a child between edges.
    #[allow(clippy::zombie_processes)] // `waitpid` waits for it.
    fn traces(arguments: &[&str]) -> Option<Vec<Vec<Step>>> {
        let mut command = Command::new(env::current_exe().unwrap());
        let piped = command.args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = piped.spawn().unwrap();
        // Only now it is surely this program.
        child.stdout.take().unwrap().read_exact(&mut [0]).unwrap();
        let pid = Pid::from_raw(child.id().cast_signed());
        if ptrace::attach(pid) == Err(Errno::EPERM) {
            child.kill().unwrap();
            child.wait().unwrap();
            assert!(
                env::var("CI").is_err(),
                "nothing may be skipped in CI, but ptrace is forbidden"
            );
            eprintln!("skipped: ptrace is forbidden here");
            return None;
        }
        assert_eq!(waitpid(pid, None), Ok(WaitStatus::Stopped(pid, Signal::SIGSTOP)));
        ptrace::setoptions(pid, ptrace::Options::PTRACE_O_EXITKILL).unwrap();
        child.stdin.take().unwrap().write_all(b"\n").unwrap();
        let memory = File::open(format!("/proc/{pid}/mem")).unwrap();
        let mut instructions = Instructions::new(memory);
        let (mut traces, mut trace) = (Vec::new(), None);
        ptrace::cont(pid, None).unwrap();
        loop {
            match waitpid(pid, None).unwrap() {
                WaitStatus::Exited(_, 0) => return Some(traces),
                WaitStatus::Stopped(_, Signal::SIGUSR1) => match trace.take() {
                    None => trace = Some(Vec::new()),
                    Some(done) => traces.push(done),
                },
                WaitStatus::Stopped(_, Signal::SIGTRAP) => {}
                other => panic!("{arguments:?}: {other:?}"),
            }
            match &mut trace {
                Some(trace) => {
                    trace.push(instructions.step(&ptrace::getregs(pid).unwrap()));
                    ptrace::step(pid, None).unwrap();
                }
                None => ptrace::cont(pid, None).unwrap(),
            }
        }
    }

    /// Knows what memory each instruction uses.
    struct Instructions {
        memory: File,
        known: HashMap<u64, Vec<UsedMemory>>,
        factory: InstructionInfoFactory,
    }

    impl Instructions {
        fn new(memory: File) -> Self {
            Self { memory, known: HashMap::new(), factory: InstructionInfoFactory::new() }
        }

        fn step(&mut self, registers: &user_regs_struct) -> Step {
            let used = self.known.entry(registers.rip).or_insert_with(|| {
                let mut bytes = [0; 15];
                let length = self.memory.read_at(&mut bytes, registers.rip).unwrap();
                let options = DecoderOptions::NONE;
                let mut decoder = Decoder::with_ip(64, &bytes[..length], registers.rip, options);
                let instruction = decoder.decode();
                assert!(!instruction.is_invalid(), "{bytes:x?} is unknown");
                // Their addresses are in registers that ptrace has another call for.
                assert!(!instruction.is_vsib(), "{instruction:?} gathers or scatters");
                self.factory.info(&instruction).used_memory().to_vec()
            });
            let address = |used: &UsedMemory| {
                used.virtual_address(0, |register, _, _| value(registers, register)).unwrap()
            };
            (registers.rip, used.iter().map(address).collect())
        }
    }

    fn value(registers: &user_regs_struct, register: Register) -> Option<u64> {
        Some(match register {
            Register::RAX => registers.rax,
            Register::RBX => registers.rbx,
            Register::RCX => registers.rcx,
            Register::RDX => registers.rdx,
            Register::RSI => registers.rsi,
            Register::RDI => registers.rdi,
            Register::RBP => registers.rbp,
            Register::RSP => registers.rsp,
            Register::R8 => registers.r8,
            Register::R9 => registers.r9,
            Register::R10 => registers.r10,
            Register::R11 => registers.r11,
            Register::R12 => registers.r12,
            Register::R13 => registers.r13,
            Register::R14 => registers.r14,
            Register::R15 => registers.r15,
            Register::FS => registers.fs_base,
            Register::GS => registers.gs_base,
            Register::CS | Register::DS | Register::ES | Register::SS => 0,
            _ => return None,
        })
    }

    /// All that valgrind can run.
    fn marked() {
        // Whether a message is authentic becomes public.
        #[cfg(debug_assertions)]
        keyway_simd::packet::ON_VERDICT.set(unhide).unwrap();
        let backends: Vec<_> = PacketBackend::available().collect();
        for backend in backends {
            for operation in OPERATIONS {
                for aead in AEADS {
                    if ours(backend, aead, operation) {
                        println!("{} {operation} {aead:?}", backend.name());
                        operate(
                            backend,
                            [aead; 2],
                            operation,
                            SIZES,
                            black_box(0xb5),
                            Watched::Marked,
                        );
                    }
                }
            }
        }
        // So that silence means something.
        let mut secret = black_box([1_u8; 16]);
        Watched::Marked.hide(&mut secret);
        if secret[3] != 1 {
            panic!("it is what it was");
        }
    }

    fn under_memcheck() {
        let here = Command::new("valgrind").arg("--version").output().is_ok();
        if !here {
            assert!(
                env::var("CI").is_err(),
                "nothing may be skipped in CI, but valgrind is missing"
            );
            eprintln!("skipped: not installed: valgrind (`cargo xtask test` installs it)");
            return;
        }
        let done = Command::new("valgrind")
            .args(["--error-limit=no", "--read-inline-info=yes"])
            .args([env::current_exe().unwrap().as_os_str(), "--marked".as_ref()])
            .output()
            .unwrap();
        let (out, log) =
            (String::from_utf8_lossy(&done.stdout), String::from_utf8_lossy(&done.stderr));
        assert!(done.status.success(), "{out}\n{log}");
        assert!(out.contains("aesni mask ChaCha20Poly1305"), "{out}");
        let mut found = 0;
        let mut lines = log.lines();
        while let Some(line) = lines.next() {
            if line.contains("depends on uninitialised") || line.contains("Use of uninitialised") {
                let place = lines.next().unwrap_or_default();
                // This test decides by what it has hidden once, on purpose.
                assert!(place.contains("(secrets.rs:"), "{line}\n{place}\n{out}\n{log}");
                found += 1;
            }
        }
        assert_eq!(found, 1, "{log}");
    }

    /// memcheck.h's requests: "MC" and a number.
    const MAKE_UNDEFINED: u64 = 0x4d43_0001;
    const MAKE_DEFINED: u64 = 0x4d43_0002;

    /// Tells valgrind something about memory (valgrind.h); nothing without it.
    #[allow(unsafe_code)]
    fn client_request(request: u64, bytes: &mut [u8]) {
        let arguments = [request, bytes.as_mut_ptr() as u64, bytes.len() as u64, 0, 0, 0];
        // SAFETY: on a processor these instructions leave all registers as they were but for `rdx`,
        // which has 0 before and after, and the flags.
        unsafe {
            std::arch::asm!(
                "rol rdi, 3",
                "rol rdi, 13",
                "rol rdi, 61",
                "rol rdi, 51",
                "xchg rbx, rbx",
                inout("rdx") 0_u64 => _,
                in("rax") arguments.as_ptr(),
                inout("rdi") 0_u64 => _,
            );
        }
    }
}
