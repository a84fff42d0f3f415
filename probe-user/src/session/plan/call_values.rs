//! The arguments and results that calls of a function have beside them, and where they are read.

use super::{
    Planned, Sites,
    absent::{Absent, Requirement},
    values::ValuePlanner,
};
use crate::target::{
    object::{Object, symbols::Function},
    plan::ExitPlacement,
    values::{
        abi::{Position, Type},
        asked::{AskedArgument, AskedError, AskedPlace, AskedResult, AskedValues, RESULT, check},
        locks,
        named::{NoValue, Typed, is_changed},
    },
};
use anyhow::anyhow;
use ctrace_common::{MAX_TEXTS, ValueSources};
use ctrace_core::{
    function::ValueInfo,
    report::{NOT_READ, render::clean::clean},
};
use std::sync::Arc;

impl ValuePlanner {
    /// Plans the values of a function and its condition. `asked`: the numbers of those that its names
    /// match. Returns false if it must not be traced.
    pub(super) fn plan_call(
        &mut self,
        planned: &mut Planned,
        asked: &[usize],
        function: &impl Described,
        notes: &mut Vec<String>,
    ) -> anyhow::Result<bool> {
        let all = Arc::clone(&self.asked);
        let asked = asked.iter().filter_map(|number| Some((*number, all.get(*number)?)));
        let asked: Vec<_> = asked.collect();
        let name = clean(&planned.info.name).into_owned();
        merge(asked.iter().map(|(_, asked)| *asked))
            .map_err(|error| anyhow!("the values of `{name}`: {error}"))?;
        if !self.plan_condition(planned, &asked, function, &name) {
            return Ok(false);
        }
        if self.reads && asked.iter().any(|(_, asked)| asked.shows()) {
            self.plan_values(planned, &asked, function, &name, notes)?;
        }
        Ok(true)
    }

    fn plan_values(
        &mut self,
        planned: &mut Planned,
        asked: &[(usize, &AskedValues)],
        function: &impl Described,
        name: &str,
        notes: &mut Vec<String>,
    ) -> anyhow::Result<()> {
        let raw = function.symbol();
        let asks_for_python = asked.iter().any(|(_, asked)| asked.asks_for_python());
        if is_changed(raw) && !asks_for_python {
            notes.push(format!(
                "the values of {name} are {NOT_READ}: the compiler has changed the parameters of {} \
                 (__attribute__((noipa)) keeps gcc from that)",
                clean(raw)
            ));
            return Ok(());
        }
        let (mut arguments, mut result) = find(asked, function, name, &mut self.absent)?;
        if is_changed(raw) {
            // The Python function around a call has nothing to do with its parameters.
            arguments.retain(|(_, typed)| typed.is_of_python());
            result = None;
        }
        if let Sites::Function(placement) = &planned.sites
            && let ExitPlacement::Unseen(why) = &placement.exit
            && result.take().is_some()
        {
            notes
                .push(format!("the result of {name} is {NOT_READ}, as its end is not seen: {why}"));
        }
        let info = |name: &str, typed: &Typed| {
            ValueInfo::new(name, typed.of.kind()).with_names(typed.names.to_vec())
        };
        let values = arguments.iter().map(|(name, typed)| info(name, typed));
        let of_result = result.as_ref();
        let of_result = of_result.map(|typed| ValueInfo { is_result: true, ..info(RESULT, typed) });
        let values: Vec<_> = values.chain(of_result).collect();
        // A condition has taken the room already.
        if values.is_empty() || !(planned.sources.is_some() || self.has_room(2)) {
            return Ok(());
        }
        let sources: Vec<_> = arguments.iter().map(|(_, it)| it.source).collect();
        let all = planned.sources.get_or_insert_default();
        all.entry = ValueSources::new(&sources);
        all.exit = ValueSources::of_result(result.map(|typed| typed.source));
        planned.info.values = values;
        Ok(())
    }
}

/// A source that says where the parameters of a function are.
pub(super) trait Described {
    fn symbol(&self) -> &str;
    fn argument(&self, place: &AskedPlace) -> Result<Typed, NoValue>;
    fn result(&self) -> Result<Typed, NoValue>;
}

/// A function of an object, which may have debug information.
pub(super) struct InObject<'a> {
    pub(super) object: &'a Object,
    pub(super) function: &'a Function,
}

