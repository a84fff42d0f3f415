//! Rules out symbols that cannot match, without demangling them.
//!
//! Demangling 300,000 C++ names takes a second, and a user asks for a few. Both manglings keep
//! identifiers as they are. So a word of the pattern must be in the raw symbol, unless the
//! demangler makes it up: `operator`, `unsigned`, `closure`.

use memchr::memmem::Finder;

/// Words that demanglers add to a name. Parts of such a word prove nothing either.
const MADE_UP: &[&str] = &[
    // Types of both languages.
    "unsigned",
    "signed",
    "short",
    "long",
    "double",
    "float",
    "_Float16",
    "half",
    "bool",
    "void",
    "int",
    "char8_t",
    "char16_t",
    "char32_t",
    "wchar_t",
    "__int128",
    "__float128",
    "_Complex",
    "_Imaginary",
    "decimal32",
    "decimal64",
    "decimal128",
    "nullptr_t",
    "__vector",
    "usize",
    "isize",
    "u128",
    "i128",
    "u64",
    "i64",
    "u32",
    "i32",
    "u16",
    "i16",
    "f16",
    "f32",
    "f64",
    "f128",
    "str",
    "const",
    "volatile",
    "restrict",
    "mut",
    "auto",
    "decltype",
    "typename",
    "template",
    "class",
    "enum",
    "union",
    "struct",
    "imaginary",
    "complex",
    "_BitInt",
    // C++ abbreviations of the standard library.
    "std",
    "allocator",
    "basic_string",
    "string",
    "char_traits",
    "basic_istream",
    "istream",
    "basic_ostream",
    "ostream",
    "basic_iostream",
    "iostream",
    // Operators and expressions.
    "operator",
    "new",
    "delete",
    "co_await",
    "sizeof",
    "alignof",
    "noexcept",
    "typeid",
    "throw",
    "static_cast",
    "dynamic_cast",
    "reinterpret_cast",
    "const_cast",
    "this",
    "true",
    "false",
    "nullptr",
    "parm",
    "requires",
    "abi",
    // Descriptions.
    "lambda",
    "unnamed",
    "type",
    "anonymous",
    "namespace",
    "clone",
    "virtual",
    "non",
    "thunk",
    "covariant",
    "return",
    "vtable",
    "VTT",
    "typeinfo",
    "name",
    "guard",
    "variable",
    "reference",
    "temporary",
    "construction",
    "transaction",
    "TLS",
    "init",
    "wrapper",
    "function",
    "for",
    "initialization",
    "offset",
    "hidden",
    "alias",
    "global",
    "constructors",
    "destructors",
    "keyed",
    "block",
    "invocation",
    "literal",
    "default",
    "arg",
    "java",
    "Class",
    "override",
    "instantiation",
    // Rust.
    "impl",
    "dyn",
    "closure",
    "shim",
    "unsafe",
    "extern",
    "where",
    "as",
    "fn",
];

/// Rust's old mangling writes the m of `llvm` like this, to keep it apart from LLVM's suffixes.
const ESCAPED_M: &str = "$u6d$";

/// A word that must be in the raw symbol of every match.
#[derive(Clone, Debug)]
pub(super) struct Prefilter {
    finder: Finder<'static>,
}

impl Prefilter {
    /// Picks the longest such word of a glob, if there is one.
    pub(crate) fn new(glob: &str) -> Option<Self> {
        // Brackets and braces match text other than their own.
        if glob.contains(['[', '{', '\\']) {
            return None;
        }
        let longest = words(glob).filter(|word| is_certain(word)).max_by_key(|word| word.len())?;
        Some(Self { finder: Finder::new(longest).into_owned() })
    }

    /// Returns whether the symbol must be demangled to know.
    pub(super) fn may_match(&self, raw: &str) -> bool {
        self.finder.find(raw.as_bytes()).is_some() || raw.contains(ESCAPED_M)
    }
}

fn words(name: &str) -> impl Iterator<Item = &str> {
    name.split(|character: char| !(character.is_ascii_alphanumeric() || character == '_'))
}

fn is_certain(word: &str) -> bool {
    // Manglings write numbers differently, and short words are everywhere.
    word.len() >= 3
        && !word.starts_with(|first: char| first.is_ascii_digit())
        && !MADE_UP.iter().any(|made_up| made_up.contains(word))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::target::fixtures::compile;
    use crate::target::object::Object;

    #[track_caller]
    fn check(glob: &str, expected: Option<&str>) {
        let found = Prefilter::new(glob);
        let found = found.as_ref().map(|it| std::str::from_utf8(it.finder.needle()).unwrap());
        assert_eq!(found, expected, "{glob}");
    }

    #[test]
    fn picks_the_longest_word() {
        check("main", Some("main"));
        check("ns::Parser::run*", Some("Parser"));
        check("*", None);
        check("std::*", None);
        check("operator new", None);
        check("*clos*", None);
        check("{a,parse}", None);
        check("parse[12]", None);
        check("*0x1fff*", None);
        check("to_str?ng", Some("to_str"));
    }

    /// Checks that each word of each demangled name is in the symbol or exempt.
    fn check_object(object: &Object) {
        for function in object.functions() {
            let raw = function.raw();
            // Patterns with brackets have no filter.
            let names = [function.name(), function.full_name()].into_iter();
            for name in names.filter(|name| !name.contains('[')) {
                for word in words(name).filter(|word| !raw.contains(word)) {
                    assert!(
                        !is_certain(word) || raw.contains(ESCAPED_M),
                        "{word} of {name} is not in {raw}"
                    );
                }
            }
        }
    }

    #[test]
    fn symbols_hold_the_words_of_their_names() {
        for mapped in crate::target::process::maps::objects(std::process::id()).unwrap() {
            check_object(&Object::open_mapped(&mapped).unwrap());
        }
        let source = "#include <iostream>\n#include <map>\n#include <functional>\n#include <regex>\n\
            struct A { virtual ~A() {} virtual int f(unsigned __int128) { return 1; } operator bool() { return true; } };\n\
            struct B : virtual A { int f(unsigned __int128) override { return 2; } };\n\
            namespace { template <int N> struct C { auto g(decltype(nullptr)) { return [](auto x) { return x + N; }; } }; }\n\
            int main() { std::map<std::string, std::function<int(int)>> m; m[\"a\"] = C<7>().g(nullptr); \
            std::cout << m[\"a\"](3) << std::regex_match(\"x\", std::regex(\"x*\")) << B().f(3) << bool(A()); }";
        let built = compile("g++ -std=c++17 -O0", "cpp", source);
        assert!(built.object().functions().len() > 1000);
        check_object(&built.object());
    }
}
