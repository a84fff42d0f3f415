//! The globs that select processes.

use globset::{GlobBuilder, GlobMatcher};
use std::fmt;
use std::path::Path;
use std::sync::Arc;

/// A glob. In paths, `*` stops at a slash; elsewhere it matches anything.
#[derive(Clone, Debug)]
pub(crate) struct Glob {
    text: String,
    glob: Arc<GlobMatcher>,
}

impl PartialEq for Glob {
    fn eq(&self, other: &Self) -> bool {
        self.text == other.text
    }
}

impl Eq for Glob {}

impl fmt::Display for Glob {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl Glob {
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let glob = GlobBuilder::new(text)
            .literal_separator(text.starts_with('/'))
            // systemd writes \x2d for a dash.
            .backslash_escape(false)
            .build()
            .map_err(|error| format!("`{text}`: {}", error.kind()))?;
        Ok(Self { text: text.to_owned(), glob: Arc::new(glob.compile_matcher()) })
    }

    /// Returns the path that the pattern is, if it can match one only.
    pub(crate) fn literal_path(&self) -> Option<&Path> {
        let is_literal = !self.text.contains(['*', '?', '[', '{']);
        (is_literal && self.text.starts_with('/')).then(|| Path::new(&self.text))
    }

    pub(crate) fn matches(&self, text: &str) -> bool {
        self.glob.is_match(text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_star_stops_at_a_slash_in_paths_only() {
        let matches = |pattern: &str, text: &str| Glob::parse(pattern).unwrap().matches(text);
        assert!(matches("/usr/bin/*", "/usr/bin/redis"));
        assert!(!matches("/usr/*", "/usr/bin/redis"));
        assert!(matches("/usr/**", "/usr/bin/redis"));
        assert!(matches("*--role=worker*", "/opt/app --role=worker /etc/x"));
        assert!(matches(
            r"/machine.slice/machine-qemu\x2d1*",
            r"/machine.slice/machine-qemu\x2d1.scope"
        ));
        assert!(Glob::parse("[").is_err());
    }
}
