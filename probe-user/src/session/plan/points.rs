//! USDT probes in a plan: the places that carry a probe, and the values read there.

use super::{Plan, Planned, Planner, Refused, Sites, by_reason::ByReason, values::Variables};
use crate::target::{
    object::Object,
    place::{Refusal, usdt_site},
    plan::CostClass,
    select::Selection,
    usdt::{UsdtProbe, UsdtSite},
};
use crate::ui::text::units::counted;
use ctrace_core::function::{ExitSeen, FunctionInfo, FunctionKind};
use ctrace_core::report::render::clean::clean;
use std::sync::Arc;

/// No instruction is longer.
const LONGEST_INSTRUCTION: usize = 15;

/// The chosen probes of an object.
pub(super) struct Chosen<'a> {
    pub(super) object: &'a Object,
    pub(super) variables: Variables,
    selection: &'a Selection,
    index: usize,
}

impl Chosen<'_> {
    /// Returns the numbers of the values that are asked for a probe.
    pub(super) fn asked(&self, probe: usize) -> &[usize] {
        self.selection.usdt_values_of(self.index, probe)
    }
}

impl Planner {
    /// Adds the chosen USDT probes of an object: pairs as calls, all others as points.
    pub(super) fn place_usdt(
        &mut self,
        objects: &[Object],
        index: usize,
        selection: &Selection,
        planned: &mut Vec<Planned>,
        plan: &mut Plan,
    ) -> anyhow::Result<()> {
        let object = &objects[index];
        let probes = selection.usdt.iter().filter(|probe| probe.object == index);
        let probes: Vec<usize> = probes.map(|probe| probe.index).collect();
        let all = probes.iter().map(|&at| &object.usdt_probes()[at]);
        let variables = self.values.variables(object, all);
        let chosen = Chosen { object, variables, selection, index };
        let pairs = selection.pairs(objects, index);
        let before = plan.refused.len();
        let parts = self.place_pairs(&chosen, &pairs, planned, plan)?;
        for at in probes.into_iter().filter(|at| !parts.contains(at)) {
            self.place_probe(&chosen, at, planned, plan)?;
        }
        let left_out = left_out(&plan.refused[before..]);
        plan.notes.extend(left_out);
        Ok(())
    }

    /// Adds a USDT probe as a point.
    fn place_probe(
        &mut self,
        chosen: &Chosen<'_>,
        at: usize,
        planned: &mut Vec<Planned>,
        plan: &mut Plan,
    ) -> anyhow::Result<()> {
        let object = chosen.object;
        let probe = &object.usdt_probes()[at];
        let Some(sites) = probed_sites(object, probe, plan) else { return Ok(()) };
        let place = sites.first().and_then(|site| object.source_line(site.address));
        let (variables, asked) = (&chosen.variables, chosen.asked(at));
        let (values, points) = self.values.plan(probe, sites, variables, asked, &mut plan.notes)?;
        let info = FunctionInfo {
            line: place.as_ref().and_then(|place| place.line),
            file: place.map(|place| place.file),
            kind: FunctionKind::Usdt,
            group: Some(Arc::clone(&probe.provider)),
            exit: ExitSeen::Never,
            values,
            ..FunctionInfo::new(Arc::clone(&probe.name), Arc::clone(object.name()))
        };
        planned.push(Planned::new(info, Sites::Usdt(points)));
        Ok(())
    }
}

/// Returns a note on probes that have no place which carries one, each with its reason.
fn left_out(refused: &[Refused]) -> Option<String> {
    let first = refused.first()?;
    let mut reasons = ByReason::default();
    refused.iter().for_each(|probe| reasons.add(&clean(&probe.name), probe.why.to_string()));
    let are = if refused.len() == 1 { "is" } else { "are" };
    Some(format!(
        "{} of {} {are} not traced: {}; `ctrace list -v` tells about each",
        counted(refused.len() as u64, "chosen USDT probe", "chosen USDT probes"),
        clean(&first.object),
        reasons.tell_as(["probe", "probes"])?,
    ))
}

/// Returns the cost of a probe at a place of a USDT probe in the file, or the reason why it carries none.
pub(crate) fn cost_at(object: &Object, file_offset: u64) -> Result<CostClass, Refusal> {
    usdt_site(&object.source().peek(file_offset, LONGEST_INSTRUCTION))
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
        let why = cost_at(object, site.file_offset).err();
        let carries = why.is_none();
        refusal = why.or(refusal.take());
        carries
    });
    let left_out = probe.sites.len() - sites.len();
    match refusal {
        Some(why) if sites.is_empty() => {
            let (name, object) = (probe.full_name().into(), Arc::clone(object.name()));
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::target::{
        fixtures::compile,
        place::Returns,
        process::maps::MappedObject,
        select::{Patterns, Selector},
    };

    const SOURCE: &str = r#"
        #define PROBE(name, nop) __asm__ volatile("990: .byte " nop "\n.pushsection .note.stapsdt,\"\",\"note\"\n" \
            ".balign 4\n.4byte 992f-991f, 994f-993f, 3\n991: .asciz \"stapsdt\"\n992: .balign 4\n" \
            "993: .8byte 990b, 0, 0\n.asciz \"app\"\n.asciz \"" name "\"\n" \
            ".asciz \"\"\n994: .balign 4\n.popsection")
        int main(int c, char **v) {
            PROBE("carried", "0x90");
            PROBE("five", "0x0f,0x1f,0x44,0,0");
            PROBE("ten", "0x66,0x2e,0x0f,0x1f,0x84,0,0,0,0,0");
            PROBE("ten_too", "0x66,0x2e,0x0f,0x1f,0x84,0,0,0,0,0");
            return c;
        }
    "#;

    #[test]
    fn each_probe_is_left_out_for_its_own_reason() {
        let built = compile("gcc -O1", "c", SOURCE);
        let mapped = [MappedObject::from_file(&built.program, true).unwrap()];
        let usdt = ["*".to_owned()];
        let selector = Selector::parse(Patterns { usdt: &usdt, ..Patterns::default() }).unwrap();
        let plan = Planner::new(selector, 100, Returns::Auto).plan(&mapped).unwrap();
        let why = |name: &str| {
            let of = plan.refused.iter().find(|probe| &*probe.name == name).expect(name);
            of.why.to_string()
        };
        let [five, ten] = [why("app:five"), why("app:ten")];
        assert_ne!(five, ten);
        let told = format!(
            "3 chosen USDT probes of program are not traced: app:five: {five}; app:ten, app:ten_too: {ten}; \
             `ctrace list -v` tells about each"
        );
        assert_eq!(plan.notes, [told]);
    }
}
