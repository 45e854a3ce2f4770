//! The data file page by page, read without LMDB and without believing any of it.
//!
//! LMDB follows page numbers, counts and offsets without a look at them, and one that is spoilt can
//! kill the process. Here they are compared with what they have to be: a page has its own number
//! and is of the kind its place in the tree says, its rows lie within it and ascend, and no page is
//! used twice. Values are not looked at; entries have checksums of their own.

use std::fmt;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

use crate::header::{Meta, Root, long, short, word};

const PAGE_HEAD_BYTES: usize = 16;
const ROW_HEAD_BYTES: usize = 8;
/// `P_BRANCH`, `P_LEAF`, `P_OVERFLOW`
const BRANCH: u16 = 0x01;
const LEAF: u16 = 0x02;
const OVERFLOW: u16 = 0x04;
/// `F_BIGDATA`: the value is a page number, and lies there.
const ELSEWHERE: u16 = 0x01;
/// `F_SUBDATA`: the value is the root of a table.
const TABLE: u16 = 0x02;
/// More levels than LMDB itself can walk (`CURSOR_STACK`).
const LEVELS_MAX: u16 = 32;
/// The first two pages are the heads.
const FIRST_PAGE: u64 = 2;

/// The fault of a data file, and its place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Damage {
    /// The table, as far as it is known.
    pub table: Option<String>,
    /// The page of the data file, counted from 0.
    pub page: u64,
    /// Where the page begins in the data file, in bytes.
    pub offset_bytes: u64,
    /// The fault.
    pub what: String,
}

impl fmt::Display for Damage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Damage { table, page, offset_bytes, what } = self;
        write!(f, "page {page} (byte {offset_bytes} of the data file)")?;
        match table {
            Some(table) => write!(f, " of table \"{table}\": {what}"),
            None => write!(f, ": {what}"),
        }
    }
}

/// How far down a look goes.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Depth {
    /// To the pages above the leaves.
    Branches,
    /// To the last value.
    All,
}

/// Where a value lies in the data file.
#[derive(Clone, Copy)]
pub(crate) struct Place {
    pub offset: u64,
    pub bytes: usize,
}

/// A row of a leaf.
pub(crate) struct Row<'p> {
    pub key: &'p [u8],
    pub place: Place,
    flags: u16,
}

/// A row or a damage that a walk finds.
pub(crate) enum Found<'p> {
    Row(Row<'p>),
    Damage(Damage),
}

/// An open data file.
pub(crate) struct Pages {
    file: File,
    page_bytes: u64,
    file_bytes: u64,
    last_page: u64,
    /// Pages that a sound page leads to and that were sound themselves.
    used: Bits,
    free: Bits,
}

impl Pages {
    pub fn new(file: File, meta: &Meta, file_bytes: u64) -> Pages {
        // Pages behind the file's end do not exist, whatever the head says.
        let there = (file_bytes / meta.page_bytes).saturating_sub(1).min(meta.last_page);
        Pages {
            file,
            page_bytes: meta.page_bytes,
            file_bytes,
            last_page: meta.last_page,
            used: Bits::new(there + 1),
            free: Bits::new(there + 1),
        }
    }

    /// Walks the list of free pages, the list of tables and all tables.
    pub fn look(&mut self, meta: &Meta, depth: Depth, damage: &mut dyn FnMut(Damage)) {
        for (name, root) in self.open(meta, damage) {
            self.walk(&name, &root, depth, &mut |found| {
                if let Found::Damage(found) = found {
                    damage(found);
                }
            });
        }
    }

