//! Breakpoints that a dying tracer left in a program: found, and taken away.
//!
//! A thread that is killed while the kernel takes probes away for it leaves their breakpoints in the
//! target, where each is a trap for nothing: the target runs on, at a thousandth of its speed. Whoever
//! attaches to the same places and detaches again makes the kernel put the instructions back.
//!
//! [`process`] does that for one process, [`aftermath`] for all that a dead tracer may have touched.
//! What is done to a process is in [`Outcome`]. In the order of the work:
//!
//! 1. [`copied`]: a breakpoint lies on a page of its own. The kernel tells which pages of the code are.
//! 2. [`compare`]: the bytes of such a page that differ from the file, and what each of them means.
//! 3. [`smaps`]: what the program itself may have written there is left alone.
//! 4. [`debugger`]: so are processes under a debugger, whose breakpoints look the same.
//! 5. [`order`]: a process can forge more breakpoints than there is time for; likely places come first.
//! 6. [`mend`]: attaches, detaches, and looks again.
//!
//! A process that dies while it does so leaves breakpoints itself. So [`process`] only looks, and has a
//! child do the rest, which no Ctrl-C reaches.

pub(crate) mod aftermath;
mod compare;
mod copied;
mod debugger;
mod error;
mod in_a_child;
mod look;
mod mend;
mod order;
mod others;
mod outcome;
mod semaphores;
mod smaps;

pub(crate) use debugger::Debugger;
pub(crate) use error::HealError;
pub(crate) use in_a_child::{answer, hurry, process};
pub(crate) use outcome::Outcome;
