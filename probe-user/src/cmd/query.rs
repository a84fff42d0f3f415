//! SELECT, FILTER and the ways to look at a recording, as what the core is asked.

use crate::{
    cli::{FilterArgs, LensArgs, SelectArgs},
    session::filter,
    target::recorded::{Choice, choose},
};
use ctrace_core::{function::FunctionInfo, replay::Query, units::Nanos};
use std::ops::Range;

pub(super) fn query(
    select: &SelectArgs,
    filter_by: &FilterArgs,
    lens: &LensArgs,
    functions: &[FunctionInfo],
    window: Option<Range<Nanos>>,
) -> anyhow::Result<Query> {
    let of = |texts: &[String]| -> anyhow::Result<Option<Vec<bool>>> {
        if texts.is_empty() {
            return Ok(None);
        }
        Ok(Some(choose(functions, &Choice { functions: texts, ..Choice::default() })?))
    };
    let selected = Choice {
        functions: &select.functions,
        usdt: &select.usdt,
        markers: &select.markers,
        exclude: &select.exclude,
    };
    Ok(Query {
        filter: filter(filter_by),
        functions: match selected.is_empty() {
            true => None,
            false => Some(choose(functions, &selected)?),
        },
        window,
        callers: of(&lens.callers)?,
        callees: of(&lens.callees)?,
        roots: of(&lens.roots)?,
        fold_recursion: lens.fold_recursion,
    })
}
