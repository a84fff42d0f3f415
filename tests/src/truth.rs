//! What a target says about itself on its standard output, and a report held against it.

use crate::report::Report;
use anyhow::{Context, Result, bail, ensure};

/// The lines `WORD NAME NUMBER` of a target's output.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Truth {
    pub calls: Vec<(String, u64)>,
    pub usdt: Vec<(String, u64)>,
    pub time: Vec<(String, u64)>,
    pub self_time: Vec<(String, u64)>,
    pub active: Vec<(String, u64)>,
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
                "self" => &mut truth.self_time,
                "active" => &mut truth.active,
                _ => continue,
            };
            // A program after an exec may speak of the same function again.
            match list.iter_mut().find(|(known, _)| known == name) {
                Some((_, sum)) => *sum += number,
                None => list.push((name.to_owned(), number)),
            }
        }
        truth
    }

    /// Every function's `calls` are the true number, and their parts add up.
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

    /// Reported times are those the target measured, within `slack_ns` for each call.
    pub fn check_times(&self, report: &Report, slack_ns: u64) -> Result<()> {
        let mut wrong = Vec::new();
        for (list, key) in
            [(&self.time, "total_ns"), (&self.self_time, "self_ns"), (&self.active, "active_ns")]
        {
            for (name, truth) in list {
                let function = report
                    .function(name)
                    .with_context(|| format!("{name} is not in the report"))?;
                let seen = function.integer(key)?;
                let slack = slack_ns * function.calls().max(1);
                if seen.abs_diff(*truth) > slack {
                    wrong.push(format!("{name}: {key} is {seen}, the target measured {truth}"));
                }
            }
        }
        if !wrong.is_empty() {
            bail!("{} (allowed: {slack_ns} ns a call)", wrong.join("; "));
        }
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
    fn times_have_slack_per_call() {
        let truth = Truth::parse("time work 1000000");
        truth.check_times(&report(2, 1_001_500), 1000).expect("within 2 µs");
        assert!(truth.check_times(&report(2, 1_002_500), 1000).is_err());
    }
}
