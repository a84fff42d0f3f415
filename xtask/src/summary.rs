//! Summarizes the stages: a table, counts, and one last plain line.

use crate::skips;
use std::fmt::Write;
use std::ops::AddAssign;

/// The end of a stage.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    Passed,
    Failed(String),
    Skipped(String),
}

impl Outcome {
    /// Returns the outcome of two parts of a stage.
    pub(crate) fn and(self, other: Outcome) -> Outcome {
        match (self, other) {
            (Outcome::Failed(one), Outcome::Failed(other)) => {
                Outcome::Failed(format!("{one}, {other}"))
            }
            (failed @ Outcome::Failed(_), _) | (_, failed @ Outcome::Failed(_)) => failed,
            (Outcome::Passed, other) => other,
            (skipped, _) => skipped,
        }
    }
}

/// One stage with its counts. A stage that counts nothing is itself one check.
#[derive(Clone, Debug)]
pub(crate) struct Stage {
    pub name: String,
    pub outcome: Outcome,
    pub seconds: f64,
    pub counts: Counts,
}

/// The counts of checks within a stage.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Counts {
    pub passed: usize,
    pub failed: usize,
    pub skipped: usize,
}

impl AddAssign for Counts {
    fn add_assign(&mut self, other: Counts) {
        self.passed += other.passed;
        self.failed += other.failed;
        self.skipped += other.skipped;
    }
}

impl Counts {
    /// Counts the result lines of `cargo test`, less the tests that skipped themselves.
    pub(crate) fn of_cargo_test(output: &str) -> Counts {
        let mut counts = Counts::default();
        for line in output.lines() {
            if let Some(result) = line.trim().strip_prefix("test result:") {
                let number = |word: &str| {
                    let before = result.split(word).next()?;
                    before.trim().rsplit([' ', '.']).next()?.parse::<usize>().ok()
                };
                counts.passed += number(" passed").unwrap_or(0);
                counts.failed += number(" failed").unwrap_or(0);
                counts.skipped += number(" ignored").unwrap_or(0);
            }
        }
        let skipped = skips::of_themselves(output).len();
        counts.passed = counts.passed.saturating_sub(skipped);
        counts.skipped += skipped;
        counts
    }

    /// Counts the output of the `cases` program.
    pub(crate) fn of_cases(output: &str) -> Counts {
        let starting = |word| output.lines().filter(|line| line.starts_with(word)).count();
        Counts {
            passed: starting("ok "),
            failed: starting("failed "),
            skipped: starting("skipped "),
        }
    }

    fn is_empty(self) -> bool {
        self == Counts::default()
    }
}

/// All stages so far.
#[derive(Debug, Default)]
pub(crate) struct Summary {
    stages: Vec<Stage>,
}

impl Summary {
    pub(crate) fn add(&mut self, stage: Stage) {
        match &stage.outcome {
            Outcome::Skipped(why) => eprintln!("{} SKIPPED: {why}", stage.name),
            Outcome::Failed(why) => eprintln!("{} FAILED: {why}", stage.name),
            Outcome::Passed => {}
        }
        self.stages.push(stage);
    }

    pub(crate) fn counts(&self) -> Counts {
        let mut sum = Counts::default();
        for stage in &self.stages {
            sum += stage.counts;
            match &stage.outcome {
                Outcome::Passed if stage.counts.is_empty() => sum.passed += 1,
                Outcome::Skipped(_) if stage.counts.is_empty() => sum.skipped += 1,
                // It failed without a failed check: it crashed, or did not get that far.
                Outcome::Failed(_) if stage.counts.failed == 0 => sum.failed += 1,
                _ => {}
            }
        }
        sum
    }

    pub(crate) fn failed(&self) -> bool {
        self.counts().failed > 0
    }

    /// Returns the table and the last line.
    pub(crate) fn render(&self) -> String {
        let width = self.stages.iter().map(|stage| stage.name.len()).max().unwrap_or(0);
        let mut text = String::new();
        for stage in &self.stages {
            let (word, why) = match &stage.outcome {
                Outcome::Passed => ("passed", None),
                Outcome::Failed(why) => ("FAILED", Some(why)),
                Outcome::Skipped(why) => ("skipped", Some(why)),
            };
            let _ = write!(text, "{:width$}  {word:7}  {:>7.1} s", stage.name, stage.seconds);
            if !stage.counts.is_empty() {
                let Counts { passed, failed, skipped } = stage.counts;
                let _ = write!(text, "  {passed} passed, {failed} failed, {skipped} skipped");
            }
            if let Some(why) = why {
                let _ = write!(text, "  {why}");
            }
            text.push('\n');
        }
        let Counts { passed, failed, skipped } = self.counts();
        let _ = writeln!(text, "\n{passed} passed, {failed} failed, {skipped} skipped");
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const OUTPUT: &str = "\
running 3 tests
test a ... ok
skipped kernel::session::counts: needs root (CAP_SYS_ADMIN)
skipped kernel::session::threads: needs root (CAP_SYS_ADMIN)
test result: ok. 3 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.1s
test result: FAILED. 10 passed; 2 failed; 1 ignored; 0 measured; 0 filtered out
";

    #[test]
    fn a_part_that_failed_is_never_lost() {
        let failed = |why: &str| Outcome::Failed(why.into());
        assert_eq!(failed("a").and(failed("b")), failed("a, b"));
        assert_eq!(Outcome::Passed.and(failed("c")), failed("c"));
        assert_eq!(failed("d").and(Outcome::Skipped("no root".into())), failed("d"));
        assert_eq!(Outcome::Passed.and(Outcome::Passed), Outcome::Passed);
    }

    #[test]
    fn self_skipped_tests_are_not_passed_ones() {
        assert_eq!(Counts::of_cargo_test(OUTPUT), Counts { passed: 11, failed: 2, skipped: 3 });
    }

    fn stage(outcome: Outcome, counts: Counts) -> Stage {
        Stage { name: "stage".into(), outcome, seconds: 1.0, counts }
    }

    #[test]
    fn a_stage_without_counts_is_one_check() {
        let mut summary = Summary::default();
        summary.add(stage(Outcome::Passed, Counts::default()));
        summary.add(stage(Outcome::Passed, Counts { passed: 7, failed: 0, skipped: 2 }));
        summary.add(stage(Outcome::Skipped("no".into()), Counts::default()));
        assert!(!summary.failed());
        assert!(summary.render().ends_with("\n8 passed, 0 failed, 3 skipped\n"));
        // The run was aborted after six passed tests.
        summary.add(stage(
            Outcome::Failed("crash".into()),
            Counts { passed: 6, failed: 0, skipped: 0 },
        ));
        assert!(summary.failed());
        assert!(summary.render().ends_with("\n14 passed, 1 failed, 3 skipped\n"));
    }
}
