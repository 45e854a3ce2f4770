//! Reading an export: its frame is compared with what is in it.

use super::frame::{END, EXPORT, FORM, PREFIX, digest, end_line, stream};
use crate::directory::Directory;
use crate::failure::Failure;
use crate::limits::{EXPORT_HEAD_BYTES_MAX, EXPORT_LINE_BYTES_MAX};
use keyway_engine::{Engine, Stream};
use memchr::memchr;
use std::io::{self, ErrorKind, Read};

/// Bytes of the input that are read at once.
const PIECE_BYTES: usize = 64 << 10;

/// The verdict on an input by its frame, once all of it has been read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It is no export of this program: it does not tell whether it is whole.
    Unframed,
    /// It is whole, and has so many entries.
    Whole(u64),
    /// It is an export that was cut off or changed: in what way.
    Damaged(String),
}

impl Directory {
    /// Reads LDIF through, and compares an export with its frame. If it is strict, damage is an error.
    pub fn verifying<R: Read>(&self, input: R, is_strict: bool) -> Verifying<R> {
        Verifying::new(input, &self.shared.engine, is_strict)
    }
}

/// Reads LDIF through, and compares an export with its frame.
pub struct Verifying<R> {
    inner: R,
    scan: Scan,
    /// Room for one read.
    buffer: Vec<u8>,
    /// Read, looked at, and not handed out yet.
    pieces: Vec<u8>,
    handed_out: usize,
    has_ended: bool,
    /// Whether damage is an error of the reader.
    is_strict: bool,
}

impl<R: Read> Verifying<R> {
    /// One that reads on from `inner`. If it is strict, damage is an error of [`ErrorKind::InvalidData`],
    /// and the piece that it was found in is not handed out.
    pub fn new(inner: R, engine: &Engine, is_strict: bool) -> Self {
        let scan = Scan {
            engine: engine.clone(),
            hash: None,
            state: State::Start,
            line: Vec::new(),
            is_within: false,
            entries: 0,
            entries_before: 0,
            definitions: String::new(),
        };
        let (buffer, pieces) = (vec![0; PIECE_BYTES], Vec::new());
        Verifying { inner, scan, buffer, pieces, handed_out: 0, has_ended: false, is_strict }
    }

    /// Reads as far as the head goes, and returns the definitions in it: lines such as
    /// `attributeTypes: ( ... )`, which [`crate::Directory::take_definitions`] understands. Nothing
    /// of what follows is lost.
    ///
    /// # Errors
    /// The input's; damage.
    pub fn definitions(&mut self) -> io::Result<&str> {
        while !self.has_ended && !self.scan.has_head() {
            self.more()?;
        }
        Ok(&self.scan.definitions)
    }

    /// The verdict, once all of it has been read.
    pub fn verdict(&self) -> Verdict {
        match &self.scan.state {
            State::Damaged(why) => Verdict::Damaged(why.clone()),
            State::After => Verdict::Whole(self.scan.entries_before),
            _ => Verdict::Unframed,
        }
    }

    /// Reads and looks at another piece.
    fn more(&mut self) -> io::Result<()> {
        let read = loop {
            match self.inner.read(&mut self.buffer) {
                Err(why) if why.kind() == ErrorKind::Interrupted => {}
                read => break read?,
            }
        };
        let piece = self.buffer.get(..read).unwrap_or_default();
        self.pieces.extend_from_slice(piece);
        self.has_ended = read == 0;
        let looked = match self.has_ended {
            true => self.scan.end(),
            false => self.scan.piece(piece),
        };
        looked.map_err(|why| io::Error::other(why.diagnostic))?;
        match &self.scan.state {
            State::Damaged(why) if self.is_strict => {
                Err(io::Error::new(ErrorKind::InvalidData, why.clone()))
            }
            _ => Ok(()),
        }
    }
}

