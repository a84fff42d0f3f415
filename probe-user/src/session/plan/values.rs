//! The values beside the events of USDT probes, and how each is read at each place. `call_values`
//! does the same for calls of functions.
//!
//! A probe has one list of values, whatever its places are like: a value for each argument that can
//! be read in at least one place. If a place has another number of arguments, or one that cannot be
//! read, that value is missing from its events.

use super::{absent::Absent, call_values::merge, pythons::Pythons, room::TableRoom};
use crate::{
    bpf::{CONDITIONS_LIMIT, VALUES_LIMIT},
    target::{
        object::Object,
        usdt::{
            UsdtProbe, UsdtSite,
            arguments::{Argument, Unread, count, parse},
            methods,
            provider::{Declared, ProviderFile, declared},
        },
        values::{
            abi::{Position, Type},
            asked::{AskedArgument, AskedPlace, AskedValues},
        },
    },
};
use anyhow::anyhow;
use ctrace_common::{MAX_VALUES, Operand, ValueForm, ValueSources};
use ctrace_core::function::{ValueInfo, ValueKind};
use ctrace_core::report::NOT_READ;
use std::{
    collections::{BTreeSet, HashMap},
    sync::Arc,
};

/// The reason why arguments behind the last one that is read are not.
const ROOM: &str = "only the first 12 arguments of a probe are";
const _: () = assert!(MAX_VALUES == 12);

/// The characters of an argument that a note shows.
const SHOWN: usize = 40;

/// A place of a USDT probe.
pub struct Point {
    pub site: UsdtSite,
    pub values: Option<ValueSources>,
}

/// The values of one probe.
#[derive(Debug, Default, PartialEq)]
struct Values {
    infos: Vec<ValueInfo>,
    /// The sources for each place, unless there are no values at all.
    sources: Vec<ValueSources>,
    /// A note on the values that are not read, and why.
    unread: Option<String>,
}

/// Plans the values for the plans of a target. The default reads none.
pub(crate) struct ValuePlanner {
    pub(super) reads: bool,
    /// The values of calls, in the order of the patterns that ask for them.
    pub(super) asked: Arc<[AskedValues]>,
    /// What arguments of USDT probes mean, unless their values are asked for.
    pub(super) declared: Arc<[ProviderFile]>,
    pub(super) room: TableRoom,
    /// True if methods of languages get the names that their values are.
    pub(super) names_methods: bool,
    /// The free room of the table of conditions.
    pub(super) conditions: TableRoom,
    /// The number of functions and probes that found no room.
    pub(super) without_room: usize,
    pub(super) absent: Absent,
    pub(super) pythons: Pythons,
}

impl Default for ValuePlanner {
    fn default() -> Self {
        let room = TableRoom::of(VALUES_LIMIT);
        let absent = Absent::default();
        let conditions = TableRoom::of(CONDITIONS_LIMIT);
        Self {
            reads: false,
            asked: Arc::default(),
            declared: Arc::default(),
            names_methods: false,
            room,
            conditions,
            without_room: 0,
            absent,
            pythons: Pythons::default(),
        }
    }
}

impl ValuePlanner {
    /// Plans the values of a probe at those of its places that are traced. `notes` gets a line if
    /// some are not read.
    pub(crate) fn plan(
        &mut self,
        probe: &UsdtProbe,
        sites: Vec<UsdtSite>,
        variables: &Variables,
        asked: &[usize],
        notes: &mut Vec<String>,
    ) -> anyhow::Result<(Vec<ValueInfo>, Vec<Point>)> {
        let asked = asked.iter().filter_map(|number| self.asked.get(*number));
        let (asked, _) = merge(asked)
            .map_err(|error| anyhow!("the values of `{}`: {error}", probe.full_name()))?;
        let found = match (self.reads, asked.is_empty()) {
            (true, true) => {
                let declared = declared(&self.declared, probe).unwrap_or_else(|| Ok(Vec::new()));
                let declared = declared.unwrap_or_else(|other| {
                    notes.push(format!("{}: {other}", probe.full_name()));
                    Vec::new()
                });
                Values::of(&sites, variables, &declared)
            }
            (true, false) => Values::asked(&sites, variables, &asked),
            (false, _) => Values::default(),
        };
        notes.extend(found.unread.as_ref().map(|why| format!("{}: {why}", probe.full_name())));
        Ok(self.at_sites(found, sites))
    }

