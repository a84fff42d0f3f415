//! How the kernel knows processes that execute a program and are to be traced from then on.

/// The facts that such a process has in common with those that are traced. A fact that does not matter is
/// 0 in all.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Admission {
    /// The file of the program.
    pub inode: u64,
    /// The control group, of version 2.
    pub cgroup: u64,
    /// The device of the file, as the kernel numbers it.
    pub device: u32,
    /// The effective user id.
    pub user: u32,
}

/// Bits of what matters.
pub const BY_PROGRAM: u32 = 1;
pub const BY_CGROUP: u32 = 2;
pub const BY_USER: u32 = 4;

/// Admissions in the kernel's map.
pub const MOST_ADMISSIONS: usize = 1024;

const _: () = assert!(size_of::<Admission>() == 24);
