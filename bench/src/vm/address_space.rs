//! The memory of a guest that runs functions of this process: all that the process has mapped, under the same
//! addresses, and the page tables that say so.

use std::{fs, iter};

const PAGE: u64 = 4096;
/// Entries of a table.
const ENTRIES: u64 = 512;
/// Where the process's memory begins, for the guest. The tables lie below: they could map 512 GiB.
const MEMORY: u64 = 1 << 30;

/// A page table of x86-64, of any of the four levels.
#[repr(C, align(4096))]
struct Table([u64; ENTRIES as usize]);

/// An entry for a further table: present, writable, for ring 3, accessed.
const TABLE: u64 = 1 | 1 << 1 | 1 << 2 | 1 << 5;
/// For a page that is written to. It is dirty already, so that no processor has to note that here.
const WRITABLE: u64 = TABLE | 1 << 6;
/// For a page that is only read.
const READABLE: u64 = WRITABLE & !(1 << 1);
/// For a page without code, too.
const NO_CODE: u64 = 1 << 63;

/// Memory, where the guest has it and where this process does.
#[derive(Clone, Copy)]
pub struct Area {
    /// The guest-physical address.
    pub guest: u64,
    /// The address in this process.
    pub host: u64,
    pub bytes: u64,
}

pub struct AddressSpace {
    /// The first is the root.
    tables: Vec<Table>,
    memory: Vec<Area>,
    door: u64,
}

impl AddressSpace {
    /// That of this process. At the address `door`, for a page, the guest has no memory, so that it is left when it
    /// writes there.
    ///
    /// # Errors
    /// If the mappings cannot be read.
    pub fn of_this_process(door: u64) -> Result<Self, String> {
        let maps = "/proc/self/maps";
        let lines = fs::read_to_string(maps).map_err(|why| format!("{maps}: {why}"))?;
        Ok(Self::new(lines.lines().filter_map(Mapping::parse), door))
    }

    fn new(mappings: impl Iterator<Item = Mapping>, door: u64) -> Self {
        let tables = vec![Table([0; ENTRIES as usize])];
        let mut space = AddressSpace { tables, memory: Vec::new(), door: MEMORY };
        for Mapping { start, end, rights } in mappings {
            let (guest, bytes) = (space.door, end - start);
            space.memory.push(Area { guest, host: start, bytes });
            for offset in (0..bytes).step_by(PAGE as usize) {
                space.map(start + offset, (guest + offset) | rights);
            }
            space.door += bytes;
        }
        space.map(door, space.door | WRITABLE | NO_CODE);
        space
    }

    fn map(&mut self, address: u64, entry: u64) {
        let mut table = 0;
        for level in [3, 2, 1] {
            let index = index(address, level);
            let found = self.tables[table].0[index];
            let next = if found == 0 { self.tables.len() } else { (found / PAGE) as usize };
            if found == 0 {
                self.tables[table].0[index] = (next as u64 * PAGE) | TABLE;
                self.tables.push(Table([0; ENTRIES as usize]));
            }
            table = next;
        }
        self.tables[table].0[index(address, 0)] = entry;
    }

    /// The guest-physical address of the root of the tables.
    pub fn root(&self) -> u64 {
        0
    }

    /// The guest-physical address of the door: behind all memory.
    pub fn door(&self) -> u64 {
        self.door
    }

    /// All memory of the guest: the tables first. It lies where this says as long as `self` is there.
    pub fn areas(&self) -> impl Iterator<Item = Area> {
        let tables = Area {
            guest: self.root(),
            host: self.tables.as_ptr().expose_provenance() as u64,
            bytes: self.tables.len() as u64 * PAGE,
        };
        iter::once(tables).chain(self.memory.iter().copied())
    }
}

/// Which entry of a table of this level, from 0, translates an address.
fn index(address: u64, level: u32) -> usize {
    (address / (PAGE * ENTRIES.pow(level)) % ENTRIES) as usize
}

