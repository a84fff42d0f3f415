//! Processes and ELF files: file bytes in, probe sites out. Nothing here talks to BPF.

pub mod place;
pub mod plan;
