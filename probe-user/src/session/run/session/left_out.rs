//! Calls that make no events, because they are deeper than `--depth`: the programs count them.

use super::Session;
use crate::ui::text::units::{count, counted};
use ctrace_core::{engine::LeftOut, report::render::clean::clean};

/// Functions that a note names.
const NAMED: usize = 3;

impl Session {
    /// Takes the counts of the programs.
    pub(super) fn count_left_out(&mut self) {
        let Self { kernel, engine, .. } = self;
        if let Some(counts) = kernel.left_out() {
            engine.take_left_out(|function| counts.of(function));
        }
    }

    /// Returns a note on these calls.
    pub(super) fn left_out_note(&self) -> Option<String> {
        let functions = self.engine.functions();
        let name = |id: usize| clean(&functions[id].name).into_owned();
        left_out_note(self.engine.left_out(), name)
    }
}

fn left_out_note(all: &[LeftOut], name: impl Fn(usize) -> String) -> Option<String> {
    let mut some: Vec<_> = all.iter().enumerate().filter(|(_, of)| of.calls > 0).collect();
    if some.is_empty() {
        return None;
    }
    some.sort_by_key(|(_, of)| std::cmp::Reverse(of.calls));
    let sum = |some: &[(usize, &LeftOut)]| some.iter().map(|(_, of)| of.calls).sum::<u64>();
    let named = some.iter().take(NAMED);
    let mut told: Vec<_> =
        named.map(|(id, of)| format!("{} of {}", count(of.calls), name(*id))).collect();
    if some.len() > NAMED {
        told.push(format!("{} of others", count(sum(&some[NAMED..]))));
    }
    Some(format!(
        "--depth: {} deeper than that since the start, and not recorded: {}",
        counted(sum(&some), "call was", "calls were"),
        told.join(", ")
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_functions_with_the_most_calls_are_named() {
        let note = |calls: &[u64]| {
            let all: Vec<_> =
                calls.iter().map(|&calls| LeftOut { calls, ..LeftOut::default() }).collect();
            left_out_note(&all, |id| format!("f{id}"))
        };
        assert_eq!(note(&[0, 0]), None);
        assert_eq!(
            note(&[0, 1]).expect("told"),
            "--depth: 1 call was deeper than that since the start, and not recorded: 1 of f1"
        );
        assert_eq!(
            note(&[7, 2_000, 9, 1, 2]).expect("told"),
            "--depth: 2,019 calls were deeper than that since the start, and not recorded: 2,000 of f1, \
             9 of f2, 7 of f0, 3 of others"
        );
    }
}
