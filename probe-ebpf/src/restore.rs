//! Guards of return probes: before something unwinds through a frame or leaves its stack, the true
//! return addresses go back where they were.
//!
//! eBPF cannot write them. It lists the hijacked frames of the thread from the kernel's own list,
//! and holds the thread until user space has written. A thread waits in a loop, which takes some
//! microseconds and is seen by nobody. Where no CPU is free for user space meanwhile, it stops the
//! process instead.

use crate::{
    aggregate, atomic,
    kernel::Kernel,
    maps::{GUARDED, RESTORE_STATES, RESTORED, RESTORES, SWITCHES},
    output::{Task, control, control_if_room, now},
    registers::Registers,
    settings, thrift,
    turns::{repeat, unknown_zero},
};
use aya_ebpf::{
    EbpfContext as _,
    helpers::{
        bpf_get_attach_cookie, bpf_get_smp_processor_id,
        generated::{bpf_probe_read_user, bpf_send_signal_thread},
    },
    macros::{raw_tracepoint, uprobe},
    maps::ring_buf::RingBufEntry,
    programs::{ProbeContext, RawTracePointContext},
};
use core::{arch::asm, ffi::c_void};
use ctrace_common::{
    Change, Cookie, GUARDED_STOPPED, GUARDS_BACKTRACES, Hijacked, MAX_CPUS, MOST_HIJACKED,
    RESTORE_BACKTRACES, RESTORE_CONTINUES, RESTORE_CONTINUES_LOCKED_NANOS, RESTORE_CONTINUES_NANOS,
    RESTORE_ENDS, RESTORE_FREE, RESTORE_LOAD_NANOS, RESTORE_NANOS, RESTORE_OVER, RESTORE_PHASES,
    RESTORE_UNHEARD, RESTORE_WAITING, RestoreReason, RestoreRequest,
};

const SIGSTOP: u32 = 19;
/// `BPF_RB_FORCE_WAKEUP`
const WAKE: u64 = 2;
/// `SA_ONSTACK`
const ON_STACK: u64 = 0x0800_0000;

/// The entry of an unwinder. Its cookie tells whether it only looks.
#[uprobe]
pub fn guard_unwind(ctx: ProbeContext) -> u32 {
    // SAFETY: the helper takes this program's context.
    let cookie = Cookie(unsafe { bpf_get_attach_cookie(ctx.as_ptr()) });
    let is_backtrace = cookie.probe() == GUARDS_BACKTRACES;
    let sp = Registers::of(&ctx).sp();
    if restore_frames(RestoreReason::Unwind, sp, !is_backtrace) && is_backtrace {
        count(RESTORE_BACKTRACES);
    }
    0
}

/// An instruction that leaves the stack, or the entry of a function that does.
///
/// The kernel keeps its list for the thread, not for the stack. A stack that goes on in another
/// thread would have frames in two lists, and nothing could tell which is right. So a process that
/// changes stacks within probed calls gets no return probes from then on.
#[uprobe]
pub fn guard_switch(ctx: ProbeContext) -> u32 {
    if restore_frames(RestoreReason::Switch, Registers::of(&ctx).sp(), false) && SWITCHES.get() == 0
    {
        SWITCHES.add(1);
    }
    0
}

/// The place where the dynamic linker announces that it has mapped a library, which may switch
/// stacks as soon as it runs. The thread waits until user space has arranged for its stop, which
/// happens on the way out of here. Where nobody answers, it stops the process. A process that is not
/// traced, or no more, has nothing to lose but frames that were hijacked before.
#[uprobe]
pub fn guard_load(_ctx: ProbeContext) -> u32 {
    let task = Task::current();
    if !nobody_serves()
        && (task.is_traced() || is_guarded(task.pid) && has_frames(Kernel::current()))
        && let Some((cpu, waiting)) = tell_of_none(task, RestoreReason::Load)
    {
        wait(cpu, waiting, RESTORE_LOAD_NANOS);
        stop(cpu, waiting, RESTORE_CONTINUES_NANOS);
    }
    0
}

