//! Functions in a plan: the places that carry a probe, and the values read there.

use super::{Plan, Planned, Planner, Refused, Sites, call_values::InObject, placer::info};
use crate::target::{object::Object, symbols::Function};
use ctrace_core::{function::ExitSeen, report::render::clean::clean};
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

    /// Adds notes on values that some functions lack. Returns one for each value that all lack.
    pub(super) fn take_absent(&mut self, plan: &mut Plan) -> Vec<String> {
        let (of_some, of_all) = self.values.absent.take();
        plan.notes.extend(of_some);
        of_all
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
        // Go has registers of its own for arguments.
        let has_values = !object.is_go();
        if !has_values && functions.iter().any(|(_, asked)| !asked.is_empty()) {
            let name = clean(object.name());
            plan.notes.push(format!(
                "the values of functions of {name} are not read: Go passes them in its own way"
            ));
        }
        for (function, asked) in functions {
            let asked = if has_values { *asked } else { &[] };
            match placer.place(function) {
                Ok(placement) => {
                    let info = info(object, function, self.naming.of(function), &placement);
                    let mut one = Planned::new(info, Sites::Function(placement));
                    let described = InObject { object, function };
                    self.values.plan_call(&mut one, asked, &described, &mut plan.notes)?;
                    planned.push(one);
                }
                Err(why) => plan.refused.push(Refused {
                    name: self.naming.of(function).name,
                    object: Arc::clone(object.name()),
                    why,
                }),
            }
        }
        Ok(())
    }
}
