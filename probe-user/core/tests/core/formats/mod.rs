//! Recordings in the formats of other tools, as the users of those tools would see them.

pub(crate) mod fixture;
mod flat;
mod graphs;
mod protobuf;
mod registry;
mod summed;
mod tools;
pub(crate) mod traces;
