//! Decides how much room the eBPF programs have for what they count, before they are loaded.

use crate::{
    bpf::{self, CountedSizes},
    session::{plan::Planner, spec::TraceSpec},
};

/// The part of the memory for calls that counts may take.
const SHARE: u64 = 4;

/// Returns the sizes of the maps in which calls are counted, if they are.
pub(super) fn counted_sizes(
    spec: &TraceSpec,
    planner: &Planner,
) -> anyhow::Result<Option<CountedSizes>> {
    let TraceSpec { probes, most, filter, .. } = spec;
    if !probes.aggregate {
        return Ok(None);
    }
    let (bytes, cpus) = (probes.spool / SHARE, bpf::online_cpus()?);
    let sizes = CountedSizes::within(bytes, cpus, most.max_functions, filter.min_duration);
    let sizes = sizes.nested(filter.max_depth);
    Ok(Some(if planner.reads_values() { sizes.with_values() } else { sizes }))
}
