//! Parts of what the programs have counted: the calls of a function with one value of its argument.

use super::{
    one_function::one_function,
    parts::{HEADLESS, MOST_VALUES, part_of_value, place_of},
};
use crate::ui::text::units::counted;
use anyhow::{bail, ensure};
use ctrace_core::{
    engine::{CountedPart, CountedParts, Engine, ReportMeta, ValuedCalls},
    function::FunctionInfo,
    report::{By, Report, render::clean::clean},
};

/// Checks before a trace that calls are counted apart by the one value that is read. One that is not there
/// yet, as that of a library that comes later, is looked for at the end.
pub(crate) fn check(functions: &[FunctionInfo]) -> anyhow::Result<()> {
    let with_values: Vec<_> = functions.iter().filter(|info| !info.values.is_empty()).collect();
    match with_values.as_slice() {
        [] => {}
        [info] => ensure!(
            info.values.len() == 1,
            "--aggregate counts calls apart by one value, and of {} there are {} to be read: leave out the \
             others",
            clean(&info.name),
            info.values.len()
        ),
        [first, second, ..] => bail!(
            "--aggregate reads a value of one function, and --arg means {} and {}: name one of them",
            clean(&first.name),
            clean(&second.name)
        ),
    }
    Ok(())
}

/// Returns the reports on the parts of what was counted. `whole` is the one on all of that, and has
/// the reason if there are none.
pub(crate) fn reports(
    engine: &Engine,
    calls: &impl ValuedCalls,
    by: &By,
    whole: &mut Report,
    meta: &ReportMeta,
) -> Vec<Report> {
    of_value(engine, calls, by, whole, meta).unwrap_or_else(|error| {
        whole.notes.push(format!("there are no parts: {error}"));
        Vec::new()
    })
}

fn of_value(
    engine: &Engine,
    calls: &impl ValuedCalls,
    by: &By,
    whole: &Report,
    meta: &ReportMeta,
) -> anyhow::Result<Vec<Report>> {
    let By::Value { function, argument } = by else { return Ok(Vec::new()) };
    let id = one_function("--by", function, engine.functions())?;
    let info = &engine.functions()[id.index()];
    let place = place_of(info, argument)?;
    let parts = CountedParts::of(calls, id, &info.values[place], MOST_VALUES);
    let name = clean(&info.name);
    ensure!(
        !parts.each.is_empty(),
        "no call of {name} with a `{argument}` is among those that the report counts"
    );
    let meta = || {
        let mut meta = meta.clone();
        if whole.loss.calls_headless > 0 {
            meta.notes.push(HEADLESS.to_owned());
        }
        meta.notes.extend(notes(&parts, &name, argument));
        meta
    };
    let report = |part: &CountedPart| {
        let period = whole.start_ns..whole.end_ns;
        let report = engine.report_counted_part(calls, (&parts, part), period, meta());
        let part = part_of_value(info, place, part.value.clone(), part.is_unread);
        Report { part: Some(part), ..report }
    };
    Ok(parts.each.iter().map(report).collect())
}

/// Returns notes on the calls that are in no part, or in that of the others.
fn notes(parts: &CountedParts, name: &str, argument: &str) -> Vec<String> {
    let without = (parts.without > 0).then(|| {
        let calls = counted(parts.without, "call", "calls");
        format!("no part has {calls} of {name}: there was no room for the path or the thread")
    });
    let beyond = (parts.beyond > 0).then(|| {
        let calls = counted(parts.beyond, "call is", "calls are");
        format!(
            "{calls} among the others because the kernel had no room for more values of `{argument}`: one \
             of these may have taken more time than one with a part of its own"
        )
    });
    without.into_iter().chain(beyond).collect()
}