    /// Plans the values that name each call of a pair, if it is one that tells of methods, and nobody asks
    /// for its values. Returns them and what stands between them in a name.
    pub(super) fn plan_names(
        &mut self,
        (probe, call): (&UsdtProbe, &str),
        sites: &[UsdtSite],
        variables: &Variables,
        asked: &[usize],
    ) -> Option<(&'static str, Vec<ValueInfo>, Vec<Point>)> {
        let is_asked = !asked.is_empty() || declared(&self.declared, probe).is_some();
        if !self.names_methods || is_asked {
            return None;
        }
        let of = methods::named(&probe.provider, call)?;
        let found = Values::asked(sites, variables, &of.texts());
        // Some texts of it would be another name.
        let whole = Some(found).filter(|found| found.unread.is_none())?;
        let (infos, points) = self.at_sites(whole, sites.to_vec());
        (!infos.is_empty()).then_some((of.between, infos, points))
    }

    /// Takes the room for values, and spreads them over the places.
    fn at_sites(&mut self, found: Values, sites: Vec<UsdtSite>) -> (Vec<ValueInfo>, Vec<Point>) {
        let fits = self.has_room(found.sources.len());
        let infos = if fits { found.infos } else { Vec::new() };
        let mut sources = found.sources.into_iter().filter(|_| fits);
        let points = sites.into_iter().map(|site| Point { site, values: sources.next() });
        (infos, points.collect())
    }

    /// Returns whether programs may read values. `usdt`: USDT probes are chosen, which have some.
    pub(super) fn reads_some(&self, usdt: bool) -> bool {
        let reads = self.reads && (usdt || !self.asked.is_empty());
        reads || usdt && self.names_methods || self.asks_for_conditions()
    }

    pub(super) fn asks_for_conditions(&self) -> bool {
        !self.asked.iter().all(AskedValues::shows)
    }

    /// Returns whether what has this number asks for values to show, and not for a condition.
    pub(super) fn shows(&self, number: usize) -> bool {
        self.asked.get(number).is_some_and(AskedValues::shows)
    }

    /// Returns whether what has this number reads arguments, and not only a result.
    pub(super) fn reads_arguments(&self, number: usize) -> bool {
        let reads = |it: &AskedValues| !it.arguments.is_empty() || it.condition.is_some();
        self.asked.get(number).is_some_and(reads)
    }

    /// Takes room in the kernel's table, or counts a probe without room.
    pub(super) fn has_room(&mut self, elements: usize) -> bool {
        let fits = self.room.take(elements);
        self.without_room += usize::from(!fits);
        fits
    }

    /// Finds the variables that the chosen probes need.
    pub(crate) fn variables<'a>(
        &self,
        object: &Object,
        probes: impl Iterator<Item = &'a UsdtProbe>,
    ) -> Variables {
        match self.reads || self.names_methods {
            true => Variables::of(object, probes),
            false => Variables::default(),
        }
    }

    /// Returns a note for the report if probes found no room since the last time.
    pub(crate) fn take_note(&mut self) -> Option<String> {
        let probes = std::mem::take(&mut self.without_room);
        (probes > 0).then(|| {
            format!(
                "the values of {probes} functions and USDT probes are {NOT_READ}: together they have \
                 more than {} places with values; select fewer",
                self.room.limit()
            )
        })
    }
}

/// The variables of an object that its notes name.
#[derive(Default)]
pub(crate) struct Variables(HashMap<String, u64>);

impl Variables {
    fn of<'a>(object: &Object, probes: impl Iterator<Item = &'a UsdtProbe>) -> Self {
        let arguments = probes.flat_map(|probe| &probe.sites).flat_map(|it| parse(&it.arguments));
        let sources = arguments.filter_map(|argument| argument.source.ok());
        let names: BTreeSet<&str> = sources.filter_map(|source| source.symbol).collect();
        Self(if names.is_empty() { HashMap::new() } else { object.variables(&names) })
    }

    fn number(&self, site: &UsdtSite, argument: &Argument<'_>) -> Result<Number, Unread> {
        let source = argument.source?;
        let operand = source.operand(site.address, |name| self.0.get(name).copied())?;
        Ok(Number { operand, is_float: source.is_float })
    }
}

