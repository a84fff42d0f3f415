//! The globs that select processes.

use globset::{GlobBuilder, GlobMatcher};
use std::fmt;
use std::path::Path;
use std::sync::Arc;

/// A glob on a path, or on any other text. In paths, `*` stops at a slash; elsewhere it matches
/// anything. It always matches its own text: a path may have brackets in it.
#[derive(Clone, Debug)]
pub(crate) struct PathGlob {
    text: String,
    glob: Arc<GlobMatcher>,
}

impl PartialEq for PathGlob {
    fn eq(&self, other: &Self) -> bool {
        self.text == other.text
    }
}

impl Eq for PathGlob {}

impl fmt::Display for PathGlob {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl PathGlob {
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
        text == self.text || self.glob.is_match(text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_star_stops_at_a_slash_in_paths_only() {
        let matches = |pattern: &str, text: &str| PathGlob::parse(pattern).unwrap().matches(text);
        assert!(matches("/usr/bin/*", "/usr/bin/redis"));
        assert!(!matches("/usr/*", "/usr/bin/redis"));
        assert!(matches("/usr/**", "/usr/bin/redis"));
        assert!(matches("*--role=worker*", "/opt/app --role=worker /etc/x"));
        assert!(matches(
            r"/machine.slice/machine-qemu\x2d1*",
            r"/machine.slice/machine-qemu\x2d1.scope"
        ));
        assert!(matches("/opt/app[1]/server", "/opt/app[1]/server"));
        assert!(matches("/opt/app[1]/server", "/opt/app1/server"));
        assert!(PathGlob::parse("[").is_err());
    }
}