impl Described for InObject<'_> {
    fn symbol(&self) -> &str {
        self.function.raw()
    }

    fn argument(&self, place: &AskedPlace) -> Result<Typed, NoValue> {
        match place {
            _ if self.object.is_go() => Err(NoValue::Go),
            AskedPlace::Python(fact) => Ok(fact.typed()),
            // Only glibc keeps it there.
            AskedPlace::At(Position::MutexType(_), of) if !locks::is_glibc(self.object.name()) => {
                Ok(Typed::plain(of.nowhere(), *of))
            }
            AskedPlace::At(position, of) => at(*position, *of),
            AskedPlace::Named(path, of) => self.object.named_value(self.function, path, *of),
        }
    }

    fn result(&self) -> Result<Typed, NoValue> {
        self.object.named_result(self.function)
    }
}

pub(super) fn at(position: Position, of: Type) -> Result<Typed, NoValue> {
    let source = position.source(of).ok_or_else(|| NoValue::Elsewhere(position.to_string()))?;
    Ok(Typed::plain(source, of))
}

/// The arguments that a function has, by name, and its result.
type Found = (Vec<(String, Typed)>, Option<Typed>);

/// Finds the sources of the arguments and of the result. `absent` gets what the function lacks.
fn find(
    asked: &[(usize, &AskedValues)],
    function: &impl Described,
    name: &str,
    absent: &mut Absent,
) -> anyhow::Result<Found> {
    let (mut arguments, mut result) = (Vec::new(), None);
    for (number, asked) in asked {
        for AskedArgument { name: value, place, .. } in &asked.arguments {
            let wanted = Requirement::Value(value.clone());
            let found = absent.note(*number, wanted, name, function.argument(place));
            arguments.extend(found.map(|typed| (value.clone(), typed)));
        }
        match asked.result {
            None => {}
            Some(AskedResult::As(of)) => result = Some(Typed::plain(of.result(), of)),
            Some(AskedResult::Own) => {
                let wanted = Requirement::Value(RESULT.to_owned());
                result = absent.note(*number, wanted, name, function.result());
            }
        }
    }
    let texts = arguments.iter().filter(|(_, it)| it.of == Type::Text).count();
    if texts > MAX_TEXTS {
        return Err(anyhow!("the values of `{name}`: {}", AskedError::TooManyTexts));
    }
    Ok((arguments, result))
}

/// Puts together all that is asked for a function.
pub(super) fn merge<'a>(
    asked: impl Iterator<Item = &'a AskedValues>,
) -> Result<(Vec<AskedArgument>, Option<AskedResult>), AskedError> {
    let (mut arguments, mut result) = (Vec::new(), None);
    for asked in asked {
        arguments.extend(asked.arguments.iter().cloned());
        if asked.result.is_some() && result.is_some() {
            return Err(AskedError::Twice(RESULT.to_owned()));
        }
        result = result.or(asked.result);
    }
    check(&arguments, result)?;
    // Without arguments, nothing is delivered at the entry.
    Ok((arguments, result))
}

#[cfg(test)]
mod tests {
    use super::{
        super::{absent::Lacking, plain::Plain},
        *,
    };
    use ctrace_common::{PythonValues, RESULT as RESULT_BIT};
    use ctrace_core::function::ValueKind;

    fn planner(arguments: &[&str], results: &[&str]) -> ValuePlanner {
        let arguments = arguments.iter().map(|text| AskedValues::arguments(text).unwrap());
        let results = results.iter().map(|text| AskedValues::result(text).unwrap());
        let asked: Vec<_> = arguments.chain(results).collect();
        let asked = asked.into();
        ValuePlanner { reads: true, asked, ..ValuePlanner::default() }
    }

    /// Plans a function that all of these match. Returns it with the notes.
    fn plan(
        planner: &mut ValuePlanner,
        exit: ExitPlacement,
        raw: &'static str,
    ) -> (Planned, Vec<String>) {
        let (mut planned, mut notes) = (Plain(raw).planned(exit, false), Vec::new());
        let asked: Vec<_> = (0..planner.asked.len()).collect();
        planner.plan_call(&mut planned, &asked, &Plain(raw), &mut notes).unwrap();
        (planned, notes)
    }

    #[test]
    fn all_that_is_asked_of_a_function_comes_together() {
        let mut planner = planner(&["f: key=1:str, 0:u32", "/f/: s0:f32"], &["*: bool"]);
        let (planned, notes) = plan(&mut planner, ExitPlacement::ReturnProbe, "f");
        let values: Vec<_> = planned.info.values.iter().map(|it| (&*it.name, it.kind)).collect();
        let expected = [
            ("key", ValueKind::Text),
            ("arg0", ValueKind::Unsigned),
            ("sarg0", ValueKind::Float),
            ("retval", ValueKind::Bool),
        ];
        assert_eq!(values, expected);
        assert!(planned.info.has_arguments() && planned.info.has_result());
        let sources = planned.sources.unwrap();
        assert_eq!((sources.entry.count, sources.exit.count, notes.len()), (3, 1, 0));
        // The record, a slot of words, and the field of the text.
        assert_eq!((sources.entry.slots, sources.entry.fields[..2].to_vec()), (4, vec![2, 0]));
        assert_eq!(sources.exit.forms, 1 << RESULT_BIT);
    }

