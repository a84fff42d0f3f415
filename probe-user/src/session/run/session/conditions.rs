//! Calls that do not meet the condition of their function: no event tells of them, so the programs
//! count them.

use super::Session;
use crate::{bpf::Unmet, ui::text::units::count};
use ctrace_core::{report::render::clean::clean, units::FuncId};
use std::borrow::Cow;

/// Functions that a note names.
const NAMED: usize = 8;

impl Session {
    /// Takes the counts of the programs.
    pub(super) fn count_unmet(&mut self) -> anyhow::Result<()> {
        if self.arming.planner.asks_for_conditions() {
            self.arming.unmet = self.kernel.unmet()?;
        }
        Ok(())
    }

    /// Returns the events of each function, with the calls that did not meet its condition, and those that
    /// are left out: a probe was hit there, too.
    pub(super) fn hits_with_unmet(&self) -> Cow<'_, [u64]> {
        self.with_unmet(Cow::Borrowed(self.engine.counters().hits))
    }

    /// Adds these calls to the events of each function.
    pub(super) fn with_unmet<'a>(&self, mut hits: Cow<'a, [u64]>) -> Cow<'a, [u64]> {
        for unmet in self.arming.unmet.iter().filter(|unmet| unmet.calls > 0) {
            if let Some(hits) = hits.to_mut().get_mut(unmet.function.index()) {
                *hits = hits.saturating_add(unmet.calls);
            }
        }
        for (index, left_out) in self.engine.left_out().iter().enumerate() {
            if left_out.hits() > 0
                && let Some(hits) = hits.to_mut().get_mut(index)
            {
                *hits = hits.saturating_add(left_out.hits());
            }
        }
        hits
    }

    /// Returns a note on the calls that the numbers leave out.
    pub(super) fn unmet_note(&self) -> Option<String> {
        let functions = self.engine.functions();
        let name = |id: FuncId| {
            let info = &functions[id.index()];
            let condition = info.condition.as_deref().unwrap_or_default();
            format!("{} (`{}`)", clean(&info.name), clean(condition))
        };
        unmet_note(&self.arming.unmet, name)
    }
}

fn unmet_note(all: &[Unmet], name: impl Fn(FuncId) -> String) -> Option<String> {
    let mut some: Vec<&Unmet> = all.iter().filter(|unmet| unmet.calls > 0).collect();
    if some.is_empty() {
        return (!all.is_empty()).then(|| {
            "--where: all calls since the start have met the conditions of their functions"
                .to_owned()
        });
    }
    some.sort_by_key(|unmet| std::cmp::Reverse(unmet.calls));
    let told = |unmet: &&Unmet| {
        let unread = match unmet.unread {
            0 => String::new(),
            unread => format!(", in {} of which a value could not be read", count(unread)),
        };
        format!("{} of {}{unread}", count(unmet.calls), name(unmet.function))
    };
    let mut first: Vec<String> = some.iter().take(NAMED).map(told).collect();
    let rest: u64 = some.iter().skip(NAMED).map(|unmet| unmet.calls).sum();
    if rest > 0 {
        first.push(format!("{} of others", count(rest)));
    }
    Some(format!(
        "--where: these calls since the start have not met a condition, and are in no number: {}",
        first.join("; ")
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_left_out_is_told() {
        let name = |id: FuncId| format!("f{}", id.0);
        let unmet = |function, calls, unread| Unmet { function: FuncId(function), calls, unread };
        assert_eq!(unmet_note(&[], name), None);
        let all_met = unmet_note(&[unmet(1, 0, 0)], name).expect("a note");
        assert!(all_met.contains("all calls"), "{all_met}");
        let some = unmet_note(&[unmet(1, 0, 0), unmet(2, 7, 0), unmet(3, 1_500, 2)], name);
        assert!(
            some.as_ref().is_some_and(|it| it.ends_with(
                "in no number: 1,500 of f3, in 2 of which a value could not be read; 7 of f2"
            )),
            "{some:?}"
        );
        let many: Vec<_> = (1..20).map(|id| unmet(id, 10, 0)).collect();
        let many = unmet_note(&many, name).expect("a note");
        assert!(many.ends_with("10 of f8; 110 of others"), "{many}");
    }
}
