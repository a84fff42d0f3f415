//! Checks where probes go against other disassemblers, compilers and the running kernel.

mod corpus;
mod entries;
mod guards;
mod live;
mod objdump;
mod objects;
mod shares;
mod snippets;
mod stacks;
mod survey;

use ctrace_user::testing::target::{ObjectLimits, Source};

fn source(bytes: &[u8]) -> Source {
    Source::of_bytes(bytes, ObjectLimits::DEFAULT)
}
