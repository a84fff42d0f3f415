//! Decides which functions are shown with their parameters.
//!
//! The short name of a C++ function, as it is written in the source, is that of all its overloads,
//! and Rust's generic functions have one short name for all their instances. Where several of these
//! are chosen, each gets its full name: with parameters, or with the hash. All others stay short.
//! Both are shown as they are written in the source, unless that would give two functions one name:
//! the library of C++ has its `std::string` twice.
//!
//! A name is given once and kept, because reports, recordings and metrics of a session have it
//! already. So when a library that comes later has an overload of a function with a short name, only
//! the later one gets its parameters.

use super::Selection;
use crate::target::names::demangle;
use crate::target::object::Object;
use crate::target::object::symbols::Function;
use ctrace_core::names::as_written;
use std::borrow::Cow;
use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::Arc;

/// The names that were given so far, by the short name.
#[derive(Debug, Default)]
pub(crate) struct Naming {
    given: HashMap<Box<str>, Given>,
    /// The symbols of the functions that have a full name, by that name as it is written in the source.
    /// Of several, it is that of the first, or of one that has no other name.
    written: HashMap<Box<str>, Arc<str>>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Given {
    /// Functions with the full name of this symbol have the short name.
    Short { symbol: Arc<str> },
    /// All of them have full names.
    Full,
}

/// The names of a function.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Shown {
    pub(crate) name: Arc<str>,
    /// The short name, if it is not the shown one.
    pub(crate) short: Option<Arc<str>>,
    /// The full name, if it is not the shown one.
    pub(crate) full: Option<Arc<str>>,
}

impl Naming {
    /// Gives names to the functions of a selection. Those that the user named in full get their full
    /// names.
    pub(crate) fn give(&mut self, objects: &[Object], selection: &Selection) {
        let chosen = selection.functions.iter().map(|found| {
            let function = &objects[found.object].functions()[found.index];
            (function, selection.named_in_full.contains(found))
        });
        self.give_all(&chosen.collect::<Vec<_>>());
    }

    fn give_all(&mut self, functions: &[(&Function, bool)]) {
        self.know_written(functions.iter().map(|(function, _)| *function));
        let mut new = HashMap::<Box<str>, Given>::new();
        for &(function, in_full) in functions {
            let short = of_overloads(function);
            if self.given.contains_key(&*short) {
                continue;
            }
            let given = || match in_full {
                true => Given::Full,
                false => Given::Short { symbol: function.symbol() },
            };
            match new.entry(short.into()) {
                Entry::Vacant(place) => _ = place.insert(given()),
                Entry::Occupied(mut place) => {
                    if in_full || !place.get().is_of(function) {
                        place.insert(Given::Full);
                    }
                }
            }
        }
        self.given.extend(new);
    }

    /// Takes note of the full names as they are written in the source. Those that are so by themselves
    /// come first: a function has no other name than `label(int)`, and one with a tag has.
    fn know_written<'a>(&mut self, functions: impl Iterator<Item = &'a Function>) {
        let mut others = Vec::new();
        for function in functions {
            let full = function.full_name();
            match as_written(full).filter(|written| *written != **full) {
                Some(written) => others.push((written, function)),
                None => self.know(full, function),
            }
        }
        others.into_iter().for_each(|(written, function)| self.know(&written, function));
    }

    fn know(&mut self, written: &str, function: &Function) {
        if !self.written.contains_key(written) {
            self.written.insert(written.into(), function.symbol());
        }
    }

    /// Returns the names of a function.
    pub(crate) fn of(&self, function: &Function) -> Shown {
        let (short, full) = (Arc::clone(function.name()), Arc::clone(function.full_name()));
        let is_short =
            self.given.get(&*of_overloads(function)).is_none_or(|given| given.is_of(function));
        let name = self.written(function, if is_short { &short } else { &full });
        let other = |other: Arc<str>| Some(other).filter(|other| *other != name);
        // A short name that is the full one, too, is said once.
        let differs = short != full;
        let short = other(short).filter(|_| differs || !is_short);
        Shown { short, full: other(full).filter(|_| differs || is_short), name }
    }

    /// Returns a name of a function as it is written in the source, unless another one has it.
    fn written(&self, function: &Function, name: &Arc<str>) -> Arc<str> {
        let is_first =
            |full: &str| self.written.get(full).is_none_or(|first| Given::is_same(first, function));
        let full = as_written(function.full_name());
        match as_written(name) {
            Some(written) if full.as_deref().is_none_or(is_first) => written.into(),
            _ => Arc::clone(name),
        }
    }
}

