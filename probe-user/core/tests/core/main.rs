//! All tests of the core beside its sources, in one program: each program of its own would compile
//! the readers of recordings once more. Only `memory` needs a process to itself.

mod calls;
mod corpus;
mod export;
#[path = "../fixture/mod.rs"]
mod fixture;
mod formats;
mod fuzz_corpus;
mod leaves;
mod markers;
mod payloads;
mod places;
mod recording;
mod reference;
mod segments;
#[path = "../support/mod.rs"]
mod support;
mod trees;