/// Runs before the frame of a signal handler is made, with interrupts off: nothing can wake user
/// space on this CPU. So the thread does not wait, but stops.
#[raw_tracepoint(tracepoint = "signal_deliver")]
pub fn guard_signal(ctx: RawTracePointContext) -> i32 {
    if !is_guarded(Task::current().pid) {
        return 0;
    }
    let action = Kernel(ctx.arg(2));
    let task = Kernel::current();
    let flags: u64 = action.read(&settings::SIGACTION_SA_FLAGS).unwrap_or(ON_STACK);
    let size: u64 = task.read(&settings::TASK_SAS_SS_SIZE).unwrap_or(1);
    if flags & ON_STACK != 0 && size != 0 {
        restore_frames(RestoreReason::Signal, 0, false);
    }
    0
}

/// Lists the frames of one thread, also if there are none: user space waits for the answer. It runs
/// as an iterator over tasks, whose context has the task in its second word.
#[raw_tracepoint(tracepoint = "task")]
pub fn list_hijacked(ctx: RawTracePointContext) -> i32 {
    let address: u64 = ctx.arg(1);
    if address == 0 {
        return 0;
    }
    let kernel = Kernel(address);
    if let Some(task) = kernel.task()
        && is_guarded(task.pid)
        && request(kernel, task, RestoreReason::Listed).is_none()
    {
        tell_of_none(task, RestoreReason::Listed);
    }
    0
}

/// Submits a request without frames. Returns the CPU's number and its state.
#[inline(always)]
fn tell_of_none(task: Task, reason: RestoreReason) -> Option<(u32, u64)> {
    let mut room = room(reason)?;
    let place = begin_to_wait(reason);
    // SAFETY: what `reserve` returned has room for a whole request.
    unsafe { write_head(room.as_mut_ptr(), &place, task, reason) };
    room.submit(WAKE);
    Some((place.cpu, place.waiting))
}

/// Takes room for a request. User space empties a full ring soon. A thread that waits in vain goes on
/// with its frames as they are, and is counted.
#[inline(always)]
fn room(reason: RestoreReason) -> Option<RingBufEntry<RestoreRequest>> {
    let patience = match reason {
        // User space asks again.
        RestoreReason::Listed => return RESTORES.reserve(0),
        RestoreReason::Signal => RESTORE_CONTINUES_LOCKED_NANOS,
        RestoreReason::Unwind | RestoreReason::Switch | RestoreReason::Load => RESTORE_NANOS,
    };
    let until = now() + patience;
    loop {
        let room = RESTORES.reserve(0);
        if room.is_some() {
            return room;
        }
        if now() > until {
            break;
        }
        // SAFETY: it only jumps, see `wait`.
        unsafe { asm!("may_goto {}", label { break }) };
    }
    count(RESTORE_UNHEARD);
    None
}

#[inline(always)]
fn count(counter: u32) {
    if let Some(count) = RESTORED.get_ptr_mut(counter) {
        // SAFETY: an element of a map, which lives as long as the program.
        unsafe { atomic::add(count, 1) };
    }
}

/// The number of a request, and where its thread waits.
struct WaitingPlace {
    number: u64,
    cpu: u32,
    /// `RESTORE_FREE` if it does not: another thread waits there on a preemptible kernel, or user
    /// space has asked.
    waiting: u64,
}

#[inline(always)]
fn begin_to_wait(reason: RestoreReason) -> WaitingPlace {
    // SAFETY: the helper only returns a number.
    let cpu = unsafe { bpf_get_smp_processor_id() } % MAX_CPUS as u32;
    let number = now() & !RESTORE_PHASES;
    let mut waiting = RESTORE_FREE;
    if !matches!(reason, RestoreReason::Listed)
        && let Some(state) = RESTORE_STATES.get_ptr_mut(cpu)
        // SAFETY: an element of a map, which lives as long as the program.
        && unsafe { atomic::exchange(state, RESTORE_FREE, number | RESTORE_WAITING) }
    {
        waiting = number | RESTORE_WAITING;
    }
    WaitingPlace { number, cpu, waiting }
}

/// Writes all of a request but its frames, of which there are none yet.
///
/// # Safety
/// `request` has room for one.
#[inline(always)]
unsafe fn write_head(
    request: *mut RestoreRequest,
    place: &WaitingPlace,
    task: Task,
    reason: RestoreReason,
) {
    // SAFETY: the caller says so.
    unsafe {
        (*request).number = place.number;
        (*request).trampoline = 0;
        (*request).pid = task.pid;
        (*request).tid = task.tid;
        (*request).cpu = place.cpu;
        (*request).reason = reason as u32;
        (*request).count = 0;
    }
}

