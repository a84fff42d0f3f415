//! Finds the one function that an option names among those that were traced.

use crate::{
    target::select::{Patterns, recorded::choose},
    ui::text::first_few,
};
use anyhow::bail;
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
    if let [function] = found[..] {
        return Ok(FuncId(function as u32));
    }
    let name = |id: &usize| clean(functions[*id].full()).into_owned();
    let names: Vec<String> = found.iter().map(name).collect();
    bail!(
        "{option} is about the calls of one function, and {} fits {}: {}",
        clean(pattern),
        found.len(),
        first_few(NAMED, &names)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_frame_is_one_function() {
        let functions = ["app::draw", "app::draw_text", "ui::draw", "poll"]
            .map(|name| FunctionInfo::new(name, "program"));
        let find = |pattern: &str| {
            one_function("--frame", pattern, &functions).map_err(|error| error.to_string())
        };
        assert_eq!(find("poll"), Ok(FuncId(3)));
        assert_eq!(find("ui::draw"), Ok(FuncId(2)));
        let error = find("draw").expect_err("two of that name");
        assert!(error.ends_with("fits 2: app::draw, ui::draw"), "{error}");
        assert!(find("render").expect_err("none").contains("none of the 4 recorded functions"));
    }
}
