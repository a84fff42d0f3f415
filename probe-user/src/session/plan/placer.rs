//! Decides where the functions of one object are probed.

use crate::target::{
    object::{Object, symbols::Function},
    place::{Candidate, CodeMap, Policy, Refusal, place_for},
    plan::{ExitPlacement, Placement},
    select::naming::Shown,
};
use ctrace_core::function::{ExitSeen, FunctionInfo, FunctionKind};
use std::sync::Arc;

/// Decides where the functions of one object are probed.
pub(crate) struct Placer<'a> {
    map: CodeMap<'a>,
    policy: Policy,
}

impl<'a> Placer<'a> {
    pub(super) fn new(map: CodeMap<'a>, policy: Policy) -> Self {
        Self { map, policy }
    }

    pub(crate) fn place(
        &self,
        function: &Function,
        reads_arguments: bool,
    ) -> Result<Placement, Refusal> {
        let candidate =
            Candidate { address: function.address, size: function.size, name: function.raw() };
        place_for(candidate, &self.map, &self.policy, reads_arguments)
    }
}

/// Describes a function for reports.
pub(super) fn info(
    object: &Object,
    function: &Function,
    shown: Shown,
    placement: &Placement,
) -> FunctionInfo {
    let source = object.line_of(function);
    FunctionInfo {
        name: shown.name,
        short_name: shown.short,
        full_name: shown.full,
        aliases: function.aliases().to_vec(),
        object: Arc::clone(object.name()),
        line: source.as_ref().and_then(|source| source.line),
        file: source.map(|source| source.file),
        kind: FunctionKind::Function,
        group: None,
        exit: exit_seen(&placement.exit),
        entry_is_loop_head: placement.entry_is_loop_head,
        may_tail_jump: placement.may_tail_jump,
        ends_with_successor: false,
        condition: None,
        by_order: None,
        named_by: None,
        values: Vec::new(),
        inlined: Vec::new(),
        wait: None,
        point: None,
        is_frame: false,
        is_async: false,
        colour: None,
        probe: None,
    }
}

pub(crate) fn exit_seen(exit: &ExitPlacement) -> ExitSeen {
    match exit {
        ExitPlacement::ReturnProbe | ExitPlacement::Guarded(_) => ExitSeen::ByReturnProbe,
        ExitPlacement::Sites(_) => ExitSeen::ByExitSites,
        ExitPlacement::Unseen(_) => ExitSeen::Never,
    }
}
