//! The texts at the ends of lines: how a function, a USDT probe or a marker is traced, and what belongs to it.

use crate::{
    session::budget::markers::MarkerCost,
    target::{
        list::ListRow,
        markers::MarkerSite,
        place::{Refusal, explain},
        plan::Placement,
    },
    ui::text::{first_of, names::of_source},
};

/// Returns the reason why a USDT probe is not traced, its part in a call, and its arguments.
pub(super) fn usdt_text(
    row: &ListRow,
    placement: Option<&Result<Placement, Refusal>>,
    detailed: bool,
) -> Option<String> {
    let refusal = placement.filter(|placement| placement.is_err()).map(explain);
    let call = row.call.as_ref().map(|(call, is_start)| {
        let verb = if *is_start { "begins" } else { "ends" };
        format!("{verb} calls of {call}")
    });
    let arguments = (detailed && !row.arguments.is_empty()).then_some(&row.arguments);
    let arguments = arguments.map(|arguments| format!("arguments: {arguments}"));
    let texts: Vec<String> = refusal.into_iter().chain(call).chain(arguments).collect();
    (!texts.is_empty()).then(|| texts.join("; "))
}

/// Returns how a function is traced, its arguments if they are known, and what is inlined into it.
pub(super) fn function_text(row: &ListRow, placement: &Result<Placement, Refusal>) -> String {
    let mut text = explain(placement);
    if !row.arguments.is_empty() && placement.is_ok() {
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
