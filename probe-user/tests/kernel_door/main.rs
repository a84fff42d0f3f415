//! The kernel door against the running kernel: exact counts through every kind of link.
//!
//! Without root, or without the eBPF programs in the binary, the tests say so and pass.

mod call_values;
mod conditions;
mod counted_texts;
mod exits;
mod lifetime;
mod links;
mod loss;
mod processes;
mod refusals;
mod rings;
mod support;
mod values;
mod waits;