    /// Walks the list of free pages and the list of tables; returns the tables.
    pub fn open(&mut self, meta: &Meta, damage: &mut dyn FnMut(Damage)) -> Vec<(String, Root)> {
        self.free_pages(&meta.free, damage);
        let mut rows = Vec::new();
        let mut found = |found: Found<'_>| match found {
            Found::Row(row) => rows.push((row.key.to_vec(), row.place, row.flags)),
            Found::Damage(found) => damage(found),
        };
        self.walk(TABLES, &meta.tables, Depth::All, &mut found);
        let mut tables = Vec::new();
        for (name, place, flags) in rows {
            let name = String::from_utf8_lossy(&name).into_owned();
            let bytes = match place.bytes == Root::BYTES && flags == TABLE {
                true => self.value(place).ok(),
                false => None,
            };
            match bytes.as_deref().and_then(Root::parse).filter(|root| root.flags == 0) {
                Some(root) => tables.push((name, root)),
                None => {
                    let page = place.offset / self.page_bytes;
                    damage(self.damage(
                        TABLES,
                        page,
                        format!("the row of \"{name}\" is not a table"),
                    ));
                }
            }
        }
        tables
    }

    fn free_pages(&mut self, root: &Root, damage: &mut dyn FnMut(Damage)) {
        let mut lists = Vec::new();
        self.walk(FREE, root, Depth::All, &mut |found| match found {
            Found::Row(row) => lists.push(row.place),
            Found::Damage(found) => damage(found),
        });
        for place in lists {
            let page = place.offset / self.page_bytes;
            let sound = self.value(place).ok().is_some_and(|list| self.free_list(&list));
            if !sound {
                damage(self.damage(FREE, page, "a list of free pages is none".into()));
            }
        }
    }

    /// The pages that are free in the state of this head; `None` if their list is damaged.
    pub fn free(file: File, meta: &Meta, file_bytes: u64) -> Option<Bits> {
        let mut pages = Pages::new(file, meta, file_bytes);
        let mut is_sound = true;
        pages.free_pages(&meta.free, &mut |_| is_sound = false);
        is_sound.then_some(pages.free)
    }

    /// Notes the pages of one list: how many there are, and their numbers.
    fn free_list(&mut self, list: &[u8]) -> bool {
        let pages = (8..list.len()).step_by(8).map_while(|at| long(list, at));
        let mut sound = long(list, 0).is_some_and(|count| (count as usize) < list.len() / 8);
        let count = long(list, 0).unwrap_or(0) as usize;
        for page in pages.take(count) {
            sound &= (FIRST_PAGE..=self.last_page).contains(&page) && !self.used.has(page);
            self.free.insert(page);
        }
        sound
    }

    /// Walks a table from its root and hands over its rows, ascending by key, and what is wrong.
    pub fn walk(
        &mut self,
        name: &str,
        root: &Root,
        depth: Depth,
        found: &mut dyn FnMut(Found<'_>),
    ) {
        let mut walk = Walk { pages: self, name, root, depth, found, sum: Sum::default() };
        match root.page {
            Some(page) if (1..=LEVELS_MAX).contains(&root.levels) => {
                walk.page(page, 1, &[], None);
            }
            Some(page) => walk.wrong(page, format!("a tree of {} levels", root.levels)),
            None => {}
        }
        walk.compare();
    }

    /// Rows of pages that nothing sound leads to, nor the list of free pages: what is left below a
    /// page that is spoilt, but also what was free, where that list is spoilt.
    pub fn stray_rows(&self, row: &mut dyn FnMut(Row<'_>)) {
        for number in FIRST_PAGE..self.used.len() {
            if self.used.has(number) || self.free.has(number) {
                continue;
            }
            let Ok(page) = self.read(number) else { continue };
            // Its head may be what is spoilt, so the places of rows are tried to their end.
            let mut rows = rows_of(&page).unwrap_or(0);
            if rows == 0 || PAGE_HEAD_BYTES + 2 * rows > page.len() {
                rows = (page.len() - PAGE_HEAD_BYTES) / 2;
            }
            for index in 0..rows {
                if let Some(found) = self.row(&page, number, index) {
                    row(found);
                }
            }
        }
    }

    /// Reads a value.
    pub fn value(&self, place: Place) -> io::Result<Vec<u8>> {
        let end = place.offset.checked_add(place.bytes as u64);
        if end.is_none_or(|end| end > self.file_bytes) {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        let mut value = vec![0; place.bytes];
        self.file.read_exact_at(&mut value, place.offset)?;
        Ok(value)
    }

    fn read(&self, number: u64) -> io::Result<Vec<u8>> {
        let offset = number.saturating_mul(self.page_bytes);
        self.value(Place { offset, bytes: self.page_bytes as usize })
    }

    /// A row of a leaf, if it lies within its page.
    fn row<'p>(&self, page: &'p [u8], number: u64, index: usize) -> Option<Row<'p>> {
        let at = place_of(page, index)?;
        let key = key_at(page, at)?;
        let bytes = word(page, at)? as usize;
        let flags = short(page, at + 4)?;
        let value = at + ROW_HEAD_BYTES + key.len();
        let offset = match flags & ELSEWHERE {
            0 => {
                page.get(value..value.checked_add(bytes)?)?;
                number * self.page_bytes + value as u64
            }
            _ => {
                let first = long(page, value)?;
                first.checked_mul(self.page_bytes)?.checked_add(PAGE_HEAD_BYTES as u64)?
            }
        };
        Some(Row { key, place: Place { offset, bytes }, flags })
    }

    fn damage(&self, table: &str, page: u64, what: String) -> Damage {
        let offset_bytes = page.saturating_mul(self.page_bytes);
        Damage { table: Some(table.to_owned()), page, offset_bytes, what }
    }
}

/// The name, in a report, of the file's own lists.
const TABLES: &str = "list of tables";
const FREE: &str = "list of free pages";

