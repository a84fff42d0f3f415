//! Explains a placement in one line for `list -v`: the sites of the probes, their cost, how the end
//! is seen, or why the function cannot be traced.

use crate::target::place::deny::Refusal;
use crate::target::plan::{CostClass, ExitKind, ExitPlacement, Placement};
use ctrace_common::GoidPlace;
use std::fmt::Write as _;

/// Puts a placement, or the lack of one, into words.
#[must_use]
pub fn explain(decision: Result<&Placement, &Refusal>) -> String {
    let placement = match decision {
        Ok(placement) => placement,
        Err(refusal) => return format!("not traced: {refusal}"),
    };
    let mut line = format!("entry +{} {}", placement.entry.skipped, placement.entry.cost.name());
    if placement.entry_is_loop_head {
        line.push_str(" (also a loop's head)");
    }
    match &placement.exit {
        ExitPlacement::ReturnProbe => line.push_str(", exit by return probe"),
        ExitPlacement::Guarded(_) => line.push_str(", exit by return probe, guarded"),
        ExitPlacement::Sites(sites) => {
            let count = |wanted: fn(&ExitKind) -> bool| {
                sites.iter().filter(|site| wanted(&site.kind)).count()
            };
            let kinds = [
                (count(|kind| matches!(kind, ExitKind::Ret)), "ret"),
                (count(|kind| matches!(kind, ExitKind::Jump)), "jump"),
                (count(|kind| matches!(kind, ExitKind::ConditionalJump(_))), "conditional jump"),
                (count(|kind| matches!(kind, ExitKind::IndirectJump(_))), "indirect jump"),
            ];
            let kinds: Vec<_> = kinds
                .into_iter()
                .filter(|(count, _)| *count > 0)
                .map(|(count, kind)| format!("{count} {kind}{}", if count == 1 { "" } else { "s" }))
                .collect();
            if kinds.is_empty() {
                line.push_str(", never returns");
            } else {
                let dearest = sites.iter().map(|site| site.cost).max();
                let dearest = dearest.map_or("", CostClass::name);
                _ = write!(line, ", exit at {} {dearest}", kinds.join(", "));
            }
        }
        ExitPlacement::Unseen(why) => _ = write!(line, ", exit not seen: {why}"),
    }
    match placement.go {
        Some(GoidPlace::UNKNOWN) => line.push_str(", goroutines by address"),
        Some(_) => line.push_str(", goroutines by id"),
        None => {}
    }
    line
}
