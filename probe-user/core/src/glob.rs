//! Globs on names that may contain the special characters of globs: `operator[]`, `<impl Foo for
//! [T]>`.
//!
//! A name that is typed as it is must match itself. So a text matches literally, as a glob, or as a
//! glob in which only `*` and `?` are special.

use globset::{GlobBuilder, GlobMatcher};

/// A pattern for names. A backslash makes the next character literal.
#[derive(Clone, Debug)]
pub struct Glob {
    text: String,
    /// Globs with brackets and braces special and with them literal. Empty without special
    /// characters.
    readings: Vec<GlobMatcher>,
}

impl PartialEq for Glob {
    fn eq(&self, other: &Self) -> bool {
        self.text == other.text
    }
}

impl Eq for Glob {}

impl Glob {
    pub fn new(text: &str) -> Self {
        let readings = match text.contains(['*', '?', '[', '{', '\\']) {
            false => Vec::new(),
            true => [compile(text), compile(&bracket_free(text))].into_iter().flatten().collect(),
        };
        Self { text: text.to_owned(), readings }
    }

    /// Returns the text as it was typed.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Returns true if it can match one name only.
    pub fn is_literal(&self) -> bool {
        self.readings.is_empty()
    }

    pub fn matches(&self, name: &str) -> bool {
        self.text == name || self.readings.iter().any(|reading| reading.is_match(name))
    }
}

/// Compiles a plain glob, without the other readings of a [`Glob`].
pub fn compile(text: &str) -> Result<GlobMatcher, globset::Error> {
    let glob = GlobBuilder::new(text).literal_separator(false).backslash_escape(true).build();
    Ok(glob?.compile_matcher())
}

/// Returns the glob with brackets and braces as literal characters.
fn bracket_free(text: &str) -> String {
    text.chars().fold(String::with_capacity(text.len()), |mut out, character| {
        match character {
            '[' => out.push_str("[[]"),
            ']' => out.push_str("[]]"),
            '{' => out.push_str("[{]"),
            '}' => out.push_str("[}]"),
            '\\' => out.push_str("[\\\\]"),
            _ => out.push(character),
        }
        out
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, names: &[&str], others: &[&str]) {
        let glob = Glob::new(text);
        for name in names {
            assert!(glob.matches(name), "{text} should match {name}");
        }
        for name in others {
            assert!(!glob.matches(name), "{text} should not match {name}");
        }
    }

    #[test]
    fn names_match() {
        check("worker", &["worker"], &["worker-1", "Worker", ""]);
        check("worker-*", &["worker-1", "worker-a/b", "worker-"], &["worker"]);
        check("h_?", &["h_1"], &["h_12", "h_"]);
        check("h_[12]", &["h_1", "h_2", "h_[12]"], &["h_3"]);
        check("{read,writ}er", &["reader", "writer"], &["er"]);
        check("pool[*]", &["pool[7]", "pool[*]", "pool*"], &["pool7"]);
        check(r"\*", &["*", r"\*", r"\a"], &["a"]);
        check("half[", &["half["], &["half"]);
        check(r"end\", &[r"end\"], &["end"]);
        check("", &[""], &["a"]);
    }
}