/// How many rows a page says it has.
fn rows_of(page: &[u8]) -> Option<usize> {
    Some(usize::from(short(page, 12)?).checked_sub(PAGE_HEAD_BYTES)? / 2)
}

/// Where a row begins in its page.
fn place_of(page: &[u8], index: usize) -> Option<usize> {
    let at = short(page, PAGE_HEAD_BYTES + 2 * index)?;
    Some(usize::from(at)).filter(|&at| at >= PAGE_HEAD_BYTES)
}

fn key_at(page: &[u8], at: usize) -> Option<&[u8]> {
    let bytes = usize::from(short(page, at + 6)?);
    page.get(at + ROW_HEAD_BYTES..)?.get(..bytes)
}

/// The counts of a walk.
#[derive(Default)]
struct Sum {
    branches: u64,
    leaves: u64,
    overflow: u64,
    rows: u64,
    wrong: bool,
}

struct Walk<'w> {
    pages: &'w mut Pages,
    name: &'w str,
    root: &'w Root,
    depth: Depth,
    found: &'w mut dyn FnMut(Found<'_>),
    sum: Sum,
}

impl Walk<'_> {
    fn wrong(&mut self, page: u64, what: impl Into<String>) {
        self.sum.wrong = true;
        let damage = self.pages.damage(self.name, page, what.into());
        (self.found)(Found::Damage(damage));
    }

    /// Whether its keys sort as bytes; those of the free pages are numbers.
    fn is_ordered(&self) -> bool {
        self.root.flags == 0
    }

    /// Walks a page and all below it. Its keys have to be at least `low` and below `high`.
    fn page(&mut self, number: u64, level: u16, low: &[u8], high: Option<&[u8]>) {
        if !(FIRST_PAGE..=self.pages.last_page).contains(&number) {
            return self.wrong(number, "there is no such page, and one above leads to it");
        }
        let is_leaf = level == self.root.levels;
        if is_leaf && self.depth == Depth::Branches {
            return;
        }
        if self.pages.used.has(number) || self.pages.free.has(number) {
            return self.wrong(number, "it is used twice, or said to be free and used");
        }
        let page = match self.pages.read(number) {
            Ok(page) => page,
            Err(why) if why.kind() == io::ErrorKind::UnexpectedEof => {
                return self.wrong(number, "it lies behind the end of the data file");
            }
            Err(why) => return self.wrong(number, format!("it cannot be read: {why}")),
        };
        let kind = if is_leaf { LEAF } else { BRANCH };
        let rows = match head(&page, number, kind) {
            Ok(rows) => rows,
            Err(what) => return self.wrong(number, what),
        };
        // LMDB gives up the process at a branch with one way, but not in the list of free pages.
        if !is_leaf && rows < 2 && self.is_ordered() {
            return self.wrong(number, "a branch with one way");
        }
        if is_leaf {
            self.leaf(&page, number, rows, low, high);
        } else {
            self.branch(&page, number, rows, level, low, high);
        }
    }

    fn leaf(&mut self, page: &[u8], number: u64, rows: usize, low: &[u8], high: Option<&[u8]>) {
        self.sum.leaves += 1;
        let mut sound = true;
        let mut least = low;
        for index in 0..rows {
            let Some(row) = self.pages.row(page, number, index) else {
                sound = false;
                self.wrong(number, format!("row {index} does not lie within it"));
                continue;
            };
            let fits = row.key >= least && (index == 0 || row.key > least);
            if self.is_ordered() && !(fits && high.is_none_or(|high| row.key < high)) {
                sound = false;
                self.wrong(number, format!("row {index} is not where its key belongs"));
            }
            if row.flags & !(ELSEWHERE | TABLE) != 0 {
                sound = false;
                self.wrong(number, format!("row {index} is of an unknown kind"));
            }
            if row.flags & ELSEWHERE != 0 {
                self.overflow(&row);
            }
            least = row.key;
            self.sum.rows += 1;
            (self.found)(Found::Row(row));
        }
        // The rows of a spoilt page may be found as strays.
        if sound {
            self.pages.used.insert(number);
        }
    }

    fn branch(
        &mut self,
        page: &[u8],
        number: u64,
        rows: usize,
        level: u16,
        low: &[u8],
        high: Option<&[u8]>,
    ) {
        self.sum.branches += 1;
        self.pages.used.insert(number);
        let way = |index: usize| {
            let at = place_of(page, index)?;
            let [low, middle, high] =
                [short(page, at)?, short(page, at + 2)?, short(page, at + 4)?];
            let child = u64::from(low) | u64::from(middle) << 16 | u64::from(high) << 32;
            Some((child, key_at(page, at)?))
        };
        let mut least = low;
        for index in 0..rows {
            let Some((child, key)) = way(index) else {
                self.wrong(number, format!("way {index} does not lie within it"));
                continue;
            };
            // The first way has no key: it is for all below the second.
            let from = if index == 0 { low } else { key };
            let next = way(index + 1).filter(|_| index + 1 < rows).map(|(_, key)| key).or(high);
            let fits = from >= least && next.is_none_or(|next| from < next);
            if self.is_ordered() && !fits {
                self.wrong(number, format!("way {index} is not where its key belongs"));
                // The bounds say nothing now; the pages below are looked at without.
                self.page(child, level + 1, &[], None);
                continue;
            }
            least = from;
            self.page(child, level + 1, from, next);
        }
    }

    /// A value too large for its leaf: pages in a row, of which only the first has a head.
    fn overflow(&mut self, row: &Row<'_>) {
        let first = row.place.offset / self.pages.page_bytes;
        let needed = (PAGE_HEAD_BYTES + row.place.bytes).div_ceil(self.pages.page_bytes as usize);
        if !(FIRST_PAGE..=self.pages.last_page).contains(&first) {
            return self.wrong(first, "there is no such page, and a row leads to it");
        }
        let offset = first * self.pages.page_bytes;
        let Ok(page) = self.pages.value(Place { offset, bytes: PAGE_HEAD_BYTES }) else {
            return self.wrong(first, "it cannot be read");
        };
        let pages = word(&page, 12).map_or(0, u64::from);
        if long(&page, 0) != Some(first) || short(&page, 10) != Some(OVERFLOW) {
            return self.wrong(first, "its head is not that of a large value");
        }
        let last = first.saturating_add(pages.saturating_sub(1));
        if pages < needed as u64 || last > self.pages.last_page {
            return self.wrong(first, format!("it says that its value has {pages} pages"));
        }
        if self.pages.value(row.place).is_err() {
            return self.wrong(first, "its value cannot be read");
        }
        self.sum.overflow += pages;
        for page in first..=last {
            if self.pages.used.has(page) || self.pages.free.has(page) {
                return self.wrong(page, "it is used twice, or said to be free and used");
            }
            self.pages.used.insert(page);
        }
    }

    /// Compares what was found with what the table's root says.
    fn compare(&mut self) {
        if self.sum.wrong || self.depth == Depth::Branches {
            return;
        }
        let Root { branch_pages, leaf_pages, overflow_pages, rows, .. } = *self.root;
        let said = [branch_pages, leaf_pages, overflow_pages, rows];
        let Sum { branches, leaves, overflow, rows, .. } = self.sum;
        if said != [branches, leaves, overflow, rows] {
            let found = [branches, leaves, overflow, rows];
            let what =
                format!("branches, leaves, large pages and rows are {found:?}, not {said:?}");
            self.wrong(self.root.page.unwrap_or_default(), what);
        }
    }
}