/// Returns how far the session has come to its end: 0, [`RESTORE_ENDING`] or [`RESTORE_OVER`].
#[inline(always)]
pub fn end_of_session() -> u64 {
    let ends = RESTORE_STATES.get_ptr(RESTORE_ENDS as u32);
    // SAFETY: the map's values live as long as the map, and user space writes a word whole.
    ends.map_or(RESTORE_OVER, |ends| unsafe { ends.read_volatile() })
}

/// True once the session is over, while another process keeps a link to a guard.
#[inline(always)]
fn nobody_serves() -> bool {
    end_of_session() >= RESTORE_OVER
}

#[inline(always)]
fn is_guarded(pid: u32) -> bool {
    GUARDED.get_ptr(pid).is_some()
}

/// Returns whether frames of a thread may be hijacked.
#[inline(always)]
fn has_frames(kernel: Kernel) -> bool {
    let utask = kernel.pointer(&settings::TASK_UTASK);
    let instance = utask.and_then(|utask| utask.pointer(&settings::UTASK_RETURN_INSTANCES));
    instance.is_some_and(|instance| instance.0 != 0)
}

/// Has the frames of the current thread restored, and holds it until then. Returns `false` if there
/// are none. `sp` is its stack pointer, or 0. `is_throw`: calls end unseen then, also those without
/// return probes.
#[inline(always)]
fn restore_frames(reason: RestoreReason, sp: u64, is_throw: bool) -> bool {
    let task = Task::current();
    if !is_guarded(task.pid) || nobody_serves() {
        return false;
    }
    let requested = request(Kernel::current(), task, reason);
    if requested.is_none() && !(is_throw && task.is_traced()) {
        return false;
    }
    aggregate::restored(task.tid, sp);
    thrift::deliver_held(task.tid);
    let Some((cpu, waiting)) = requested else {
        if settings::AGGREGATES.load() == 0 {
            control_if_room(task, Change::Restored { sp });
        }
        return false;
    };
    control(task, Change::Restored { sp });
    count(reason as u32);
    match reason {
        RestoreReason::Signal => stop(cpu, waiting, RESTORE_CONTINUES_LOCKED_NANOS),
        _ => {
            wait(cpu, waiting, RESTORE_NANOS);
            stop(cpu, waiting, RESTORE_CONTINUES_NANOS);
        }
    }
    true
}

/// Asks user space to restore the frames of a thread. Returns the CPU's number and its state while
/// the thread waits; `None` if there are no such frames. On a preemptible kernel another thread may
/// wait on this CPU already. Then this one has no state, and has to stop.
#[inline(always)]
fn request(kernel: Kernel, task: Task, reason: RestoreReason) -> Option<(u32, u64)> {
    let utask = kernel.pointer(&settings::TASK_UTASK)?;
    let mut instance = utask.pointer(&settings::UTASK_RETURN_INSTANCES)?;
    if instance.0 == 0 {
        return None;
    }
    let area = kernel.pointer(&settings::TASK_MM)?.pointer(&settings::MM_XOL_AREA)?;
    let trampoline: u64 = area.read(&settings::XOL_AREA_VADDR)?;
    let mut room = room(reason)?;
    let request = room.as_mut_ptr();
    // SAFETY: what `reserve` returned has room for a whole request.
    let frames = unsafe { (&raw mut (*request).frames).cast::<Hijacked>() };
    let is_listed = matches!(reason, RestoreReason::Listed) as u64;
    // The verifier follows each branch of a turn. So there is only one, and an unreadable word is 0.
    let mut count = unknown_zero();
    repeat(
        MOST_HIJACKED as u32,
        #[inline(always)]
        |_| {
            if instance.0 == 0 {
                return false;
            }
            let frame = Hijacked {
                slot: instance.word(&settings::INSTANCE_STACK),
                address: instance.word(&settings::INSTANCE_ORIG_RET_VADDR),
                probe: instance.word(&settings::INSTANCE_FUNC),
            };
            // SAFETY: within the array.
            unsafe { frames.add((count & (MOST_HIJACKED as u64 - 1)) as usize).write(frame) };
            // Another thread's memory cannot be read from here: user space looks.
            let (word, is_missing) = user_word(frame.slot);
            // A page that is not in memory can be read by user space only.
            count += is_listed | is_equal(word, trampoline) | is_missing;
            instance = Kernel(instance.word(&settings::INSTANCE_NEXT));
            true
        },
    );
    if count == 0 {
        room.discard(0);
        return None;
    }
    let place = begin_to_wait(reason);
    // SAFETY: as above.
    unsafe {
        write_head(request, &place, task, reason);
        (*request).trampoline = trampoline;
        (*request).count = count;
    }
    room.submit(WAKE);
    Some((place.cpu, place.waiting))
}

