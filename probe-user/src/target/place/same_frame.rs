//! Decides whether two sets of places are in the same functions, at the same depth of the stack.
//!
//! A pair of USDT probes begins and ends a call. If both ends are in one function, the stack pointer
//! is the same at both, and tells which start an end belongs to. Elsewhere it tells nothing.

use crate::target::elf as target_elf;
use crate::target::elf::frames::{Cfa, FrameTable, cfa_at};
use crate::target::place::code::{segments, segments_reader};
use crate::target::read::source::Source;
use std::collections::BTreeMap;

/// The functions of an object by its unwind table, which stripped files have, too.
pub(crate) struct Frames<'data> {
    source: &'data Source,
    table: Option<FrameTable<'data>>,
}

impl<'data> Frames<'data> {
    /// Reads the table. Where it cannot be read, no places are alike.
    pub(crate) fn read(source: &'data Source) -> Self {
        let _look = source.budget().look();
        let look = || {
            let file = target_elf::parse(source).ok()?;
            let segments = segments(&file, source.length());
            FrameTable::read(&file, source, &segments_reader(source, &segments)).ok()
        };
        let (table, refused) = source.budget().watch(look);
        Self { source, table: table.filter(|_| refused.is_none()) }
    }

    /// Returns whether the stack pointer at each of the `ends` is that at the starts in its function,
    /// and each function with a start has an end.
    pub(crate) fn are_alike(&self, starts: &[u64], ends: &[u64]) -> bool {
        let _look = self.source.budget().look();
        let starts = self.depths(starts);
        starts.is_some_and(|starts| !starts.is_empty() && Some(starts) == self.depths(ends))
    }

    /// Returns each function with a place, and the depth of the stack pointer there. Returns `None`
    /// where a function is unknown, or has places of several depths.
    fn depths(&self, places: &[u64]) -> Option<BTreeMap<u64, Option<i64>>> {
        let table = self.table.as_ref()?;
        let mut depths = BTreeMap::new();
        for &place in places {
            // The rows of a hostile file are many.
            self.source.budget().check().ok()?;
            let frame = table.containing(place)?;
            // Where another register tells the depth, the stack pointer is taken to be the same.
            let depth = match cfa_at(&table.rows(frame), place)? {
                Cfa::Rsp(depth) => Some(depth),
                Cfa::Rbp(_) | Cfa::Other => None,
            };
            if *depths.entry(frame.start).or_insert(depth) != depth {
                return None;
            }
        }
        Some(depths)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::target::fixtures::compile;

    /// Places are the addresses of labels in functions of assembly.
    #[test]
    fn places_in_one_function_at_one_depth_are_alike() {
        let source = r#"
            __asm__(".text\n.globl f,g,a,b,deep,c\n"
                "f: .cfi_startproc\npush %rbx\n.cfi_adjust_cfa_offset 8\na: nop\nb: nop\n"
                "push %rax\n.cfi_adjust_cfa_offset 8\ndeep: nop\n"
                "pop %rax\n.cfi_adjust_cfa_offset -8\npop %rbx\n.cfi_adjust_cfa_offset -8\nret\n.cfi_endproc\n"
                "g: .cfi_startproc\npush %rbx\n.cfi_adjust_cfa_offset 8\nc: nop\n"
                "pop %rbx\n.cfi_adjust_cfa_offset -8\nret\n.cfi_endproc\n");
            int main(void) { return 0; }
        "#;
        let built = compile("gcc -no-pie -fno-pie", "c", source);
        let object = built.object();
        let frames = Frames::read(object.source());
        let at = |name: &str| {
            let names = std::collections::BTreeSet::from([name]);
            object.variables(&names)[name]
        };
        let check = |starts: &[&str], ends: &[&str], expected: bool| {
            let [starts, ends] =
                [starts, ends].map(|it| it.iter().map(|n| at(n)).collect::<Vec<_>>());
            assert_eq!(frames.are_alike(&starts, &ends), expected);
        };
        check(&["a"], &["b"], true);
        check(&["a", "c"], &["c", "b", "b"], true);
        check(&["a"], &["deep"], false);
        check(&["a"], &["c"], false);
        check(&["a", "c"], &["b"], false);
        check(&["a"], &["b", "deep"], false);
        assert!(!frames.are_alike(&[], &[]));
        assert!(!frames.are_alike(&[1], &[1]));
    }
}
