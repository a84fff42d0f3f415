//! The values beside the events of USDT probes, and how each is read at each place. `call_values`
//! does the same for calls of functions.
//!
//! A probe has one list of values, whatever its places are like: a value for each argument that can
//! be read in at least one place. If a place has another number of arguments, or one that cannot be
//! read, that value is missing from its events.

use super::{absent::Absent, call_values::merge, room::TableRoom};
use crate::{
    bpf::{CONDITIONS_LIMIT, VALUES_LIMIT},
    target::{
        object::Object,
        usdt::{
            UsdtProbe, UsdtSite,
            arguments::{Argument, Unread, parse},
        },
        values::{
            abi::Position,
            asked::{AskedArgument, AskedPlace, AskedValues},
        },
    },
};
use anyhow::anyhow;
use ctrace_common::{Operand, ValueForm, ValueSources};
use ctrace_core::function::{ValueInfo, ValueKind};
use std::{
    collections::{BTreeSet, HashMap},
    sync::Arc,
};

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
    pub(super) room: TableRoom,
    /// The free room of the table of conditions.
    pub(super) conditions: TableRoom,
    /// The number of functions and probes that found no room.
    pub(super) without_room: usize,
    pub(super) absent: Absent,
}

impl Default for ValuePlanner {
    fn default() -> Self {
        let room = TableRoom::of(VALUES_LIMIT);
        let absent = Absent::default();
        let conditions = TableRoom::of(CONDITIONS_LIMIT);
        Self { reads: false, asked: Arc::default(), room, conditions, without_room: 0, absent }
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
            (true, true) => Values::of(&sites, variables),
            (true, false) => Values::asked(&sites, variables, &asked),
            (false, _) => Values::default(),
        };
        notes.extend(found.unread.map(|unread| format!("{}: {unread}", probe.full_name())));
        let fits = self.has_room(found.sources.len());
        let infos = if fits { found.infos } else { Vec::new() };
        let mut sources = found.sources.into_iter().filter(|_| fits);
        let points = sites.into_iter().map(|site| Point { site, values: sources.next() });
        Ok((infos, points.collect()))
    }

    /// Returns whether programs may read values. `usdt`: USDT probes are chosen, which have some.
    pub(super) fn reads_some(&self, usdt: bool) -> bool {
        self.reads && (usdt || !self.asked.is_empty()) || self.asks_for_conditions()
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
        match self.reads {
            true => Variables::of(object, probes),
            false => Variables::default(),
        }
    }

    /// Returns a note for the report if probes found no room since the last time.
    pub(crate) fn take_note(&mut self) -> Option<String> {
        let probes = std::mem::take(&mut self.without_room);
        (probes > 0).then(|| {
            format!(
                "the values of {probes} functions and USDT probes are not read: together they have \
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
        for AskedArgument { name, place } in asked {
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
            values.infos.push(ValueInfo::new(name.as_str(), of.kind()));
        }
        values.finish(sources, unread)
    }

    fn of(sites: &[UsdtSite], variables: &Variables) -> Self {
        let parsed: Vec<Vec<Argument<'_>>> =
            sites.iter().map(|site| parse(&site.arguments)).collect();
        let arguments = parsed.iter().map(Vec::len).max().unwrap_or(0);
        let mut values = Self::default();
        let mut sources = vec![Vec::new(); sites.len()];
        let mut unread = Vec::new();
        for place in 0..arguments {
            let numbers = sites.iter().zip(&parsed).map(|(site, arguments)| {
                let argument = arguments.get(place).ok_or(Unread::Missing)?;
                variables.number(site, argument)
            });
            let numbers = of_one_type(numbers.collect());
            let text = parsed.iter().find_map(|it| it.get(place)).map_or("", |it| it.text);
            unread.extend(what_is_unread(place, text, &numbers));
            values.infos.extend(value(place, &numbers, &mut sources));
        }
        values.finish(sources, unread)
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

/// Returns an argument's value, if it is read anywhere, and adds its source at each place.
fn value(
    place: usize,
    numbers: &[Result<Number, Unread>],
    sources: &mut [Vec<(Operand, ValueForm)>],
) -> Option<ValueInfo> {
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
    Some(ValueInfo::new(format!("arg{place}"), kind))
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

#[cfg(test)]
mod tests {
    use super::*;
    use ctrace_common::SINGLES;
    use std::sync::Arc;

    fn site(address: u64, arguments: &str) -> UsdtSite {
        UsdtSite { address, file_offset: address, semaphore: None, arguments: arguments.into() }
    }

    fn values(arguments: &[&str]) -> Values {
        let sites: Vec<_> = (0..).zip(arguments).map(|(at, text)| site(16 * at, text)).collect();
        let variables = Variables(HashMap::from([("known".to_owned(), 0x100)]));
        Values::of(&sites, &variables)
    }

    fn names(values: &Values) -> Vec<(&str, ValueKind)> {
        values.infos.iter().map(|info| (&*info.name, info.kind)).collect()
    }

    use ValueKind::{Float, Signed, Unsigned};

    #[test]
    fn what_cannot_be_read_leaves_its_number_behind() {
        let found = values(&["-4@%edi 8f@%xmm0 8@%rax"]);
        assert_eq!(names(&found), [("arg0", Signed), ("arg2", Unsigned)]);
        let [sources] = found.sources[..] else { panic!("one place") };
        assert_eq!(sources.count, 2);
        assert_eq!(sources.sources.map(|it| it.base)[..2], [7, 0]);
        let unread = "arg1 (8f@%xmm0) is not read: it is in a register that ctrace does not read";
        assert_eq!(found.unread.as_deref(), Some(unread));
    }

    #[test]
    fn arguments_are_read_as_asked() {
        let sites = [site(0, "8@%rdi 4@%esi 8f@(%rbx)"), site(16, "8@8(%rbp) 2@%ax 8f@%rbx")];
        let read = |text: &str| {
            let asked = AskedValues::arguments(&format!("p:q: {text}")).unwrap().arguments;
            Values::asked(&sites, &Variables::default(), &asked)
        };
        let found = read("key=0:str, 1:i16, 2:f64");
        let kinds = [("key", ValueKind::Text), ("arg1", Signed), ("arg2", Float)];
        assert_eq!((names(&found), found.unread.as_deref()), (kinds.to_vec(), None));
        assert!(found.sources.iter().all(ValueSources::has_texts));
        assert_eq!(found.sources[0].sources.map(|it| it.size)[..3], [8, 2, 8]);
        // The second place has two bytes only.
        let found = read("1:u32, 0:u64");
        assert_eq!(names(&found), [("arg1", Unsigned), ("arg0", Unsigned)]);
        assert_eq!(found.sources[1].sources[0].base, Operand::NOWHERE.base);
        let unread = found.unread.unwrap();
        assert!(unread.starts_with("arg1 is not read at 1 of 2 places: it is smaller"), "{unread}");
        let found = read("3:str, 2:u64");
        assert_eq!((found.infos.len(), found.sources.len()), (0, 0));
    }

    #[test]
    fn floating_point_numbers_say_their_size() {
        let found = values(&["8@%rax 4f@-4(%rbp) 8f@(%rbx)", "8@%rax 8f@%rcx -4f@(%rbx)"]);
        assert_eq!(names(&found), [("arg0", Unsigned), ("arg1", Float), ("arg2", Float)]);
        let forms: Vec<_> = found.sources.iter().map(|it| it.forms >> SINGLES).collect();
        assert_eq!(forms, [0b010, 0b100]);
        assert_eq!(found.unread, None);
    }

    #[test]
    fn a_value_has_one_type_at_all_places() {
        let found = values(&["4f@(%rax)", "-4@%edi", "8@%rax"]);
        assert_eq!(names(&found), [("arg0", Signed)]);
        let sources: Vec<_> = found.sources.iter().map(|it| (it.forms, it.sources[0])).collect();
        assert_eq!(sources[0], (0, Operand::NOWHERE));
        assert_eq!((sources[1].1.base, sources[2].1.base), (7, 0));
        let unread = "arg0 is not read at 1 of 3 places: it is a floating-point number only there";
        assert_eq!(found.unread.as_deref(), Some(unread));
    }

    #[test]
    fn places_of_one_name_share_a_list() {
        let found = values(&["4@%edi 8@%rax", "-4@$-3", "4@%esi 8@absent(%rip)"]);
        assert_eq!(names(&found), [("arg0", Signed), ("arg1", Unsigned)]);
        assert!(found.sources.iter().all(|sources| sources.count == 2));
        let seconds: Vec<_> = found.sources.iter().map(|it| it.sources[1]).collect();
        assert_eq!(seconds[0].base, 0);
        assert_eq!(seconds[1..], [Operand::NOWHERE; 2]);
        assert_eq!(
            found.unread.as_deref(),
            Some("arg1 is not read at 2 of 3 places: the note of this place has no such argument")
        );
    }

    #[test]
    fn variables_are_as_far_away_as_they_are_from_their_place() {
        let found = values(&["", "8@known+1(%rip)"]);
        assert_eq!(found.sources[0].sources[0], Operand::NOWHERE);
        let Operand { displacement, relative, .. } = found.sources[1].sources[0];
        assert_eq!((displacement, relative), (0x100 + 1 - 16, 1));
    }

    #[test]
    fn nothing_to_read_is_no_values() {
        assert_eq!(values(&["", ""]), Values::default());
        let found = values(&["8@%xmm0"]);
        assert!(found.infos.is_empty() && found.sources.is_empty() && found.unread.is_some());
    }

    #[test]
    fn a_long_argument_is_cut_in_the_note() {
        let found = values(&[&format!("8@é{}", "x".repeat(90))]);
        let unread = found.unread.unwrap();
        assert!(unread.starts_with("arg0 (8@éxxx") && unread.len() < 120, "{unread}");
        assert!(unread.contains("…) is not read: it is in no form"), "{unread}");
    }

    #[test]
    fn a_full_table_costs_a_probe_its_values_only() {
        let probe = |name: &str, sites: usize| UsdtProbe {
            provider: "app".into(),
            name: Arc::from(name),
            sites: (0..sites as u64).map(|at| site(at, "8@%rax")).collect(),
            part: None,
        };
        let mut planner =
            ValuePlanner { reads: true, room: TableRoom::of(5), ..ValuePlanner::default() };
        let mut notes = Vec::new();
        let mut with_values = |sites| {
            let probe = probe("probe", sites);
            let (infos, points) = planner
                .plan(&probe, probe.sites.clone(), &Variables::default(), &[], &mut notes)
                .unwrap();
            assert_eq!(points.len(), sites);
            assert!(points.iter().all(|point| point.values.is_some() != infos.is_empty()));
            !infos.is_empty()
        };
        assert_eq!([3, 3, 2, 1].map(&mut with_values), [true, false, true, false]);
        assert!(notes.is_empty());
        let note = planner.take_note().unwrap();
        assert!(
            note.starts_with("the values of 2 functions and USDT probes are not read"),
            "{note}"
        );
        assert_eq!(planner.take_note(), None);
    }

    #[test]
    fn values_that_nobody_sees_are_not_read() {
        let probe = UsdtProbe {
            provider: "app".into(),
            name: "probe".into(),
            sites: vec![site(0, "8@%rax 8f@%xmm0")],
            part: None,
        };
        let planned = |reads: bool| {
            let mut planner = ValuePlanner { reads, ..ValuePlanner::default() };
            let (sites, mut notes) = (probe.sites.clone(), Vec::new());
            let (infos, points) =
                planner.plan(&probe, sites, &Variables::default(), &[], &mut notes).unwrap();
            (infos.len(), points.len(), points[0].values.is_some(), notes.len())
        };
        assert_eq!(planned(true), (1, 1, true, 1));
        assert_eq!(planned(false), (0, 1, false, 0));
    }
}
