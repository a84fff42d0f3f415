//! A target's own counts from its standard output, to compare with a report.

use crate::report::Report;
use anyhow::{Result, ensure};

/// The lines `WORD NAME NUMBER` of a target's output.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Truth {
    pub calls: Vec<(String, u64)>,
    pub usdt: Vec<(String, u64)>,
    pub time: Vec<(String, u64)>,
    pub active: Vec<(String, u64)>,
    pub least_time: Vec<(String, u64)>,
    pub least_active: Vec<(String, u64)>,
    /// Calls that do not end, or whose end is not seen.
    pub untimed: Vec<(String, u64)>,
    /// Ends of calls whose beginning was not seen.
    pub headless: Vec<(String, u64)>,
}

impl Truth {
    pub fn parse(stdout: &str) -> Truth {
        let mut truth = Truth::default();
        for line in stdout.lines() {
            let words: Vec<&str> = line.split_whitespace().collect();
            let [kind, name, number] = words[..] else { continue };
            let Ok(number) = number.parse::<u64>() else { continue };
            let list = match kind {
                "calls" => &mut truth.calls,
                "usdt" => &mut truth.usdt,
                "time" => &mut truth.time,
                "least_time" => &mut truth.least_time,
                "least_active" => &mut truth.least_active,
                "active" => &mut truth.active,
                "untimed" => &mut truth.untimed,
                "headless" => &mut truth.headless,
                _ => continue,
            };
            // A program after an exec may report the same function again.
            match list.iter_mut().find(|(known, _)| known == name) {
                Some((_, sum)) => *sum += number,
                None => list.push((name.to_owned(), number)),
            }
        }
        truth
    }

    /// Checks that every function's `calls` are the true number, and that their parts add up.
    pub fn check_calls(&self, report: &Report) -> Result<()> {
        ensure!(!self.calls.is_empty(), "the target printed no counts");
        let mut wrong = Vec::new();
        for (name, calls) in &self.calls {
            let seen = report.function(name).map_or(0, |function| function.calls());
            if seen != *calls {
                wrong.push(format!("{name}: {seen} calls reported, {calls} made"));
            }
        }
        ensure!(wrong.is_empty(), "{}\n{}", wrong.join("; "), report.losses());
        report.check_sums()
    }

    /// Checks that every scope has the true number of calls and of ended calls, that no other scope
    /// has any, and that nothing was lost.
    pub fn check_scopes(&self, report: &Report) -> Result<()> {
        ensure!(!self.calls.is_empty(), "the target printed no counts");
        let part = |list: &[(String, u64)], name: &str| {
            list.iter().find(|(known, _)| known == name).map_or(0, |(_, number)| *number)
        };
        let mut wrong = Vec::new();
        for (name, calls) in &self.calls {
            let (untimed, headless) = (part(&self.untimed, name), part(&self.headless, name));
            let truth = (*calls, calls - untimed, untimed, 0, headless);
            let Some(scope) = report.function(name) else {
                wrong.push(format!("{name} is not in the report"));
                continue;
            };
            let (calls, timed, untimed, open) = scope.ends();
            let seen = (calls, timed, untimed, open, scope.integer("headless")?);
            if seen != truth {
                wrong.push(format!(
                    "{name}: calls, timed, untimed, open, headless are {seen:?}, not {truth:?}"
                ));
            }
        }
        let others = report.functions().filter(|f| part(&self.calls, f.name()) == 0);
        wrong.extend(
            others
                .filter(|f| f.calls() > 0)
                .map(|f| format!("{} has {} calls that nobody made", f.name(), f.calls())),
        );
        ensure!(wrong.is_empty(), "{}\n{}", wrong.join("; "), report.losses());
        report.check_sums()?;
        report.check_nearly_in_order()
    }

    /// Checks that reported times are at most what the target measured around its calls (give or
    /// take the nanoseconds between two clock readings), and at least as long as it slept. Both
    /// hold on a machine of any speed.
    pub fn check_times(&self, report: &Report) -> Result<()> {
        const CLOCKS_NS: u64 = 10_000;
        let mut wrong = Vec::new();
        for (most, least, key) in [
            (&self.time, &self.least_time, "total_ns"),
            (&self.active, &self.least_active, "active_ns"),
        ] {
            ensure!(!most.is_empty() && !least.is_empty(), "the target measured no {key}");
            let most = most.iter().map(|(name, time)| (name, 0..=time + CLOCKS_NS));
            let least = least.iter().map(|(name, time)| (name, *time..=u64::MAX));
            for (name, bounds) in most.chain(least) {
                let seen = report.expect(name)?.integer(key)?;
                if !bounds.contains(&seen) {
                    wrong.push(format!("{name}: {key} is {seen}, not within {bounds:?}"));
                }
            }
        }
        ensure!(wrong.is_empty(), "{}", wrong.join("; "));
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_parsed_and_repeated_ones_added() {
        let truth = Truth::parse("calls work 100\nsum 3\nready\ncalls work 5\ntime nap 77\nok x\n");
        assert_eq!(truth.calls, [("work".to_owned(), 105)]);
        assert_eq!(truth.time, [("nap".to_owned(), 77)]);
    }

    fn report(calls: u64, total: u64) -> Report {
        Report::parse(&format!(
            r#"{{"schema":"ctrace.report.v1","loss":{{"events":0,"late":0,"calls_untimed":0,
            "calls_open":0,"calls_headless":0,"decode_errors":0}},"functions":[{{"name":"work",
            "calls":{calls},"timed":{calls},"untimed":0,"open":0,"headless":0,"total_ns":{total},
            "self_ns":1,"active_ns":1}}]}}"#
        ))
        .expect("a report")
    }

    #[test]
    fn a_wrong_count_is_told_with_both_numbers() {
        let truth = Truth::parse("calls work 3");
        truth.check_calls(&report(3, 0)).expect("equal");
        let error = truth.check_calls(&report(2, 0)).expect_err("one short").to_string();
        assert!(error.contains("2 calls reported, 3 made"), "{error}");
    }

    #[test]
    fn of_a_scope_all_numbers_count() {
        let scopes = |stdout: &str, report: &Report| Truth::parse(stdout).check_scopes(report);
        scopes("calls work 3", &report(3, 0)).expect("equal");
        let error = scopes("calls work 3\nuntimed work 1", &report(3, 0)).expect_err("all timed");
        assert!(error.to_string().contains("(3, 3, 0, 0, 0), not (3, 2, 1, 0, 0)"), "{error}");
        let error = scopes("calls other 3", &report(3, 0)).expect_err("another");
        assert!(error.to_string().contains("work has 3 calls that nobody made"), "{error}");
        scopes("calls work 3\nheadless work 1", &report(3, 0)).expect_err("none is headless");
    }

    #[test]
    fn times_have_two_bounds() {
        let times = "time work 1000000\nactive work 9\nleast_time work 900000\nleast_active work 1";
        let check = |total| Truth::parse(times).check_times(&report(2, total));
        check(950_000).expect("between them");
        check(1_009_000).expect("clocks differ");
        check(899_000).expect_err("too short");
        check(1_011_000).expect_err("too long");
        Truth::parse("time work 1").check_times(&report(2, 0)).expect_err("only one bound");
    }
}