/// Checks the head of a page and returns how many rows it has.
fn head(page: &[u8], number: u64, kind: u16) -> Result<usize, String> {
    match long(page, 0) {
        Some(found) if found == number => {}
        found => return Err(format!("it says that it is page {}", found.unwrap_or_default())),
    }
    match short(page, 10) {
        Some(found) if found == kind => {}
        found => return Err(format!("its kind is {}, not {kind}", found.unwrap_or_default())),
    }
    let (Some(lower), Some(upper), Some(rows)) = (short(page, 12), short(page, 14), rows_of(page))
    else {
        return Err("its head is too short".to_owned());
    };
    let (lower, upper) = (usize::from(lower), usize::from(upper));
    if lower > upper || upper > page.len() || lower % 2 != 0 || rows == 0 {
        return Err(format!("its free space, from {lower} to {upper}, cannot be"));
    }
    match (0..rows).all(|index| place_of(page, index).is_some_and(|at| at >= upper && at % 2 == 0))
    {
        true => Ok(rows),
        false => Err("a row of it lies in its free space".to_owned()),
    }
}

/// A bit for each page.
pub(crate) struct Bits {
    words: Vec<u64>,
    len: u64,
}

impl Bits {
    fn new(len: u64) -> Bits {
        Bits { words: vec![0; len.div_ceil(64) as usize], len }
    }

    pub fn len(&self) -> u64 {
        self.len
    }

    pub fn has(&self, page: u64) -> bool {
        let word = self.words.get((page / 64) as usize).copied().unwrap_or_default();
        word >> (page % 64) & 1 != 0
    }

    fn insert(&mut self, page: u64) {
        if let Some(word) = self.words.get_mut((page / 64) as usize) {
            *word |= 1 << (page % 64);
        }
    }
}
