//! Parses what `--arg`, `--ret` and `--where` ask for: values of calls, by function or USDT probe.

use super::abi::{NoPosition, Position, Type};
use super::asked_parts::{is_probe, lacks_comma, split};
pub(crate) use super::asked_place::AskedPlace;
use super::condition::{self, AskedCondition, ConditionError};
use super::named::NamedPath;
use super::python::PythonFact;
use ctrace_common::{MAX_TEXTS, MAX_VALUES};
use ctrace_core::function::is_word;

/// Characters of a name, at most.
const LONGEST_NAME: usize = 64;
/// The name of a result.
pub(crate) const RESULT: &str = "retval";

/// Values of the functions, or of the USDT probes, that match a pattern.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct AskedValues {
    /// As for `-f`, or for `-u`. Empty for all functions that `-f` chooses.
    pub(crate) functions: String,
    /// True for USDT probes: arguments are those of their notes.
    pub(crate) is_usdt: bool,
    pub(crate) arguments: Vec<AskedArgument>,
    pub(crate) result: Option<AskedResult>,
    /// Only calls that meet it count.
    pub(crate) condition: Option<AskedCondition>,
}

/// An argument.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct AskedArgument {
    pub(crate) name: String,
    pub(crate) place: AskedPlace,
    /// For a text of a USDT probe: the argument that has its length.
    pub(crate) length: Option<u8>,
}

/// The type of a result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AskedResult {
    As(Type),
    /// The one of the source.
    Own,
}

/// The reason why a text asks for no values.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum AskedError {
    #[error(
        "`{0}` names no value; write FUNCTION: NAME or FUNCTION: POS:TYPE, such as 'handle: req->len, 1:str'"
    )]
    NoArgument(String),
    #[error("`{0}` names no type; write FUNCTION or FUNCTION: TYPE, such as 'handle: i32'")]
    NoResult(String),
    #[error(
        "`{0}` is no argument; write its name in the source, such as req->len, or its place and type, \
         such as 0:u64 or key=1:str"
    )]
    Form(String),
    #[error("`{0}` lacks a comma between two arguments; write them as in 'FUNCTION: 0:u64, 1:str'")]
    NoComma(String),
    #[error("`{0}` is no type; there are {names}", names = Type::NAMES)]
    Type(String),
    #[error("`{0}` is no type of a result; there are {names}", names = Type::RESULTS)]
    ResultType(String),
    #[error(
        "`{0}` is no place of an argument; 0 to 5 are the integers and pointers in registers, s0, \
         s1 and so on the 8 bytes each on the stack; names are like those in the source"
    )]
    Position(String),
    #[error(
        "`{0}` is no argument of a USDT probe; they are numbered from 0 to {last}, as `list -v` \
         shows them",
        last = MAX_VALUES - 1
    )]
    OfNote(String),
    #[error(
        "the Python function around a call is read at functions, not at USDT probes; write FUNCTION: python"
    )]
    PythonOfNote,
    #[error(
        "there is no register {position}: only six integers and pointers are in registers, 0 to 5; \
         if all parameters are integers or pointers, parameter {position} is s{slot}, on the stack"
    )]
    NoRegister { position: u64, slot: u64 },
    #[error(
        "`{0}` is in a vector register (xmm), which no eBPF program can read; only floating-point \
         numbers on the stack can be read, such as s0:f64"
    )]
    FloatInRegister(String),
    #[error(
        "the result {0} is in the register xmm0, which no eBPF program can read; results that can be \
         read are {names}",
        names = Type::RESULTS
    )]
    FloatResult(String),
    #[error(
        "`{0}` is no name; a name has letters, digits and `_`, begins with no digit, and has at most \
         {LONGEST_NAME} characters"
    )]
    Name(String),
    #[error("`{0}` is asked for twice; leave one of them out")]
    Twice(String),
    #[error("two values are called `{0}`; give one of them another name")]
    SameName(String),
    #[error("at most {MAX_VALUES} values of a function can be read; leave some out")]
    TooMany,
    #[error("at most {MAX_TEXTS} texts of a function can be read; ask for some as ptr")]
    TooManyTexts,
}

