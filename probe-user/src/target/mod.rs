//! Processes and ELF files: file bytes in, probe sites out. Nothing here talks to BPF.
//!
//! [`process`] and [`launch`] say which files a target is made of, [`object`] reads one of them
//! with its [`symbols`], [`usdt`] notes and [`markers`], and [`select`] picks what the user asked for.

pub mod bias;
pub mod budget;
pub mod debug_files;
mod debug_sections;
pub mod demangle;
pub mod elf;
pub mod facts;
mod inlined;
pub mod launch;
pub mod lines;
pub mod list;
mod loader;
pub mod maps;
pub mod markers;
pub mod nearest;
pub mod not_found;
pub mod object;
pub mod patience;
pub mod pattern;
pub mod place;
pub mod plan;
mod prefilter;
pub mod process;
pub mod recorded;
mod regex_error;
pub(crate) mod regular;
mod root;
mod search;
pub mod select;
pub mod source;
pub mod standstill;
pub mod symbols;
mod tables;
pub mod usdt;
pub mod usdt_arguments;
mod variables;

#[cfg(test)]
pub(crate) mod fixtures;
