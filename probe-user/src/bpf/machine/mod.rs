//! What the running kernel and its processors are, and what this process may do with them.

pub(super) mod btf;
pub(super) mod capabilities;
pub(super) mod clock;
pub(super) mod cpus;
pub(super) mod lockdown;
pub(super) mod pid_namespace;
pub(super) mod release;
mod vmlinux;
