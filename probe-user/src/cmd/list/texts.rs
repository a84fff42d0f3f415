//! The texts at the ends of lines: how a function, a USDT probe or a marker is traced, and what belongs to it.

use crate::{
    session::budget::markers::MarkerCost,
    target::{
        list::ListRow,
        markers::MarkerSite,
        place::{Refusal, explain},
        plan::{CostClass, Placement},
    },
    ui::text::{first_of, names::of_source},
};

/// The probes of a row.
#[derive(Debug)]
pub(super) enum How {
    /// Those at the entry and at the end of a function.
    Calls(Placement),
    /// The one at a site of a USDT probe.
    Hits {
        cost: CostClass,
        at: u64,
        /// The program computes the arguments only while a tracer holds its counter up.
        has_semaphore: bool,
    },
}

impl How {
    /// Returns the cost of the probe at the entry or at the site.
    pub(super) fn entry_cost(&self) -> &'static str {
        match self {
            Self::Calls(placement) => placement.entry.cost.name(),
            Self::Hits { cost, .. } => cost.name(),
        }
    }
}

/// Puts the probes of a row, or the lack of them, into words.
pub(super) fn how_text(how: &Result<How, Refusal>) -> String {
    match how {
        Ok(How::Calls(placement)) => explain(Ok(placement)),
        Ok(How::Hits { cost, at, has_semaphore }) => {
            let semaphore = if *has_semaphore { ", with a semaphore" } else { "" };
            format!("probe {}, in the code at {at:#x}{semaphore}", cost.name())
        }
        Err(refusal) => explain(Err(refusal)),
    }
}

/// Returns the cost and the place of a USDT probe with `detailed`, or why it is not traced; its part in a
/// call, and its arguments.
pub(super) fn usdt_text(
    row: &ListRow,
    how: Option<&Result<How, Refusal>>,
    detailed: bool,
) -> Option<String> {
    let probe = how.filter(|how| detailed || how.is_err()).map(how_text);
    let call = row.call.as_ref().map(|(call, is_start)| {
        let verb = if *is_start { "begins" } else { "ends" };
        format!("{verb} calls of {call}")
    });
    let arguments = (detailed && !row.arguments.is_empty()).then_some(&row.arguments);
    let arguments = arguments.map(|arguments| format!("arguments: {arguments}"));
    let texts: Vec<String> = probe.into_iter().chain(call).chain(arguments).collect();
    (!texts.is_empty()).then(|| texts.join("; "))
}

/// Returns how a function is traced, its arguments if they are known, and what is inlined into it.
pub(super) fn function_text(row: &ListRow, how: &Result<How, Refusal>) -> String {
    let mut text = how_text(how);
    if !row.arguments.is_empty() && how.is_ok() {
        text += &format!("; arguments: {}", row.arguments);
    }
    if !row.inlined.is_empty() {
        text += &format!("; holds code of inlined {}", inlined_text(&row.inlined));
    }
    text
}

/// Names the first of some inlined functions.
fn inlined_text(names: &[String]) -> String {
    const SHOWN: usize = 4;
    const ROOM: usize = 50;
    let shown: Vec<String> = names.iter().take(SHOWN).map(|name| of_source(name, ROOM)).collect();
    let more = if names.len() > SHOWN { " and others" } else { "" };
    shown.join(", ") + more
}

/// Returns what a point of a marker tells of, and with `detailed` the cost of a marker, its places in
/// the code and its values.
pub(super) fn marker_text(row: &ListRow, detailed: bool) -> Option<String> {
    let point = row.point.map(|point| match point.level() {
        Some(level) => format!("{}, {}", point.name(), level.name()),
        None => point.name().to_owned(),
    });
    let places =
        detailed.then(|| format!("{}; {}", cost_text(row), places_text(&row.marker_sites)));
    let values = (detailed && !row.arguments.is_empty()).then_some(&row.arguments);
    let values = values.map(|values| format!("values: {values}"));
    let texts: Vec<String> = point.into_iter().chain(places).chain(values).collect();
    (!texts.is_empty()).then(|| texts.join("; "))
}

/// Describes the cost of a marker.
pub(super) fn cost_text(row: &ListRow) -> String {
    MarkerCost::new(row.point.is_some(), row.carried).text()
}

/// Returns the places of a marker in the code.
fn places_text(sites: &[MarkerSite]) -> String {
    const SHOWN: usize = 4;
    let places: Vec<String> = sites
        .iter()
        .take(SHOWN)
        .map(|site| match site.code {
            Some(code) => format!("{code:#x}"),
            None => "an unknown place".to_owned(),
        })
        .collect();
    format!("in the code at {}", first_of(&places, sites.len()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_inlined_functions_are_named() {
        let many = ["a", "b", "c", "d", "e"].map(str::to_owned);
        assert_eq!(inlined_text(&many), "a, b, c, d and others");
        assert_eq!(inlined_text(&many[..4]), "a, b, c, d");
        let long = [
            "std::__cxx11::basic_string<char, std::char_traits<char>, std::allocator<char> >::size",
            "std::vector<int, std::allocator<int> >::push_back",
        ];
        let told = inlined_text(&long.map(str::to_owned));
        assert_eq!(told, "std::string::size, std::vector<int>::push_back");
    }
}
