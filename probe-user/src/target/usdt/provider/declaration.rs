//! The type and the name of an argument, as C declares them: `const char *query`.

use super::Declared;
use crate::target::values::{abi::Type, asked::is_name};
use std::collections::HashMap;

/// Types that a file may define, at most.
const MOST_TYPES: usize = 4096;
/// Definitions that lead from a type to another, at most.
const DEEPEST: usize = 16;
/// Words of a declaration that count.
const MOST_WORDS: usize = 32;

/// The types that a file defines: the words for each name.
#[derive(Default)]
pub(super) struct Types<'a>(HashMap<&'a str, Vec<&'a str>>);

impl<'a> Types<'a> {
    /// Takes a definition: the words of a type, and its name behind them.
    pub(super) fn define(&mut self, type_and_name: &[&'a str]) {
        let of_pointer =
            declared_pointer(type_and_name).flatten().map(|name| (name, &["void", "*"][..]));
        let plain = || type_and_name.split_last().map(|(name, words)| (*name, words));
        if let Some((name, words)) = of_pointer.or_else(plain)
            && !words.is_empty()
            && words.len() <= MOST_WORDS
            && self.0.len() < MOST_TYPES
        {
            self.0.insert(name, words.to_vec());
        }
    }
}

/// A type before its size is known: its words without qualifiers, and the number of stars behind them.
#[derive(Default)]
struct Written<'a> {
    base: Vec<&'a str>,
    stars: usize,
    name: Option<&'a str>,
}

/// Reads an argument. Nothing is known of one that is not understood.
pub(super) fn argument(words: &[&str], types: &Types<'_>) -> Declared {
    let words = &words[..words.len().min(MOST_WORDS)];
    let named = |name: Option<&str>| name.filter(|name| is_name(name)).map(Into::into);
    if let Some(name) = declared_pointer(words) {
        return Declared { name: named(name), of: Some(Type::Pointer), length: None };
    }
    let written = written(words.iter().take_while(|word| **word != "(").copied());
    let of = type_of(written.base, written.stars, types, DEEPEST);
    Declared { name: named(written.name), of, length: None }
}

/// Returns the name, if there is one, of the address of a function or an array: `int (*call)(int)`.
fn declared_pointer<'a>(words: &[&'a str]) -> Option<Option<&'a str>> {
    let open = words.iter().position(|word| *word == "(")?;
    let inner = &words[open + 1..];
    let is_part = |word: &&&str| matches!(**word, "(" | "*" | "const" | "volatile" | "restrict");
    let begins = inner.iter().take_while(is_part).count();
    let is_pointer = open > 0 && inner[..begins].contains(&"*");
    is_pointer.then(|| inner.get(begins).copied().filter(|word| *word != ")"))
}

fn written<'a>(words: impl Iterator<Item = &'a str>) -> Written<'a> {
    let mut written = Written::default();
    let mut is_tag = false;
    for word in words {
        match word {
            "const" | "volatile" | "restrict" | "__restrict" | "userland" => {}
            "struct" | "union" | "enum" => {
                written.base.push(word);
                is_tag = true;
            }
            _ if is_tag => is_tag = false,
            "*" | "[" => written.stars += 1,
            word if !word.starts_with(|c: char| c.is_alphabetic() || c == '_') => {}
            word if written.base.is_empty() => written.base.push(word),
            word if is_builtin(word) && written.base.iter().all(|word| is_builtin(word)) => {
                written.base.push(word);
            }
            word => written.name = Some(word),
        }
    }
    written
}

/// Returns whether several of these words make one type.
fn is_builtin(word: &str) -> bool {
    matches!(word, "unsigned" | "signed" | "int" | "char" | "short" | "long" | "double" | "float")
}

fn type_of(base: Vec<&str>, stars: usize, types: &Types<'_>, depth: usize) -> Option<Type> {
    // `#define bool char` is for compilers that know no `bool`; the program has one.
    if let [name] = base[..]
        && !matches!(name, "bool" | "_Bool" | "string")
        && let Some(words) = types.0.get(name)
    {
        let deeper = depth.checked_sub(1)?;
        let of = written(words.iter().copied());
        // `#define WORD WORD other` has no name behind its type.
        let base = of.base.into_iter().chain(of.name).collect();
        return type_of(base, stars + of.stars, types, deeper);
    }
    match stars {
        0 => plain(&base),
        1 if base == ["char"] => Some(Type::Text),
        _ if base.is_empty() => None,
        _ => Some(Type::Pointer),
    }
}

/// Returns the type of these words, on x86-64 Linux.
fn plain(base: &[&str]) -> Option<Type> {
    let integer = |bytes, signed| Some(Type::Integer { bytes, signed });
    let has = |word: &str| base.contains(&word);
    if let [name] = base {
        let known = match *name {
            "string" | "string_t" => Some(Type::Text),
            "bool" | "_Bool" | "boolean" => Some(Type::Bool),
            "char" => Some(Type::Char),
            "float" => Some(Type::Float { bytes: 4 }),
            "double" => Some(Type::Float { bytes: 8 }),
            "int8_t" => integer(1, true),
            "uint8_t" | "u_char" | "uchar_t" => integer(1, false),
            "int16_t" => integer(2, true),
            "uint16_t" | "u_short" | "ushort_t" => integer(2, false),
            "int32_t" | "pid_t" => integer(4, true),
            "uint32_t" | "u_int" | "uint_t" | "uint" | "uid_t" | "gid_t" | "mode_t" => {
                integer(4, false)
            }
            "int64_t" | "intptr_t" | "ssize_t" | "ptrdiff_t" | "off_t" | "time_t" => {
                integer(8, true)
            }
            "uint64_t" | "uintptr_t" | "size_t" | "u_long" | "ulong_t" | "ulong" | "ino_t"
            | "dev_t" => integer(8, false),
            _ => None,
        };
        if known.is_some() {
            return known;
        }
    }
    let is_signed = !has("unsigned");
    match base {
        [] => None,
        base if !base.iter().all(|word| is_builtin(word)) || has("float") || has("double") => None,
        _ if has("char") => integer(1, is_signed),
        _ if has("short") => integer(2, is_signed),
        _ if has("long") => integer(8, is_signed),
        _ => integer(4, is_signed),
    }
}
