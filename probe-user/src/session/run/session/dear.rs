//! Calls that cost the target ten times as much as others, because the kernel single-steps the
//! instruction under a probe. The report names those that matter, with the reason.

use super::Session;
use crate::{
    session::{
        budget::costs::{Costs, HitCosts},
        plan::{Planned, Sites},
    },
    target::plan::{CostClass, Placement},
    ui::text::{
        distinct::shorten_all,
        first_of,
        units::{self, Digits, counted},
    },
};
use ctrace_core::{report::render::clean::clean, units::Nanos};
use std::{collections::BTreeMap, fmt::Write as _, sync::Arc};

/// Percent of the time since the start that the calls of a function must cost to be named.
const MUCH: f64 = 1.0;
/// Functions that are named.
const MOST: usize = 3;
/// Named functions are remarked on at the start if one of so many is single-stepped, and so many are.
const SHARE_OF: usize = 4;
/// Columns of such a name.
const ROOM: usize = 60;

/// A function with single-stepped probes.
struct Dear {
    name: Arc<str>,
    /// True if its entry is single-stepped.
    entry: bool,
    /// If its exit is: the reason why the function itself has no return probe, if it is one.
    exit: Option<Option<&'static str>>,
}

/// The functions with single-stepped probes, by id.
#[derive(Default)]
pub(crate) struct DearCalls(BTreeMap<usize, Dear>);

impl DearCalls {
    /// Knows a function, or that it has other probes now.
    pub(super) fn know(&mut self, id: usize, planned: &Planned) {
        self.0.remove(&id);
        if let Sites::Function(placement) = &planned.sites {
            let dear = Dear::of(Arc::clone(&planned.info.name), placement);
            self.0.extend(dear.map(|dear| (id, dear)));
        }
    }

    /// Returns a note on the functions whose calls cost much of this time. `process` is the reason
    /// that holds for all functions.
    fn note(
        &self,
        costs: &Costs,
        hits: &[u64],
        time: Nanos,
        process: impl FnOnce() -> Option<String>,
    ) -> Option<String> {
        let cost = |id: usize| costs.of_function(id, hits.get(id).copied().unwrap_or(0));
        let mut much: Vec<_> = self.0.iter().map(|(id, dear)| (cost(*id), dear)).collect();
        much.retain(|(cost, _)| cost.0 as f64 * 100.0 >= MUCH * time.0 as f64 && cost.0 > 0);
        much.sort_by_key(|(cost, _)| std::cmp::Reverse(*cost));
        let (first, rest) = much.split_at_checked(MOST).unwrap_or((&much, &[]));
        let process = process().filter(|_| first.iter().any(|(_, dear)| dear.needs_a_reason()));
        let process = process.as_deref().unwrap_or("--returns ret-sites asks for it");
        let mut by_cost: Vec<(String, Vec<_>)> = Vec::new();
        for (_, dear) in first {
            let cost = dear.cost(costs.of_hits(), process);
            match by_cost.iter_mut().find(|(known, _)| *known == cost) {
                Some((_, names)) => names.push(clean(&dear.name)),
                None => by_cost.push((cost, vec![clean(&dear.name)])),
            }
        }
        let each = by_cost.iter().map(|(cost, names)| {
            format!("each call of {} costs the target {cost}", names.join(" or "))
        });
        let mut note = each.collect::<Vec<_>>().join("; ");
        if !rest.is_empty() {
            _ = write!(note, "; {} more", counted(rest.len() as u64, "function", "functions"));
        }
        (!note.is_empty()).then_some(note)
    }
}

impl Dear {
    fn of(name: Arc<str>, placement: &Placement) -> Option<Self> {
        let entry = placement.entry.cost == CostClass::SingleStep;
        let exit = placement.exit.is_single_stepped().then_some(placement.no_return_probe);
        (entry || exit.is_some()).then_some(Self { name, entry, exit })
    }

    fn needs_a_reason(&self) -> bool {
        self.exit == Some(None)
    }

    fn cost(&self, hits: &HitCosts, process: &str) -> String {
        let step = hits.hit(CostClass::SingleStep);
        let steps = u64::from(self.entry) + u64::from(self.exit.is_some());
        let mut reasons = Vec::new();
        if self.entry {
            reasons.push("the kernel single-steps the instruction of its entry probe".to_owned());
        }
        if let Some(why) = self.exit {
            reasons.push(format!("it has no return probe ({})", why.unwrap_or(process)));
        }
        let time = units::time(Nanos(steps * step.0), Digits::Short);
        let about = match hits.step_is_measured() {
            true => format!("about {time} here"),
            false => format!("usually about {time}"),
        };
        format!("{about}, because {}", reasons.join(", and "))
    }
}

