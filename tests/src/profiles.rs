//! Reads profiles as their receivers do: OTLP with OpenTelemetry's types, pprof, and Parca's JSON.

use anyhow::{Context, Result, ensure};
use flate2::read::GzDecoder;
use opentelemetry_proto::tonic::collector::profiles::v1development::ExportProfilesServiceRequest;
use prost::Message;
use serde_json::Value;
use std::collections::BTreeMap;
use std::io::Read as _;

/// Calls and own time by stack, innermost function first.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Stacks(pub BTreeMap<Vec<String>, [u64; 2]>);

impl Stacks {
    fn add(&mut self, stack: Vec<String>, at: usize, value: i64) -> Result<()> {
        self.0.entry(stack).or_default()[at] += u64::try_from(value)?;
        Ok(())
    }

    /// Adds those of an export. Returns its beginning and its end in nanoseconds since 1970.
    pub fn add_otlp(&mut self, body: &[u8]) -> Result<(u64, u64)> {
        let request = ExportProfilesServiceRequest::decode(body)?;
        let all = request.dictionary.context("a dictionary")?;
        let text = |at: i32| all.string_table.get(at as usize).context("a string");
        let mut times = None;
        let scopes = request.resource_profiles.iter().flat_map(|one| &one.scope_profiles);
        for profile in scopes.flat_map(|scope| &scope.profiles) {
            let kind = profile.sample_type.context("a type")?;
            let at = match &**text(kind.type_strindex)? {
                "calls" => 0,
                "wall" => 1,
                other => anyhow::bail!("{other}"),
            };
            let (begun, lasted) = (profile.time_unix_nano, profile.duration_nano);
            ensure!(times.is_none_or(|known| known == (begun, begun + lasted)), "other times");
            times = Some((begun, begun + lasted));
            for sample in &profile.samples {
                let stack = all.stack_table.get(sample.stack_index as usize).context("a stack")?;
                let names = stack.location_indices.iter().map(|at| {
                    let location = all.location_table.get(*at as usize).context("a location")?;
                    let line = location.lines.first().context("a line")?;
                    let function = all.function_table.get(line.function_index as usize);
                    text(function.context("a function")?.name_strindex).cloned()
                });
                let [value] = sample.values[..] else { anyhow::bail!("{sample:?}") };
                self.add(names.collect::<Result<_>>()?, at, value)?;
            }
        }
        times.context("a profile")
    }

    /// Adds those of a file of pprof.
    pub fn add_pprof(&mut self, file: &[u8]) -> Result<()> {
        let mut bytes = Vec::new();
        GzDecoder::new(file).read_to_end(&mut bytes)?;
        let read = Pprof::decode(&*bytes)?;
        for sample in &read.sample {
            let names = sample.location_id.iter().map(|id| {
                let location = read.location.iter().find(|location| location.id == *id);
                let line = location.and_then(|location| location.line.first()).context("a line")?;
                let function = read.function.iter().find(|function| function.id == line.id);
                let name = function.context("a function")?.name;
                read.string_table.get(name as usize).cloned().context("a string")
            });
            let names: Vec<_> = names.collect::<Result<_>>()?;
            let [calls, wall] = sample.value[..] else { anyhow::bail!("{sample:?}") };
            self.add(names.clone(), 0, calls)?;
            self.add(names, 1, wall)?;
        }
        Ok(())
    }

    /// Adds those of a request to Parca. Returns its labels.
    pub fn add_parca(&mut self, body: &[u8]) -> Result<BTreeMap<String, String>> {
        let body: Value = serde_json::from_slice(body)?;
        let series = &body["series"][0];
        let file = series["samples"][0]["rawProfile"].as_str().context("a file")?;
        self.add_pprof(&of_base64(file)?)?;
        let labels = series["labels"]["labels"].as_array().context("labels")?.iter();
        let text = |of: &Value| of.as_str().context("a text").map(str::to_owned);
        labels.map(|one| Ok((text(&one["name"])?, text(&one["value"])?))).collect()
    }

    /// Returns the calls and the own time of a function on all stacks.
    pub fn of(&self, name: &str) -> [u64; 2] {
        let ends_there =
            self.0.iter().filter(|(stack, _)| stack.first().is_some_and(|f| f == name));
        ends_there.fold([0; 2], |sum, (_, values)| [sum[0] + values[0], sum[1] + values[1]])
    }
}

fn of_base64(text: &str) -> Result<Vec<u8>> {
    let signs = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let (mut out, mut bits, mut held) = (Vec::new(), 0_u32, 0);
    for sign in text.trim_end_matches('=').chars() {
        bits = bits << 6 | u32::try_from(signs.find(sign).context("no base64")?)?;
        held += 6;
        if held >= 8 {
            held -= 8;
            out.push((bits >> held) as u8);
        }
    }
    ensure!(text.len().is_multiple_of(4), "no padding");
    Ok(out)
}

/// The parts of pprof's `Profile` that are used.
#[derive(Clone, PartialEq, Message)]
struct Pprof {
    #[prost(message, repeated, tag = "2")]
    sample: Vec<Sample>,
    #[prost(message, repeated, tag = "4")]
    location: Vec<Location>,
    #[prost(message, repeated, tag = "5")]
    function: Vec<Function>,
    #[prost(string, repeated, tag = "6")]
    string_table: Vec<String>,
}

#[derive(Clone, PartialEq, Message)]
struct Sample {
    #[prost(uint64, repeated, tag = "1")]
    location_id: Vec<u64>,
    #[prost(int64, repeated, tag = "2")]
    value: Vec<i64>,
}

#[derive(Clone, PartialEq, Message)]
struct Location {
    #[prost(uint64, tag = "1")]
    id: u64,
    #[prost(message, repeated, tag = "4")]
    line: Vec<Line>,
}

#[derive(Clone, PartialEq, Message)]
struct Line {
    #[prost(uint64, tag = "1")]
    id: u64,
}

#[derive(Clone, PartialEq, Message)]
struct Function {
    #[prost(uint64, tag = "1")]
    id: u64,
    #[prost(int64, tag = "2")]
    name: i64,
}
