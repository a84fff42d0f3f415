//! Admits processes that execute a program and are of those that the user chose. They are traced from
//! the first instruction of the program on.

use crate::{
    kernel::Kernel,
    maps::{ADMITTED, GUARDED, TRACED},
    output::Task,
    settings,
};
use aya_ebpf::helpers::generated::bpf_get_current_cgroup_id;
use ctrace_common::{Admission, BY_CGROUP, BY_PROGRAM, BY_USER};

/// Adds the current process to the traced ones, if one like it was admitted. Returns true if it did.
/// `program` is the kernel's `linux_binprm`.
#[inline(always)]
pub fn admit(task: Task, program: Kernel) -> bool {
    let by = settings::ADMITS.load();
    if by == 0 {
        return false;
    }
    let Some(admission) = admission(by, program) else { return false };
    if ADMITTED.get_ptr(admission).is_none() {
        return false;
    }
    if settings::GUARDS.load() != 0 && GUARDED.insert(task.pid, ctrace_common::GUARDED, 0).is_err()
    {
        return false;
    }
    TRACED.insert(task.pid, ctrace_common::TRACED, 0).is_ok()
}

#[inline(always)]
fn admission(by: u32, program: Kernel) -> Option<Admission> {
    let mut admission = Admission::default();
    if by & BY_PROGRAM != 0 {
        let inode = program.pointer(&settings::BINPRM_FILE)?.pointer(&settings::FILE_INODE)?;
        admission.inode = inode.read(&settings::INODE_INO)?;
        admission.device = inode.pointer(&settings::INODE_SB)?.read(&settings::SB_DEV)?;
    }
    if by & BY_CGROUP != 0 {
        // SAFETY: a helper without arguments.
        admission.cgroup = unsafe { bpf_get_current_cgroup_id() };
    }
    if by & BY_USER != 0 {
        admission.user =
            Kernel::current().pointer(&settings::TASK_CRED)?.read(&settings::CRED_EUID)?;
    }
    Some(admission)
}
