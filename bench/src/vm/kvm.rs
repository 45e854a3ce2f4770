//! A guest on `/dev/kvm` that runs functions of this process: with the process's memory under the same addresses,
//! one virtual processor, no operating system, and always in ring 3.
//!
//! Names, numbers and layouts are those of `linux/kvm.h` and `asm/kvm.h` for x86-64.

use super::address_space::AddressSpace;
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use rustix::ioctl::{Ioctl, IoctlOutput, Opcode, ioctl, opcode};
use rustix::mm::{MapFlags, ProtFlags};
use std::arch::asm;
use std::ffi::c_void;
use std::fs::File;
use std::marker::PhantomData;
use std::os::fd::{FromRawFd, OwnedFd};
use std::os::unix::fs::FileExt;
use std::ptr::{self, NonNull};
use std::sync::atomic::{AtomicU32, Ordering};

/// Where the guest writes why it leaves. It has no memory there, so that it does.
static DOOR: Door = Door(AtomicU32::new(0));

#[repr(align(4096))]
struct Door(AtomicU32);

/// The function has returned.
const RETURNED: u32 = 1;
/// The host is to ring, and the function goes on.
const RING: u32 = 2;

const STACK_BYTES: usize = 256 << 10;

/// Has the host ring. To be called in the guest alone; elsewhere it does nothing.
#[cold]
pub fn ring_from_guest() {
    leave(RING);
}

fn leave(why: u32) {
    DOOR.0.store(why, Ordering::Release);
}

/// Where the guest begins.
extern "sysv64" fn enter<F: FnMut()>(function: *mut F) -> ! {
    // SAFETY: it is the one that `Guest::call` has borrowed, and that is not used by others until this leaves.
    unsafe { (*function)() };
    loop {
        leave(RETURNED);
    }
}

/// A request of KVM's that reads or writes an `A`.
struct Request<A>(Opcode, PhantomData<fn(&mut A)>);

impl<A> Request<A> {
    const fn new(opcode: Opcode) -> Self {
        Request(opcode, PhantomData)
    }
}

const KVM: u8 = 0xae;
const GET_API_VERSION: Request<()> = Request::new(opcode::none(KVM, 0x00));
const CREATE_VM: Request<()> = Request::new(opcode::none(KVM, 0x01));
const GET_VCPU_MMAP_SIZE: Request<()> = Request::new(opcode::none(KVM, 0x04));
const CREATE_VCPU: Request<()> = Request::new(opcode::none(KVM, 0x41));
const SET_USER_MEMORY_REGION: Request<MemoryRegion> =
    Request::new(opcode::write::<MemoryRegion>(KVM, 0x46));
const RUN: Request<()> = Request::new(opcode::none(KVM, 0x80));
const SET_REGS: Request<Registers> = Request::new(opcode::write::<Registers>(KVM, 0x82));
const GET_SREGS: Request<SystemRegisters> =
    Request::new(opcode::read::<SystemRegisters>(KVM, 0x83));
const SET_SREGS: Request<SystemRegisters> =
    Request::new(opcode::write::<SystemRegisters>(KVM, 0x84));
const GET_STATS_FD: Request<()> = Request::new(opcode::none(KVM, 0xce));

const API_VERSION: i32 = 12;

/// `struct kvm_userspace_memory_region`.
#[repr(C)]
struct MemoryRegion {
    slot: u32,
    flags: u32,
    guest: u64,
    bytes: u64,
    host: u64,
}

/// `struct kvm_regs`.
#[repr(C)]
#[derive(Default)]
struct Registers {
    rax_to_rdx: [u64; 4],
    rsi: u64,
    rdi: u64,
    rsp: u64,
    rbp: u64,
    r8_to_r15: [u64; 8],
    rip: u64,
    rflags: u64,
}

/// The bit that is always set, alone.
const RFLAGS: u64 = 1 << 1;

/// `struct kvm_sregs`.
#[repr(C)]
#[derive(Default)]
struct SystemRegisters {
    cs: Segment,
    ds: Segment,
    es: Segment,
    fs: Segment,
    gs: Segment,
    ss: Segment,
    tr: Segment,
    ldt: Segment,
    gdt: Table,
    idt: Table,
    cr0: u64,
    cr2: u64,
    cr3: u64,
    cr4: u64,
    cr8: u64,
    efer: u64,
    apic_base: u64,
    interrupts: [u64; 4],
}