impl AskedValues {
    /// Parses `FUNCTION: [NAME=]POS:TYPE, …` and `FUNCTION: NAME, …`, or the former with
    /// `PROVIDER:PROBE`.
    pub(crate) fn arguments(text: &str) -> Result<Self, AskedError> {
        let no_argument = || AskedError::NoArgument(text.to_owned());
        let (mut functions, mut list) = split(text).ok_or_else(no_argument)?;
        if let Some(joined) = list.split(',').find(|piece| lacks_comma(piece)) {
            return Err(AskedError::NoComma(joined.trim().to_owned()));
        }
        let is_usdt = is_probe(list);
        if is_usdt {
            let (probe, rest) = list.split_once(':').ok_or_else(no_argument)?;
            functions = text[..text.len() - list.len() + probe.len()].trim();
            list = rest.trim();
        }
        let arguments = list.split(',').map(|text| argument(text.trim(), is_usdt));
        let arguments = arguments.collect::<Result<Vec<_>, _>>()?;
        let functions = functions.to_owned();
        let asked = Self { functions, is_usdt, arguments, result: None, condition: None };
        check(&asked.arguments, None)?;
        Ok(asked)
    }

    /// Parses `FUNCTION` and `FUNCTION: TYPE`.
    pub(crate) fn result(text: &str) -> Result<Self, AskedError> {
        let (functions, result) = match split(text) {
            Some((functions, of)) => {
                let result = of.parse().map_err(|()| AskedError::ResultType(of.to_owned()));
                let result: Type = result?;
                if result.is_float() {
                    return Err(AskedError::FloatResult(of.to_owned()));
                }
                (functions, AskedResult::As(result))
            }
            None => (text.trim(), AskedResult::Own),
        };
        if functions.is_empty() || functions.ends_with(':') || functions.starts_with(':') {
            return Err(AskedError::NoResult(text.to_owned()));
        }
        let (functions, arguments) = (functions.to_owned(), Vec::new());
        let result = Some(result);
        Ok(Self { functions, is_usdt: false, arguments, result, condition: None })
    }

    /// Parses `[FUNCTION:] CONDITION`.
    pub(crate) fn condition(text: &str) -> Result<Self, ConditionError> {
        let (functions, condition) = condition::split(text)?;
        let is_of_chosen = functions.is_empty();
        Ok(Self {
            functions: functions.to_owned(),
            is_usdt: false,
            arguments: Vec::new(),
            result: None,
            condition: Some(condition.of_chosen(is_of_chosen)),
        })
    }

    /// Returns whether one of the values tells of Python functions.
    pub(crate) fn asks_for_python(&self) -> bool {
        self.arguments.iter().any(|argument| matches!(argument.place, AskedPlace::Python(_)))
    }

    /// Returns whether values are to be shown.
    pub(crate) fn shows(&self) -> bool {
        self.condition.is_none()
    }
}

/// Checks all values of one function.
pub(crate) fn check(
    arguments: &[AskedArgument],
    result: Option<AskedResult>,
) -> Result<(), AskedError> {
    let lengths = arguments.iter().filter(|argument| argument.length.is_some()).count();
    if arguments.len() + lengths + usize::from(result.is_some()) > MAX_VALUES {
        return Err(AskedError::TooMany);
    }
    if arguments.iter().filter(|argument| argument.place.is_text()).count() > MAX_TEXTS {
        return Err(AskedError::TooManyTexts);
    }
    for (place, argument) in arguments.iter().enumerate() {
        let others = &arguments[..place];
        let is_same = |other: &AskedArgument| match (&other.place, &argument.place) {
            (AskedPlace::At(other, _), AskedPlace::At(own, _)) => other == own,
            (AskedPlace::Named(other, _), AskedPlace::Named(own, _)) => other == own,
            (AskedPlace::Python(other), AskedPlace::Python(own)) => other == own,
            _ => false,
        };
        if others.iter().any(is_same) {
            return Err(AskedError::Twice(argument.place.to_string()));
        }
        let is_result = result.is_some() && argument.name == RESULT;
        if is_result || others.iter().any(|other| other.name == argument.name) {
            return Err(AskedError::SameName(argument.name.clone()));
        }
    }
    Ok(())
}