/// Returns a remark on planned functions with single-stepped probes: on a large share of many, and on any
/// of those that nobody has named (`unnamed`).
pub(crate) fn dear_at_start<'a>(
    planned: impl Iterator<Item = &'a Planned>,
    unnamed: bool,
) -> Option<String> {
    let mut all = 0;
    let dear = |planned: &Planned| match &planned.sites {
        Sites::Function(placement) => Dear::of(Arc::clone(&planned.info.name), placement),
        _ => None,
    };
    let dear: Vec<Dear> = planned.inspect(|_| all += 1).filter_map(dear).collect();
    if !unnamed && (dear.len() < SHARE_OF || dear.len() * SHARE_OF < all) {
        return None;
    }
    let names: Vec<_> = dear.iter().take(MOST).map(|dear| clean(&dear.name)).collect();
    let names = shorten_all(&names, ROOM);
    let step = units::time(HitCosts::default().hit(CostClass::SingleStep), Digits::Short);
    (!dear.is_empty()).then(|| {
        format!(
            "calls of {} of the {} cost the target usually about {step} or more \
             each, because the kernel single-steps an instruction under their probes: {}; \
             -x leaves functions out, and `ctrace list -v` tells of each",
            dear.len(),
            counted(all as u64, "chosen function", "chosen functions"),
            first_of(&names, dear.len()),
        )
    })
}

impl Session {
    /// Returns a note on dear calls that were made often.
    pub(super) fn dear_calls(&self, end: Nanos) -> Option<String> {
        let time = end.since(self.progress.start);
        let process = || {
            let [guards, returns] = self.arming.planner.against_return_probes();
            guards.into_iter().chain(returns).next()
        };
        self.arming.dear.note(&self.arming.costs, &self.hits_with_unmet(), time, process)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::target::plan::{EntrySite, ExitKind, ExitPlacement, ExitSite};
    use ctrace_core::function::FunctionInfo;

    fn planned(
        name: &str,
        entry: CostClass,
        exit: CostClass,
        why: Option<&'static str>,
    ) -> Planned {
        let site = ExitSite { offset: 9, cost: exit, kind: ExitKind::Ret, leads_to: None };
        let placement = Placement {
            entry: EntrySite { offset: 0, cost: entry, skipped: 0 },
            exit: ExitPlacement::Sites(vec![site]),
            entry_is_loop_head: false,
            may_tail_jump: false,
            go: None,
            no_return_probe: why,
        };
        let info = FunctionInfo::new(name, "program");
        Planned::new(info, Sites::Function(placement))
    }

    #[test]
    fn callees_that_are_single_stepped_are_counted_and_named() {
        use CostClass::{Emulated, SingleStep};
        let cheap = || planned("cheap", Emulated, Emulated, None);
        assert_eq!(dear_at_start([cheap(), cheap()].iter(), true), None);
        let by_exit = |name| planned(name, Emulated, SingleStep, None);
        let by_entry = planned("by_entry", SingleStep, Emulated, None);
        let some = dear_at_start([by_exit("a"), cheap(), by_entry].iter(), true).expect("a remark");
        assert!(some.contains(" 2 of the 3 chosen functions "), "{some}");
        assert!(some.contains(": a, by_entry; -x"), "{some}");
        let named = |cheap_ones: usize, dear_ones: usize| {
            let dear = (0..dear_ones).map(|at| by_exit(["a", "b", "c", "d"][at]));
            let all: Vec<Planned> = (0..cheap_ones).map(|_| cheap()).chain(dear).collect();
            dear_at_start(all.iter(), false).is_some()
        };
        assert_eq!([named(0, 3), named(12, 4), named(13, 4)], [false, true, false]);
        let many = ["a", "b", "c", "d", "e"].map(by_exit);
        let many = dear_at_start(many.iter(), true).expect("a remark");
        assert!(many.contains(": a, b, c and 2 more; -x"), "{many}");
    }

    #[test]
    fn the_dearest_are_named_with_their_reasons() {
        use CostClass::{Emulated, SingleStep};
        let functions = [
            planned("cheap", Emulated, Emulated, None),
            planned("seldom", SingleStep, SingleStep, None),
            planned("of_process", Emulated, SingleStep, None),
            planned("own", SingleStep, SingleStep, Some("it reads its return address")),
            planned("too", Emulated, SingleStep, None),
        ];
        let step = HitCosts::default().hit(SingleStep);
        let (mut costs, mut dear) = (Costs::new(HitCosts::default()), DearCalls::default());
        costs.add(&functions);
        functions.iter().enumerate().for_each(|(id, planned)| dear.know(id, planned));
        let note = |dear: &DearCalls, hits: &[u64]| {
            let why = || Some("libx.so switches stacks".to_owned());
            dear.note(&costs, hits, Nanos(step.0 * 10_000), why)
        };
        let (once, twice) =
            (units::time(step, Digits::Short), units::time(Nanos(2 * step.0), Digits::Short));
        let own = format!(
            "each call of own costs the target usually about {twice}, because the kernel single-steps \
             the instruction of its entry probe, and it has no return probe (it reads its return address)"
        );
        let of_process = format!(
            "each call of of_process costs the target usually about {once}, because it has no return \
             probe (libx.so switches stacks)"
        );
        assert_eq!(note(&dear, &[90_000, 9, 600, 400]), Some(format!("{own}; {of_process}")));
        assert_eq!(note(&dear, &[90_000, 9, 0, 400]), Some(own));
        let both = of_process.replace("of of_process", "of of_process or too");
        assert_eq!(note(&dear, &[90_000, 9, 600, 0, 500]), Some(both));
        assert_eq!(note(&dear, &[90_000, 9, 9, 0]), None);
        dear.know(3, &planned("own", Emulated, Emulated, None));
        assert_eq!(note(&dear, &[0, 0, 0, 9_000]), None);
    }
}
