//! The making of reports, and the session's additions to them.

use super::Session;
use crate::{
    bpf::{self, Release},
    session::{
        budget::{
            costs::Spent,
            evidence::{Estimate, percent_of_own, share_of_own},
        },
        keep::{counted_parts, live::Snapshot, output::Output, parts, spill::Kept},
    },
    ui::{
        output::slow::Slow,
        text::units::{self, Digits, counted},
    },
};
use ctrace_core::{
    engine::{HiddenSwitches, ReportMeta},
    function::FunctionInfo,
    recording::replay::Query,
    report::{By, Extras, FramesReport, Report},
    units::Nanos,
};
use std::time::Duration;

/// The numbers of dropped batches that are noted at a time: as many as a batch has marker buffers,
/// and as many as can wait.
const SOME_CUT_OFF: usize = 128;
const ALL_CUT_OFF: usize = 16_384;

/// The approximate time to read all marker buffers of a target.
const LOOK_TAKES: Duration = Duration::from_millis(50);

impl Session {
    /// Makes the last report, up to `end`.
    pub(crate) fn report_end(&mut self, end: Nanos) -> anyhow::Result<()> {
        self.take_all_held();
        self.engine.advance(end);
        self.engine.settle();
        let execed = self.take_changes();
        execed.into_iter().for_each(|pid| self.miss(pid));
        self.tell_what_died_with_the_target();
        let delivered: u64 = self.engine.counters().hits.iter().sum();
        self.count_losses_with(ALL_CUT_OFF)?;
        let lost = self.engine.lost();
        tracing::info!("events: {delivered} delivered, {lost} lost");
        self.log_unguarded();
        if !self.markers.is_empty() {
            let residual = self.engine.markers().clock_residual();
            tracing::info!(
                "clocks: {} samples, off the line through the two before by {} ns on average, {} ns \
                 at most",
                residual.samples,
                residual.mean.0,
                residual.largest.0,
            );
        }
        if self.found_nothing().is_some() {
            self.notes(end).iter().for_each(|note| self.warn(note));
            return self.delivery.discard();
        }
        self.name_last_addresses();
        self.end_chunks(end)?;
        // The last interval may have ended just now.
        if self.delivery.last != Some(end) {
            self.report_interval(end)?;
        }
        self.end_recording(end)
    }

    /// Notes that markers which a target had not delivered when it ended are lost.
    fn tell_what_died_with_the_target(&mut self) {
        if self.target.is_gone()
            && !self.markers.is_empty()
            && !Release::running().tells_an_end_with_its_memory()
        {
            let unseen = (self.rounds.pace.pass + LOOK_TAKES).as_secs_f64();
            self.notes.add_in_any_case(format!(
                "on kernels before 6.16, what the target's threads marked in their last {unseen:.1} s \
                 may be missing, unless they ended by themselves (at most 252 calls each)"
            ));
        }
    }

    /// Makes a report of everything since the last one, or since the start, as asked for. A session
    /// that records makes none.
    pub(super) fn report_interval(&mut self, end: Nanos) -> anyhow::Result<bool> {
        self.delivery.last = Some(end);
        self.count_losses()?;
        self.take_counts()?;
        let Some(content) = self.delivery.content() else { return Ok(true) };
        let meta = self.meta(end, content);
        let of_parts = self.delivery.output.by().cloned().map(|by| (by, meta.clone()));
        let slow = self.slow("adding up the calls…");
        if let Output::Reports(reports) = &mut self.delivery.output
            && let Some(spill) = &mut reports.spill
        {
            let kept = spill.take(end)?;
            return self.report_kept(end, &kept, meta, slow);
        }
        let cumulative = matches!(&self.delivery.output, Output::Reports(r) if r.cumulative);
        let mut report = match cumulative {
            true => self.engine.report(end, meta),
            false => {
                self.target.clock.begin_report();
                self.engine.report_interval(end, meta)
            }
        };
        self.add_samples(&mut report, end, !cumulative);
        if !cumulative {
            self.forget_running(&report);
        }
        let ids = self.arming.unarmed.leave_out(&mut report);
        drop(slow);
        if let Output::Reports(_) = &self.delivery.output {
            return self.write_counted(report, of_parts);
        }
        let snapshot = self.snapshot(report, &ids);
        self.delivery.spent = self.spent_by_function();
        match &mut self.delivery.output {
            Output::Live(live) => Ok((live.deliver)(snapshot)),
            _ => Ok(true),
        }
    }

