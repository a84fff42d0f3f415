//! Harness of the live tests: builds target programs, runs the real `ctrace` on them, and compares
//! its reports with the targets' own counts.
//!
//! The same checks run in two places. On the host they are `#[test]` functions (`tests/tests/`),
//! which skip themselves without root, BPF or a release binary. In a virtual machine with another
//! kernel the `cases` binary runs the table in [`cases`]. The harness knows only ctrace's command
//! line and JSON.

pub mod attack;
pub mod cases;
pub mod corpus;
pub mod crafted;
pub mod crowd;
pub mod daemon;
pub mod env;
pub mod fleet;
pub mod gate;
pub mod http;
pub mod install;
pub mod later;
pub mod left;
pub mod loader_takeover;
pub mod look;
pub mod machine;
mod maps;
pub mod probes;
pub mod process;
pub mod profiles;
pub mod prometheus;
pub mod proxy;
pub mod recorded;
pub mod report;
pub mod serve;
pub mod soak;
pub mod targets;
pub mod tmux;
pub mod told;
pub mod tools;
pub mod trace;
pub mod trampolines;
pub mod truth;
pub mod unwind;
pub mod wakers;
