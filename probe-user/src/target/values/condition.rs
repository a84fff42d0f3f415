//! Parses what `--where` asks for: a condition on the arguments of a function.

use super::abi::{NoPosition, Position, Type};
use super::asked::{AskedError, AskedPlace, argument};
use super::asked_parts::is_single_colon;
use super::joined::{self, Alternatives};
use super::literal::{LONGEST_TEXT, Literal, literal};
use super::named::{SHOWN, Typed, known};
use ctrace_common::{
    COMPARED_TEXT, Comparison, EQUAL, FLOAT, GREATER, LESS, MAX_COMPARISONS, Operand, SIGN, TEXT,
    ValueForm, float_order,
};
use ctrace_core::function::LONGEST_CONDITION;
use std::fmt;

/// Every outcome.
const ANY: u8 = LESS | EQUAL | GREATER;

/// The signs of relations. Longer ones come first.
const RELATIONS: [(&str, u8); 6] = [
    ("==", EQUAL),
    ("!=", LESS | GREATER),
    ("<=", LESS | EQUAL),
    (">=", GREATER | EQUAL),
    ("<", LESS),
    (">", GREATER),
];

/// A condition as it was written, and what it asks.
#[derive(Clone, Debug, Eq)]
pub(crate) struct AskedCondition {
    text: String,
    /// True if it is asked of all functions that are chosen in another way.
    pub(crate) is_of_chosen: bool,
    pub(crate) alternatives: Alternatives,
}

/// An argument and what it is compared with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct AskedComparison {
    pub(crate) place: AskedPlace,
    /// See [`Comparison::relation`].
    relation: u8,
    with: Literal,
}

/// The reason why a text is no condition.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum ConditionError {
    #[error(
        "`{0}` is no comparison; write ARG == VALUE with one of == != < <= > >=, and join \
         comparisons by && and ||"
    )]
    NoComparison(String),
    #[error("`{0}` has one `=`; write == to compare")]
    OneSign(String),
    #[error("in `{0}`, parentheses stand around whole comparisons; write (a == 1 || b) && c")]
    Parentheses(String),
    #[error("`{0}` has a parenthesis without its other")]
    Unpaired(String),
    #[error("`{0}` has no end; a text ends with \"")]
    Endless(String),
    #[error(
        "`{0}` is no value to compare with; write a decimal or 0x number, one like 2.5 or 1e-3, 'c', \
         true, false, a \"text\", or a name of an enumeration"
    )]
    NoLiteral(String),
    #[error("`{0}` is a text of more than {LONGEST_TEXT} bytes; compare with a shorter one")]
    LongText(String),
    #[error("`{0}` compares texts; they can be == and !=")]
    Order(String),
    #[error(
        "a condition has at most {MAX_COMPARISONS} comparisons, counted without parentheses: \
         a && (b || c) is a && b || a && c; leave some out"
    )]
    TooMany,
    #[error("a condition has at most {LONGEST_CONDITION} bytes; leave some out")]
    Long,
    #[error("conditions are for functions, and not for USDT probes as in `{0}`")]
    Usdt(String),
    #[error(
        "`{0}` is not compared; read it with --arg 'FUNCTION: {0}', and choose its calls with \
         --by 'FUNCTION: {0}'"
    )]
    Python(String),
    #[error("`{0}` has no function before its colon; write FUNCTION: ARG == VALUE")]
    NoFunction(String),
    #[error(transparent)]
    Argument(#[from] AskedError),
}

/// The reason why a value cannot be compared so.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Mismatch {
    #[error(
        "`{0}` is a text with a length, which is not compared; compare one of its members, or {0}:ptr"
    )]
    Counted(String),
    #[error("`{name}` is {of}, and is not compared with {with}; {}", remedy(name, *of))]
    Kind { name: String, of: Type, with: &'static str },
    #[error("{number} is no value of `{name}`, which is {of}; write one from {least} to {most}")]
    Range { number: i128, name: String, of: Type, least: i128, most: i128 },
    #[error("`{wanted}` is no name of a value of `{name}`; {}", known(.there))]
    NoName { wanted: String, name: String, there: Vec<String> },
}

fn remedy(name: &str, of: Type) -> String {
    match of {
        Type::Text => format!("write {name} == \"text\", or {name}:ptr == 0 for no text at all"),
        Type::Char => "write 'c', or a number".to_owned(),
        Type::Bool => "write true or false".to_owned(),
        Type::Float { .. } => "write a number".to_owned(),
        _ => "write a whole number".to_owned(),
    }
}

impl AskedCondition {
    pub(crate) fn parse(text: &str) -> Result<Self, ConditionError> {
        if text.len() > LONGEST_CONDITION {
            return Err(ConditionError::Long);
        }
        let alternatives = joined::alternatives(text)?;
        Ok(Self { text: text.trim().to_owned(), is_of_chosen: false, alternatives })
    }

    pub(super) fn of_chosen(self, is_of_chosen: bool) -> Self {
        Self { is_of_chosen, ..self }
    }
}

