//! The rows of `ctrace list`: everything that can be traced, as data.

use super::markers::MarkerSite;
use super::names::demangle::{is_part, without_suffix};
use super::names::home::Home;
use super::object::Object;
use super::select::naming::Naming;
use super::select::{Match, Selection};
use ctrace_core::function::{FunctionKind, ValueInfo, ValueKind};
use ctrace_core::marker::Carried;
use ctrace_core::points::PointShape;
use std::collections::HashMap;
use std::sync::Arc;

/// A function, one site of a USDT probe, or a marker scope.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListRow {
    pub kind: FunctionKind,
    /// The name of a function as reports show it, or that of a USDT probe or marker scope.
    pub name: Arc<str>,
    /// USDT provider or group of markers.
    pub group: Option<Arc<str>>,
    pub aliases: Vec<Arc<str>>,
    /// The object's file name.
    pub object: Arc<str>,
    pub file: Option<Arc<str>>,
    pub line: Option<u32>,
    /// For a marker scope, the address of its first entry.
    pub address: u64,
    pub file_offset: u64,
    /// `None` for a USDT site and a marker scope.
    pub size: Option<u64>,
    /// Indices of the object and of the function, probe or scope in what was searched.
    pub object_index: usize,
    pub index: usize,
    /// The index of a USDT probe's site.
    pub site: usize,
    /// The places of a USDT site's arguments, as in its note; the names and types of a function's,
    /// once they are looked for; those of the values of a marker.
    pub arguments: Box<str>,
    /// The names of functions with inlined code in a function, once they are looked for.
    pub inlined: Vec<String>,
    /// For a USDT probe that is part of a pair, the name of the call and whether it begins it.
    pub call: Option<(Arc<str>, bool)>,
    /// The sites of a marker scope.
    pub marker_sites: Vec<MarkerSite>,
    /// The shape of a marker that is no scope.
    pub point: Option<PointShape>,
    /// The contents that a marker writes with each entry, a name that is known only then included.
    pub carried: Carried,
}

/// Returns the rows of a selection, of functions those first that the user wrote. `with_lines` also
/// reads lines from the debug information.
pub fn list_functions(objects: &[Object], selection: &Selection, with_lines: bool) -> Vec<ListRow> {
    let mut rows = Vec::with_capacity(selection.len());
    let mut naming = Naming::default();
    naming.give(objects, selection);
    for selected in &selection.functions {
        let object = &objects[selected.object];
        let function = &object.functions()[selected.index];
        let source = with_lines.then(|| object.line_of(function)).flatten();
        rows.push(ListRow {
            kind: FunctionKind::Function,
            name: naming.of(function).name,
            group: None,
            aliases: function.aliases().to_vec(),
            object: Arc::clone(object.name()),
            line: source.as_ref().and_then(|source| source.line),
            file: source.map(|source| source.file),
            address: function.address,
            file_offset: function.file_offset,
            size: Some(function.size),
            object_index: selected.object,
            index: selected.index,
            site: 0,
            arguments: Box::default(),
            inlined: Vec::new(),
            call: None,
            marker_sites: Vec::new(),
            point: None,
            carried: Carried::default(),
        });
    }
    let programs = objects.iter().filter(|object| object.is_main());
    let names = programs.flat_map(|object| object.functions()).map(|function| &**function.name());
    let home = Home::of(names);
    let places = places(&rows);
    rows.sort_by_cached_key(|row| {
        let is_of_program = objects[row.object_index].is_main();
        let place = places[&(row.object_index, row.index)];
        (row.object_index, home.distance(&row.name, is_of_program), place)
    });
    let calls = calls(objects, selection);
    for selected in &selection.usdt {
        let object = &objects[selected.object];
        let probe = &object.usdt_probes()[selected.index];
        for (number, site) in probe.sites.iter().enumerate() {
            let source = with_lines.then(|| object.source_line(site.address)).flatten();
            rows.push(ListRow {
                kind: FunctionKind::Usdt,
                name: Arc::clone(&probe.name),
                group: Some(Arc::clone(&probe.provider)),
                aliases: Vec::new(),
                object: Arc::clone(object.name()),
                line: source.as_ref().and_then(|source| source.line),
                file: source.map(|source| source.file),
                address: site.address,
                file_offset: site.file_offset,
                size: None,
                object_index: selected.object,
                index: selected.index,
                site: number,
                arguments: site.arguments.clone(),
                inlined: Vec::new(),
                call: calls.get(selected).cloned(),
                marker_sites: Vec::new(),
                point: None,
                carried: Carried::default(),
            });
        }
    }
    rows.extend(selection.markers.iter().filter_map(|selected| marker(objects, selected)));
    rows
}

/// Returns where functions stand among those of their object: a part or a copy that the compiler made
/// follows its function, and parts without one are last.
fn places(rows: &[ListRow]) -> HashMap<(usize, usize), (usize, bool)> {
    let of_name: HashMap<(usize, &str), usize> =
        rows.iter().enumerate().map(|(at, row)| ((row.object_index, &*row.name), at)).collect();
    let place = |(at, row): (usize, &ListRow)| {
        let bare = without_suffix(&row.name);
        let whole = (bare != &*row.name).then(|| of_name.get(&(row.object_index, bare))).flatten();
        let place = match whole {
            Some(whole) => (*whole, true),
            None if is_part(&row.name) => (usize::MAX, true),
            None => (at, false),
        };
        ((row.object_index, row.index), place)
    };
    rows.iter().enumerate().map(place).collect()
}

/// Returns the calls that USDT probes begin (`true`) or end.
fn calls(objects: &[Object], selection: &Selection) -> HashMap<Match, (Arc<str>, bool)> {
    let mut calls = HashMap::new();
    for object in 0..objects.len() {
        for pair in selection.pairs(objects, object) {
            for index in pair.parts() {
                let call = (Arc::clone(&pair.name), index == pair.start);
                calls.insert(Match { object, index }, call);
            }
        }
    }
    calls
}

fn marker(objects: &[Object], selected: &Match) -> Option<ListRow> {
    let object = &objects[selected.object];
    let scope = &object.markers().scopes[selected.index];
    let first = scope.sites.first()?;
    let carried = Carried::of(&scope.values);
    Some(ListRow {
        kind: FunctionKind::Marker,
        name: Arc::clone(&scope.name),
        group: scope.group.clone(),
        aliases: Vec::new(),
        object: Arc::clone(object.name()),
        file: scope.file.clone(),
        line: scope.line,
        address: first.address,
        file_offset: object.layout().file_offset(first.address)?,
        size: None,
        object_index: selected.object,
        index: selected.index,
        site: 0,
        arguments: arguments(&scope.values),
        inlined: Vec::new(),
        call: None,
        marker_sites: scope.sites.clone(),
        point: scope.point,
        carried: Carried { has_text: scope.is_named_late || carried.has_text, ..carried },
    })
}

/// Returns the names and types of the values that come with the entries of a marker.
fn arguments(values: &[ValueInfo]) -> Box<str> {
    let each = values.iter().map(|value| {
        let kind = match value.kind {
            ValueKind::Signed => "i64",
            ValueKind::Float => "f64",
            ValueKind::Bool => "bool",
            ValueKind::Text | ValueKind::LongText => "str",
            ValueKind::Unsigned | ValueKind::Pointer | ValueKind::Char => "u64",
        };
        match &value.unit {
            Some(unit) => format!("{}: {kind} in {unit}", value.name),
            None => format!("{}: {kind}", value.name),
        }
    });
    each.collect::<Vec<_>>().join(", ").into()
}
