//! Sorts an object's symbols by what guards need: definitions of unwinders and switches, imports,
//! and signs of a runtime that walks its own stacks.

use crate::target::elf::tables::{self, NamedSymbols};
use crate::target::place::code::stacks;
use crate::target::place::deny::bare;
use crate::target::place::guards::runtimes::{self, Runtime};
use crate::target::plan::GuardKind;
use crate::target::read::budget::{Budget, TooLarge};

/// A function that the object defines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Definition<'data> {
    pub(crate) name: &'data str,
    pub(crate) address: u64,
    pub(crate) size: u64,
}

/// The symbols of one object that matter to guards.
#[derive(Debug, Default)]
pub(crate) struct Names<'data> {
    pub(crate) guarded: Vec<(Definition<'data>, GuardKind)>,
    /// `longjmp` and its kin, as far as the object defines them.
    pub(crate) jumps: Vec<Definition<'data>>,
    /// Those that it imports.
    pub(crate) imported_jumps: Vec<&'data str>,
    /// A function for switches that it imports, or contains and is static.
    pub(crate) switch: Option<&'static str>,
    pub(crate) runtime: Option<Runtime>,
    /// True if it imports an unwinder, which another object defines then.
    pub(crate) imports_unwinder: bool,
    /// True if it imports a function that calls an unwinder.
    pub(crate) imports_thrower: bool,
    /// True if it imports a function that finds unwind tables.
    pub(crate) imports_table_finder: bool,
    /// True if its own stack switches are known by name: it is a C library, a dynamic linker or
    /// libffi.
    pub(crate) is_known: bool,
    pub(crate) exports_unwinder: bool,
    pub(crate) is_static: bool,
}

impl<'data> Names<'data> {
    pub(crate) fn read(
        all: NamedSymbols<'data>,
        dynamic: NamedSymbols<'data>,
        budget: &Budget,
    ) -> Result<Self, TooLarge> {
        let is_static = !dynamic.named().any(|(symbol, _)| tables::is_undefined(symbol));
        let mut names = Self { is_static, ..Self::default() };
        let mut ticker = budget.ticker();
        for (symbol, name) in dynamic.named() {
            ticker.tick()?;
            if tables::is_definition(symbol) {
                names.is_known |= matches!(bare(name), "longjmp" | "__tls_get_addr" | "ffi_call");
                names.exports_unwinder |= name == "_Unwind_RaiseException";
            }
        }
        for (symbol, name) in all.named().chain(dynamic.named()) {
            ticker.tick()?;
            if tables::is_undefined(symbol) {
                names.import(bare(name));
            } else if tables::is_definition(symbol) {
                names.runtime = names.runtime.or_else(|| runtimes::defined_by(name));
                let (address, size, is_function) = tables::facts(symbol);
                if is_function {
                    let name = bare(name);
                    names.define(Definition { name, address, size }, budget)?;
                }
            }
        }
        Ok(names)
    }

    fn import(&mut self, name: &'data str) {
        self.switch = self.switch.or_else(|| stacks::switch(name));
        self.imports_unwinder |= name.starts_with("_Unwind_");
        self.imports_thrower |= matches!(
            name,
            "__cxa_throw"
                | "__cxa_rethrow"
                | "__gxx_personality_v0"
                | "__gcc_personality_v0"
                | "rust_eh_personality"
        );
        self.imports_table_finder |= finds_unwind_tables(name);
        if is_jump(name) && !self.imported_jumps.contains(&name) {
            self.imported_jumps.push(name);
        }
    }

    fn define(&mut self, definition: Definition<'data>, budget: &Budget) -> Result<(), TooLarge> {
        const DEFINITION: u64 = 2 * size_of::<(Definition<'_>, GuardKind)>() as u64;
        if self.is_static {
            self.switch = self.switch.or_else(|| stacks::switch(definition.name));
        }
        if let Some(kind) = guarded(definition.name) {
            budget.charge(DEFINITION)?;
            self.guarded.push((definition, kind));
        }
        if is_jump(definition.name) {
            budget.charge(DEFINITION)?;
            self.jumps.push(definition);
        }
        Ok(())
    }

    pub(crate) fn defines_unwinder(&self) -> bool {
        self.guarded
            .iter()
            .any(|(_, kind)| matches!(kind, GuardKind::Unwind | GuardKind::Backtrace))
    }
}

/// Returns the danger that begins where the function with this name is entered. `makecontext` only
/// prepares a stack. Signal handlers on a stack of their own are guarded where the kernel delivers
/// the signal.
pub(crate) fn guarded(name: &str) -> Option<GuardKind> {
    match bare(name) {
        "_Unwind_RaiseException" | "_Unwind_ForcedUnwind" | "_Unwind_Resume_or_Rethrow" => {
            Some(GuardKind::Unwind)
        }
        // Steps of exceptions come after their entries.
        "_Unwind_Backtrace" | "unw_step" | "__unw_step" | "_ULx86_64_step" | "_Ux86_64_step"
        | "unw_backtrace" | "backtrace" => Some(GuardKind::Backtrace),
        "setcontext" | "swapcontext" | "jump_fcontext" | "ontop_fcontext" | "co_switch"
        | "coro_transfer" => Some(GuardKind::Switch),
        "_dl_debug_state" => Some(GuardKind::Load),
        _ => None,
    }
}

/// Returns whether the function jumps to where `setjmp` was called, which may be another stack.
fn is_jump(name: &str) -> bool {
    matches!(
        name,
        "longjmp"
            | "_longjmp"
            | "siglongjmp"
            | "__libc_longjmp"
            | "__libc_siglongjmp"
            | "__longjmp_chk"
    )
}

/// Returns whether a function of this name finds unwind tables.
pub(crate) fn finds_unwind_tables(name: &str) -> bool {
    matches!(name, "_dl_find_object" | "dl_iterate_phdr")
}
