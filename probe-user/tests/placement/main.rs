//! Where probes go, checked against other disassemblers, compilers and the running kernel.

mod corpus;
mod live;
mod objdump;
mod objects;
mod snippets;
mod stacks;
mod survey;
