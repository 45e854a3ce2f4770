//! A file that an epoll watches, until it is dropped.

use rustix::event::epoll::{self, EventData, EventFlags};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

/// The file. To close it would not end the watch, since the front end has the file open too.
#[derive(Debug)]
pub(crate) struct Watched<'e> {
    epoll: BorrowedFd<'e>,
    file: OwnedFd,
}

impl<'e> Watched<'e> {
    pub fn new(
        epoll: BorrowedFd<'e>,
        file: OwnedFd,
        data: EventData,
        flags: EventFlags,
    ) -> rustix::io::Result<Watched<'e>> {
        epoll::add(epoll, &file, data, flags)?;
        Ok(Watched { epoll, file })
    }

    pub fn file(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}

impl Drop for Watched<'_> {
    fn drop(&mut self) {
        let _ = epoll::delete(self.epoll, &self.file);
    }
}
