//! All integration tests of the core, in one program: separate programs would each compile the
//! readers of recordings again. Only `memory` needs a separate process.

mod calls;
mod corpus;
mod export;
#[path = "../fixture/mod.rs"]
mod fixture;
#[cfg(feature = "parquet")]
mod fleet;
mod formats;
mod frame_marks;
mod fuzz_corpus;
mod idle;
mod leaves;
mod left_out;
mod markers;
mod payloads;
mod places;
mod recording;
mod reference;
mod segments;
mod slow_calls;
#[path = "../support/mod.rs"]
mod support;
mod trees;
mod waits;
mod wakers;
