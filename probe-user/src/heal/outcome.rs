//! The findings in a process, and what became of them.

use super::debugger::Debugger;
use crate::ui::text::units::{count, counted};
use serde::{Deserialize, Serialize};

/// The outcome for one process.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Outcome {
    pub pid: u32,
    /// Breakpoints in code that only the kernel can have changed.
    pub found: u64,
    /// Found ones that are gone.
    pub removed: u64,
    /// Found ones of a tracer that is still there.
    pub in_use: u64,
    /// Found ones that were left alone: a process under a debugger has some in the same places of
    /// the file, and would lose them.
    pub spared: u64,
    /// Found ones that the kernel puts no probe on: nothing was changed.
    pub refused: u64,
    /// Found ones not tried: no time was left, or the kernel had refused too many.
    pub untried: u64,
    /// Breakpoints in code that the program has made writable, so they may be its own: not touched.
    pub own: u64,
    /// Nops that the kernel has left half written, with a breakpoint before the rest of a call. It would
    /// restore one byte of the five: not touched.
    #[serde(default)]
    pub half_written: u64,
    /// Pages of code that the program has changed in other ways: not touched.
    pub changed_pages: u64,
    /// Pages of code that were not looked at, because they are swapped out or cannot be read.
    pub unread_pages: u64,
    /// The process's debugger. With one, nothing was examined.
    pub debugger: Option<Debugger>,
    /// The first few files with breakpoints, by the process's names.
    pub files: Vec<String>,
}

impl Outcome {
    /// Returns an outcome without findings.
    pub(super) fn clean(pid: u32) -> Self {
        Self { pid, ..Self::default() }
    }

    /// Returns whether breakpoints are left, or may be.
    pub(crate) fn remains(&self) -> bool {
        self.removed < self.found
            || self.own > 0
            || self.half_written > 0
            || self.unread_pages > 0
            || self.debugger.is_some()
    }

    /// Returns what was done, for unasked healing; `None` if there was nothing to do.
    pub(crate) fn removal(&self) -> Option<String> {
        let count = counted(self.removed, "breakpoint", "breakpoints");
        let removed =
            (self.removed > 0).then(|| format!("removed {count} that an earlier tracer left"));
        let told: Vec<String> = removed.into_iter().chain(self.untried_line()).collect();
        (!told.is_empty()).then(|| told.join("; "))
    }

    fn untried_line(&self) -> Option<String> {
        let count = counted(self.untried, "breakpoint", "breakpoints");
        (self.untried > 0).then(|| {
            format!(
                "{count} not looked into for lack of time, or because the kernel refused too many \
                 others: `ctrace doctor --heal {}` goes on; a program can also have written them itself",
                self.pid
            )
        })
    }

    /// Returns the full report, for `doctor --heal`.
    pub(crate) fn lines(&self) -> Vec<String> {
        let pid = self.pid;
        if let Some(Debugger { pid: debugger, name }) = &self.debugger {
            return vec![format!(
                "process {pid} is being debugged by process {debugger} ({name}): a debugger's \
                 breakpoints look like left ones, so nothing was touched; try again without it"
            )];
        }
        let breakpoints = |count| counted(count, "breakpoint", "breakpoints");
        let mut lines = Vec::new();
        if self.found == 0 {
            lines.push(format!("process {pid}: no tracer has left a breakpoint in its code"));
        } else {
            let (found, files) = (breakpoints(self.found), self.files.join(", "));
            lines.push(format!(
                "process {pid}: {found} found in {files}; {} removed",
                count(self.removed)
            ));
        }
        let mut more = |count: u64, line: String| {
            if count > 0 {
                lines.push(format!("process {pid}: {line}"));
            }
        };
        more(
            self.in_use,
            format!(
                "{} still in use by another tracer, so left in place",
                breakpoints(self.in_use)
            ),
        );
        more(
            self.refused,
            format!(
                "{} left in place, because the kernel takes no probe there: another tracer has one \
                 with another semaphore, or the program wrote them itself",
                breakpoints(self.refused)
            ),
        );
        more(
            self.spared,
            format!(
                "{} not touched: a process under a debugger has some in the same places of the file",
                breakpoints(self.spared)
            ),
        );
        more(self.untried, self.untried_line().unwrap_or_default());
        more(
            self.own,
            format!(
                "{} not touched: the program has made that code writable, so they may be its own",
                breakpoints(self.own)
            ),
        );
        more(
            self.half_written,
            format!(
                "{} not touched: a tracer was killed while the kernel wrote a call there, and it \
                 cannot put the nop back; the program needs a restart",
                breakpoints(self.half_written)
            ),
        );
        more(
            self.unread_pages,
            format!(
                "{} of its code not looked at: swapped out, or not readable",
                counted(self.unread_pages, "page", "pages")
            ),
        );
        lines
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outcome() -> Outcome {
        Outcome { found: 9, removed: 9, files: vec!["/bin/x".into()], ..Outcome::clean(7) }
    }

    #[test]
    fn a_clean_process_needs_one_line() {
        let clean = Outcome { changed_pages: 3, ..Outcome::clean(7) };
        assert_eq!(clean.lines(), ["process 7: no tracer has left a breakpoint in its code"]);
        assert_eq!((clean.remains(), clean.removal()), (false, None));
    }

    #[test]
    fn what_was_removed_does_not_remain() {
        assert_eq!(outcome().lines(), ["process 7: 9 breakpoints found in /bin/x; 9 removed"]);
        assert!(!outcome().remains());
        let told = outcome().removal().unwrap();
        assert_eq!(told, "removed 9 breakpoints that an earlier tracer left");
    }

    #[test]
    fn what_remains_is_told_with_its_reason() {
        let remains = Outcome {
            removed: 1,
            in_use: 3,
            refused: 1,
            spared: 4,
            own: 5,
            half_written: 2,
            unread_pages: 1,
            ..outcome()
        };
        let lines = remains.lines();
        assert!(remains.remains());
        assert_eq!(lines.len(), 7);
        assert!(lines[1].starts_with("process 7: 3 breakpoints still in use by another tracer"));
        assert!(lines[2].starts_with("process 7: 1 breakpoint left in place, because the kernel"));
        assert!(
            lines[3].starts_with("process 7: 4 breakpoints not touched: a process under a debug")
        );
        assert!(lines[4].starts_with("process 7: 5 breakpoints not touched: the program has made"));
        assert!(lines[5].starts_with("process 7: 2 breakpoints not touched: a tracer was killed"));
        assert!(lines[6].starts_with("process 7: 1 page of its code not looked at"));
        let late = Outcome { removed: 2, untried: 7, ..outcome() };
        let told = late.lines();
        assert!(late.remains() && told.len() == 2);
        assert!(told[1].starts_with("process 7: 7 breakpoints not looked into for lack of time"));
        assert!(told[1].contains(": `ctrace doctor --heal 7` goes on"));
        let unasked = late.removal().unwrap();
        assert!(unasked.starts_with("removed 2 breakpoints that an earlier tracer left; 7 break"));
        assert!(Outcome { removed: 0, ..late }.removal().unwrap().starts_with("7 breakpoints not"));
        for one in [
            Outcome { own: 1, ..Outcome::clean(7) },
            Outcome { half_written: 1, ..Outcome::clean(7) },
            Outcome { unread_pages: 1, ..Outcome::clean(7) },
            Outcome {
                debugger: Some(Debugger { pid: 9, name: "gdb".into() }),
                ..Outcome::clean(7)
            },
        ] {
            assert!(one.remains(), "{one:?}");
        }
    }
}