impl<R: Read> Read for Verifying<R> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        if out.is_empty() {
            return Ok(0);
        }
        if self.handed_out == self.pieces.len() {
            self.pieces.clear();
            self.handed_out = 0;
            if !self.has_ended {
                self.more()?;
            }
        }
        let left = self.pieces.get(self.handed_out..).unwrap_or_default();
        let (count, from) = (left.len().min(out.len()), left);
        if let (Some(out), Some(from)) = (out.get_mut(..count), from.get(..count)) {
            out.copy_from_slice(from);
        }
        self.handed_out += count;
        Ok(count)
    }
}

fn counted(entries: u64) -> String {
    if entries == 1 { "1 entry".to_owned() } else { format!("{entries} entries") }
}

/// Where in the input a look through it is.
enum State {
    /// Nothing was there yet.
    Start,
    /// In the head.
    Head,
    /// Among entries of an export.
    Entries,
    /// In LDIF that is no export.
    Unframed,
    /// An export has ended.
    After,
    /// Something is wrong.
    Damaged(String),
}

/// A look through an input.
struct Scan {
    engine: Engine,
    /// The hash of the export that is being read.
    hash: Option<Stream>,
    state: State,
    /// The beginning of a line whose end is not there yet.
    line: Vec<u8>,
    /// Whether the line has gone on for so long that it is nothing of the frame's.
    is_within: bool,
    /// Entries of the export that is being read, and of those before.
    entries: u64,
    entries_before: u64,
    definitions: String,
}

impl Scan {
    /// Whether the head has been read, or there is none.
    fn has_head(&self) -> bool {
        !matches!(self.state, State::Start | State::Head)
    }

    fn piece(&mut self, piece: &[u8]) -> Result<(), Failure> {
        // Lines of entries are hashed many at a time: those from here on are not yet.
        let mut waiting = 0;
        let mut at = 0;
        while let Some(rest) = piece.get(at..).filter(|rest| !rest.is_empty()) {
            let end = memchr(b'\n', rest);
            let is_other = matches!(self.state, State::Unframed | State::Damaged(_));
            // The beginning of a comment waits for its rest: it may be an export's end.
            let is_begun = !self.is_within && end.is_none() && rest.starts_with(b"#");
            if is_other && self.line.is_empty() && !is_begun {
                at += self.skip(rest);
                waiting = at;
                continue;
            }
            let next = at + end.map_or(rest.len(), |end| end + 1);
            let line = piece.get(at..next).unwrap_or_default();
            match end {
                _ if self.is_within => self.is_within = end.is_none(),
                Some(_) if self.line.is_empty() && !self.is_frames(line) => self.count(line),
                _ => {
                    // It is looked at by itself, when it is whole.
                    self.hash(piece.get(waiting..at).unwrap_or_default())?;
                    waiting = next;
                    self.line.extend_from_slice(line);
                    if end.is_some() {
                        let line = std::mem::take(&mut self.line);
                        self.take(&line)?;
                    } else if self.line.len() > EXPORT_LINE_BYTES_MAX {
                        self.give_up()?;
                    }
                }
            }
            at = next;
        }
        self.hash(piece.get(waiting..).unwrap_or_default())
    }

    /// In what is no export: steps over what is nothing of the frame's; an end without a head is.
    fn skip(&mut self, rest: &[u8]) -> usize {
        let end = memchr(b'\n', rest);
        let next = end.map_or(rest.len(), |end| end + 1);
        let is_first = !std::mem::replace(&mut self.is_within, end.is_none());
        let line = rest.get(..next).unwrap_or_default();
        if is_first && line.starts_with(END.as_bytes()) && !matches!(self.state, State::Damaged(_))
        {
            self.damaged("it has the end of an export of keyway's, and its head is missing");
        }
        next
    }

    /// Whether a line may be one that is looked at by itself.
    fn is_frames(&self, line: &[u8]) -> bool {
        !matches!(self.state, State::Entries) || line.starts_with(b"#")
    }

    fn count(&mut self, line: &[u8]) {
        self.entries += u64::from(line.starts_with(b"dn:"));
    }

    fn hash(&mut self, bytes: &[u8]) -> Result<(), Failure> {
        if let Some(hash) = self.hash.as_mut().filter(|_| !bytes.is_empty()) {
            hash.update(bytes)?;
        }
        Ok(())
    }

