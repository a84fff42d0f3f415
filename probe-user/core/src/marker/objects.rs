//! The facts about files with marker scopes that do not depend on a process's mappings.

use super::pieces::Carried;
use crate::units::{FuncId, Nanos, Pid};
use std::sync::Arc;

/// A file with scopes. Addresses are those of its headers.
#[derive(Clone, Debug)]
pub struct MarkerObject {
    /// The address of its section `ctrace_sites`.
    pub section: u64,
    /// The chosen scopes, by entry of the section.
    pub functions: Arc<[Option<MarkerPlace>]>,
}

/// One place of a chosen scope or point.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MarkerPlace {
    pub function: FuncId,
    /// Distinguishes the places of one scope.
    pub number: u8,
    /// True if its names come with its entries.
    pub is_named_late: bool,
    /// True if its entries are points in time: it has no exits.
    pub is_point: bool,
    /// The values that come with its entries and that are wanted.
    pub carried: Carried,
    /// True if its entries are requests of the program, and not of any function.
    pub is_request: bool,
    /// True if its entries are polls of an async function, and ends of its calls.
    pub is_async: bool,
}

impl MarkerPlace {
    /// Makes a place of a scope whose name is in the file, without values.
    pub fn new(function: FuncId, number: u8) -> Self {
        Self {
            function,
            number,
            is_named_late: false,
            is_point: false,
            carried: Carried::default(),
            is_request: false,
            is_async: false,
        }
    }

    /// Makes a place of an async function.
    pub fn of_async(function: FuncId, number: u8) -> Self {
        let carried = Carried { numbers: 1, has_text: false };
        Self { carried, is_async: true, ..Self::new(function, number) }
    }

    /// Makes a place where the program asks for its tables. The number of a file comes with the request,
    /// and the time at which the program cleared its results.
    pub fn request() -> Self {
        let carried = Carried { numbers: 2, has_text: false };
        let place = Self::new(FuncId(u32::MAX), 0);
        Self { is_point: true, carried, is_request: true, ..place }
    }
}

/// A request of a program for its tables.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request {
    pub pid: Pid,
    pub time: Nanos,
    /// The descriptor of the file for the answer. The program may say any number.
    pub file: u64,
    /// The time at which it cleared its results, if that is to count.
    pub cleared: Option<Nanos>,
}

/// The number of a [`MarkerObject`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ObjectId(pub(super) usize);

/// A copy of a runtime in an object, with its two probed sites.
#[derive(Clone, Copy, Debug)]
pub struct MarkerRuntime {
    pub object: ObjectId,
    pub flush: u64,
    pub register: u64,
}

/// A passed site of a runtime.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Passed {
    /// The runtime's number.
    pub runtime: u32,
    /// The site's address in the process.
    pub address: u64,
}