/// Two are the same if they ask the same, in whatever spelling.
impl PartialEq for AskedCondition {
    fn eq(&self, other: &Self) -> bool {
        self.alternatives == other.alternatives
    }
}

impl fmt::Display for AskedCondition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl AskedComparison {
    /// Returns how a program compares this value.
    pub(crate) fn of(&self, value: &Typed) -> Result<Comparison, Mismatch> {
        let operand = value.source.0;
        let common = Comparison { operand, relation: self.relation, ..Comparison::default() };
        let name = || self.place.to_string();
        let number = |number: i128| self.with_number(operand, number, value.of);
        match (&self.with, value.of) {
            (Literal::Number(with), Type::Float { bytes }) => {
                Ok(self.with_float(operand, *with as f64, bytes))
            }
            (Literal::Float(with), Type::Float { bytes }) => {
                Ok(self.with_float(operand, f64::from_bits(*with), bytes))
            }
            _ if matches!(value.source.1, ValueForm::Counted(_)) && !value.is_ended => {
                Err(Mismatch::Counted(name()))
            }
            (Literal::Text(bytes), Type::Text) => {
                let mut text = [0; COMPARED_TEXT];
                text[..bytes.len()].copy_from_slice(bytes);
                let mut words = text.as_chunks().0.iter().map(|word| u64::from_le_bytes(*word));
                let text = std::array::from_fn(|_| words.next().unwrap_or_default());
                Ok(Comparison { kind: TEXT, text, ..common })
            }
            // Anything but 0 is true.
            (with @ (Literal::Truth(_) | Literal::Number(0 | 1)), Type::Bool)
                if self.is_for_equality() =>
            {
                let is_true = !matches!(with, Literal::Truth(false) | Literal::Number(0));
                let relation = if is_true { !self.relation & ANY } else { self.relation };
                Ok(Comparison { relation, ..common })
            }
            (Literal::Number(with), Type::Integer { .. } | Type::Char | Type::Pointer) => {
                number(*with)
            }
            (Literal::Char(with), Type::Integer { .. } | Type::Char) => number((*with).into()),
            (Literal::Name(wanted), Type::Integer { .. }) => {
                match value.names.iter().find(|one| *one.name == **wanted) {
                    Some(one) if limits(value.of).2 => number(one.number.into()),
                    Some(one) => number((one.number as u64).into()),
                    None => {
                        let there = value.names.iter().take(SHOWN).map(|one| one.name.to_string());
                        let (wanted, there) = (wanted.clone(), there.collect());
                        Err(Mismatch::NoName { wanted, name: name(), there })
                    }
                }
            }
            (with, of) => Err(Mismatch::Kind { name: name(), of, with: with.kind() }),
        }
    }

    /// Compares an operand of this type with a number.
    fn with_number(
        &self,
        operand: Operand,
        number: i128,
        of: Type,
    ) -> Result<Comparison, Mismatch> {
        let (least, most, signed) = limits(of);
        if !(least..=most).contains(&number) {
            let name = self.place.to_string();
            return Err(Mismatch::Range { number, name, of, least, most });
        }
        let (flip, relation) = (if signed { SIGN } else { 0 }, self.relation);
        let number = number as u64 ^ flip;
        Ok(Comparison { operand, number, flip, relation, ..Comparison::default() })
    }

    /// Compares an operand of so many bytes with a number of the same size.
    fn with_float(&self, operand: Operand, with: f64, bytes: u8) -> Comparison {
        let (bits, infinity) = match bytes {
            4 => {
                let bits = (with as f32).to_bits();
                (i64::from(bits as i32) as u64, f32::INFINITY.to_bits().into())
            }
            _ => (with.to_bits(), f64::INFINITY.to_bits()),
        };
        let (number, _) = float_order(bits, bytes.into());
        Comparison {
            operand: Operand { signed: 1, ..operand },
            number,
            flip: infinity,
            kind: FLOAT,
            relation: self.relation,
            ..Comparison::default()
        }
    }

    /// Returns the comparison that holds where this one does not.
    pub(super) fn negated(self) -> Self {
        Self { relation: !self.relation & ANY, ..self }
    }

    fn is_for_equality(&self) -> bool {
        [EQUAL, LESS | GREATER].contains(&self.relation)
    }
}

/// Returns the least and the largest value of a type, and whether it has a sign.
fn limits(of: Type) -> (i128, i128, bool) {
    match of {
        Type::Integer { bytes, signed: true } => {
            let most = i128::from(i64::MAX >> (64 - 8 * u32::from(bytes)));
            (-most - 1, most, true)
        }
        Type::Integer { bytes, signed: false } => {
            (0, i128::from(u64::MAX >> (64 - 8 * u32::from(bytes))), false)
        }
        Type::Bool => (0, 1, false),
        Type::Char => (0, 0xff, false),
        Type::Pointer | Type::Text | Type::Float { .. } => (0, i128::from(u64::MAX), false),
    }
}

