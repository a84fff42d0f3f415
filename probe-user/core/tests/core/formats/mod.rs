//! Recordings in the formats of other tools: what a user of those would see.

mod fixture;
mod flat;
mod graphs;
mod protobuf;
mod registry;
mod summed;
mod tools;
mod traces;
