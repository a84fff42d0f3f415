//! Tail calls to functions that are traced as well. If all jumps by which a function leaves lead to such
//! functions, the end of a call is seen where theirs is, and the row needs no mark.

use super::{Planned, Sites};
use crate::target::plan::{ExitKind, ExitPlacement, ExitSite};
use std::collections::HashMap;

/// The planned functions of an object, by their place in the plan: the ways out that a call may have, and
/// the functions to which the jumps among them lead.
struct TailCalls {
    successors: Vec<Option<Vec<usize>>>,
}

/// Notes in the plan of an object which of its functions leave by jumps to traced functions only.
pub(super) fn note(planned: &mut [Planned]) {
    let successors = TailCalls::of(planned).with_seen_ends();
    for (one, successors) in planned.iter_mut().zip(successors) {
        // At the jump its result is not there yet, and who asks for it gets a call without one.
        let successors = successors.filter(|it| !it.is_empty() && !one.info.has_result());
        one.successors = successors.unwrap_or_default();
        one.info.ends_with_successor = !one.successors.is_empty();
    }
}

impl TailCalls {
    fn of(planned: &[Planned]) -> Self {
        let starts = planned.iter().enumerate().filter_map(|(place, one)| match &one.sites {
            Sites::Function(placement) => {
                let entry = &placement.entry;
                Some((entry.offset - u64::from(entry.skipped), place))
            }
            _ => None,
        });
        let starts: HashMap<u64, usize> = starts.collect();
        let successors = planned.iter().map(|one| {
            let Sites::Function(placement) = &one.sites else { return None };
            match &placement.exit {
                ExitPlacement::Sites(sites) | ExitPlacement::Guarded(Ok(sites)) => {
                    let jumps = sites.iter().filter(|site| site.kind != ExitKind::Ret);
                    let leads_to = |site: &ExitSite| starts.get(&site.leads_to?).copied();
                    jumps.map(leads_to).collect()
                }
                // It may lose the return probe, and its jumps are not known.
                ExitPlacement::ReturnProbe => (!placement.may_tail_jump).then(Vec::new),
                ExitPlacement::Guarded(Err(_)) | ExitPlacement::Unseen(_) => None,
            }
        });
        let mut successors: Vec<_> = successors.collect();
        for (place, one) in planned.iter().enumerate() {
            // Only some of its calls have a beginning that tells of a jump to it, so no jump may lead there.
            if one.info.condition.is_some() {
                successors[place] = None;
            }
        }
        Self { successors }
    }

    /// Returns the successors of those functions of which every end is seen: at a return, or behind jumps at
    /// that of a successor. Functions that jump in a circle are none: a state machine would nest as deep as
    /// it has steps, and all of its calls would end unseen. They end at their jumps.
    fn with_seen_ends(self) -> Vec<Option<Vec<usize>>> {
        let mut is_seen = vec![false; self.successors.len()];
        loop {
            let seen_now: Vec<bool> = self
                .successors
                .iter()
                .map(|own| own.as_ref().is_some_and(|it| it.iter().all(|place| is_seen[*place])))
                .collect();
            if seen_now == is_seen {
                let own = self.successors.into_iter().zip(is_seen);
                return own.map(|(own, is_seen)| own.filter(|_| is_seen)).collect();
            }
            is_seen = seen_now;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::plain::Plain;
    use super::*;
    use crate::target::plan::CostClass;

    /// A function at this offset, whose ways out are a `ret` and jumps to these.
    fn function(offset: u64, jumps: &[Option<u64>]) -> Planned {
        let site = |kind, leads_to| ExitSite {
            offset: offset + 7,
            cost: CostClass::SingleStep,
            kind,
            leads_to,
        };
        let jumps = jumps.iter().map(|to| site(ExitKind::Jump, *to));
        let sites = std::iter::once(site(ExitKind::Ret, None)).chain(jumps).collect();
        let mut planned = Plain("f").planned(ExitPlacement::Sites(sites), false);
        let Sites::Function(placement) = &mut planned.sites else { panic!("a function") };
        (placement.entry.offset, placement.entry.skipped) = (offset + 4, 4);
        planned
    }

    /// Checks the successors of functions at 100, 200, 300 and so on.
    #[track_caller]
    fn check(mut planned: Vec<Planned>, expected: &[&[usize]]) {
        note(&mut planned);
        let found: Vec<&[usize]> = planned.iter().map(|one| &one.successors[..]).collect();
        assert_eq!(found, expected);
        for one in &planned {
            assert_eq!(one.info.ends_with_successor, !one.successors.is_empty());
        }
    }

    #[test]
    fn every_jump_must_lead_to_a_function_whose_end_is_seen() {
        let plain = || function(300, &[]);
        check(vec![function(100, &[Some(300)]), function(200, &[]), plain()], &[&[2], &[], &[]]);
        // To a function that is not traced, into the middle of one, and through a pointer.
        for other in [Some(700), Some(304), None] {
            let both = function(100, &[Some(300), other]);
            check(vec![both, function(200, &[Some(300)]), plain()], &[&[], &[2], &[]]);
        }
    }

    #[test]
    fn a_chain_is_as_good_as_its_last_function() {
        let chain = |last: &[Option<u64>]| {
            vec![function(100, &[Some(200)]), function(200, &[Some(300)]), function(300, last)]
        };
        check(chain(&[]), &[&[1], &[2], &[]]);
        check(chain(&[Some(900)]), &[&[], &[], &[]]);
        check(chain(&[Some(100)]), &[&[], &[], &[]]);
    }

    #[test]
    fn ends_that_may_stay_unseen_are_none() {
        let to = |last: Planned| vec![function(100, &[Some(200)]), last];
        let with = |exit| {
            let mut last = function(200, &[]);
            let Sites::Function(placement) = &mut last.sites else { panic!("a function") };
            placement.exit = exit;
            last
        };
        check(to(with(ExitPlacement::Unseen("it is odd".to_owned()))), &[&[], &[]]);
        check(to(with(ExitPlacement::Guarded(Err("it is odd".to_owned())))), &[&[], &[]]);
        check(to(with(ExitPlacement::Guarded(Ok(Vec::new())))), &[&[1], &[]]);
        check(to(with(ExitPlacement::ReturnProbe)), &[&[1], &[]]);
        let mut last = with(ExitPlacement::ReturnProbe);
        let Sites::Function(placement) = &mut last.sites else { panic!("a function") };
        placement.may_tail_jump = true;
        check(to(last), &[&[], &[]]);
        let mut last = function(200, &[]);
        last.info.condition = Some("n > 5".into());
        check(to(last), &[&[], &[]]);
    }
}
