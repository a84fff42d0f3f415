//! Debug information (DWARF): lines, inlined functions, parameters and types.
//!
//! It is read for chosen functions only, because that of a large program takes seconds.

mod confirmed;
mod function_entries;
mod goroutines;
mod inlined;
pub(super) mod lines;
pub(super) mod parameters;
mod sections;
pub(super) mod texts;
pub(super) mod types;
