//! Any file is a report that can be compared or a clear error, and whatever a report claims, it can
//! be compared with itself.

use ctrace_core::diff::{ComparedFile, Content, Options, ReportFacts, diff};

pub fn check(bytes: &[u8]) {
    let Ok(facts) = ReportFacts::parse(bytes) else { return };
    let chosen = vec![true; facts.functions().len()];
    for functions in [None, Some(chosen.as_slice())] {
        let source = || ComparedFile {
            file: String::new(),
            content: Content::Report { facts: &facts, functions },
        };
        let diff = diff(&[source()], &[source()], &Options::default());
        assert!(diff.functions.len() <= facts.functions().len());
    }
}