/// Readable memory of this process.
struct Mapping {
    start: u64,
    end: u64,
    /// The bits of its pages' entries.
    rights: u64,
}

impl Mapping {
    /// Reads a line of `/proc/self/maps`. `None` if it is no memory that the guest can have: none that can be read,
    /// or a device's.
    fn parse(line: &str) -> Option<Mapping> {
        let mut words = line.split_ascii_whitespace();
        let (start, end) = words.next()?.split_once('-')?;
        let [b'r', write, execute, _] = *words.next()?.as_bytes() else { return None };
        let name = words.nth(3).unwrap_or_default();
        if name.starts_with("/dev/") || name.starts_with("anon_inode:") {
            return None;
        }
        let page = if write == b'w' { WRITABLE } else { READABLE };
        let no_code = if execute == b'x' { 0 } else { NO_CODE };
        let address = |digits| u64::from_str_radix(digits, 16).ok();
        Some(Mapping { start: address(start)?, end: address(end)?, rights: page | no_code })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The part of an entry that is an address.
    const ADDRESS: u64 = ((1 << 52) - 1) & !(PAGE - 1);

    const MAPS: &str = "\
55d000000000-55d000002000 r-xp 00001000 08:01 77 /usr/bin/program with blanks
55d000002000-55d000003000 rw-p 00000000 00:00 0 [heap]
7f0000000000-7f0000001000 ---p 00000000 00:00 0
7f0000001000-7f0000003000 r--s 00000000 00:01 9 /memfd:keyway (deleted)
7f0000003000-7f0000004000 rw-s 00000000 00:0b 9 anon_inode:kvm-vcpu:0
7f0000004000-7f0000005000 rw-s 00000000 00:05 9 /dev/kvm
ffffffffff600000-ffffffffff601000 --xp 00000000 00:00 0 [vsyscall]
no mapping
";

    /// The entry that the processor finds for an address.
    fn look_up(space: &AddressSpace, address: u64) -> u64 {
        let mut entry = space.root();
        for level in [3, 2, 1, 0] {
            let table = &space.tables[((entry & ADDRESS) / PAGE) as usize];
            entry = table.0[index(address, level)];
            if entry & 1 == 0 {
                return 0;
            }
        }
        entry
    }

    #[test]
    fn each_readable_page_is_there_with_its_rights_and_nothing_else() {
        let door = 0x55d0_0000_2000;
        let space = AddressSpace::new(MAPS.lines().filter_map(Mapping::parse), door);
        let bytes: Vec<u64> = space.memory.iter().map(|area| area.bytes / PAGE).collect();
        assert_eq!(bytes, [2, 1, 2]);
        let expected = [
            (0x55d0_0000_0000, MEMORY | READABLE),
            (0x55d0_0000_1000, (MEMORY + PAGE) | READABLE),
            (door, (MEMORY + 5 * PAGE) | WRITABLE | NO_CODE),
            (0x7f00_0000_1000, (MEMORY + 3 * PAGE) | READABLE | NO_CODE),
            (0x7f00_0000_2fff, (MEMORY + 4 * PAGE) | READABLE | NO_CODE),
        ];
        for (address, entry) in expected {
            assert_eq!(look_up(&space, address), entry, "{address:x}");
        }
        for address in [0, 0x55d0_0000_3000, 0x7f00_0000_0000, 0x7f00_0000_3000, 0x7f00_0000_4000] {
            assert_eq!(look_up(&space, address), 0, "{address:x}");
        }
        assert_eq!(space.door(), MEMORY + 5 * PAGE);
    }

    #[test]
    fn this_process_is_mapped_where_it_is() {
        let here = Box::new(7_u64);
        let address = (&raw const *here).addr() as u64;
        let space = AddressSpace::of_this_process(0x1000).unwrap();
        let guest = look_up(&space, address) & ADDRESS;
        let holds = |area: &Area| area.guest <= guest && guest - area.guest < area.bytes;
        let area = space.areas().find(holds).unwrap();
        assert_eq!(area.host + (guest - area.guest), address & !(PAGE - 1));
    }
}
