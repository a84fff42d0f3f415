//! Parts of what the programs have counted: the calls of a function with one value of its argument.

use super::{
    one_function::one_function,
    parts::{HEADLESS, MOST_VALUES, part_of_value, place_of},
};
use crate::{
    session::plan::Planned,
    ui::text::{first_few, units::counted},
};
use anyhow::{bail, ensure};
use ctrace_core::{
    engine::{CountedPart, CountedParts, Engine, ReportMeta, ValuedCalls},
    function::FunctionInfo,
    report::{By, Report, render::clean::clean},
    units::FuncId,
};

/// Names in the note on functions whose arguments are not read.
const NAMED: usize = 5;

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

/// Leaves out the arguments of functions that `--by` does not mean, as they come with libraries: they would use
/// up the numbers of values. Returns a note on them.
pub(crate) fn leave_out_others<'a>(
    by: &By,
    functions: impl Iterator<Item = &'a mut Planned>,
) -> Option<String> {
    let By::Value { function, .. } = by else { return None };
    let mut names = Vec::new();
    for planned in functions {
        let info = &mut planned.info;
        let is_meant = info.values.len() == 1
            && one_function("--by", function, std::slice::from_ref(info)).is_ok();
        if !info.values.is_empty() && !is_meant {
            info.values.clear();
            planned.sources = None;
            names.push(clean(&info.name).into_owned());
        }
    }
    (!names.is_empty()).then(|| {
        format!(
            "--arg: no argument of {} is read: --aggregate counts calls apart by one value of the function that \
             --by names",
            first_few(NAMED, &names)
        )
    })
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
    let unplaced = |id: u32| calls.apart(FuncId(id)).unplaced;
    let all: u64 = (0..engine.functions().len() as u32).map(unplaced).sum();
    let elsewhere = all.saturating_sub(unplaced(id.0));
    ensure!(
        !parts.each.is_empty(),
        "no call of {name} with a `{argument}` is among those that the report counts"
    );
    let meta = || {
        let mut meta = meta.clone();
        if whole.loss.calls_headless > 0 {
            meta.notes.push(HEADLESS.to_owned());
        }
        meta.notes.extend(notes(&parts, elsewhere, &name, argument));
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

/// Returns notes on the calls that are in no part, or in that of the others. `elsewhere`: the calls of other
/// functions that have no path.
fn notes(parts: &CountedParts, elsewhere: u64, name: &str, argument: &str) -> Vec<String> {
    const WHY: &str = "the notes on calls without a time say why";
    let without = (parts.without > 0).then(|| {
        let calls = counted(parts.without, "call", "calls");
        let have = if parts.without == 1 { "it has" } else { "they have" };
        format!("no part has {calls} of {name}: {have} no path ({WHY})")
    });
    let inside = (elsewhere > 0).then(|| {
        let calls = counted(elsewhere, "call", "calls");
        format!(
            "the rows of parts lack {calls} of other functions, inside calls of {name} or not: there is no path \
             for them ({WHY})"
        )
    });
    let beyond = (parts.beyond > 0).then(|| {
        let calls = counted(parts.beyond, "call is", "calls are");
        format!(
            "{calls} among the others because the kernel had no room for more values of `{argument}`: one \
             of these may have taken more time than one with a part of its own"
        )
    });
    [without, inside, beyond].into_iter().flatten().collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::session::plan::Sites;
    use ctrace_core::function::{ValueInfo, ValueKind};

    #[test]
    fn only_the_function_that_is_meant_keeps_its_argument() {
        let planned = |name: &str, values: usize| {
            let mut info = FunctionInfo::new(name, "library");
            info.values = vec![ValueInfo::new("key", ValueKind::Unsigned); values];
            Planned::new(info, Sites::Usdt(Vec::new()))
        };
        let by = By::Value { function: "serve".to_owned(), argument: "key".to_owned() };
        let mut all =
            [planned("serve", 1), planned("step", 1), planned("rest", 0), planned("serve", 2)];
        let note = leave_out_others(&by, all.iter_mut()).expect("two are left out");
        assert!(note.starts_with("--arg: no argument of step, serve is read"), "{note}");
        let kept = all.each_ref().map(|planned| planned.info.values.len());
        assert_eq!(kept, [1, 0, 0, 0]);
        assert_eq!(leave_out_others(&by, all.iter_mut()), None);
    }
}