/// PE, MP, ET, NE, WP and PG.
const CR0: u64 = 1 | 1 << 1 | 1 << 4 | 1 << 5 | 1 << 16 | 1 << 31;
/// PAE, OSFXSR and OSXMMEXCPT: compiled code needs SSE.
const CR4: u64 = 1 << 5 | 1 << 9 | 1 << 10;
/// LME, LMA and NXE.
const EFER: u64 = 1 << 8 | 1 << 10 | 1 << 11;

/// `struct kvm_segment`.
#[repr(C)]
#[derive(Clone, Copy, Default)]
struct Segment {
    base: u64,
    limit: u32,
    selector: u16,
    kind: u8,
    present: u8,
    dpl: u8,
    db: u8,
    s: u8,
    l: u8,
    g: u8,
    avl: u8,
    unusable: u8,
    padding: u8,
}

/// All addresses, in ring 3, to be read and written.
const DATA: Segment = Segment {
    base: 0,
    limit: u32::MAX,
    selector: 0x23,
    kind: 3,
    present: 1,
    dpl: 3,
    db: 1,
    s: 1,
    l: 0,
    g: 1,
    avl: 0,
    unusable: 0,
    padding: 0,
};
/// The same for 64-bit code.
const CODE: Segment = Segment { selector: 0x1b, kind: 11, db: 0, l: 1, ..DATA };

/// `struct kvm_dtable`.
#[repr(C)]
#[derive(Default)]
struct Table {
    base: u64,
    limit: u16,
    padding: [u16; 3],
}

/// Places in `struct kvm_run`, in bytes.
mod run {
    pub const EXIT_REASON: usize = 8;
    pub const MMIO_ADDRESS: usize = 32;
    pub const MMIO_DATA: usize = 40;
}

const EXIT_MMIO: u32 = 6;

/// How often a guest was left so far.
#[derive(Clone, Copy)]
pub struct Exits {
    /// To ring.
    pub rings: u64,
    /// To this program for another reason: the end of a function, or a signal.
    pub others: u64,
    /// By KVM's own count, where it keeps one: all of them.
    pub all: Option<u64>,
    /// Those of `all` that an interrupt of the host's made.
    pub interrupts: Option<u64>,
}

impl Exits {
    /// Those since `before`.
    pub fn since(self, before: Exits) -> Exits {
        let less = |after: Option<u64>, before: Option<u64>| Some(after? - before?);
        Exits {
            rings: self.rings - before.rings,
            others: self.others - before.others,
            all: less(self.all, before.all),
            interrupts: less(self.interrupts, before.interrupts),
        }
    }

    /// All that KVM counts but those to ring and those by interrupts; where it does not count, those to the program.
    pub fn but_rings_and_interrupts(&self) -> u64 {
        let counted = self.all.zip(self.interrupts);
        let counted = counted.map(|(all, interrupts)| all.saturating_sub(self.rings + interrupts));
        self.others.max(counted.unwrap_or(0))
    }
}

pub struct Guest {
    processor: OwnedFd,
    statistics: Option<File>,
    state: State,
    system: SystemRegisters,
    space: AddressSpace,
    stack: Vec<u128>,
    rings: u64,
    others: u64,
    _vm: OwnedFd,
}

impl Guest {
    /// A guest with the memory that this process has mapped by now, and this thread's variables.
    ///
    /// # Errors
    /// If KVM is not there, or will not.
    pub fn new() -> Result<Guest, String> {
        let flags = OFlags::RDWR | OFlags::CLOEXEC;
        let device = rustix::fs::open("/dev/kvm", flags, Mode::empty());
        let device = device.map_err(|why| format!("/dev/kvm: {why}"))?;
        let version = number(&device, GET_API_VERSION, "its version")?;
        if version != API_VERSION {
            return Err(format!("KVM has version {version}, and not {API_VERSION}"));
        }
        let vm = new_file(&device, CREATE_VM, "a VM")?;
        let processor = new_file(&vm, CREATE_VCPU, "a virtual processor")?;
        let state_bytes = number(&device, GET_VCPU_MMAP_SIZE, "the size of its state")?;
        // Before the mappings are looked at, which it is to be among.
        let stack = vec![0; STACK_BYTES / size_of::<u128>()];
        let door = (&raw const DOOR).expose_provenance() as u64;
        let space = AddressSpace::of_this_process(door)?;
        for (slot, area) in (0..).zip(space.areas()) {
            let (guest, bytes, host) = (area.guest, area.bytes, area.host);
            let mut region = MemoryRegion { slot, flags: 0, guest, bytes, host };
            ask(&vm, SET_USER_MEMORY_REGION, &mut region).map_err(named("memory"))?;
        }
        let mut system = SystemRegisters::default();
        ask(&processor, GET_SREGS, &mut system).map_err(named("its registers"))?;
        system = SystemRegisters {
            cs: CODE,
            ds: DATA,
            es: DATA,
            fs: Segment { base: thread_pointer(), ..DATA },
            gs: DATA,
            ss: DATA,
            cr0: CR0,
            cr3: space.root(),
            cr4: CR4,
            efer: EFER,
            ..system
        };
        Ok(Guest {
            statistics: new_file(&processor, GET_STATS_FD, "statistics").ok().map(File::from),
            state: State::map(&processor, state_bytes as usize)?,
            processor,
            system,
            space,
            stack,
            rings: 0,
            others: 0,
            _vm: vm,
        })
    }

