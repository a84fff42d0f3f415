//! Reports programs that start. The daemon waits for some of them. Loaded once, separately from the
//! sessions.

use crate::{kernel::Kernel, news, output::Task};
use aya_ebpf::{macros::raw_tracepoint, programs::RawTracePointContext};

#[raw_tracepoint(tracepoint = "sched_process_exec")]
pub fn on_start(_ctx: RawTracePointContext) -> i32 {
    news::tell(Task::current().pid);
    0
}

/// Reports children of the processes in `TRACED`: they run the same program without an exec.
#[raw_tracepoint(tracepoint = "sched_process_fork")]
pub fn on_birth(ctx: RawTracePointContext) -> i32 {
    let parent = Task::current();
    if parent.is_traced()
        && let Some(child) = Kernel(ctx.arg(1)).task()
        && child.pid != parent.pid
    {
        news::tell(child.pid);
    }
    0
}
