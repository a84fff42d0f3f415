//! Processes and ELF files: file bytes in, probe sites out. Nothing here talks to BPF.
//!
//! [`process`] and [`launch`] find the files of a target. [`object`] reads one of them with its
//! symbols, [`usdt`] notes and [`markers`]. [`select`] picks the functions that the user asked for,
//! and [`place`] decides where their probes sit. [`values`] finds arguments and results.

pub(crate) mod addresses;
mod debug_info;
mod elf;
pub(crate) mod launch;
pub(crate) mod list;
mod loader;
pub(crate) mod markers;
pub(crate) mod names;
pub(crate) mod object;
pub(crate) mod place;
pub(crate) mod plan;
pub(crate) mod process;
pub(crate) mod python;
pub(crate) mod read;
pub(crate) mod select;
pub(crate) mod usdt;
pub(crate) mod values;

#[cfg(test)]
pub(crate) mod fixtures;
