//! Functions in a plan: the places that carry a probe, and the values read there.

use super::{
    Plan, Planned, Planner, Refused, Sites, absent::Lacking, by_reason::ByReason,
    call_values::InObject, inlined_names::InlinedNames, placer::info,
};
use crate::target::{
    object::{Object, symbols::Function},
    select::{SelectError, Selection},
};
use anyhow::bail;
use ctrace_core::{
    function::ExitSeen,
    report::{NOT_READ, render::clean::clean},
};
use std::sync::Arc;

impl Planner {
    /// Returns the number of functions that lose their ends because the table of indirect jumps is
    /// full.
    pub(super) fn make_room(&mut self, planned: &mut [Planned]) -> usize {
        let mut unseen = 0;
        for Planned { info, sites, .. } in planned {
            if let Sites::Function(placement) = sites
                && !self.jumps.fit(placement)
            {
                info.exit = ExitSeen::Never;
                unseen += 1;
            }
        }
        unseen
    }

    /// Adds notes on what functions lack. Returns an error if all lack something, or none is left to
    /// trace because of it.
    pub(super) fn note_absent(&mut self, plan: &mut Plan, may_come: bool) -> anyhow::Result<()> {
        let Lacking { of_some, of_all, not_traced } = self.values.absent.take();
        let fatal = if plan.functions() == 0 { not_traced.first() } else { None };
        if let Some(line) = of_all.first().or(fatal)
            && !may_come
        {
            bail!("{line}");
        }
        plan.notes.extend([of_some, of_all, not_traced].concat());
        Ok(())
    }

    /// Returns an error if a condition has no function: others would be traced without one.
    pub(super) fn check_conditions(&self, selection: &Selection) -> Result<(), SelectError> {
        for (number, asked) in self.values.asked.iter().enumerate() {
            let is_own = asked.condition.as_ref().is_some_and(|it| !it.is_of_chosen);
            // A library may come later.
            let may_come = self.awaits.is_some() || asked.functions.contains('@');
            if is_own && !may_come && !selection.values.values().flatten().any(|it| *it == number) {
                let unmatched =
                    selection.unmatched.iter().filter(|it| it.pattern == asked.functions);
                return Err(SelectError::NothingFound(unmatched.cloned().collect()));
            }
        }
        Ok(())
    }

    /// Places functions, which come with the numbers of the values that are asked for.
    pub(super) fn place_functions(
        &mut self,
        object: &Object,
        functions: &[(&Function, &[usize])],
        planned: &mut Vec<Planned>,
        plan: &mut Plan,
    ) -> anyhow::Result<()> {
        let placer = self.placer(object)?;
        let mut inlined = InlinedNames::default();
        // Go has registers of its own for arguments.
        let has_values = !object.is_go();
        let shows = |asked: &[usize]| asked.iter().any(|number| self.values.shows(*number));
        if !has_values && functions.iter().any(|(_, asked)| shows(asked)) {
            let name = clean(object.name());
            plan.notes.push(format!(
                "the values of functions of {name} are {NOT_READ}: Go passes them in its own way"
            ));
        }
        let mut unread = ByReason::default();
        for (function, asked) in functions {
            let asked = asked.iter().copied();
            let asked = asked.filter(|number| has_values || !self.values.shows(*number));
            let asked: Vec<usize> = asked.collect();
            let reads_arguments = asked.iter().any(|number| self.values.reads_arguments(*number));
            match placer.place(function, reads_arguments) {
                Ok(placement) => {
                    let mut info = info(object, function, self.naming.of(function), &placement);
                    info.inlined = inlined.of(object, function);
                    let mut one = Planned::new(info, Sites::Function(placement));
                    let begin = function.file_offset;
                    one.code = begin..begin.saturating_add(function.size);
                    let described = InObject { object, function };
                    if self.values.plan_call(&mut one, &asked, &described, &mut plan.notes)? {
                        planned.push(one);
                    }
                }
                Err(why) => {
                    let name = self.naming.of(function).name;
                    if !asked.is_empty() {
                        unread.add(&clean(&name), why.to_string());
                    }
                    plan.refused.push(Refused { name, object: Arc::clone(object.name()), why });
                }
            }
        }
        // Who asks for the values of a function looks for its row.
        let told = unread.tell();
        plan.notes
            .extend(told.map(|told| format!("not traced, although values are asked for: {told}")));
        Ok(())
    }
}
