//! The values by which locks are followed: which lock each call is about, and who calls.

use super::abi::{Position, Type};
use super::asked::{AskedArgument, AskedPlace, AskedResult, AskedValues};
use ctrace_core::locks::{CALLER, FUNCTIONS, LOCK, LockFunction, LockKind, Operation, TYPE};

const INT: Type = Type::Integer { bytes: 4, signed: true };

/// Returns what is asked of all functions that take and release locks.
pub(crate) fn asked() -> Vec<AskedValues> {
    let is_await = |of: &LockFunction| of.operation == Operation::Await;
    let is_mutex = |of: &LockFunction| of.kind == LockKind::Mutex && !is_await(of);
    let lock = |register| argument(LOCK, Position::Register(register), Type::Pointer);
    let caller = || argument(CALLER, Position::Caller, Type::Pointer);
    let of_type = argument(TYPE, Position::MutexType(0), INT);
    vec![
        of_functions(is_mutex, vec![lock(0), caller(), of_type]),
        // The first argument is the condition.
        of_functions(is_await, vec![lock(1), caller()]),
        of_functions(|of| of.kind == LockKind::RwLock, vec![lock(0), caller()]),
    ]
}

fn argument(name: &str, position: Position, of: Type) -> AskedArgument {
    AskedArgument { name: name.to_owned(), place: AskedPlace::At(position, of), length: None }
}

fn of_functions(
    is_one: impl Fn(&LockFunction) -> bool,
    arguments: Vec<AskedArgument>,
) -> AskedValues {
    let names = FUNCTIONS.iter().filter(|function| is_one(function)).map(|function| function.name);
    AskedValues {
        // In libraries, too, if the program has functions of these names itself.
        functions: format!("/^({})$/@*", names.collect::<Vec<_>>().join("|")),
        is_usdt: false,
        arguments,
        result: Some(AskedResult::As(INT)),
        condition: None,
    }
}

/// The libraries that usually have these functions.
pub(crate) const LIBRARIES: [&str; 3] = ["libc.so.6", "libpthread.so.0", "ld-musl-x86_64.so.1"];

/// Returns the names of all functions that take and release locks.
pub(crate) fn names() -> impl Iterator<Item = &'static str> {
    FUNCTIONS.iter().map(|function| function.name)
}

/// Returns whether a library of this name is the C library of GNU, or its threads of before 2.34.
pub(crate) fn is_glibc(object: &str) -> bool {
    ["libc.so.6", "libc-2.", "libpthread.so.0", "libpthread-2."]
        .iter()
        .any(|name| object.starts_with(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_function_is_asked_for_once() {
        let asked = asked();
        for function in FUNCTIONS {
            let name = function.name;
            let is_in = |asked: &&AskedValues| {
                let names = asked.functions.trim_start_matches("/^(").trim_end_matches(")$/@*");
                names.split('|').any(|one| one == name)
            };
            assert_eq!(asked.iter().filter(is_in).count(), 1, "{name}");
        }
    }

    #[test]
    fn musl_is_not_glibc() {
        for (name, is_it) in [
            ("libc.so.6", true),
            ("libc-2.31.so", true),
            ("libpthread.so.0", true),
            ("libc.so", false),
            ("libc.musl-x86_64.so.1", false),
            ("ld-musl-x86_64.so.1", false),
        ] {
            assert_eq!(is_glibc(name), is_it, "{name}");
        }
    }
}
