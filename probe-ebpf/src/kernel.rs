//! Structures in kernel memory. The offsets of their fields come from the running kernel's BTF
//! through `settings`.

use crate::{output::Task, settings};
use aya_ebpf::{
    Global,
    helpers::{bpf_get_current_task, bpf_probe_read_kernel, generated},
};
use core::ffi::c_void;

/// A structure in kernel memory.
#[derive(Clone, Copy)]
pub struct Kernel(pub u64);

impl Kernel {
    /// Returns the `task_struct` of the current thread.
    #[inline(always)]
    pub fn current() -> Self {
        // SAFETY: the helper only returns a number.
        Self(unsafe { bpf_get_current_task() })
    }

    #[inline(always)]
    pub fn read<T>(self, offset: &Global<u32>) -> Option<T> {
        let address = self.0.wrapping_add(offset.load() as u64);
        // SAFETY: the helper checks the address itself and fails on a bad one.
        unsafe { bpf_probe_read_kernel(address as *const T) }.ok()
    }

    /// Reads a word without a branch; 0 if that fails.
    #[inline(always)]
    pub fn word(self, offset: &Global<u32>) -> u64 {
        let address = self.0.wrapping_add(offset.load() as u64);
        let mut word = 0_u64;
        // SAFETY: the helper checks the address itself, and leaves 0 if it is a bad one.
        unsafe {
            generated::bpf_probe_read_kernel((&raw mut word).cast(), 8, address as *const c_void)
        };
        word
    }

    /// Reads the id of the process and of the thread of a `task_struct`.
    #[inline(always)]
    pub fn task(self) -> Option<Task> {
        Some(Task { pid: self.read(&settings::TASK_TGID)?, tid: self.read(&settings::TASK_PID)? })
    }

    #[inline(always)]
    pub fn pointer(self, offset: &Global<u32>) -> Option<Self> {
        self.read(offset).map(Self)
    }
}
