//! Applies SELECT to the functions of a recording, with the same patterns.

use super::{nearest::nearest, pattern::Pattern, select::Patterns};
use ctrace_core::function::{FunctionInfo, FunctionKind};

/// Returns which functions are chosen, by id. Without patterns, all but the excluded ones are. A
/// pattern for functions also finds markers and USDT probes of that name.
pub(crate) fn choose(
    functions: &[FunctionInfo],
    patterns: &Patterns<'_>,
) -> anyhow::Result<Vec<bool>> {
    let mut chosen = vec![
        patterns.functions.is_empty()
            && patterns.usdt.is_empty()
            && patterns.markers.is_empty();
        functions.len()
    ];
    let kinds = [
        (patterns.functions, None),
        (patterns.usdt, Some(FunctionKind::Usdt)),
        (patterns.markers, Some(FunctionKind::Marker)),
    ];
    for (texts, kind) in kinds {
        for text in texts {
            let pattern = Pattern::parse(text)?;
            let mut found = false;
            for (function, chosen) in functions.iter().zip(&mut chosen) {
                if kind.is_none_or(|kind| kind == function.kind)
                    && pattern.matches_recorded(function)
                {
                    (*chosen, found) = (true, true);
                }
            }
            if !found {
                anyhow::bail!("{}", not_found(text, &pattern, functions));
            }
        }
    }
    for text in patterns.exclude {
        let pattern = Pattern::parse(text)?;
        for (function, chosen) in functions.iter().zip(&mut chosen) {
            *chosen &= !pattern.matches_recorded(function);
        }
    }
    Ok(chosen)
}

fn not_found(text: &str, pattern: &Pattern, functions: &[FunctionInfo]) -> String {
    let near = nearest(&pattern.stem, functions.iter().map(|function| &*function.name), 3);
    let near = match near.as_slice() {
        [] => String::new(),
        names => format!("; near it: {}", names.join(", ")),
    };
    format!("none of the {} recorded functions matches `{text}`{near}", functions.len())
}
