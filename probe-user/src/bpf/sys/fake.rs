//! A kernel for unit tests: a closure that answers this thread's system calls.

use super::Syscall;
use std::{cell::RefCell, fs::File, io, os::fd::IntoRawFd as _};

type Answers = Box<dyn FnMut(&Syscall<'_>) -> io::Result<usize>>;

thread_local! {
    static FAKE: RefCell<Option<Answers>> = const { RefCell::new(None) };
}

/// Sends this thread's calls to the closure while it lives.
pub(crate) struct Fake(());

impl Fake {
    pub(crate) fn new(answers: impl FnMut(&Syscall<'_>) -> io::Result<usize> + 'static) -> Self {
        FAKE.with_borrow_mut(|fake| *fake = Some(Box::new(answers)));
        Self(())
    }

    /// Makes every call fail with this error.
    pub(crate) fn failing(errno: i32) -> Self {
        Self::new(move |_| error(errno))
    }
}

impl Drop for Fake {
    fn drop(&mut self) {
        FAKE.with_borrow_mut(|fake| *fake = None);
    }
}

pub(crate) fn error(errno: i32) -> io::Result<usize> {
    Err(io::Error::from_raw_os_error(errno))
}

/// Returns a real descriptor, to be closed like any other.
pub(crate) fn fd() -> io::Result<usize> {
    Ok(File::open("/dev/null")?.into_raw_fd() as usize)
}

/// Returns the fake's answer, or the call itself if it is for the kernel.
pub(super) fn answer(call: Syscall<'_>) -> Result<io::Result<usize>, Syscall<'_>> {
    FAKE.with_borrow_mut(|fake| match fake {
        Some(answers) => Ok(answers(&call)),
        None => Err(call),
    })
}
