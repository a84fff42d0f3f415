//! A report in JSON.

use crate::env::workspace;
use anyhow::{Context, Result, anyhow, ensure};
use serde_json::Value;

/// One `ctrace.report.v1` object.
#[derive(Clone, Debug)]
pub struct Report(pub Value);

/// One element of `functions`.
#[derive(Clone, Copy, Debug)]
pub struct Function<'a>(pub &'a Value);

impl Report {
    pub fn parse(text: &str) -> Result<Report> {
        let value: Value = serde_json::from_str(text)
            .with_context(|| format!("not one JSON object: {}", head(text)))?;
        ensure!(value["schema"] == "ctrace.report.v1", "schema is {}", value["schema"]);
        ensure!(value["functions"].is_array(), "no functions: {}", head(text));
        Ok(Report(value))
    }

    /// Checks it against `docs/report.schema.json`. Without that file (in a virtual machine) it
    /// checks nothing.
    pub fn check_schema(&self) -> Result<()> {
        let Ok(text) = std::fs::read_to_string(workspace().join("docs/report.schema.json")) else {
            return Ok(());
        };
        let schema: Value = serde_json::from_str(&text).context("docs/report.schema.json")?;
        let validator = jsonschema::validator_for(&schema)?;
        let errors: Vec<String> = validator
            .iter_errors(&self.0)
            .map(|error| format!("{} at {}", error, error.instance_path()))
            .take(5)
            .collect();
        if errors.is_empty() {
            Ok(())
        } else {
            Err(anyhow!("not as docs/report.schema.json says: {}", errors.join("; ")))
        }
    }

    pub fn functions(&self) -> impl Iterator<Item = Function<'_>> {
        self.0["functions"].as_array().into_iter().flatten().map(Function)
    }

    /// Returns the function of this name or alias, ignoring C++ arguments.
    pub fn function(&self, name: &str) -> Option<Function<'_>> {
        self.functions().find(|function| {
            bare(function.name()) == name
                || function.0["aliases"]
                    .as_array()
                    .is_some_and(|aliases| aliases.iter().any(|alias| alias == name))
        })
    }

    /// Returns the function, or an error that lists the existing ones.
    pub fn expect(&self, name: &str) -> Result<Function<'_>> {
        self.function(name).with_context(|| {
            let names: Vec<&str> = self.functions().map(|function| function.name()).collect();
            format!("{name} is not among the functions {names:?}")
        })
    }

    /// Returns the call paths, in order.
    pub fn paths(&self) -> Vec<Vec<&str>> {
        fn names(path: &Value) -> Vec<&str> {
            let names = path["path"].as_array().into_iter().flatten();
            names.filter_map(Value::as_str).collect()
        }
        let paths = self.0["paths"].as_array().into_iter().flatten();
        let mut paths: Vec<_> = paths.map(names).collect();
        paths.sort_unstable();
        paths
    }

    pub fn loss(&self, key: &str) -> u64 {
        self.0["loss"][key].as_u64().unwrap_or(u64::MAX)
    }

    /// Returns the `loss` object, for error messages.
    pub fn losses(&self) -> String {
        format!("loss: {}", self.0["loss"])
    }

    /// Fails unless a note contains all these words.
    pub fn expect_note(&self, words: &[&str]) -> Result<()> {
        let notes = self.0["notes"].as_array().into_iter().flatten().filter_map(Value::as_str);
        let found = notes.clone().any(|note| words.iter().all(|word| note.contains(word)));
        ensure!(found, "no note says {words:?}: {:?}", notes.collect::<Vec<_>>());
        Ok(())
    }

    /// Checks that `timed + untimed + open = calls` for each function, and that `loss` has their
    /// sums.
    pub fn check_sums(&self) -> Result<()> {
        let (mut untimed, mut open, mut headless) = (0, 0, 0);
        for function in self.functions() {
            let part = |key| function.integer(key);
            ensure!(
                part("timed")? + part("untimed")? + part("open")? == function.calls(),
                "timed, untimed and open of {} do not add up: {}",
                function.name(),
                function.0
            );
            // A marker's point has no end that could be missing.
            if function.0["point"].is_null() {
                untimed += part("untimed")?;
            }
            open += part("open")?;
            headless += part("headless")?;
        }
        for (key, sum) in
            [("calls_untimed", untimed), ("calls_open", open), ("calls_headless", headless)]
        {
            ensure!(self.loss(key) == sum, "loss.{key} is {}, its parts {sum}", self.loss(key));
        }
        Ok(())
    }

    /// Checks that no event was dropped, late or malformed.
    pub fn check_lossless(&self) -> Result<()> {
        ensure!(self.loss("late") == 0, "{}", self.losses());
        self.check_complete()
    }

    /// Checks the same, but for one in a hundred that is late. On a busy host, a thread may lose its
    /// processor in the middle of a record. Its call is counted and timed all the same.
    pub fn check_nearly_in_order(&self) -> Result<()> {
        let calls: u64 = self.functions().map(Function::calls).sum();
        ensure!(self.loss("late") <= calls / 100, "{} of {calls} calls", self.losses());
        self.check_complete()
    }

    fn check_complete(&self) -> Result<()> {
        for key in ["events", "decode_errors"] {
            ensure!(self.loss(key) == 0, "{}", self.losses());
        }
        Ok(())
    }
}

impl<'a> Function<'a> {
    pub fn name(self) -> &'a str {
        self.0["name"].as_str().unwrap_or("")
    }

    pub fn calls(self) -> u64 {
        self.0["calls"].as_u64().unwrap_or(0)
    }

    pub fn integer(self, key: &str) -> Result<u64> {
        self.0[key]
            .as_u64()
            .with_context(|| format!("{} of {} is {}", key, self.name(), self.0[key]))
    }

    /// Returns `calls`, `timed`, `untimed`, `open`.
    pub fn ends(self) -> (u64, u64, u64, u64) {
        let part = |key: &str| self.0[key].as_u64().unwrap_or(u64::MAX);
        (part("calls"), part("timed"), part("untimed"), part("open"))
    }
}

fn bare(name: &str) -> &str {
    name.split('(').next().unwrap_or(name)
}

fn head(text: &str) -> String {
    text.chars().take(300).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(timed: u64, loss_open: u64) -> Report {
        Report::parse(&format!(
            r#"{{"schema":"ctrace.report.v1","loss":{{"events":0,"late":0,"calls_untimed":1,
            "calls_open":{loss_open},"calls_headless":0,"decode_errors":0}},"functions":[{{"name":
            "thrower(int)","aliases":["other"],"calls":4,"timed":{timed},"untimed":1,"open":1,
            "headless":0}}]}}"#
        ))
        .expect("a report")
    }

    #[test]
    fn functions_are_found_by_bare_name_and_alias() {
        let report = sample(2, 1);
        assert_eq!(report.expect("thrower").expect("found").ends(), (4, 2, 1, 1));
        assert!(report.function("other").is_some());
        let error = report.expect("thrown").expect_err("no such").to_string();
        assert!(error.contains("thrower(int)"), "{error}");
    }

    #[test]
    fn sums_that_do_not_add_up_are_errors() {
        sample(2, 1).check_sums().expect("2 + 1 + 1 = 4");
        assert!(sample(3, 1).check_sums().is_err());
        assert!(sample(2, 0).check_sums().is_err());
    }

    #[test]
    fn other_schemas_are_refused() {
        assert!(Report::parse(r#"{"schema":"ctrace.report.v2","functions":[]}"#).is_err());
        assert!(Report::parse("table").is_err());
    }
}