    fn damaged(&mut self, why: impl Into<String>) {
        self.state = State::Damaged(why.into());
        self.hash = None;
    }

    /// Takes a line that is longer than any of the frame's for what it is.
    fn give_up(&mut self) -> Result<(), Failure> {
        self.is_within = true;
        let line = std::mem::take(&mut self.line);
        match self.state {
            State::Entries => {
                self.count(&line);
                self.hash(&line)
            }
            State::Head => {
                self.damaged("a line of its head is too long");
                Ok(())
            }
            _ => self.take(&line),
        }
    }

    /// Looks at a line, with its line break.
    fn take(&mut self, line: &[u8]) -> Result<(), Failure> {
        let text = line.strip_suffix(b"\n").unwrap_or(line);
        let text = text.strip_suffix(b"\r").unwrap_or(text);
        match &self.state {
            State::Start | State::After if text.starts_with(EXPORT.as_bytes()) => {
                self.begin(line, text.get(EXPORT.len()..).unwrap_or_default())
            }
            State::Start => {
                self.state = State::Unframed;
                self.skip(line);
                Ok(())
            }
            State::Head => match text.strip_prefix(PREFIX.as_bytes()) {
                Some(definition) => {
                    self.hash(line)?;
                    self.define(definition);
                    Ok(())
                }
                None => {
                    self.state = State::Entries;
                    self.take(line)
                }
            },
            State::Entries if text.starts_with(END.as_bytes()) => self.compare(text),
            State::Entries => {
                self.count(line);
                self.hash(line)
            }
            State::After if text.is_empty() => Ok(()),
            State::After => {
                self.damaged("something follows its end, which is no other export");
                Ok(())
            }
            State::Unframed | State::Damaged(_) => {
                self.skip(line);
                Ok(())
            }
        }
    }

    /// Begins an export with the first line of its head.
    fn begin(&mut self, line: &[u8], form: &[u8]) -> Result<(), Failure> {
        if form != FORM.as_bytes() {
            let form = String::from_utf8_lossy(form).into_owned();
            self.damaged(format!(
                "it is an export of form {form:?}, and this version of keyway reads {FORM}"
            ));
            return Ok(());
        }
        self.hash = Some(stream(&self.engine)?);
        self.entries = 0;
        self.state = State::Head;
        self.hash(line)
    }

    fn define(&mut self, definition: &[u8]) {
        let Ok(text) = str::from_utf8(definition) else {
            return self.damaged("a definition in its head is not UTF-8 text");
        };
        self.definitions.push_str(text);
        self.definitions.push('\n');
        if self.definitions.len() > EXPORT_HEAD_BYTES_MAX {
            self.damaged(format!("its definitions have more than {EXPORT_HEAD_BYTES_MAX} bytes"));
        }
    }

    /// Compares an end with what was before it.
    fn compare(&mut self, text: &[u8]) -> Result<(), Failure> {
        let Some(hash) = self.hash.take() else { return Ok(()) };
        let right = end_line(self.entries, &digest(hash)?);
        if right.trim_end().as_bytes() == text {
            self.entries_before += self.entries;
            self.state = State::After;
            return Ok(());
        }
        let count = str::from_utf8(text).ok().and_then(|text| {
            text.strip_prefix(END)?.strip_prefix(", entries ")?.split_once(',')?.0.parse().ok()
        });
        self.damaged(match count {
            Some(count) if count != self.entries => {
                let (due, there) = (counted(count), self.entries);
                format!("its end speaks of {due}, and it has {there}")
            }
            _ => {
                "its checksum is not that of what is in it: something in it was changed".to_owned()
            }
        });
        Ok(())
    }

    /// Looks at what it ends with.
    fn end(&mut self) -> Result<(), Failure> {
        if !self.line.is_empty() {
            let line = std::mem::take(&mut self.line);
            self.take(&line)?;
        }
        if matches!(self.state, State::Head | State::Entries) {
            let entries = counted(self.entries);
            self.damaged(format!(
                "it was cut off: the end that an export has is missing behind {entries}"
            ));
        }
        Ok(())
    }
}