/// A number at one place.
#[derive(Clone, Copy)]
struct Number {
    operand: Operand,
    is_float: bool,
}

impl Values {
    /// Returns the values of these arguments, read as these types.
    fn asked(sites: &[UsdtSite], variables: &Variables, asked: &[AskedArgument]) -> Self {
        let parsed: Vec<Vec<Argument<'_>>> =
            sites.iter().map(|site| parse(&site.arguments)).collect();
        let mut values = Self::default();
        let mut sources = vec![Vec::new(); sites.len()];
        let mut unread = Vec::new();
        let mut lengths = Vec::new();
        for AskedArgument { name, place, length } in asked {
            let AskedPlace::At(Position::Register(place), of) = *place else { continue };
            let place = usize::from(place);
            let read = sites.iter().zip(&parsed).map(|(site, arguments)| {
                let argument = arguments.get(place).ok_or(Unread::Missing)?;
                let number = variables.number(site, argument)?;
                let is_alike = number.is_float == of.is_float();
                of.of_note(number.operand).filter(|_| is_alike).ok_or(Unread::OtherType)
            });
            let read: Vec<Result<_, Unread>> = read.collect();
            let text = parsed.iter().find_map(|it| it.get(place)).map_or("", |it| it.text);
            unread.extend(what_is_unread(place, text, &read));
            if read.iter().all(Result::is_err) {
                continue;
            }
            for (sources, read) in sources.iter_mut().zip(read) {
                sources.push(read.unwrap_or(of.nowhere()));
            }
            lengths.push(length.map(usize::from));
            values.infos.push(ValueInfo::new(name.as_str(), of.kind()));
        }
        values.add_lengths(lengths, sites, &parsed, variables, &mut sources, &mut unread);
        values.finish(sources, unread)
    }

    /// Returns the values of all arguments, with the names and types that are declared and fit. The
    /// length of a text is none of them.
    fn of(sites: &[UsdtSite], variables: &Variables, declared: &[Declared]) -> Self {
        let parsed: Vec<Vec<Argument<'_>>> =
            sites.iter().map(|site| parse(&site.arguments)).collect();
        let arguments = parsed.iter().map(Vec::len).max().unwrap_or(0);
        let mut values = Self::default();
        let mut sources = vec![Vec::new(); sites.len()];
        let mut unread = Vec::new();
        let of_texts: Vec<usize> = declared.iter().filter_map(|it| it.length).collect();
        let mut lengths = Vec::new();
        for place in (0..arguments).filter(|place| !of_texts.contains(place)) {
            let numbers = sites.iter().zip(&parsed).map(|(site, arguments)| {
                let argument = arguments.get(place).ok_or(Unread::Missing)?;
                variables.number(site, argument)
            });
            let numbers = of_one_type(numbers.collect());
            let text = parsed.iter().find_map(|it| it.get(place)).map_or("", |it| it.text);
            unread.extend(what_is_unread(place, text, &numbers));
            let Declared { name, of, length } = declared.get(place).cloned().unwrap_or_default();
            let value = match of.filter(|_| numbers.iter().any(Result::is_ok)) {
                Some(of) => Some(declared_value(of, &numbers, &mut sources)),
                None => value(&numbers, &mut sources),
            };
            let name = name.unwrap_or_else(|| format!("arg{place}").into());
            if let Some(kind) = value {
                values.infos.push(ValueInfo::new(name, kind));
                lengths.push(length);
            }
        }
        unread.extend(beyond_the_last(sites));
        values.add_lengths(lengths, sites, &parsed, variables, &mut sources, &mut unread);
        values.finish(sources, unread)
    }

