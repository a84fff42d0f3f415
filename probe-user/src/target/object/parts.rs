//! Parts that the compiler splits from a function: `f.cold`, `f.part.0`.
//!
//! A part may begin with code of a function that was inlined, and then the file of that function is
//! what the line table says. So the place of a part in the source is that of the whole function.

use super::Object;
use super::symbols::Function;
use crate::target::debug_info::lines::SourceLine;
use crate::target::names::demangle::{is_part, without_suffix};
use std::collections::HashMap;

/// The addresses of whole functions, by those of their parts.
#[derive(Debug, Default)]
pub(crate) struct Parts(HashMap<u64, u64>);

impl Parts {
    pub(crate) fn of(functions: &[Function]) -> Self {
        let mut parts = HashMap::<&str, Vec<u64>>::new();
        for function in functions.iter().filter(|function| is_part(function.raw())) {
            parts.entry(without_suffix(function.raw())).or_default().push(function.address);
        }
        let mut whole = HashMap::new();
        if !parts.is_empty() {
            for function in functions {
                let of_it = function.raws().filter_map(|raw| parts.get(raw)).flatten();
                whole.extend(of_it.map(|part| (*part, function.address)));
            }
        }
        Self(whole)
    }
}

impl Object {
    /// Returns the place of a function in the source.
    pub(crate) fn line_of(&self, function: &Function) -> Option<SourceLine> {
        let whole = is_part(function.raw())
            .then(|| self.symbols().parts().0.get(&function.address).copied());
        let address = whole.flatten().unwrap_or(function.address);
        self.with_lines(|lines| lines.of_function(address))
    }
}

#[cfg(test)]
mod tests {
    use crate::target::fixtures::compile;

    #[test]
    fn a_part_is_where_its_function_is() {
        let source = r#"
            #include <string>
            #include <vector>
            __attribute__((noinline)) std::string shout(int v) { return std::to_string(v) + "!"; }
            __attribute__((noinline)) int at(std::vector<int> const &all, int v) { return all.at(v); }
            int main(int c, char **v) { return shout(c).size() + at({c, 2}, c); }
        "#;
        let built = compile("g++ -O2 -g", "cpp", source);
        let object = built.object();
        let line = |raw: &str| {
            let function = object.functions().iter().find(|function| function.raw() == raw)?;
            object.line_of(function).map(|line| (line.file.to_string(), line.line))
        };
        let expected = Some(("input.cpp".to_owned(), Some(4)));
        assert_eq!(line("_Z5shoutB5cxx11i"), expected);
        // Where this compiler splits it.
        let part = "_Z5shoutB5cxx11i.cold";
        assert!(object.functions().iter().any(|function| function.raw() == part), "no cold part");
        assert_eq!(line(part), expected);
    }
}