    /// Runs a function in the guest. `ring` is run here whenever it calls [`ring_from_guest`].
    ///
    /// # Safety
    /// After an error the function has ended anywhere, and nothing that it was using may be used.
    ///
    /// # Errors
    /// If the guest cannot go on: the function has panicked, has made a system call, or has used memory that
    /// was not there when the guest was made.
    pub unsafe fn call<F: FnMut()>(
        &mut self,
        function: &mut F,
        ring: impl Fn(),
    ) -> Result<(), String> {
        let begin: extern "sysv64" fn(*mut F) -> ! = enter::<F>;
        let mut registers = Registers {
            rdi: ptr::from_mut(function).expose_provenance() as u64,
            rip: (begin as *const ()).expose_provenance() as u64,
            // As behind a call, which has put 8 bytes there.
            rsp: self.stack.as_mut_ptr_range().end.expose_provenance() as u64 - 8,
            rflags: RFLAGS,
            ..Registers::default()
        };
        ask(&self.processor, SET_SREGS, &mut self.system).map_err(named("its registers"))?;
        ask(&self.processor, SET_REGS, &mut registers).map_err(named("its registers"))?;
        loop {
            match ask(&self.processor, RUN, &mut ()) {
                Ok(_) => {}
                Err(Errno::INTR | Errno::AGAIN) => {
                    self.others += 1;
                    continue;
                }
                Err(why) => return Err(named("a run")(why)),
            }
            let reason = u32::from_ne_bytes(self.state.read(run::EXIT_REASON));
            let address = u64::from_ne_bytes(self.state.read(run::MMIO_ADDRESS));
            if reason != EXIT_MMIO || address != self.space.door() {
                return Err(format!("the guest cannot go on (KVM's exit reason {reason})"));
            }
            match u32::from_ne_bytes(self.state.read(run::MMIO_DATA)) {
                RING => {
                    self.rings += 1;
                    ring();
                }
                _ => {
                    self.others += 1;
                    return Ok(());
                }
            }
        }
    }

    pub fn exits(&self) -> Exits {
        let statistic = |name| self.statistics.as_ref().and_then(|file| statistic(file, name));
        Exits {
            rings: self.rings,
            others: self.others,
            all: statistic("exits"),
            interrupts: statistic("irq_exits"),
        }
    }
}

/// The state of a virtual processor that KVM shares: `struct kvm_run`.
struct State {
    start: NonNull<u8>,
    bytes: usize,
}

impl State {
    fn map(processor: &OwnedFd, bytes: usize) -> Result<State, String> {
        let rights = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: the system chooses a free place.
        let start = unsafe {
            rustix::mm::mmap(ptr::null_mut(), bytes, rights, MapFlags::SHARED, processor, 0)
        };
        let start = start.map_err(named("its state"))?;
        let start = NonNull::new(start.cast()).ok_or("the state of KVM's processor is nowhere")?;
        Ok(State { start, bytes })
    }

    /// A copy of the bytes at that offset; zeros behind its end.
    fn read<const N: usize>(&self, offset: usize) -> [u8; N] {
        if self.bytes < offset + N {
            return [0; N];
        }
        // SAFETY: it lies in the mapping, as was just seen.
        let place = unsafe { self.start.as_ptr().add(offset) };
        // SAFETY: so many bytes are readable there, and KVM writes them only while this thread is in `KVM_RUN`.
        unsafe { place.cast::<[u8; N]>().read() }
    }
}

impl Drop for State {
    fn drop(&mut self) {
        // SAFETY: the mapping is this value's own.
        let _ = unsafe { rustix::mm::munmap(self.start.as_ptr().cast(), self.bytes) };
    }
}

