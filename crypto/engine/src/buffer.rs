//! Where the data of a task lies: in bytes of its own, or in memory that the consumer lends it.

use std::any::Any;
use std::fmt;
use std::ops::{Deref, DerefMut};

/// The data of an [`Operation`](crate::Operation): a slice of bytes.
///
/// In lent memory work is done where the bytes are already: in a region that is shared with another
/// process, for one. Every driver can work there. The one that knows the region finds it with
/// [`Buffer::memory`], and copies nothing.
///
/// ```
/// use keyway_engine::{Buffer, Memory, Operation};
///
/// struct Page([u8; 4096]);
///
/// impl Memory for Page {
///     fn bytes(&self) -> &[u8] {
///         &self.0
///     }
///
///     fn bytes_mut(&mut self) -> &mut [u8] {
///         &mut self.0
///     }
/// }
///
/// let own = Operation::encrypt([0; 16], b"sixteen bytes...");
/// let mut page = Buffer::lent(Page([0; 4096]));
/// page[..4].copy_from_slice(b"text");
/// assert!(page.memory::<Page>().is_some());
/// let lent = Operation::encrypt([0; 16], page);
/// assert_eq!((own.bytes(), lent.bytes()), (16, 4096));
/// ```
pub struct Buffer(Kind);

enum Kind {
    Owned(Vec<u8>),
    /// The second box makes room for the length, which then lies where a vector has its own: to
    /// read it takes no branch.
    Lent {
        memory: Box<Box<dyn Memory>>,
        bytes: usize,
    },
}

// Where data lies in a task is counted in lines of the cache.
const _: () = assert!(size_of::<Buffer>() == size_of::<Vec<u8>>());

/// Memory that is lent to a [`Buffer`], which drops it when it is dropped.
pub trait Memory: Any + Send + Sync {
    /// The bytes to be worked on. It is asked for them several times, from any thread, and answers
    /// with the same ones, as many as at first. Nothing else changes them meanwhile.
    fn bytes(&self) -> &[u8];

    /// These bytes, for the result to be put there.
    fn bytes_mut(&mut self) -> &mut [u8];
}

impl Buffer {
    /// All the bytes of this memory.
    pub fn lent(memory: impl Memory) -> Self {
        let bytes = memory.bytes().len();
        Buffer(Kind::Lent { memory: Box::new(Box::new(memory)), bytes })
    }

    /// The lent memory, if it is of this type.
    pub fn memory<M: Memory>(&mut self) -> Option<&mut M> {
        match &mut self.0 {
            Kind::Owned(_) => None,
            Kind::Lent { memory, .. } => (&mut ***memory as &mut dyn Any).downcast_mut(),
        }
    }

    /// Its own bytes, or a copy of what was lent.
    pub fn into_vec(self) -> Vec<u8> {
        match self.0 {
            Kind::Owned(bytes) => bytes,
            Kind::Lent { memory, .. } => memory.bytes().to_vec(),
        }
    }

    /// Makes it so long. New bytes are zeros. Lent memory is copied first.
    pub fn resize(&mut self, bytes: usize) {
        if let Kind::Owned(own) = &mut self.0 {
            own.resize(bytes, 0);
        } else if self.len() != bytes {
            let mut own = self.to_vec();
            own.resize(bytes, 0);
            *self = own.into();
        }
    }

    /// How many bytes it has.
    #[inline]
    pub fn len(&self) -> usize {
        match &self.0 {
            Kind::Owned(own) => own.len(),
            Kind::Lent { bytes, .. } => *bytes,
        }
    }

    /// Whether it has none.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl Deref for Buffer {
    type Target = [u8];

    #[inline]
    fn deref(&self) -> &[u8] {
        match &self.0 {
            Kind::Owned(bytes) => bytes,
            Kind::Lent { memory, .. } => shared(memory),
        }
    }
}

impl DerefMut for Buffer {
    #[inline]
    fn deref_mut(&mut self) -> &mut [u8] {
        match &mut self.0 {
            Kind::Owned(bytes) => bytes,
            Kind::Lent { memory, .. } => exclusive(memory),
        }
    }
}

/// Apart, so that the path of a buffer's own bytes is straight.
#[cold]
#[inline(never)]
#[allow(clippy::borrowed_box, reason = "what the box has is loaded here, and not on that path")]
fn shared(memory: &Box<dyn Memory>) -> &[u8] {
    memory.bytes()
}

#[cold]
#[inline(never)]
fn exclusive(memory: &mut Box<dyn Memory>) -> &mut [u8] {
    memory.bytes_mut()
}

impl<T: Into<Vec<u8>>> From<T> for Buffer {
    /// Its own bytes.
    fn from(bytes: T) -> Self {
        Buffer(Kind::Owned(bytes.into()))
    }
}

impl Clone for Buffer {
    /// A copy with bytes of its own.
    fn clone(&self) -> Self {
        self.to_vec().into()
    }
}

impl fmt::Debug for Buffer {
    /// How long it is; its bytes may be secret.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Buffer({} bytes)", self.len())
    }
}
