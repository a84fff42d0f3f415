//! The conditions on calls: which comparisons a program makes at the entry of a function.

use super::{
    Planned, Planner, Sites, absent::Requirement, call_values::Described, values::ValuePlanner,
};
use crate::{
    bpf::{CONDITIONS_LIMIT, CallSources},
    target::values::{
        asked::AskedValues,
        condition::{AskedCondition, Mismatch},
        named::{NoValue, is_changed},
    },
};
use ctrace_common::{Comparison, Condition, MAX_COMPARISONS};

/// The reason why a condition cannot be asked of a function.
#[derive(Debug, thiserror::Error)]
enum NoCondition {
    #[error(transparent)]
    Value(#[from] NoValue),
    #[error(transparent)]
    Mismatch(#[from] Mismatch),
    #[error(
        "its first instruction is also that of a loop, where its arguments may have changed; trace it \
         without a condition"
    )]
    LoopHead,
    #[error("it has another one, `{0}`; join them by && or || in one --where")]
    Another(AskedCondition),
    #[error(
        "there is no room for it beside other values and conditions ({CONDITIONS_LIMIT} at most); \
         choose fewer functions"
    )]
    NoRoom,
}

impl Planner {
    pub(crate) fn asks_for_conditions(&self) -> bool {
        self.values.asks_for_conditions()
    }
}

impl ValuePlanner {
    /// Plans the condition of a function, if it has one. Returns false if it cannot be asked: its
    /// calls would all count.
    pub(super) fn plan_condition(
        &mut self,
        planned: &mut Planned,
        asked: &[(usize, &AskedValues)],
        function: &impl Described,
        name: &str,
    ) -> bool {
        let mut all = asked.iter().filter_map(|(_, asked)| asked.condition.as_ref());
        let Some(asked) = all.next() else { return true };
        let is_loop = matches!(&planned.sites, Sites::Function(it) if it.entry_is_loop_head);
        let found = match all.find(|other| *other != asked) {
            Some(other) => Err(NoCondition::Another(other.clone())),
            None if is_loop => Err(NoCondition::LoopHead),
            None => compiled(asked, function).and_then(|condition| self.with_room(condition)),
        };
        // One note for all patterns that it stands for.
        let wanted = Requirement::Condition(asked.to_string());
        let condition = self.absent.note(0, wanted, name, found);
        if condition.is_some() {
            planned.info.condition = Some(asked.to_string().into());
            planned.sources = Some(Box::new(CallSources { condition, ..CallSources::default() }));
        }
        condition.is_some()
    }

    fn with_room(&mut self, condition: Condition) -> Result<Condition, NoCondition> {
        let fits = self.conditions.take(1) && self.room.take(2);
        fits.then_some(condition).ok_or(NoCondition::NoRoom)
    }
}

fn compiled(asked: &AskedCondition, function: &impl Described) -> Result<Condition, NoCondition> {
    if is_changed(function.symbol()) {
        return Err(NoValue::Changed.into());
    }
    let mut comparisons = [Comparison::default(); MAX_COMPARISONS];
    let mut count = 0;
    // The parser has seen to it that there is room for all.
    debug_assert!(asked.alternatives.iter().map(Vec::len).sum::<usize>() <= MAX_COMPARISONS);
    let all = asked.alternatives.iter().flat_map(|alternative| alternative.iter().enumerate());
    for (free, (place, comparison)) in comparisons.iter_mut().zip(all) {
        let value = function.argument(&comparison.place)?;
        *free = Comparison { begins: u8::from(place == 0), ..comparison.of(&value)? };
        count += 1;
    }
    Ok(Condition { count, reserved: 0, comparisons })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{session::plan::plain::Plain, target::plan::ExitPlacement};

    /// Plans a function with these conditions. Returns its condition and the note if it has none.
    fn plan(
        symbol: &'static str,
        is_loop: bool,
        asked: &[&str],
    ) -> (Option<Condition>, Vec<String>) {
        let mut planned = Plain(symbol).planned(ExitPlacement::ReturnProbe, is_loop);
        let asked: Vec<_> =
            asked.iter().map(|text| AskedValues::condition(text).expect("a condition")).collect();
        // Nobody sees values.
        let mut planner = ValuePlanner { asked: asked.into(), ..ValuePlanner::default() };
        let all: Vec<_> = (0..planner.asked.len()).collect();
        let is_traced = planner
            .plan_call(&mut planned, &all, &Plain(symbol), &mut Vec::new())
            .expect("no values are asked for");
        let condition = planned.sources.and_then(|sources| sources.condition);
        assert_eq!((is_traced, planned.info.condition.is_some()), (condition.is_some(), is_traced));
        (condition, planner.absent.take().not_traced)
    }

    #[test]
    fn alternatives_follow_each_other() {
        let (condition, notes) = plan("f", false, &["f: 0:u8 > 5 && 1:i32 == -1 || 2:u64 == 7"]);
        let condition = condition.expect("it can be asked");
        let used = &condition.comparisons[..condition.count as usize];
        let shown: Vec<_> = used.iter().map(|it| (it.operand.size, it.begins)).collect();
        assert_eq!((shown, notes), (vec![(1, 1), (4, 0), (8, 1)], vec![]));
        // The same in another spelling.
        let (condition, _) = plan("f", false, &["f: 0:u8>5", "f*: 0:u8 > 5"]);
        assert_eq!(condition.expect("it can be asked").count, 1);
    }

    #[test]
    fn what_cannot_be_asked_is_not_traced() {
        for (symbol, is_loop, asked, why) in [
            (
                "f",
                false,
                &["f: len > 5"][..],
                "`len > 5` cannot be asked: f: debug information does",
            ),
            ("f", true, &["f: 0:u8 > 5"], "f: its first instruction is also that of a loop"),
            ("f.isra.0", false, &["f: 0:u8 > 5"], "the compiler has changed its parameters"),
            ("f", false, &["f: 0:u8 > 5", "f: 0:u8 > 6"], "it has another one, `0:u8 > 6`; join"),
            ("f", false, &["f: 0:u8 > 500"], "500 is no value of `arg0`, which is u8"),
        ] {
            let (condition, notes) = plan(symbol, is_loop, asked);
            assert!(condition.is_none() && notes.len() == 1, "{asked:?}");
            assert!(notes[0].contains(why), "{notes:?}");
        }
    }
}
