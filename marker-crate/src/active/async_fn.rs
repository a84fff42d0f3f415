//! A marked async function: its future in one that tells of each poll, and of the end of the call.
//!
//! The value of an entry says which call is polled, and how it goes on (`AsyncCall` in `ctrace-common`). The end
//! of a call is an entry without an exit, behind the exit of its last poll.

use super::{guard::Guard, record::record, source::Source};
use core::{
    future::Future,
    marker::PhantomData,
    pin::Pin,
    sync::atomic::{AtomicU64, Ordering::Relaxed},
    task::{Context, Poll},
};

/// Calls that were not polled yet, and those that began while nobody traced them or have ended.
const NEW: u64 = 0;
const UNSEEN: u64 = 1;
/// The number of the next call. A process would have to begin calls for a thousand years to reach 2^62.
static NEXT: AtomicU64 = AtomicU64::new(UNSEEN + 1);

/// The steps of a call, in the lowest bits of the value.
const RESUMED: u64 = 0;
const BEGUN: u64 = 1;
const COMPLETED: u64 = 2;
const DROPPED: u64 = 3;
const STEP_BITS: u32 = 2;

/// The site of an async function.
pub trait AsyncSite {
    /// Writes a step of a call, if somebody traces it.
    fn step(step: Step<'_>) -> Guard;
}

/// A step of a call. Its value is made when it is needed.
pub struct Step<'a> {
    id: &'a mut u64,
    end: Option<u64>,
    /// The stack pointer of the function that polls, in which the poll's own entry and exit are.
    sp: u64,
}

impl Source for Step<'_> {
    const TYPES: &'static [&'static str] = &["u64"];

    #[inline(always)]
    fn record(self, site: u64, sp: u64) {
        record_step(self, site, sp);
    }

    #[inline(always)]
    fn stack(&self, _: u64) -> u64 {
        self.sp
    }
}

#[cold]
#[inline(never)]
fn record_step(step: Step<'_>, site: u64, sp: u64) {
    let value = match (*step.id, step.end) {
        (id, Some(end)) => id << STEP_BITS | end,
        (NEW, None) => {
            *step.id = NEXT.fetch_add(1, Relaxed);
            *step.id << STEP_BITS | BEGUN
        }
        // A poll of a call that began unseen has the value 0.
        (UNSEEN, None) => 0,
        (id, None) => id << STEP_BITS | RESUMED,
    };
    record(site, sp, &[value], None);
}

/// The number of a call, and its site.
struct Call<S: AsyncSite> {
    id: u64,
    site: PhantomData<fn() -> S>,
}

impl<S: AsyncSite> Call<S> {
    /// Tells of the end of a call that was told of.
    #[inline(always)]
    fn end(&mut self, end: u64) {
        if self.id > UNSEEN {
            core::mem::forget(S::step(Step { id: &mut self.id, end: Some(end), sp: stack() }));
            self.id = UNSEEN;
        }
    }
}

impl<S: AsyncSite> Drop for Call<S> {
    #[inline(always)]
    fn drop(&mut self) {
        self.end(DROPPED);
    }
}

/// A future that tells of its polls.
pub struct AsyncCall<F, S: AsyncSite> {
    future: F,
    /// It is dropped behind the future, in which calls may be that end with it.
    call: Call<S>,
}

/// Makes the future of a call.
#[inline(always)]
pub fn async_call<F: Future, S: AsyncSite>(future: F, _: S) -> AsyncCall<F, S> {
    AsyncCall { future, call: Call { id: NEW, site: PhantomData } }
}

impl<F: Future, S: AsyncSite> Future for AsyncCall<F, S> {
    type Output = F::Output;

    #[inline]
    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<F::Output> {
        // SAFETY: the call is never pinned, and the future is not moved out of this.
        let (future, call) = unsafe {
            let this = self.get_unchecked_mut();
            (Pin::new_unchecked(&mut this.future), &mut this.call)
        };
        let poll = S::step(Step { id: &mut call.id, end: None, sp: stack() });
        if call.id == NEW {
            call.id = UNSEEN;
        }
        let polled = future.poll(context);
        poll.end();
        if polled.is_ready() {
            call.end(COMPLETED);
        }
        polled
    }
}

/// Returns the stack pointer of the function around it.
#[inline(always)]
fn stack() -> u64 {
    let sp;
    // SAFETY: reads a register.
    unsafe {
        core::arch::asm!("mov {}, rsp", out(reg) sp, options(nomem, nostack, preserves_flags));
    }
    sp
}

/// Makes a future that tells of the polls of another one.
#[doc(hidden)]
#[macro_export]
macro_rules! __async_call {
    ($flags:expr, $name:expr, $group:expr, $colour:expr, $future:expr) => {{
        struct CtraceAsync;

        impl $crate::__private::AsyncSite for CtraceAsync {
            #[inline(always)]
            fn step(step: $crate::__private::Step<'_>) -> $crate::Guard {
                $crate::__point_site!(
                    8 | $flags,
                    5,
                    0,
                    $name,
                    &[("call", "")],
                    $group,
                    $colour,
                    $crate::Guard,
                    $crate::__private::nothing(),
                    |source, at, sp| {
                        let sp = $crate::__private::Source::stack(&source, sp);
                        $crate::__private::Source::record(source, at, sp);
                        let low = ::core::mem::MaybeUninit::new($crate::__private::low(sp));
                        // SAFETY: the words of the entry that was just written.
                        unsafe { $crate::__private::begun($crate::__private::tag(at, sp), low) }
                    }
                )(step)
            }
        }

        $crate::__private::async_call($future, CtraceAsync)
    }};
}