/// Parses `[NAME=]POS:TYPE`, or `[NAME=]PATH[:TYPE]` with a name of the source.
pub(crate) fn argument(text: &str, is_usdt: bool) -> Result<AskedArgument, AskedError> {
    let whole = || text.to_owned();
    let (name, place) = match text.split_once('=') {
        Some((name, place)) => (Some(name.trim()), place.trim()),
        None => (None, text),
    };
    if let Some(name) = name
        && !is_name(name)
    {
        return Err(AskedError::Name(name.to_owned()));
    }
    let named = |place: AskedPlace| AskedArgument {
        name: name.map_or_else(|| place.to_string(), str::to_owned),
        place,
        length: None,
    };
    if let Some(fact) = PythonFact::named(place) {
        return match is_usdt {
            true => Err(AskedError::PythonOfNote),
            false => Ok(named(AskedPlace::Python(fact))),
        };
    }
    let Some((position, of)) = place.split_once(':') else {
        let path = NamedPath::parse(place).filter(|_| !is_usdt);
        let path = path.ok_or_else(|| AskedError::Form(whole()))?;
        return Ok(named(AskedPlace::Named(path, None)));
    };
    let (position, of) = (position.trim(), of.trim());
    let (of, length) = match of.strip_suffix(']').and_then(|of| of.split_once('[')) {
        Some((of @ "str", number)) if is_usdt => {
            let number = of_note(number).ok_or_else(|| AskedError::OfNote(whole()))?;
            (of, Some(number))
        }
        _ => (of, None),
    };
    let of: Type = of.parse().map_err(|()| AskedError::Type(of.to_owned()))?;
    let position: Position = match position.parse() {
        // A note says itself where its arguments are.
        _ if is_usdt => {
            let number = of_note(position).ok_or_else(|| AskedError::OfNote(whole()))?;
            let place = AskedPlace::At(Position::Register(number), of);
            return Ok(AskedArgument { length, ..named(place) });
        }
        Ok(position) => position,
        Err(NoPosition::NoRegister(_)) if of.is_float() => {
            return Err(AskedError::FloatInRegister(whole()));
        }
        Err(NoPosition::NoRegister(position)) => {
            return Err(AskedError::NoRegister { position, slot: position - 6 });
        }
        Err(NoPosition::TooFar) => return Err(AskedError::Position(position.to_owned())),
        Err(NoPosition::Unknown) => {
            let path = NamedPath::parse(position);
            let path = path.ok_or_else(|| AskedError::Position(position.to_owned()))?;
            return Ok(named(AskedPlace::Named(path, Some(of))));
        }
    };
    if position.source(of).is_none() {
        return Err(AskedError::FloatInRegister(whole()));
    }
    Ok(named(AskedPlace::At(position, of)))
}

fn of_note(text: &str) -> Option<u8> {
    let number: u8 = text.parse().ok()?;
    (usize::from(number) < MAX_VALUES).then_some(number)
}