    #[test]
    fn facts_of_python_functions_have_fields_and_no_source() {
        let asked = "f: 0:u32, python.line, python, python.file";
        let mut planner = planner(&[asked], &[]);
        let (planned, _) = plan(&mut planner, ExitPlacement::ReturnProbe, "f");
        let kinds: Vec<_> = planned.info.values.iter().map(|value| value.kind).collect();
        let (number, line) = (ValueKind::Unsigned, ValueKind::Signed);
        assert_eq!(kinds, [number, line, ValueKind::Text, ValueKind::Text]);
        let entry = planned.sources.expect("sources").entry;
        let expected = PythonValues { name: 3, file: 4, line: 2, reserved: 0 };
        assert_eq!((entry.count, entry.slots, entry.python), (4, 6, expected));
        // No length is read for these texts.
        assert_eq!(
            (&entry.fields[..4], &entry.lengths[..4]),
            (&[0, 0, 2, 4][..], &[0, 0, 255, 255][..])
        );
    }

    #[test]
    fn what_is_asked_twice_by_different_patterns_is_told() {
        let cases: [(&[&str], &[&str], &str); 3] = [
            (&["f: 0:u64", "f*: 0:str"], &[], "the values of `f`: `arg0` is asked for twice"),
            (&[], &["f: u64", "*: u64"], "the values of `f`: `retval` is asked for twice"),
            (&["f: retval=0:u8"], &["f: u64"], "the values of `f`: two values are called `retval`"),
        ];
        for (arguments, results, told) in cases {
            let mut planner = planner(arguments, results);
            let function = Plain("f");
            let mut planned = function.planned(ExitPlacement::ReturnProbe, false);
            let planned = planner.plan_call(&mut planned, &[0, 1], &function, &mut Vec::new());
            let error = planned.unwrap_err();
            assert!(error.to_string().starts_with(told), "{error}");
        }
    }

    #[test]
    fn what_cannot_be_read_is_told() {
        let unseen = || ExitPlacement::Unseen("it never returns".to_owned());
        let mut one = planner(&["f: 0:u64"], &["f: u64"]);
        let (planned, notes) = plan(&mut one, unseen(), "f");
        assert_eq!((planned.info.values.len(), planned.info.has_result()), (1, false));
        let told = "the result of f is not read, as its end is not seen: it never returns";
        assert_eq!(notes, [told]);
        let (planned, notes) = plan(&mut one, ExitPlacement::ReturnProbe, "f.isra.0");
        assert!(planned.info.values.is_empty() && planned.sources.is_none());
        assert!(
            notes[0].contains("has changed the parameters of f.isra.0 (__attribute"),
            "{notes:?}"
        );
        let (planned, notes) = plan(&mut planner(&[], &["f: u64"]), unseen(), "f");
        assert!(planned.sources.is_none() && notes.len() == 1);
    }

    #[test]
    fn names_need_debug_information() {
        let mut planner = planner(&["f*: key, 0:u64"], &["f*"]);
        for raw in ["f", "f", "f", "f"] {
            let (planned, notes) = plan(&mut planner, ExitPlacement::ReturnProbe, raw);
            assert_eq!((planned.info.values.len(), notes.len()), (1, 0));
        }
        let why = "debug information does not say where it is; give its place and type, such as 0:u64 for the first integer";
        let of_result = "debug information does not say what it returns; give the type of the result, such as 'FUNCTION: i64'; \
                         there are i8 u8 i16 u16 i32 u32 i64 u64 bool char ptr str";
        let note =
            |value, why| format!("`{value}` is not read in 4 functions, such as f, f, f: {why}");
        let of_all = vec![note("key", why), note("retval", of_result)];
        assert_eq!(planner.absent.take(), Lacking { of_all, ..Lacking::default() });
        assert_eq!(planner.absent.take(), Lacking::default());
    }

    #[test]
    fn values_that_nobody_sees_are_not_read() {
        let mut planner = ValuePlanner { reads: false, ..planner(&["f: 0:u64"], &[]) };
        let (planned, notes) = plan(&mut planner, ExitPlacement::ReturnProbe, "f");
        assert!(planned.info.values.is_empty() && planned.sources.is_none() && notes.is_empty());
    }
}
