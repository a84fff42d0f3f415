//! Interpreters of Python among the objects of a process, and where they keep the functions that run.
//!
//! An interpreter is the object that has the variable `_PyRuntime`: the program itself or its `libpython`.
//! `Py_Version` beside it tells the version, by which [`offsets`] knows the structures. All of it is read from
//! the file: the process only adds the address at which the file is loaded.

mod offsets;

use self::offsets::Version;
use crate::target::{
    object::Object,
    process::{bias::CodeSegments, maps::MappedObject},
};
use ctrace_common::PythonPlaces;
use std::collections::BTreeSet;

const RUNTIME: &str = "_PyRuntime";
const VERSION: &str = "Py_Version";
const CODE_TYPE: &str = "PyCode_Type";
const TEXT_TYPE: &str = "PyUnicode_Type";

/// The versions that are known, for people.
pub(crate) const KNOWN: &str = "Python 3.11, 3.12 and 3.13";

/// The reason why the functions of an interpreter cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Unreadable {
    #[error("it is older than Python 3.11, whose structures are the first ones that are known")]
    Older,
    #[error("it is Python {0}, whose structures are not known")]
    Unknown(Version),
    #[error(
        "it is a free-threaded build of Python {0}, whose structures are not known; builds with the \
         global lock are read"
    )]
    FreeThreaded(Version),
    #[error("its symbol `{0}` is missing")]
    NoSymbol(&'static str),
    #[error("its variable `{0}` has no contents in the file that make sense")]
    Senseless(&'static str),
}

/// An interpreter in a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Interpreter {
    code: CodeSegments,
    /// Addresses are those of the file.
    places: PythonPlaces,
}

impl Interpreter {
    /// Returns the interpreter in an object, if there is one.
    pub(crate) fn of(object: &Object) -> Option<Result<Self, Unreadable>> {
        let names = BTreeSet::from([RUNTIME, VERSION, CODE_TYPE, TEXT_TYPE]);
        let addresses = object.variables(&names);
        let runtime = *addresses.get(RUNTIME)?;
        let address =
            |name: &'static str| addresses.get(name).copied().ok_or(Unreadable::NoSymbol(name));
        let read = || {
            let version = address(VERSION).map_err(|_| Unreadable::Older)?;
            let version = word(object, version).ok_or(Unreadable::Senseless(VERSION))?;
            let (heads, offsets) = offsets::of(Version(version as u32), || {
                bytes(object, runtime, offsets::DESCRIPTION as u64)
            })?;
            let places = PythonPlaces {
                interpreters: runtime.wrapping_add(heads.into()),
                code_type: address(CODE_TYPE)?,
                text_type: address(TEXT_TYPE)?,
                offsets,
            };
            Ok(Self { code: CodeSegments::of(object.layout()), places })
        };
        Some(read())
    }

    /// Returns where a process has it that has mapped its file so. `None` if it does not run yet.
    pub(crate) fn places(&self, mapped: &MappedObject) -> Option<PythonPlaces> {
        let bias = *self.code.biases(mapped).first()?;
        let PythonPlaces { interpreters, code_type, text_type, offsets } = self.places;
        let [interpreters, code_type, text_type] =
            [interpreters, code_type, text_type].map(|address| address.wrapping_add(bias));
        Some(PythonPlaces { interpreters, code_type, text_type, offsets })
    }
}

fn word(object: &Object, address: u64) -> Option<u64> {
    bytes(object, address, 8)?.try_into().ok().map(u64::from_le_bytes)
}

fn bytes(object: &Object, address: u64, size: u64) -> Option<&[u8]> {
    let offset = object.layout().file_offset(address)?;
    object.source().part(offset, size)
}

#[cfg(test)]
mod tests;
