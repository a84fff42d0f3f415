//! Room in the kernel's table of indirect jumps. Functions that find none are traced without their
//! ends, so that a large selection is not refused.

use super::room::TableRoom;
use crate::{
    bpf::JUMPS_LIMIT,
    target::plan::{ExitKind, ExitPlacement, Placement},
};

/// The free room of the table for the plans to come.
pub(crate) struct JumpRoom(TableRoom);

impl Default for JumpRoom {
    fn default() -> Self {
        Self::of(JUMPS_LIMIT)
    }
}

impl JumpRoom {
    fn of(limit: usize) -> Self {
        Self(TableRoom::of(limit))
    }

    /// Takes room for the ways out of a function. Returns `false` if there is too little; the
    /// function's end will not be seen.
    pub(crate) fn fit(&mut self, placement: &mut Placement) -> bool {
        let ExitPlacement::Sites(sites) = &placement.exit else { return true };
        let jumps = sites.iter().filter(|s| matches!(s.kind, ExitKind::IndirectJump(_))).count();
        let fits = self.0.take(jumps);
        if !fits {
            placement.exit = ExitPlacement::Unseen(format!(
                "the selected functions have more than {} indirect jumps; select fewer",
                self.0.limit()
            ));
        }
        fits
    }

    /// Returns a note for the report if this many functions found no room.
    pub(crate) fn note(&self, functions: usize) -> String {
        format!(
            "the durations of {functions} functions are unknown: together the selected functions \
             have more than {} indirect jumps; select fewer",
            self.0.limit()
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::target::plan::{CostClass, EntrySite, ExitSite};
    use ctrace_common::JumpTarget;

    fn with_jumps(jumps: usize) -> Placement {
        let site = |kind| ExitSite { offset: 1, cost: CostClass::SingleStep, kind, leads_to: None };
        let mut sites = vec![site(ExitKind::IndirectJump(JumpTarget::default())); jumps];
        sites.push(site(ExitKind::Ret));
        Placement {
            entry: EntrySite { offset: 0, cost: CostClass::Emulated, skipped: 0 },
            exit: ExitPlacement::Sites(sites),
            entry_is_loop_head: false,
            may_tail_jump: true,
            go: None,
            no_return_probe: None,
        }
    }

    #[test]
    fn what_finds_no_room_loses_its_end_only() {
        let mut room = JumpRoom::of(3);
        let mut fits = |jumps| {
            let mut placement = with_jumps(jumps);
            let fits = room.fit(&mut placement);
            assert_eq!(fits, placement == with_jumps(jumps));
            assert_eq!(!fits, matches!(placement.exit, ExitPlacement::Unseen(_)));
            fits
        };
        // A later function may still fit, and one without indirect jumps always does.
        assert_eq!([2, 2, 1, 1, 0].map(&mut fits), [true, false, true, false, true]);
    }
}