/// Splits at the colon behind the functions, if there is one. What is before it is empty otherwise.
pub(crate) fn split(text: &str) -> Result<(&str, AskedCondition), ConditionError> {
    // All colons are those of POS:TYPE and NAME:TYPE.
    let whole = match AskedCondition::parse(text) {
        Ok(condition) => return Ok(("", condition)),
        Err(error) => error,
    };
    let outside = outside(text)?;
    // A regular expression, or the path of an object, may have colons and signs.
    let behind = outside.iter().rfind(|(_, c)| *c == '/').map_or(0, |(at, _)| *at);
    let mut wrong = None;
    for &(at, _) in outside.iter().filter(|(at, _)| *at >= behind && is_single_colon(text, *at)) {
        let (functions, condition) = (text[..at].trim(), &text[at + 1..]);
        if functions.is_empty() {
            return Err(ConditionError::NoFunction(text.to_owned()));
        }
        if behind == 0 && is_no_function(functions) {
            continue;
        }
        match AskedCondition::parse(condition) {
            // The name of a USDT probe has a colon.
            Ok(_) if behind == 0 && (0..at).any(|at| is_single_colon(text, at)) => {
                return Err(ConditionError::Usdt(text.to_owned()));
            }
            Ok(condition) => return Ok((functions, condition)),
            Err(error) => _ = wrong.get_or_insert(error),
        }
    }
    Err(wrong.unwrap_or(whole))
}

/// Returns whether a text is a place, or has signs of a comparison that no name of a function has.
fn is_no_function(text: &str) -> bool {
    // `f(T&&)` and `operator==` are names.
    const SIGNS: [&str; 6] = ["&& ", "|| ", "==", "!=", "<=", ">="];
    let signs = if text.contains("operator") { &SIGNS[..2] } else { &SIGNS };
    let is_place = !matches!(text.parse::<Position>(), Err(NoPosition::Unknown));
    is_place
        || text.starts_with('!')
        || joined::is_unpaired(text)
        || signs.iter().any(|sign| text.contains(sign))
}

/// Returns the characters that are in no text, with their places.
pub(super) fn outside(text: &str) -> Result<Vec<(usize, char)>, ConditionError> {
    let (mut found, mut quote) = (Vec::new(), None);
    let mut all = text.char_indices();
    while let Some((at, c)) = all.next() {
        match (quote, c) {
            (Some(_), '\\') => _ = all.next(),
            (Some(open), _) if c == open => quote = None,
            (Some(_), _) => {}
            (None, '"' | '\'') => quote = Some(c),
            (None, _) => found.push((at, c)),
        }
    }
    match quote {
        Some(_) => Err(ConditionError::Endless(text.trim().to_owned())),
        None => Ok(found),
    }
}

/// Parses `ARG RELATION VALUE`, `ARG` for one that is not 0, and `!ARG`.
pub(super) fn comparison(text: &str) -> Result<AskedComparison, ConditionError> {
    let text = text.trim();
    let whole = || text.to_owned();
    let outside = outside(text)?;
    if outside.iter().any(|(_, c)| matches!(c, '(' | ')')) {
        return Err(ConditionError::Parentheses(whole()));
    }
    // The sign of a member is none of a relation.
    let is_free = |at: usize| !text[..at].ends_with('-');
    let sign = outside.iter().find_map(|&(at, _)| {
        let found = RELATIONS.iter().find(|(sign, _)| text[at..].starts_with(sign))?;
        is_free(at).then_some((at, *found))
    });
    let Some((at, (sign, relation))) = sign else {
        if outside.iter().any(|(_, c)| *c == '=') {
            return Err(ConditionError::OneSign(whole()));
        }
        let (name, relation) = match text.strip_prefix('!') {
            Some(name) => (name.trim(), EQUAL),
            None => (text, LESS | GREATER),
        };
        if name.is_empty() || name.starts_with(['"', '\'']) {
            return Err(ConditionError::NoComparison(whole()));
        }
        let place = compared(name)?;
        return Ok(AskedComparison { place, relation, with: Literal::Number(0) });
    };
    let (name, value) = (text[..at].trim(), text[at + sign.len()..].trim());
    if name.is_empty() || value.is_empty() || name.starts_with(['"', '\'']) {
        return Err(ConditionError::NoComparison(whole()));
    }
    if name.contains('=') {
        return Err(ConditionError::OneSign(whole()));
    }
    let with = literal(value)?;
    if matches!(with, Literal::Text(_)) && !matches!(sign, "==" | "!=") {
        return Err(ConditionError::Order(whole()));
    }
    Ok(AskedComparison { place: compared(name)?, relation, with })
}

fn compared(name: &str) -> Result<AskedPlace, ConditionError> {
    match argument(name, false)?.place {
        AskedPlace::Python(fact) => Err(ConditionError::Python(fact.to_string())),
        place => Ok(place),
    }
}

#[cfg(test)]
#[path = "condition_tests.rs"]
mod tests;
