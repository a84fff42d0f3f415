//! Parses the file into a [`Config`] by the registry of keys. A mistake has its place.

use super::{
    Config, Daemon, FLEET, Fleet, METRICS, Metrics, Mistake, PPROF, Pprof, Target,
    keys::{DAEMON, Key, TARGET},
    value::TomlValue,
};
use std::{collections::HashSet, ops::Range};
use toml::{
    Spanned,
    de::{DeTable, DeValue},
};

/// A mistake and its byte range.
type Fault = (Range<usize>, String);

const TABLES: [&str; 6] = ["daemon", "metrics", "pprof", "fleet", "defaults", "target"];

pub(super) fn parse(text: &str) -> Result<Config, Mistake> {
    let place = |(span, what): Fault| {
        let before = &text[..span.start.min(text.len())];
        let start = before.rfind('\n').map_or(0, |at| at + 1);
        let line = before.matches('\n').count() + 1;
        Mistake { line, column: before[start..].chars().count() + 1, what }
    };
    let document = DeTable::parse(text).map_err(|error| {
        place((error.span().unwrap_or(0..0), error.message().replace('\n', ", ")))
    })?;
    read(document.get_ref()).map_err(place)
}

fn read(document: &DeTable<'_>) -> Result<Config, Fault> {
    for key in document.keys() {
        let name: &str = key.get_ref();
        if !TABLES.contains(&name) {
            // A target's key outside of a target is the likeliest mistake.
            return Err((key.span(), unknown("table", name, TABLES.into_iter())));
        }
    }
    let table = |name: &str| match document.get(name) {
        Some(value) => as_table(value).map(Some),
        None => Ok(None),
    };
    let (daemon, metrics) = (defaults::<Daemon>(&DAEMON), defaults::<Metrics>(&METRICS));
    let (pprof, fleet) = (defaults::<Pprof>(&PPROF), defaults::<Fleet>(&FLEET));
    let mut config = Config { daemon, metrics, pprof, fleet, ..Config::default() };
    if let Some(daemon) = table("daemon")? {
        set_all(&mut config.daemon, &DAEMON, daemon)?;
    }
    if let Some(metrics) = table("metrics")? {
        set_all(&mut config.metrics, &METRICS, metrics)?;
    }
    if let Some(pprof) = table("pprof")? {
        set_all(&mut config.pprof, &PPROF, pprof)?;
        config.pprof.check().map_err(|(key, what)| {
            (pprof.get_key_value(key).map_or(0..0, |(key, _)| key.span()), what)
        })?;
    }
    if let Some(fleet) = table("fleet")? {
        set_all(&mut config.fleet, &FLEET, fleet)?;
        let place = fleet.get_key_value("store").map_or(0..0, |(key, _)| key.span());
        config.fleet.check().map_err(|what| (place, what))?;
    }
    let mut common = defaults::<Target>(&TARGET);
    if let Some(given) = table("defaults")? {
        set_all(&mut common, &TARGET, given)?;
        if let Some((key, _)) = given.get_key_value("id") {
            return Err((key.span(), "`id` belongs into a [[target]]".to_owned()));
        }
    }
    config.common = common.clone();
    let Some(targets) = document.get("target") else { return Ok(config) };
    let list = targets.get_ref().as_array().ok_or_else(|| {
        (targets.span(), "targets are a list: write [[target]] with two brackets".to_owned())
    })?;
    let mut ids = HashSet::new();
    for entry in list.iter() {
        let mut target = common.clone();
        set_all(&mut target, &TARGET, as_table(entry)?)?;
        target.select_groups();
        if target.id.0.is_empty() {
            return Err((entry.span(), "this target needs a name: id = \"…\"".to_owned()));
        }
        if !ids.insert(target.id.clone()) {
            return Err((entry.span(), format!("there is a target `{}` already", target.id)));
        }
        if target.matching.is_empty() {
            let what = format!(
                "target `{}` matches nothing: give exe, name, command, user, cgroup, unit or \
                 container",
                target.id
            );
            return Err((entry.span(), what));
        }
        check(&target).map_err(|what| (entry.span(), format!("target `{}`: {what}", target.id)))?;
        config.targets.push(target);
    }
    Ok(config)
}

fn as_table<'a>(value: &'a Spanned<DeValue<'a>>) -> Result<&'a DeTable<'a>, Fault> {
    let table = value.get_ref().as_table();
    table.ok_or_else(|| (value.span(), "a table is expected here".to_owned()))
}

/// Returns the defaults of the registry.
fn defaults<T: Default>(keys: &[Key<T>]) -> T {
    let mut made = T::default();
    for key in keys {
        let text = format!("{} = {}", key.name, key.default);
        if let Ok(document) = DeTable::parse(&text)
            && let Some(value) = document.get_ref().get(key.name)
        {
            let done = (key.set)(&mut made, TomlValue(value.get_ref()));
            debug_assert!(done.is_ok(), "{}: {done:?}", key.name);
        }
    }
    made
}

fn set_all<T>(into: &mut T, keys: &[Key<T>], table: &DeTable<'_>) -> Result<(), Fault> {
    for (name, value) in table {
        let text: &str = name.get_ref();
        let Some(key) = keys.iter().find(|key| key.name == text) else {
            return Err((name.span(), unknown("key", text, keys.iter().map(|key| key.name))));
        };
        (key.set)(into, TomlValue(value.get_ref())).map_err(|what| {
            let such = key.example.unwrap_or(key.default);
            (value.span(), format!("{0}: {what}; such as {0} = {such}", key.name))
        })?;
    }
    Ok(())
}

fn unknown<'a>(what: &str, name: &str, known: impl Iterator<Item = &'a str>) -> String {
    let known: Vec<&str> = known.collect();
    let nearest = known
        .iter()
        .max_by(|a, b| strsim::jaro_winkler(a, name).total_cmp(&strsim::jaro_winkler(b, name)));
    match nearest {
        Some(nearest) => format!("there is no {what} `{name}`; the nearest is `{nearest}`"),
        None => format!("there is no {what} `{name}`"),
    }
}

/// Checks combinations of keys that are valid one by one.
fn check(target: &Target) -> Result<(), String> {
    let text = |error: anyhow::Error| format!("{error:#}");
    let what = &target.what;
    crate::session::run::setup::planner(&what.select, what.most, what.probes.returns)
        .map_err(text)?;
    target.reports.view_options().map_err(text)?;
    target.flight.too_slow().map_err(text).map(drop)
}
