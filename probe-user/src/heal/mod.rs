//! Finds and removes breakpoints that a dying tracer left in a program.
//!
//! A thread that is killed while the kernel removes its probes leaves their breakpoints in the
//! target. Each is a useless trap: the target runs at a thousandth of its speed. Attaching to the
//! same places and detaching again makes the kernel restore the instructions.
//!
//! [`process`] does that for one process, [`aftermath`] for all that a dead tracer may have
//! touched. [`Outcome`] reports it. The modules, in the order of the work:
//!
//! 1. [`copied`]: finds the process's own copies of code pages. Only they can hold breakpoints.
//! 2. [`compare`]: interprets the bytes of such a page that differ from the file.
//! 3. [`smaps`]: excludes breakpoints that the program itself may have written.
//! 4. [`debugger`]: excludes processes under a debugger, whose breakpoints look the same.
//! 5. [`order`]: puts likely places first. A process can forge more than there is time for.
//! 6. [`in_use`]: remembers places of living tracers from one process to the next.
//! 7. [`mend`]: leaves out the places of living tracers, attaches to the others, detaches, and
//!    looks again.
//!
//! A process that dies during that leaves breakpoints itself. So [`process`] only looks. A child
//! does the rest, and no Ctrl-C reaches it.

pub(crate) mod aftermath;
mod compare;
mod copied;
mod debugger;
mod error;
mod in_a_child;
mod in_use;
mod look;
mod mend;
mod order;
mod others;
mod outcome;
mod semaphores;
mod smaps;

pub(crate) use error::HealError;
pub(crate) use in_a_child::{answer, hurry, process};
pub(crate) use in_use::InUse;
pub(crate) use outcome::Outcome;
