//! The program. All of it is in the library, where its parts can be tested one by one.

use std::process::ExitCode;

#[global_allocator]
static MEMORY: ctrace_user::Memory = ctrace_user::Memory;

fn main() -> ExitCode {
    ctrace_user::main()
}
