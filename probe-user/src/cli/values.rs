//! Value parsers of options, and the names in the registries.

pub(crate) use crate::values::*;

use crate::ui::ViewName;
use clap::{
    Arg, Command, Error,
    builder::{PossibleValue, PossibleValuesParser, StringValueParser, TypedValueParser},
};
use ctrace_core::{
    diff::Metric,
    formats::Format,
    report::{By, numbers::NumberId},
};
use std::{convert::Infallible, ffi::OsStr};

/// Parses the rule by which a report is divided into parts.
pub(crate) fn by(text: &str) -> Result<By, String> {
    let value = || {
        let (function, argument) = by_value(text)?;
        Some(By::Value { function: function.into(), argument: argument.into() })
    };
    // As for `--arg`, with the type of the value.
    if let Some((function, typed)) = text.split_once(": ")
        && let Some((name, _)) = typed.split_once(':').filter(|(_, rest)| !rest.starts_with(':'))
    {
        let name = name.split('=').next().unwrap_or(name);
        let is_number = name.bytes().all(|byte| byte.is_ascii_digit());
        let arg = if is_number { "arg" } else { "" };
        return Err(format!(
            "give the name of the value without its type: '{function}: {arg}{name}'"
        ));
    }
    match text {
        "process" => Ok(By::Process),
        "exe" => Ok(By::Exe),
        "cgroup" => Ok(By::Cgroup),
        "thread" => Ok(By::Thread),
        "name" => Ok(By::Name),
        _ => value().ok_or_else(|| {
            "give process, exe, cgroup, thread or name, or the calls of a function by an argument or by their \
             result, as in 'handle: key' and 'handle: retval'"
                .into()
        }),
    }
}

/// Refuses what judges frames of recordings, and says how it is done.
pub(super) fn for_recordings(limit: &str) -> Result<Infallible, String> {
    Err(format!(
        "it judges a recording: `ctrace record`, then `ctrace report --frame NAME --fail-frames-over {limit}`"
    ))
}

/// Accepts the compared metrics, from the registry of numbers.
#[derive(Clone)]
pub(crate) struct Metrics;

impl Metrics {
    fn values() -> impl Iterator<Item = PossibleValue> {
        Metric::all().map(|metric| {
            let aliases = metric.number().number().aliases;
            PossibleValue::new(metric.name()).aliases(aliases).help(metric.help())
        })
    }
}

impl TypedValueParser for Metrics {
    type Value = Metric;

    fn parse_ref(
        &self,
        command: &Command,
        arg: Option<&Arg>,
        value: &OsStr,
    ) -> Result<Metric, Error> {
        let is_number = value.to_str().and_then(NumberId::named).is_some();
        // A number that is no metric gets the reason, another word the closest name.
        if !is_number {
            PossibleValuesParser::new(Self::values()).parse_ref(command, arg, value)?;
        }
        let parser = StringValueParser::new().try_map(|name| name.parse::<Metric>());
        parser.parse_ref(command, arg, value)
    }

    fn possible_values(&self) -> Option<Box<dyn Iterator<Item = PossibleValue> + '_>> {
        Some(Box::new(Self::values()))
    }
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
    let formats = Format::ALL.iter();
    PossibleValuesParser::new(
        formats.map(|format| PossibleValue::new(format.name).help(format.help)),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_named() {
        let value = |function: &str, argument: &str| {
            Ok(By::Value { function: function.into(), argument: argument.into() })
        };
        assert_eq!(by("thread"), Ok(By::Thread));
        assert_eq!(by("ns::handle: req->len"), value("ns::handle", "req->len"));
        assert_eq!(by("app:query:arg0"), value("app:query", "arg0"));
        let typed = by("python:function: 1:str");
        assert!(typed.is_err_and(|why| why.ends_with("'python:function: arg1'")));
        assert!(by("f: key=0:str").is_err_and(|why| why.ends_with("'f: key'")));
        for text in ["threads", "ns::handle", ": key", "handle: ", ""] {
            assert!(by(text).is_err(), "{text}");
        }
    }
}
