//! USDT probes in a plan: the places that carry a probe, and the values read there.

use super::{Plan, Planned, Planner, Refused, Sites, values::Variables};
use crate::target::{
    object::Object,
    place::usdt_site,
    usdt::{UsdtProbe, UsdtSite},
};
use ctrace_core::function::{ExitSeen, FunctionInfo, FunctionKind};
use std::sync::Arc;

/// No instruction is longer.
const LONGEST_INSTRUCTION: usize = 15;

impl Planner {
    /// Adds a USDT probe as a point.
    pub(super) fn place_probe(
        &mut self,
        object: &Object,
        probe: &UsdtProbe,
        variables: &Variables,
        planned: &mut Vec<Planned>,
        plan: &mut Plan,
    ) {
        let Some(sites) = probed_sites(object, probe, plan) else { return };
        let (values, points) = self.values.plan(probe, sites, variables, &mut plan.notes);
        let info = FunctionInfo {
            kind: FunctionKind::Usdt,
            group: Some(Arc::clone(&probe.provider)),
            exit: ExitSeen::Never,
            values,
            ..FunctionInfo::new(Arc::clone(&probe.name), Arc::clone(object.name()))
        };
        planned.push(Planned::new(info, Sites::Usdt(points)));
    }
}

/// Returns the places of a USDT probe that carry one. Notes those that do not, and refuses the probe
/// if none does.
pub(super) fn probed_sites(
    object: &Object,
    probe: &UsdtProbe,
    plan: &mut Plan,
) -> Option<Vec<UsdtSite>> {
    let mut refusal = None;
    let mut sites = probe.sites.clone();
    sites.retain(|site| {
        let code = object.source().peek(site.file_offset, LONGEST_INSTRUCTION);
        usdt_site(&code).map_err(|why| refusal = Some(why)).is_ok()
    });
    let left_out = probe.sites.len() - sites.len();
    match refusal {
        Some(why) if sites.is_empty() => {
            let (name, object) = (Arc::clone(&probe.name), Arc::clone(object.name()));
            plan.refused.push(Refused { name, object, why });
            return None;
        }
        Some(why) => plan.notes.push(format!(
            "{left_out} of {} places of {} are not traced: {why}",
            probe.sites.len(),
            probe.full_name()
        )),
        None => {}
    }
    Some(sites)
}