    /// Adds the lengths of texts, in the order of these: words behind the values that are shown.
    fn add_lengths(
        &mut self,
        lengths: Vec<Option<usize>>,
        sites: &[UsdtSite],
        parsed: &[Vec<Argument<'_>>],
        variables: &Variables,
        sources: &mut [Vec<(Operand, ValueForm)>],
        unread: &mut Vec<String>,
    ) {
        let first = self.infos.len() as u8;
        let infos = self.infos.iter_mut().zip(lengths);
        let with_length = infos.filter_map(|(info, place)| Some((info, place?)));
        for (next, (info, place)) in (first..).zip(with_length) {
            let read = sites.iter().zip(parsed).map(|(site, arguments)| {
                let argument = arguments.get(place).ok_or(Unread::Missing)?;
                let number = variables.number(site, argument)?;
                if number.is_float { Err(Unread::FloatLength) } else { Ok(number.operand) }
            });
            let read: Vec<Result<Operand, Unread>> = read.collect();
            unread.extend(what_is_unread(place, "", &read));
            for (sources, read) in sources.iter_mut().zip(read) {
                sources.push((read.unwrap_or(Operand::NOWHERE), ValueForm::Word));
            }
            info.length_at = Some(next);
        }
    }

    fn finish(mut self, sources: Vec<Vec<(Operand, ValueForm)>>, unread: Vec<String>) -> Self {
        if !self.infos.is_empty() {
            self.sources = sources.iter().map(|sources| ValueSources::new(sources)).collect();
        }
        if !unread.is_empty() {
            self.unread = Some(unread.join("; "));
        }
        self
    }
}

/// Adds the source of an argument of this type at each place.
fn declared_value(
    of: Type,
    numbers: &[Result<Number, Unread>],
    sources: &mut [Vec<(Operand, ValueForm)>],
) -> ValueKind {
    for (sources, number) in sources.iter_mut().zip(numbers) {
        let source = number.ok().and_then(|number| of.declared(number.operand, number.is_float));
        sources.push(source.unwrap_or(of.nowhere()));
    }
    of.kind()
}

/// Returns the type of an argument as its notes have it, if it is read anywhere, and adds its source at
/// each place.
fn value(
    numbers: &[Result<Number, Unread>],
    sources: &mut [Vec<(Operand, ValueForm)>],
) -> Option<ValueKind> {
    let mut readable = numbers.iter().flatten();
    let first = readable.clone().next()?;
    // Where places differ, a negative number at one of them must not become a huge one.
    let is_signed = readable.any(|number| number.operand.signed != 0);
    let kind = match is_signed {
        _ if first.is_float => ValueKind::Float,
        true => ValueKind::Signed,
        false => ValueKind::Unsigned,
    };
    for (sources, number) in sources.iter_mut().zip(numbers) {
        let operand = number.map_or(Operand::NOWHERE, |number| number.operand);
        let is_single = number.is_ok_and(|number| number.is_float) && operand.size == 4;
        sources.push((operand, if is_single { ValueForm::Single } else { ValueForm::Word }));
    }
    Some(kind)
}

/// Leaves out floating-point numbers where the argument is an integer at other places: a value has
/// one type.
fn of_one_type(mut numbers: Vec<Result<Number, Unread>>) -> Vec<Result<Number, Unread>> {
    if numbers.iter().flatten().any(|number| !number.is_float) {
        let floats = numbers.iter_mut().filter(|number| number.is_ok_and(|it| it.is_float));
        floats.for_each(|number| *number = Err(Unread::Mixed));
    }
    numbers
}

/// Returns a note on where an argument is not read, if so, with its text at its first place.
fn what_is_unread<T>(place: usize, text: &str, numbers: &[Result<T, Unread>]) -> Option<String> {
    let reasons: Vec<&Unread> = numbers.iter().filter_map(|it| it.as_ref().err()).collect();
    let why = reasons.first()?;
    let (unread, all) = (reasons.len(), numbers.len());
    if unread < all {
        return Some(format!("arg{place} is not read at {unread} of {all} places: {why}"));
    }
    if text.is_empty() {
        return Some(format!("arg{place} is not read: {why}"));
    }
    let shown = text.char_indices().nth(SHOWN).map_or(text, |(end, _)| &text[..end]);
    let more = if shown.len() < text.len() { "…" } else { "" };
    Some(format!("arg{place} ({shown}{more}) is not read: {why}"))
}

/// Returns a note on the arguments for which there is no room, if there are any.
fn beyond_the_last(sites: &[UsdtSite]) -> Option<String> {
    let most = sites.iter().map(|site| count(&site.arguments)).max()?;
    match most.checked_sub(MAX_VALUES)? {
        0 => None,
        1 => Some(format!("arg{MAX_VALUES} is not read: {ROOM}")),
        _ => Some(format!("arg{MAX_VALUES} to arg{} are not read: {ROOM}", most - 1)),
    }
}

#[cfg(test)]
mod tests;
