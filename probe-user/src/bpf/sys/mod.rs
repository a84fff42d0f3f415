//! Every system call of the kernel door, in one place.
//!
//! The wrappers in the files below build the arguments and are safe. [`Syscall::run`] calls the
//! kernel, or the fake in unit tests.

mod attr;
mod bpf;
#[cfg(test)]
pub(super) mod fake;
mod memory;
mod perf;

pub(super) use attr::Attr;
pub(super) use bpf::{
    AttachType, Insn, LinkPlaces, ProgramSpec, ProgramType, UprobeLink, create_shared_array,
    link_perf, link_uprobes, load_program, map_delete, map_freeze, map_lookup, map_next_key,
    map_replace, map_take, map_update, next_link, open_raw_tracepoint, place_of_event,
    places_of_link, visit_thread,
};
pub(super) use memory::{MOST_PIECES, read_process};
pub(super) use perf::{UprobeEvent, open_cpu_clock, open_uprobe};

use std::{
    ffi::c_void,
    fs::File,
    io::{self, IoSliceMut},
    ops::Deref,
    os::fd::{AsRawFd as _, FromRawFd as _, IntoRawFd as _, OwnedFd, RawFd},
    ptr, slice,
};

/// `syscall(336)` tells the kernel's treatment of nops under uprobes.
const NOP_QUESTION: libc::c_long = 336;

/// Missing in libc.
const PERF_FLAG_FD_CLOEXEC: libc::c_ulong = 8;

/// One call and its arguments.
pub(super) enum Syscall<'a> {
    Bpf { command: u32, attr: &'a mut Attr },
    PerfEventOpen { attr: &'a Attr, pid: i32, cpu: i32 },
    Map { fd: RawFd, len: usize, offset: usize },
    Close { fd: RawFd },
    ReadProcess { pid: u32, local: &'a [IoSliceMut<'a>], remote: &'a [libc::iovec] },
    NopQuestion,
}

impl Syscall<'_> {
    /// Runs the call. Returns an fd, an address, a number of bytes or 0.
    fn run(self) -> io::Result<usize> {
        #[cfg(test)]
        let this = match fake::answer(self) {
            Ok(answer) => return answer,
            Err(this) => this,
        };
        #[cfg(not(test))]
        let this = self;
        let result = match this {
            // SAFETY: `attr` is a whole, zero-padded `bpf_attr`; the wrappers keep the targets of
            // its pointers alive.
            Syscall::Bpf { command, attr } => unsafe {
                libc::syscall(libc::SYS_bpf, command, attr.as_mut_ptr(), Attr::LEN)
            },
            // SAFETY: `attr` is a `perf_event_attr` that contains its own length; as above.
            Syscall::PerfEventOpen { attr, pid, cpu } => unsafe {
                libc::syscall(
                    libc::SYS_perf_event_open,
                    attr.as_ptr(),
                    pid,
                    cpu,
                    -1,
                    PERF_FLAG_FD_CLOEXEC,
                )
            },
            Syscall::Map { fd, len, offset } => {
                let protection = libc::PROT_READ | libc::PROT_WRITE;
                // SAFETY: a new mapping at an address of the kernel's choice.
                let address = unsafe {
                    let offset = offset as libc::off_t;
                    libc::mmap(ptr::null_mut(), len, protection, libc::MAP_SHARED, fd, offset)
                };
                if address == libc::MAP_FAILED { -1 } else { address as libc::c_long }
            }
            // SAFETY: `close` below owns the descriptor and gives it away.
            Syscall::Close { fd } => libc::c_long::from(unsafe { libc::close(fd) }),
            // SAFETY: `IoSliceMut` has the layout of `iovec`; its bytes are borrowed for the call.
            // `remote` describes memory of another process, which is only read.
            Syscall::ReadProcess { pid, local, remote } => unsafe {
                let (to, from) = (local.as_ptr().cast(), remote.as_ptr());
                let (to_len, from_len) = (local.len() as u64, remote.len() as u64);
                libc::process_vm_readv(pid as i32, to, to_len, from, from_len, 0) as libc::c_long
            },
            // SAFETY: it takes no arguments and only answers with an error.
            Syscall::NopQuestion => unsafe { libc::syscall(NOP_QUESTION) },
        };
        if result == -1 { Err(io::Error::last_os_error()) } else { Ok(result as usize) }
    }

    fn run_for_fd(self) -> io::Result<OwnedFd> {
        let fd = self.run()?;
        // SAFETY: the kernel has just made this fd for us alone.
        Ok(unsafe { OwnedFd::from_raw_fd(fd as RawFd) })
    }
}

/// Closes the descriptor and returns the kernel's error, which a drop would hide.
pub(super) fn close(fd: OwnedFd) -> io::Result<()> {
    Syscall::Close { fd: fd.into_raw_fd() }.run().map(drop)
}

/// Returns the kernel's answer to the question about nops, which is always an error.
pub(super) fn ask_about_nops() -> io::Error {
    match Syscall::NopQuestion.run() {
        Ok(_) => io::Error::from_raw_os_error(libc::ENOSYS),
        Err(error) => error,
    }
}

/// Memory shared with the kernel.
pub(super) struct Mapping {
    address: *mut c_void,
    len: usize,
}

// SAFETY: the mapping belongs to no thread.
unsafe impl Send for Mapping {}

impl Mapping {
    pub(super) fn new(fd: RawFd, len: usize, offset: usize) -> io::Result<Self> {
        let address = Syscall::Map { fd, len, offset }.run()?;
        Ok(Self { address: address as *mut c_void, len })
    }

    pub(super) fn address(&self) -> *mut u8 {
        self.address.cast()
    }

    pub(super) fn len(&self) -> usize {
        self.len
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: our own mapping, and nothing borrows from it any more.
        unsafe { libc::munmap(self.address, self.len) };
    }
}

/// Bytes of a file of the kernel's that never change, in its own memory.
pub(super) struct FixedBytes(Mapping);

impl FixedBytes {
    /// Not every kernel lets its files be mapped.
    pub(super) fn of_kernel_file(file: &File, len: usize) -> io::Result<Self> {
        let (access, fd) = (libc::PROT_READ, file.as_raw_fd());
        // SAFETY: a new mapping at an address of the kernel's choice.
        let address = unsafe { libc::mmap(ptr::null_mut(), len, access, libc::MAP_PRIVATE, fd, 0) };
        match address {
            libc::MAP_FAILED => Err(io::Error::last_os_error()),
            address => Ok(Self(Mapping { address, len })),
        }
    }
}

impl Deref for FixedBytes {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        // SAFETY: the mapping has these bytes while it lives, and the kernel does not change them.
        unsafe { slice::from_raw_parts(self.0.address.cast(), self.0.len) }
    }
}
