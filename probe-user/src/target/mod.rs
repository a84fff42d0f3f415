//! Processes and ELF files: file bytes in, probe sites out. Nothing here talks to BPF.
//!
//! [`process`] and [`launch`] find the files of a target. [`object`] reads one of them with its
//! [`symbols`], [`usdt`] notes and [`markers`]. [`select`] picks the functions that the user asked
//! for.

pub(crate) mod abi;
pub(crate) mod asked_condition;
pub(crate) mod asked_values;
pub(crate) mod bias;
pub(crate) mod budget;
mod callees;
mod compiler_made;
mod confirmed;
pub(crate) mod debug_files;
mod debug_sections;
mod debug_types;
pub(crate) mod demangle;
pub(crate) mod elf;
pub(crate) mod facts;
pub(crate) mod glob;
mod inlined;
mod invoked;
pub(crate) mod later;
pub(crate) mod launch;
pub(crate) mod lines;
pub(crate) mod list;
mod loader;
pub(crate) mod lookup;
pub(crate) mod maps;
pub(crate) mod markers;
pub(crate) mod named_value;
pub(crate) mod naming;
pub(crate) mod nearest;
pub(crate) mod not_found;
pub(crate) mod object;
pub(crate) mod ours;
mod parameters;
mod parts;
pub(crate) mod patience;
pub(crate) mod pattern;
pub(crate) mod place;
pub(crate) mod plan;
mod prefilter;
pub(crate) mod process;
pub(crate) mod process_set;
pub(crate) mod recorded;
mod regex_error;
pub(crate) mod regular;
mod root;
mod search;
pub(crate) mod select;
pub(crate) mod source;
pub(crate) mod standstill;
mod std_names;
pub(crate) mod symbols;
mod tables;
mod texts;
pub(crate) mod usdt;
pub mod usdt_arguments;
pub(crate) mod usdt_pairs;
mod value_part;
mod variables;

#[cfg(test)]
pub(crate) mod fixtures;