/// The statistic of this name in a file of KVM's statistics, which describes itself: `struct kvm_stats_header`, and
/// `struct kvm_stats_desc` for each.
fn statistic(file: &File, name: &str) -> Option<u64> {
    let read = |at: u32| {
        let mut bytes = [0; 4];
        file.read_exact_at(&mut bytes, at.into()).ok()?;
        Some(u32::from_ne_bytes(bytes))
    };
    let (name_bytes, count, first, data) = (read(4)?, read(8)?, read(16)?, read(20)?);
    for description in (first..).step_by(16 + name_bytes as usize).take(count as usize) {
        let mut found = vec![0; name_bytes as usize];
        file.read_exact_at(&mut found, u64::from(description) + 16).ok()?;
        if found.split(|byte| *byte == 0).next() == Some(name.as_bytes()) {
            let mut value = [0; 8];
            file.read_exact_at(&mut value, u64::from(data) + u64::from(read(description + 8)?))
                .ok()?;
            return Some(u64::from_ne_bytes(value));
        }
    }
    None
}

/// Where this thread's variables are: the base of its FS.
fn thread_pointer() -> u64 {
    let pointer;
    // SAFETY: the word at that base is its own address (ELF's handling of thread-local storage, x86-64).
    unsafe {
        asm!("mov {}, fs:0", out(reg) pointer, options(nostack, preserves_flags, readonly));
    }
    pointer
}

fn named(what: &str) -> impl Fn(Errno) -> String {
    move |why| format!("KVM refuses {what}: {why}")
}

fn number(file: &OwnedFd, request: Request<()>, what: &str) -> Result<i32, String> {
    ask(file, request, &mut ()).map_err(named(what))
}

/// The answer to a request for a new file: of a VM, a processor, or statistics.
fn new_file(file: &OwnedFd, request: Request<()>, what: &str) -> Result<OwnedFd, String> {
    let descriptor = number(file, request, what)?;
    // SAFETY: these three answer with a descriptor that nothing else owns.
    Ok(unsafe { OwnedFd::from_raw_fd(descriptor) })
}

fn ask<A>(
    file: &OwnedFd,
    request: Request<A>,
    argument: &mut A,
) -> rustix::io::Result<IoctlOutput> {
    // A request that takes nothing is refused unless it gets zero.
    let argument = if size_of::<A>() == 0 { ptr::null_mut() } else { ptr::from_mut(argument) };
    let call = Call { opcode: request.0, argument: argument.cast() };
    // SAFETY: each request that is named above reads or writes one `A`, which is borrowed for it. What the guest
    // does to this process's memory meanwhile is up to the function that it runs.
    unsafe { ioctl(file, call) }
}

struct Call {
    opcode: Opcode,
    argument: *mut c_void,
}

// SAFETY: opcode and argument are passed on as they are, and the answer is the number that comes back.
unsafe impl Ioctl for Call {
    type Output = IoctlOutput;

    const IS_MUTATING: bool = true;

    fn opcode(&self) -> Opcode {
        self.opcode
    }

    fn as_ptr(&mut self) -> *mut c_void {
        self.argument
    }

    unsafe fn output_from_ptr(
        output: IoctlOutput,
        _: *mut c_void,
    ) -> rustix::io::Result<IoctlOutput> {
        Ok(output)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;
    use std::time::Instant;

    /// `None` where there is no KVM.
    fn guest() -> Option<Guest> {
        File::open("/dev/kvm").is_ok().then(|| Guest::new().unwrap())
    }

    #[test]
    fn a_function_runs_in_the_guest_and_the_host_sees_what_it_did() {
        let mut text = vec![1_u8; 1000];
        let Some(mut guest) = guest() else { return };
        let (mut ring, rung, begun) = (0_u64, Cell::new(0), Instant::now());
        let mut function = || {
            ring += 1;
            text.fill(ring as u8);
            if begun.elapsed().as_nanos() > 0 {
                ring_from_guest();
                ring_from_guest();
            }
        };
        for call in 1..=3 {
            // SAFETY: nothing is used after an error.
            unsafe { guest.call(&mut function, || rung.set(rung.get() + 1)) }.unwrap();
            assert_eq!(rung.get(), 2 * call);
        }
        assert_eq!((ring, text), (3, vec![3; 1000]));
        let exits = guest.exits();
        assert!(exits.rings == 6 && exits.others >= 3 && exits.all.is_none_or(|all| all >= 9));
    }

    #[test]
    fn a_function_that_needs_a_system_ends_with_an_error() {
        let Some(mut guest) = guest() else { return };
        let mut function = || {
            let _ = rustix::process::getpid();
        };
        // SAFETY: nothing is used after an error.
        let ended = unsafe { guest.call(&mut function, || ()) };
        assert!(ended.unwrap_err().contains("cannot go on"));
        // SAFETY: as above.
        unsafe { guest.call(&mut || (), || ()) }.unwrap();
    }
}
