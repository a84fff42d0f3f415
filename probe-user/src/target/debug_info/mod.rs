//! Debug information (DWARF): lines, inlined functions, parameters and types.
//!
//! It is read for chosen functions only, because that of a large program takes seconds.

mod classes;
mod confirmed;
mod declared;
mod function_entries;
mod goroutines;
mod inlined;
pub(super) mod lines;
mod optional;
mod order;
mod overwritten;
pub(super) mod parameters;
pub(super) mod passed;
mod sections;
pub(super) mod stored;
pub(super) mod texts;
pub(super) mod types;
