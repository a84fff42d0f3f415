//! What is known of the files that hold marker scopes, apart from where a process maps them.

use crate::units::FuncId;
use std::sync::Arc;

/// A file with scopes. Addresses are those of its headers.
#[derive(Clone, Debug)]
pub struct MarkerObject {
    /// Where its section `ctrace_sites` begins.
    pub section: u64,
    /// By entry of the section: the chosen scopes.
    pub functions: Arc<[Option<MarkerPlace>]>,
}

/// One place of a chosen scope.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MarkerPlace {
    pub function: FuncId,
    /// Tells the places of one scope apart.
    pub number: u8,
}

/// Names a [`MarkerObject`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ObjectId(pub(super) usize);

/// A copy of a runtime in an object: where its two sites are probed.
#[derive(Clone, Copy, Debug)]
pub struct MarkerRuntime {
    pub object: ObjectId,
    pub flush: u64,
    pub register: u64,
}

/// A site of a runtime that was passed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Passed {
    /// The runtime's number.
    pub runtime: u32,
    /// Where the site is in the process.
    pub address: u64,
}