/// Reads a word of the current process. The second word is 1 if that fails.
#[inline(always)]
fn user_word(address: u64) -> (u64, u64) {
    let mut word = 0_u64;
    // SAFETY: the helper checks the address itself, and leaves 0 if it is a bad one.
    let error = unsafe { bpf_probe_read_user((&raw mut word).cast(), 8, address as *const c_void) };
    (word, highest_bit(error as u64))
}

/// Returns 1 for equal words, else 0, without a branch.
#[inline(always)]
fn is_equal(a: u64, b: u64) -> u64 {
    let difference = a ^ b;
    highest_bit(difference | difference.wrapping_neg()) ^ 1
}

/// Returns the highest bit. Of a shift that it sees, the compiler makes a branch.
#[inline(always)]
fn highest_bit(mut word: u64) -> u64 {
    // SAFETY: it changes one register.
    unsafe { asm!("{word} >>= 63", word = inout(reg) word, options(nomem, nostack)) };
    word
}

/// Waits until user space changes the state of this CPU. The thread cannot move to another one here.
#[inline(always)]
fn wait(cpu: u32, waiting: u64, patience: u64) {
    let Some(state) = RESTORE_STATES.get_ptr_mut(cpu) else { return };
    let until = now() + patience;
    loop {
        // SAFETY: an element of a map; an aligned word is read in one piece.
        if waiting == RESTORE_FREE || unsafe { state.read_volatile() } != waiting || now() > until {
            break;
        }
        // Without this instruction the verifier would follow every turn of the loop. The kernel
        // ends it after 8 million turns.
        // SAFETY: it only jumps.
        unsafe { asm!("may_goto {}", label { break }) };
    }
}

/// Gives the state of this CPU back. Returns whether user space has answered.
#[inline(always)]
fn take_back(cpu: u32, waiting: u64) -> bool {
    let Some(state) = RESTORE_STATES.get_ptr_mut(cpu) else { return false };
    // SAFETY: an element of a map.
    let is_answered =
        waiting != RESTORE_FREE && !unsafe { atomic::exchange(state, waiting, RESTORE_FREE) };
    if is_answered {
        // SAFETY: an element of a map.
        unsafe { state.write_volatile(RESTORE_FREE) };
    }
    is_answered
}

/// Stops the process, unless user space has answered.
#[inline(always)]
fn stop(cpu: u32, waiting: u64, patience: u64) {
    if take_back(cpu, waiting) {
        return;
    }
    wait_for_end_of_continuing(patience);
    if let Some(state) = GUARDED.get_ptr_mut(Task::current().pid) {
        // SAFETY: an element of a map; a byte is written whole.
        unsafe { state.write_volatile(GUARDED_STOPPED) };
    }
    // The signal is the thread's own. One of the process is dropped while another thread's is still
    // pending, and then this thread would run on until that one takes it.
    // SAFETY: the helper takes a number.
    unsafe { bpf_send_signal_thread(SIGSTOP) };
}

/// Waits while user space continues a process. The request is submitted before: either user space
/// sees it before it continues, or this thread stops after that.
#[inline(always)]
fn wait_for_end_of_continuing(patience: u64) {
    let Some(continues) = RESTORE_STATES.get_ptr_mut(RESTORE_CONTINUES as u32) else { return };
    let until = now() + patience;
    // SAFETY: an element of a map; an aligned word is read in one piece.
    while unsafe { continues.read_volatile() } != 0 && now() < until {
        // SAFETY: it only jumps, see `wait`.
        unsafe { asm!("may_goto {}", label { break }) };
    }
}
