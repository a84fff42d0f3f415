//! Value parsers of options, and the names in the registries.

pub(crate) use crate::values::*;

use crate::ui::ViewName;
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use ctrace_core::{diff::Metric, formats::Format, recording::Joined};
use std::fs::File;

/// Accepts the compared metrics, from their registry.
pub(crate) fn metrics() -> impl TypedValueParser<Value = Metric> {
    let values = Metric::ALL.map(|metric| PossibleValue::new(metric.name()).help(metric.help()));
    PossibleValuesParser::new(values).try_map(|name| name.parse().map_err(|()| "no such metric"))
}

/// Accepts the names of the views, from their registry.
pub(crate) fn view_names() -> PossibleValuesParser {
    PossibleValuesParser::new(ViewName::all().map(|name| {
        let view = name.view();
        PossibleValue::new(view.name).help(view.help)
    }))
}

/// Accepts the names of the export formats, from their registry.
pub(crate) fn format_names() -> PossibleValuesParser {
    let formats = Format::<Joined<File>>::ALL.iter();
    PossibleValuesParser::new(
        formats.map(|format| PossibleValue::new(format.name).help(format.help)),
    )
}
