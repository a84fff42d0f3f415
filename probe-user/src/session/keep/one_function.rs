//! Finds the one function that an option names among those that were traced.

use crate::{
    target::select::{Patterns, recorded::choose},
    ui::text::first_few,
};
use anyhow::{bail, ensure};
use ctrace_core::{function::FunctionInfo, report::render::clean::clean, units::FuncId};

/// Names in the message for a pattern that fits several functions.
const NAMED: usize = 5;

/// Returns the one function that the pattern of an option fits.
pub(crate) fn one_function(
    option: &str,
    pattern: &str,
    functions: &[FunctionInfo],
) -> anyhow::Result<FuncId> {
    let texts = [pattern.to_owned()];
    let chosen = choose(functions, &Patterns { functions: &texts, ..Patterns::default() })?;
    let found: Vec<usize> =
        chosen.iter().enumerate().filter(|(_, is_it)| **is_it).map(|(id, _)| id).collect();
    one_of(option, pattern, functions, &found)
}

/// Returns the function whose calls are frames. Of those that the name fits, a scope is meant that the
/// program calls a frame; else any other function with durations; else a frame mark; else a USDT probe
/// without ends, whose hits are edges of frames.
pub(crate) fn frame_function(pattern: &str, functions: &[FunctionInfo]) -> anyhow::Result<FuncId> {
    const OPTION: &str = "--frame";
    let texts = [pattern.to_owned()];
    let chosen = choose(functions, &Patterns { functions: &texts, ..Patterns::default() })?;
    let of = |is_wanted: fn(&FunctionInfo) -> bool| {
        let ids = functions.iter().zip(&chosen).enumerate();
        let ids = ids.filter(|(_, (info, is_it))| **is_it && is_wanted(info));
        ids.map(|(id, _)| id).collect::<Vec<usize>>()
    };
    let by_preference: [fn(&FunctionInfo) -> bool; 4] = [
        |info| info.is_frame,
        |info| !info.is_point(),
        FunctionInfo::marks_frames,
        FunctionInfo::is_edge_of_frames,
    ];
    match by_preference.into_iter().map(of).find(|found| !found.is_empty()) {
        Some(found) => one_of(OPTION, pattern, functions, &found),
        None => bail!(
            "{OPTION}: {} fits messages, plots or other points only, and these have no durations",
            clean(pattern)
        ),
    }
}

/// Returns the function with which the program marks frames, if there is one only.
pub(crate) fn marked_frame(functions: &[FunctionInfo]) -> anyhow::Result<FuncId> {
    let marks: Vec<usize> =
        (0..functions.len()).filter(|id| functions[*id].marks_frames()).collect();
    if let [mark] = marks[..] {
        return Ok(FuncId(mark as u32));
    }
    ensure!(
        !marks.is_empty(),
        "the recording has no frame marks: name with --frame the function or the USDT probe whose calls are \
         frames"
    );
    let names: Vec<String> =
        marks.iter().map(|id| clean(functions[*id].full()).into_owned()).collect();
    bail!(
        "the recording has frames of {} names: choose one with --frame: {}",
        marks.len(),
        first_few(NAMED, &names)
    )
}

fn one_of(
    option: &str,
    pattern: &str,
    functions: &[FunctionInfo],
    found: &[usize],
) -> anyhow::Result<FuncId> {
    if let [function] = found[..] {
        return Ok(FuncId(function as u32));
    }
    let name = |id: &usize| clean(functions[*id].full()).into_owned();
    let names: Vec<String> = found.iter().map(name).collect();
    bail!(
        "{option} is about one function, and {} fits {}: {}",
        clean(pattern),
        found.len(),
        first_few(NAMED, &names)
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use ctrace_core::function::FunctionKind;
    use ctrace_core::points::PointShape;

    #[test]
    fn a_frame_is_one_function() {
        let functions = ["app::draw", "app::draw_text", "ui::draw", "poll"]
            .map(|name| FunctionInfo::new(name, "program"));
        let find =
            |pattern: &str| frame_function(pattern, &functions).map_err(|error| error.to_string());
        assert_eq!(find("poll"), Ok(FuncId(3)));
        assert_eq!(find("ui::draw"), Ok(FuncId(2)));
        let error = find("draw").expect_err("two of that name");
        assert!(error.ends_with("fits 2: app::draw, ui::draw"), "{error}");
        assert!(find("render").expect_err("none").contains("none of the 4 recorded functions"));
    }

    #[test]
    fn a_frame_mark_is_meant_where_no_scope_has_the_name() {
        let point = |name: &str, point| FunctionInfo {
            point: Some(point),
            ..FunctionInfo::new(name, "program")
        };
        let (mark, plot) = (PointShape::Frame, PointShape::Plot);
        let mut functions =
            vec![point("physics", plot), point("physics", mark), point("load", plot)];
        let find = |pattern: &str, functions: &[FunctionInfo]| {
            frame_function(pattern, functions).map_err(|error| error.to_string())
        };
        assert_eq!(find("physics", &functions), Ok(FuncId(1)));
        let error = find("load", &functions).expect_err("a plot");
        assert!(error.contains("these have no durations"), "{error}");
        functions.push(point("physics", mark));
        let error = find("physics", &functions).expect_err("two marks");
        assert!(error.ends_with("fits 2: physics, physics"), "{error}");
        functions.push(FunctionInfo::new("physics", "program"));
        assert_eq!(find("physics", &functions), Ok(FuncId(4)));
        let frame = FunctionInfo { is_frame: true, ..FunctionInfo::new("physics", "program") };
        functions.push(frame);
        assert_eq!(find("physics", &functions), Ok(FuncId(5)));
    }

    #[test]
    fn a_usdt_probe_without_ends_is_meant_where_nothing_else_fits() {
        let probe =
            FunctionInfo { kind: FunctionKind::Usdt, ..FunctionInfo::new("swap", "program") };
        let pair = FunctionInfo { aliases: vec!["swap__start".into()], ..probe.clone() };
        let mark =
            FunctionInfo { point: Some(PointShape::Frame), ..FunctionInfo::new("swap", "program") };
        let mut functions = vec![FunctionInfo::new("poll", "program"), probe];
        for (more, expected) in [(None, 1), (Some(mark), 2), (Some(pair), 3)] {
            functions.extend(more);
            let found = frame_function("swap", &functions).map_err(|error| error.to_string());
            assert_eq!(found, Ok(FuncId(expected)));
        }
    }

    #[test]
    fn the_only_frames_that_the_program_marks_need_no_name() {
        let mark = |name: &str| FunctionInfo {
            point: Some(PointShape::Frame),
            ..FunctionInfo::new(name, "program")
        };
        let mut functions = vec![FunctionInfo::new("poll", "program")];
        let find =
            |functions: &[FunctionInfo]| marked_frame(functions).map_err(|error| error.to_string());
        let error = find(&functions).expect_err("no marks");
        assert!(error.contains("no frame marks: name with --frame"), "{error}");
        functions.push(mark("picture"));
        assert_eq!(find(&functions), Ok(FuncId(1)));
        functions.push(FunctionInfo { is_frame: true, ..FunctionInfo::new("physics", "program") });
        let error = find(&functions).expect_err("two names");
        assert!(error.ends_with("2 names: choose one with --frame: picture, physics"), "{error}");
    }
}
