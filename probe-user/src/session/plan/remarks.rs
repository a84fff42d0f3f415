//! Remarks on a selection for the user, before anything is traced.

use super::Planner;
use crate::target::{
    object::Object,
    place::Returns,
    select::{Selection, not_found::flawed_markers},
};

impl Planner {
    pub(super) fn remarks(&self, objects: &[Object], selection: &Selection) -> Vec<String> {
        let mut remarks: Vec<String> =
            selection.unmatched.iter().map(ToString::to_string).collect();
        remarks.extend(selection.notes.iter().cloned());
        if self.selector.asks_for_markers() {
            remarks.extend(objects.iter().filter_map(flawed_markers));
        }
        let unwinds = self.guarding.may_unwind() && !self.guarding.guards();
        let by_force = self.returns == Returns::ReturnProbe && unwinds;
        if by_force && !selection.functions.is_empty() {
            remarks.push(
                "--returns uretprobe: an exception or a panic that passes through a traced function \
                 kills the program; --returns auto avoids it"
                    .to_owned(),
            );
        }
        if !selection.markers.is_empty() && !self.has_runtime {
            remarks.push(
                "the chosen marker scopes have no runtime in the program, so nothing will come of \
                 them: link it with ctrace-marker or ctrace.h as a whole"
                    .to_owned(),
            );
        }
        remarks
    }
}
