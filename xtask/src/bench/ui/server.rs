//! The server: how soon it answers, how long pictures take over a sweep of random places, and its memory.
//! All are of the process of `ctrace ui`, asked over its socket.

use super::client::Client;
use super::recording::Made;
use super::sweep::{Times, views};
use crate::bench::Row;
use crate::bench::watch::{peak, resident};
use crate::paths;
use crate::timeline::Server;
use anyhow::{Context, Result};
use serde_json::Value;
use std::time::Instant;

const PICTURES: usize = 1_000;
const PIXELS: u32 = 1_920;
/// The place in a picture's bytes that is 1 if a finer picture can be asked for, and 2 if it will be as soon as all
/// calls were read.
const NEXT: usize = 20;

/// Returns the memory of a server in MiB: now, and the most so far.
pub(super) fn memory(server: &Server) -> Result<(u64, u64)> {
    let most = peak(server.id()).context("the server has ended")?;
    let (now, _) = resident(server.id())?;
    Ok((now >> 10, most >> 10))
}

/// Returns the parameter of all rows of all threads.
fn all_rows(about: &Value) -> (String, u64) {
    let threads = about["threads"].as_array().into_iter().flatten();
    let rows: Vec<(u64, u64)> = threads
        .filter_map(|thread| Some((thread["id"].as_u64()?, thread["depths"].as_u64()?)))
        .collect();
    let words: Vec<String> =
        rows.iter().map(|(id, depths)| format!("{id}.0-{}", depths - 1)).collect();
    (words.join(","), rows.iter().map(|(_, depths)| depths).sum())
}

fn is_coarse(picture: &[u8]) -> bool {
    picture.get(NEXT) == Some(&1)
}

/// Measures the server of a recording. `before`: the last of the first pictures' p99 of a smaller one, in
/// milliseconds. Returns also that of this one.
pub(super) fn rows(recording: &Made, before: Option<f64>) -> Result<(Vec<Row>, f64)> {
    recording.forget_timeline()?;
    recording.cool()?;
    let begin = Instant::now();
    let server = Server::start(&paths::ctrace(), &recording.file(), &[])?;
    let client = Client::new(&server.url)?;
    let length = recording.length;
    let picture_of = |rows: &str, from: u64, to: u64, more: &str| {
        format!("api/picture?from={from}&to={to}&pixels={PIXELS}&rows={rows}{more}")
    };
    let (rows, _) = all_rows(&client.about()?);
    let is_draft =
        client.must(&picture_of(&rows, 0, length, "&quick=1"))?.body.get(NEXT) == Some(&2);
    let first = begin.elapsed().as_secs_f64();
    // Only now all rows are known.
    let (rows, count) = all_rows(&client.read()?);
    let picture = |from: u64, to: u64, more: &str| picture_of(&rows, from, to, more);
    client.must(&picture(0, length, ""))?;
    let exact = begin.elapsed().as_secs_f64();
    let kept = recording.kept_timeline()?;
    let (ready, _) = memory(&server)?;
    let (mut firsts, mut finals, mut coarse) = (Vec::new(), Vec::new(), 0);
    for (from, to) in views(length, PICTURES) {
        let quick = client.must(&picture(from, to, "&quick=1"))?;
        firsts.push(quick.ms);
        let rest = if is_coarse(&quick.body) {
            coarse += 1;
            client.must(&picture(from, to, ""))?.ms
        } else {
            0.0
        };
        finals.push(quick.ms + rest);
    }
    let (swept, most) = memory(&server)?;
    let tenth = format!("api/report?from={}&to={}", length / 20 * 9, length / 20 * 11);
    let report = client.must(&tenth)?.ms / 1e3;
    let (_, most_of_all) = memory(&server)?;
    drop(server);
    let (again, of_kept) = again(recording, &picture(0, length, ""))?;
    let (firsts, finals) = (Times::new(firsts), Times::new(finals));
    let last = firsts.at(0.99);
    let is_large = recording.calls > 100_000_000;
    let row = |what: &str, measured: String| Row::new(recording.row(what), measured);
    let seconds =
        |goal: f64, took: f64, row: Row| row.goal(&format!("at most {goal} s"), took <= goal);
    let sweep = row(
        &format!("first picture over a sweep of {PICTURES}, {count} rows"),
        format!("{}; {coarse} are coarse", firsts.told()),
    );
    let sweep = match before.filter(|_| is_large) {
        Some(before) => sweep.goal(
            &format!("p99 at most 1.5 times that of the recording before, {before:.2} ms"),
            last <= 1.5 * before,
        ),
        None if is_large => sweep.goal("p99 at most 3.75 ms", last <= 3.75),
        None => sweep.goal("p99 at most 2.5 ms", last <= 2.5),
    };
    let report_row = row("statistics of a tenth", format!("{report:.2} s"));
    let estimated = if is_draft { ", estimated" } else { "" };
    let measured = vec![
        seconds(0.5, first, row("first picture, cold start", format!("{first:.2} s{estimated}"))),
        seconds(
            if is_large { 30.0 } else { 3.0 },
            exact,
            row("exact overview, cold start", format!("{exact:.2} s")),
        ),
        seconds(
            0.3,
            again,
            row(
                "exact overview, cold start, with a kept timeline",
                format!(
                    "{again:.2} s; a file of {:.3} bytes a call; {of_kept} MiB of memory",
                    kept as f64 / recording.calls as f64
                ),
            ),
        ),
        sweep,
        row("exact picture over the sweep", finals.told()),
        row(
            "server's resident memory",
            format!("{ready} MiB at first, {swept} MiB after the sweep, {most} MiB at most"),
        )
        .goal("at most 256 MiB", most <= 256),
        match recording.calls > 100_000_000 {
            true => report_row,
            false => seconds(0.5, report, report_row),
        },
        row("server's memory with these statistics", format!("{most_of_all} MiB at most")),
    ];
    Ok((measured, last))
}

/// Starts another server. Returns the seconds until it had an exact picture, and its memory in MiB.
fn again(recording: &Made, picture: &str) -> Result<(f64, u64)> {
    recording.cool()?;
    let begin = Instant::now();
    let server = Server::start(&paths::ctrace(), &recording.file(), &[])?;
    let client = Client::new(&server.url)?;
    client.read()?;
    client.must(picture)?;
    Ok((begin.elapsed().as_secs_f64(), memory(&server)?.1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_rows_of_all_threads_are_asked_for() {
        let about =
            serde_json::json!({ "threads": [{ "id": 3, "depths": 2 }, { "id": 7, "depths": 1 }] });
        assert_eq!(all_rows(&about), ("3.0-1,7.0-0".to_owned(), 3));
    }
}