pub(crate) fn is_name(text: &str) -> bool {
    text.len() <= LONGEST_NAME && text.is_ascii() && is_word(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(text: &str) -> (String, Vec<String>) {
        let asked = AskedValues::arguments(text).unwrap_or_else(|error| panic!("{text}: {error}"));
        (asked.functions, asked.arguments.into_iter().map(|argument| argument.name).collect())
    }

    #[test]
    fn the_function_ends_at_the_first_single_colon() {
        for (text, function) in [
            ("f:0:u64", "f"),
            (" f : 0:u64 ", "f"),
            ("ns::f: 0:u64", "ns::f"),
            ("ns::f:0:u64", "ns::f"),
            ("ns::f(int, ns::T): 0:u64", "ns::f(int, ns::T)"),
            ("malloc@libc*: 0:u64", "malloc@libc*"),
            ("/^(?:a|b):c$/: 0:u64", "/^(?:a|b):c$/"),
            ("/a:b/@libc.so.6: 0:u64", "/a:b/@libc.so.6"),
            ("f@/a:b/libc.so.6: 0:u64", "f@/a:b/libc.so.6"),
        ] {
            assert_eq!(names(text), (function.to_owned(), vec!["arg0".to_owned()]), "{text}");
        }
    }

    #[test]
    fn a_usdt_probe_has_a_provider() {
        for (text, probe) in [
            ("postgresql:query: 0:str", "postgresql:query"),
            ("postgresql:query:text=0:str,1:i32", "postgresql:query"),
            (" app : x__start : 11:u8", "app : x__start"),
        ] {
            let asked = AskedValues::arguments(text).expect("arguments");
            assert_eq!((asked.functions.as_str(), asked.is_usdt), (probe, true), "{text}");
        }
        assert!(!AskedValues::arguments("ns::f: 0:u64, 1:str").expect("arguments").is_usdt);
        let asked = AskedValues::arguments("hotspot:method: class=1:str[2], 3:str").expect("texts");
        let lengths: Vec<_> = asked.arguments.iter().map(|it| (&*it.name, it.length)).collect();
        assert_eq!(lengths, [("class", Some(2)), ("arg3", None)]);
        assert!(AskedValues::arguments("f: 1:str[2]").is_err(), "of a USDT probe only");
        for text in [
            "p:q: 0:str[12]",
            "p:q: 0:u64[1]",
            "p:q: 0:str[]",
            "p:q: 12:u8",
            "p:q: s0:u8",
            "p:q: 0:word",
            "p:q: a b=0:u8",
        ] {
            assert!(AskedValues::arguments(text).is_err(), "{text}");
        }
    }

    #[test]
    fn arguments_have_names_places_and_types() {
        let asked = AskedValues::arguments("f: 3:i16, key = 1 : str,s0:f64").unwrap();
        let expected = [
            ("arg3", Position::Register(3), Type::Integer { bytes: 2, signed: true }),
            ("key", Position::Register(1), Type::Text),
            ("sarg0", Position::Stack(0), Type::Float { bytes: 8 }),
        ];
        let expected =
            expected.map(|(name, position, of)| (name.to_owned(), AskedPlace::At(position, of)));
        let found: Vec<_> = asked.arguments.into_iter().map(|it| (it.name, it.place)).collect();
        assert_eq!(found, expected);
        let result = |text| AskedValues::result(text).unwrap();
        assert_eq!(result("a::f: bool").result, Some(AskedResult::As(Type::Bool)));
        let own = result(" a::f ");
        assert_eq!((own.functions.as_str(), own.result), ("a::f", Some(AskedResult::Own)));
    }

    #[test]
    fn arguments_have_names_of_the_source() {
        let asked = AskedValues::arguments("a::f: req->len, m = req->head.method, n: u8").unwrap();
        let found: Vec<_> = asked.arguments.into_iter().map(|it| (it.name, it.place)).collect();
        let path = |text| NamedPath::parse(text).unwrap();
        let byte = Type::Integer { bytes: 1, signed: false };
        let expected = [
            ("req->len".to_owned(), AskedPlace::Named(path("req->len"), None)),
            ("m".to_owned(), AskedPlace::Named(path("req->head.method"), None)),
            ("n".to_owned(), AskedPlace::Named(path("n"), Some(byte))),
        ];
        assert_eq!(found, expected);
        for text in ["f: a->", "f: ->a", "f: a->b->", "f: a[0]", "f: *a", "f: a+b", "f: 1a"] {
            assert!(AskedValues::arguments(text).is_err(), "{text}");
        }
    }

    #[test]
    fn what_is_wrong_is_told_with_a_remedy() {
        let many: Vec<_> = (0..12).map(|slot| format!("s{slot}:u8")).collect();
        let many = format!("f: 0:u8, {}", many.join(", "));
        for (text, told) in [
            ("f", "`f` names no value; write FUNCTION: NAME or FUNCTION: POS:TYPE"),
            ("f:", "`f:` names no value"),
            (": 0:u64", "`: 0:u64` names no value"),
            ("a::f", "`a::f` names no value"),
            ("f: 64", "`64` is no argument; write its name"),
            ("f: len, len", "`len` is asked for twice"),
            ("f: 0:u64,", "`` is no argument"),
            ("f: 0:int", "`int` is no type; there are i8 u8 "),
            ("f: 0:u64 1:str", "`0:u64 1:str` lacks a comma between two arguments"),
            ("f: 0:u8, key = 1: u64 s0:str", "`key = 1: u64 s0:str` lacks a comma"),
            ("p:q: 0:str 1:str", "`q: 0:str 1:str` lacks a comma"),
            ("f: x y:u64", "`x y` is no place of an argument; 0 to 5 are"),
            ("f: 6:u64", "there is no register 6: only six"),
            ("f: 7:u64", "parameter 7 is s1, on the stack"),
            ("f: s64:u64", "`s64` is no place"),
            ("f: 0:f64", "`0:f64` is in a vector register (xmm), which no eBPF program can read"),
            ("f: 7:f32", "`7:f32` is in a vector register"),
            ("f: 1a=0:u64", "`1a` is no name"),
            ("f: a b=0:u64", "`a b` is no name"),
            ("f: 0:u64, 1:u8, 0:str", "`arg0` is asked for twice"),
            ("f: a=0:u64, a=1:u8", "two values are called `a`"),
            ("f: 0:str, 1:str, 2:str, 3:str, 4:str", "at most 4 texts"),
            (many.as_str(), "at most 12 values of a function"),
        ] {
            let error = AskedValues::arguments(text).unwrap_err().to_string();
            assert!(error.contains(told) && !error.contains('\n'), "{text}: {error}");
        }
        for (text, told) in [
            ("f:", "`f:` names no type; write FUNCTION or FUNCTION: TYPE"),
            ("f: int", "`int` is no type of a result; there are i8 u8 i16 "),
            ("f: f64", "the result f64 is in the register xmm0"),
            (
                "f: f32",
                "results that can be read are i8 u8 i16 u16 i32 u32 i64 u64 bool char ptr str",
            ),
        ] {
            let error = AskedValues::result(text).unwrap_err().to_string();
            assert!(error.contains(told), "{text}: {error}");
        }
    }

    #[test]
    fn a_result_needs_its_name() {
        let named = AskedValues::arguments("f: retval=0:u64").unwrap().arguments;
        assert_eq!(check(&named, None), Ok(()));
        let result = Some(AskedResult::As(Type::Bool));
        assert_eq!(check(&named, result), Err(AskedError::SameName("retval".into())));
    }
}