    /// Writes a report, and those on parts of what the programs have counted.
    fn write_counted(
        &mut self,
        mut whole: Report,
        of_parts: Option<(By, ReportMeta)>,
    ) -> anyhow::Result<bool> {
        let of_parts = of_parts.as_ref().zip(self.kernel.counts());
        let parts = of_parts.map_or_else(Vec::new, |((by, meta), counts)| {
            counted_parts::reports(&self.engine, counts, by, &mut whole, meta)
        });
        let Output::Reports(reports) = &mut self.delivery.output else { return Ok(true) };
        if !reports.sink.write(&whole)? {
            return Ok(false);
        }
        for mut part in parts {
            self.arming.unarmed.leave_out(&mut part);
            if !reports.sink.write(&part)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Makes the only report, and those on its parts. `slow` is over before the first is written.
    fn report_kept(
        &mut self,
        end: Nanos,
        kept: &Kept,
        mut meta: ReportMeta,
        slow: Slow,
    ) -> anyhow::Result<bool> {
        let Output::Reports(reports) = &self.delivery.output else { return Ok(true) };
        let by = reports.by.clone();
        kept.prepare(&mut meta, reports.frame.as_deref());
        meta.extras.locks |= reports.sink.shows_found_locks() && self.engine.follows_locks();
        let mut whole = kept.report(&Query::default(), meta.clone());
        let parts = kept.parts(by.as_ref(), &mut whole);
        let of = |query: &Query| kept.report(query, meta.clone());
        drop(slow);
        let goes_on = self.write_kept(end, whole)?
            && parts.write_each(of, |report| self.write_kept(end, report))?;
        parts::say_left_out(parts.left_out);
        Ok(goes_on)
    }

    fn write_kept(&mut self, end: Nanos, mut report: Report) -> anyhow::Result<bool> {
        self.add_samples(&mut report, end, true);
        sampled_frames(&mut report);
        self.engine.add_unrecorded(&mut report);
        self.arming.unarmed.leave_out(&mut report);
        let Output::Reports(reports) = &mut self.delivery.output else { return Ok(true) };
        reports.sink.write(&report)
    }

    /// Returns the interval so far, for a session that somebody watches; the interval goes on.
    pub(crate) fn peek(&mut self) -> anyhow::Result<Option<Snapshot>> {
        let Output::Live(_) = &self.delivery.output else { return Ok(None) };
        let Some(content) = self.delivery.content() else { return Ok(None) };
        self.count_losses()?;
        let end = self.progress.settled.max(self.delivery.last.unwrap_or(self.progress.start));
        let meta = self.meta(end, content);
        let mut report = self.engine.report(end, meta);
        self.add_samples(&mut report, end, false);
        let ids = self.arming.unarmed.leave_out(&mut report);
        Ok(Some(self.snapshot(report, &ids)))
    }

    fn meta(&self, end: Nanos, (center_cut, extras): (f64, Extras)) -> ReportMeta {
        let notes = self.notes(end);
        ReportMeta { target: self.target.reported(), center_cut, notes, extras }
    }

    /// Returns the notes for a reader, besides the numbers.
    pub(super) fn notes(&self, end: Nanos) -> Vec<String> {
        let mut notes = self.notes.all();
        notes.extend(self.target.notes());
        notes.extend(self.guarded_note());
        notes.extend(self.too_deep_note());
        notes.extend(self.engine.async_note());
        notes.extend(self.unmet_note());
        notes.extend(self.left_out_notes());
        notes.extend(self.counts_notes());
        notes.extend(self.doubts());
        notes.extend(self.hidden_switches());
        notes.extend(self.unknown_wakers());
        notes.extend(self.waits());
        notes.extend(self.answered());
        notes.extend(self.exceeded_budget());
        notes.extend(self.dear_calls(end));
        notes.extend(self.cost_of_probes(end));
        notes
    }

    /// Returns the report with the cost of its functions, which have these ids, since the last one.
    fn snapshot(&self, report: Report, ids: &[usize]) -> Snapshot {
        let now = self.spent_by_function();
        let of = |all: &[Nanos], id: usize| all.get(id).copied().unwrap_or(Nanos::ZERO);
        let spent = ids.iter().map(|&id| of(&now, id).since(of(&self.delivery.spent, id)));
        Snapshot { report, spent: spent.collect(), cpu: self.target.clock.time() }
    }

    /// Returns the cost of each function's events since the start. Its probes may have been others
    /// before, so this is not the same for each event.
    fn spent_by_function(&self) -> Vec<Nanos> {
        let hits = self.hits_with_unmet();
        let costs = &self.arming.costs;
        hits.iter().enumerate().map(|(id, &events)| costs.of_function(id, events)).collect()
    }

    /// Returns a note if the target's marker buffers contain impossible counts.
    fn doubts(&self) -> Option<String> {
        let counts = self.engine.implausible_counts();
        (counts > 0).then(|| {
            format!(
                "{} in the target's marker buffers cannot be right: how many of its events are \
                 lost is not known",
                counted(counts, "count", "counts")
            )
        })
    }

    /// Returns notes if waits have no beginning or no end. Kernels of hosted machines may hide threads
    /// of the machine's own: no tracer sees a switch away from one.
    fn hidden_switches(&self) -> impl Iterator<Item = String> {
        let HiddenSwitches { away, back } = self.engine.hidden_switches();
        let untold = [
            (away, "began", "the time of these waits counts as running"),
            (back, "ended", "what the threads ran then, until their next event, counts as waiting"),
        ];
        untold.into_iter().filter(|(waits, ..)| *waits > 0).map(|(waits, what, so)| {
            let waits = counted(waits, "wait", "waits");
            format!("the kernel hid when {waits} {what} (since the start): {so}")
        })
    }

    /// Returns a note if it is not known who has ended some waits.
    fn unknown_wakers(&self) -> Option<String> {
        let waits = self.engine.unknown_wakers();
        (waits > 0).then(|| {
            let waits = counted(waits, "wait", "waits");
            format!("who ended {waits} is not known: the record of it is missing, or came too late")
        })
    }

    /// Returns a note on the time that threads waited for ctrace: the times of scopes include it.
    fn waits(&self) -> Option<String> {
        let millis = self.markers.waited.0 / 1_000_000;
        (millis > 0).then(|| {
            format!(
                "threads waited for {millis} ms in all since the start, because ctrace had not read \
                 their scopes yet: the times of scopes include that (--on-full drop loses events \
                 instead)"
            )
        })
    }

    /// Returns a note if the probes took more than the budget.
    fn exceeded_budget(&self) -> Option<String> {
        /// How many times the budget is too much, and the least cost that is worth a word.
        const TOO_MUCH: f64 = 1.5;
        const LITTLE: Nanos = Nanos::from_millis(10);
        let allowed = self.arming.budget.as_ref()?.percent();
        let (spent, used) = (self.spent(), self.target.used()?.total());
        let cost = spent.least.saturating_add(spent.aside);
        (cost > LITTLE && percent_of_own(used, cost) > TOO_MUCH * allowed).then(|| {
            let share = share_of_own(used, cost);
            format!(
                "the budget was exceeded: the probes took {share} of the CPU time that the target used \
                 for itself, and not {allowed} %. That happens in short traces, and with \
                 functions that are called in bursts"
            )
        })
    }

    /// Returns a note on the time that the probes took, if it is much: the times of the report
    /// include it.
    fn cost_of_probes(&self, end: Nanos) -> Option<String> {
        let (spent, used) = (self.spent(), self.target.used());
        let measured = self.arming.costs.of_hits().are_measured();
        let estimate = Estimate::of(&spent, measured, used);
        let used = used.map(|used| used.total());
        let note = cost_note(&spent, &estimate, end.since(self.progress.start), used)?;
        let remedy = if measured { "" } else { CALIBRATE };
        Some(note + remedy)
    }

    /// Takes the losses that the kernel counted, and batches of markers that found no room.
    pub(super) fn count_losses(&mut self) -> anyhow::Result<()> {
        self.count_losses_with(SOME_CUT_OFF)
    }

    /// Learns of the functions that the engine has added itself: waits, and names of marker scopes and methods.
    pub(super) fn know_added(&mut self) {
        if !self.arming.costs.know(self.engine.functions()) {
            return;
        }
        self.watch_slow();
        if let Some(budget) = &mut self.arming.budget {
            budget.know_names(self.engine.late_names());
        }
    }

    /// Has slow calls of the functions noticed that there are now. A wait is no call to be slow.
    pub(super) fn watch_slow(&mut self) {
        if let Some(flight) = &self.delivery.flight {
            let is_watched = |of: &FunctionInfo| of.wait.is_none() && flight.is_watched(of);
            self.engine.watch_slow(flight.threshold(), is_watched);
        }
    }

    fn count_losses_with(&mut self, cut_off: usize) -> anyhow::Result<()> {
        let lost = self.kernel.lost().read()?;
        self.engine.set_lost_events(lost.events, lost.marks);
        self.engine.set_lost_payloads(lost.payloads);
        self.count_unmet()?;
        self.count_left_out();
        self.know_added();
        if !self.markers.is_empty() {
            let dropped = self.kernel.take_cut_off(cut_off)?;
            self.engine.markers().set_cut_off(dropped, bpf::now());
            self.markers.waited = lost.waited;
        }
        Ok(())
    }
}

/// Takes frames between marks away that were armed for a part of the time: a frame would reach over the
/// marks of which nothing was seen.
fn sampled_frames(report: &mut Report) {
    let is_sampled = |frames: &FramesReport| {
        let mark = report.functions.get(frames.function);
        frames.marks.is_some() && mark.is_some_and(|mark| mark.sampled.is_some())
    };
    if report.frames.take_if(|frames| is_sampled(frames)).is_some() {
        let why = "there are no frames: to keep within the budget, their marks were switched off at times";
        report.notes.push(why.to_owned());
    }
}

/// Said behind the cost of probes where nobody has measured it.
const CALIBRATE: &str =
    "; `ctrace doctor --calibrate` measures the cost once, and reports subtract it from then on";

/// Returns a note on the cost of the probes in this time, if it may be much. `used`: the CPU time of
/// the target in it.
fn cost_note(
    spent: &Spent,
    estimate: &Estimate,
    time: Nanos,
    used: Option<Nanos>,
) -> Option<String> {
    /// Percent of the time, or of the CPU time.
    const MUCH: u64 = 10;
    /// Percent of the time of a target that does little.
    const LITTLE: u64 = 1;
    let percent = |spent: Nanos, of: Nanos| spent.0.saturating_mul(100) / of.0.max(1);
    let told = |spent| units::time(spent, Digits::Short);
    let Estimate { least, most } = *estimate;
    // The cost in a loop is an average: it may be more than there is.
    let (least, most) = match used {
        Some(used) => (least.min(used), most.map(|most| most.min(used))),
        None => (least, most),
    };
    let how_much = match most {
        None => format!("at least {}", told(least)),
        Some(most) if told(least) == told(most) => format!("about {}", told(least)),
        Some(most) => format!("{} to {}", told(least), told(most)),
    };
    // Of a target that is in the kernel for long, a few hits may be to blame for nothing.
    let cold = spent.aside.saturating_add(spent.cold());
    let high = most.unwrap_or(cold).min(cold);
    let is_much = percent(high, time) >= MUCH
        || used.is_some_and(|used| percent(high, used) >= MUCH && percent(high, time) >= LITTLE);
    let said = match used {
        Some(used) => format!(
            "by CPU time, the target is {} with the probes, which took {how_much} of its {} since the \
             start",
            estimate.slowdown(used),
            told(used)
        ),
        None => format!("{how_much} since the start"),
    };
    is_much.then(|| {
        format!(
            "probe overhead: {said}; times as seen are too long for functions that are called often, \
             and for their callers"
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cost_between_bounds_is_told_with_both() {
        let ms = Nanos::from_millis;
        let note = |traps, least, most: Option<u64>, used: Option<u64>| {
            let spent = Spent { traps: ms(traps), ..Spent::default() };
            let estimate = Estimate { least: ms(least), most: most.map(ms) };
            let note = cost_note(&spent, &estimate, ms(8_000), used.map(ms));
            note.map(|note| note.split("; times").next().expect("a part").to_owned())
        };
        assert_eq!(note(1_000, 500, Some(799), None), None);
        assert_eq!(note(60, 30, Some(5_000), Some(6_000)), None, "the target's own system time");
        let wide = note(1_000, 500, Some(1_604), None).expect("told");
        assert_eq!(wide, "probe overhead: 500 ms to 1.60 s since the start");
        let near = note(2_000, 2_000, Some(2_001), None).expect("told");
        assert_eq!(near, "probe overhead: about 2.00 s since the start");
        let open = note(4_000, 2_000, None, None).expect("told");
        assert_eq!(open, "probe overhead: at least 2.00 s since the start");
        // Of a target that hardly runs, a small part of the time is most of its own.
        assert_eq!(
            note(400, 200, Some(400), Some(500)).expect("told"),
            "probe overhead: by CPU time, the target is between 1.66 and 5.0× slower with the probes, which took \
             200 ms to 400 ms of its 500 ms since the start"
        );
        assert_eq!(note(40, 20, Some(40), Some(50)), None, "nobody waits for that");
    }
}