/// Returns the name that a function shares with its overloads. The compiler adds a tag to those that
/// return a `std::string`.
fn of_overloads(function: &Function) -> Cow<'_, str> {
    match as_written(function.name()) {
        Some(written) => Cow::Owned(written),
        None => Cow::Borrowed(function.name()),
    }
}

impl Given {
    /// Returns whether the short name was given to this function, or one with the same full name.
    fn is_of(&self, function: &Function) -> bool {
        match self {
            Self::Short { symbol } => Self::is_same(symbol, function),
            Self::Full => false,
        }
    }

    /// Returns whether a symbol is that of this function, or of one with the same full name.
    fn is_same(symbol: &str, function: &Function) -> bool {
        *symbol == *function.raw() || *demangle::full(symbol) == **function.full_name()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::target::fixtures::compile;

    const OVERLOADS: &str = r#"
        namespace shop {
            __attribute__((noinline)) int format(int v) { return v + 1; }
            __attribute__((noinline)) int format(double v) { return v > 2; }
            __attribute__((noinline)) int load(char const *v) { return *v; }
        }
        int main(int c, char **v) { return shop::format(c) + shop::format(c * 2.0) + shop::load(*v); }
    "#;

    fn named<'a>(object: &'a Object, symbols: &[&str]) -> Vec<&'a Function> {
        let of = |symbol: &&str| object.functions().iter().find(|f| f.raw() == *symbol);
        symbols.iter().map(|symbol| of(symbol).unwrap_or_else(|| panic!("{symbol}"))).collect()
    }

    fn give(naming: &mut Naming, functions: &[&Function]) -> Vec<String> {
        naming.give_all(&functions.iter().map(|function| (*function, false)).collect::<Vec<_>>());
        functions.iter().map(|function| naming.of(function).name.to_string()).collect()
    }

    #[test]
    fn overloads_get_their_parameters() {
        let built = compile("g++ -O1", "cpp", OVERLOADS);
        let object = built.object();
        let all = named(&object, &["_ZN4shop6formatEi", "_ZN4shop6formatEd", "_ZN4shop4loadEPKc"]);
        let expected = ["shop::format(int)", "shop::format(double)", "shop::load"];
        assert_eq!(give(&mut Naming::default(), &all), expected);
        let one = &all[..1];
        assert_eq!(give(&mut Naming::default(), one), ["shop::format"]);
        let mut naming = Naming::default();
        naming.give_all(&[(one[0], true)]);
        let shown = naming.of(one[0]);
        assert_eq!((&*shown.name, shown.short.as_deref()), (expected[0], Some("shop::format")));
    }

    #[test]
    fn a_tag_makes_no_other_function() {
        let source = r#"
            #include <string>
            #define KEPT __attribute__((noinline, used))
            namespace shop {
                KEPT std::string label(int v) { return std::string(v, 'x'); }
                KEPT long label(long v) { return v + 1; }
                KEPT std::string title(int v) { return std::string(v, 'y'); }
            }
            int main() { return 0; }
        "#;
        let built = compile("g++ -O1", "cpp", source);
        let object = built.object();
        let symbols = ["_ZN4shop5labelB5cxx11Ei", "_ZN4shop5labelEl", "_ZN4shop5titleB5cxx11Ei"];
        let expected = ["shop::label(int)", "shop::label(long)", "shop::title"];
        assert_eq!(give(&mut Naming::default(), &named(&object, &symbols)), expected);
    }

    /// One was compiled for the old strings of C++, the other for the new ones.
    #[test]
    fn a_tag_alone_tells_two_functions_apart() {
        let source = r#"
            #define KEPT __attribute__((noinline, used))
            KEPT int with(int v) __asm__("_ZN4shop5labelB5cxx11Ei");
            KEPT int with(int v) { return v + 1; }
            KEPT int without(int v) __asm__("_ZN4shop5labelEi");
            KEPT int without(int v) { return v + 2; }
            int main() { return 0; }
        "#;
        let built = compile("gcc -O1", "c", source);
        let object = built.object();
        let symbols = ["_ZN4shop5labelB5cxx11Ei", "_ZN4shop5labelEi"];
        let [with, without] = named(&object, &symbols)[..] else { panic!("{symbols:?}") };
        let expected = ["shop::label[abi:cxx11](int)", "shop::label(int)"];
        assert_eq!(give(&mut Naming::default(), &[with, without]), expected);
        let mut naming = Naming::default();
        assert_eq!(give(&mut naming, &[without]), ["shop::label"]);
        assert_eq!(give(&mut naming, &[with]), expected[..1]);
    }

    #[test]
    fn names_are_written_as_in_the_source_unless_two_would_have_the_same() {
        let source = r#"
            #include <string>
            #define KEPT __attribute__((noinline, used))
            namespace shop {
                KEPT long size(std::string const &v) { return v.size(); }
                KEPT long size(long v) { return v + 1; }
                KEPT void count(std::basic_string<char, std::char_traits<char>> *) {}
            }
            namespace std {
                KEPT long take(long v) { return v + 2; }
                namespace __1 { KEPT long take(long v) { return v + 3; } }
            }
            int main() { return 0; }
        "#;
        let built = compile("g++ -O1", "cpp", source);
        let object = built.object();
        let symbols: Vec<&str> = object
            .functions()
            .iter()
            .map(Function::raw)
            .filter(|symbol| symbol.contains("4shop") || symbol.contains("4take"))
            .collect();
        let mut names = give(&mut Naming::default(), &named(&object, &symbols));
        names.sort();
        assert_eq!(
            names[..3],
            ["shop::count", "shop::size(long)", "shop::size(std::string const&)"]
        );
        // The first of them has the name of the source.
        assert!(names[3] != names[4] && names[4] == "std::take(long)", "{names:?}");
    }

    #[test]
    fn a_name_that_was_given_is_kept() {
        let built = compile("g++ -O1", "cpp", OVERLOADS);
        let object = built.object();
        let early = named(&object, &["_ZN4shop6formatEd"]);
        let late = named(&object, &["_ZN4shop6formatEi", "_ZN4shop6formatEd"]);
        let mut naming = Naming::default();
        assert_eq!(give(&mut naming, &early), ["shop::format"]);
        assert_eq!(give(&mut naming, &late), ["shop::format(int)", "shop::format"]);
    }

    #[test]
    fn functions_that_parameters_do_not_tell_apart_stay_short() {
        let one = compile("gcc -O1", "c", "int init(int v) { return v; } int main() { return 0; }");
        let two = compile("gcc -O1", "c", "int init(int v) { return v; } int main() { return 0; }");
        let (one, two) = (one.object(), two.object());
        let all = [named(&one, &["init"])[0], named(&two, &["init"])[0]];
        assert_eq!(give(&mut Naming::default(), &all), ["init", "init"]);
    }

    #[test]
    fn instances_of_rust_get_their_hashes() {
        let source = r#"
            #[inline(never)] fn twice<T: std::ops::Add<Output = T> + Copy>(v: T) -> T { v + v }
            fn main() {
                let v = std::process::id();
                let (one, two) = (twice(v), twice(f64::from(v)));
                std::process::exit(i32::from(f64::from(one) > two))
            }
        "#;
        let built =
            compile("rustc -O -Zunstable-options -Csymbol-mangling-version=legacy", "rs", source);
        let object = built.object();
        let all: Vec<&Function> =
            object.functions().iter().filter(|f| &**f.name() == "input::twice").collect();
        let names = give(&mut Naming::default(), &all);
        let [one, two] = &names[..] else { panic!("{names:?}") };
        assert!(one.starts_with("input::twice::h") && one != two, "{names:?}");
    }
}
