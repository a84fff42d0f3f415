//! The thread that keeps a child running, and tells each of its failures once.

use super::{Order, Wanted, child::Running, lines::Line, others, program, reasons::Reasons};
use crate::{
    daemon::metrics::{catalog::Own, hub::MetricsHub},
    ui,
};
use std::{
    collections::VecDeque,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
        mpsc::{Receiver, RecvTimeoutError, SyncSender},
    },
    time::{Duration, Instant},
};

/// The time in which a child sends what is there and ends. It gives up somewhat earlier by itself.
const PATIENCE: Duration = Duration::from_secs(12);
/// The pause before a child is started again. Each further time doubles it.
const FIRST_PAUSE: Duration = Duration::from_secs(1);
const LONGEST_PAUSE: Duration = Duration::from_secs(60);

pub(super) struct Worker {
    metrics: MetricsHub,
    waiting: Arc<AtomicU64>,
    /// For children: their lines come among the orders.
    orders: SyncSender<Order>,
    coming: Receiver<Order>,
    /// Orders that came while a child was ended.
    later: VecDeque<Order>,
    wanted: Option<Wanted>,
    running: Option<Running>,
    last_number: u64,
    /// When to start a child, if one is wanted and none runs.
    start_at: Instant,
    /// Children that ended without having sent anything, in a row.
    in_vain: u32,
    /// A failure was told, and not its end.
    is_failing: bool,
    reasons: Reasons,
    /// A file was sent since the last failure.
    has_sent: bool,
}

impl Worker {
    pub(super) fn new(
        metrics: MetricsHub,
        orders: SyncSender<Order>,
        coming: Receiver<Order>,
    ) -> Self {
        Self {
            waiting: metrics.counter(Own::FleetFilesWaiting),
            metrics,
            orders,
            coming,
            later: VecDeque::new(),
            wanted: None,
            running: None,
            last_number: 0,
            start_at: Instant::now(),
            in_vain: 0,
            is_failing: false,
            reasons: Reasons::default(),
            has_sent: false,
        }
    }

    pub(super) fn run(&mut self) {
        loop {
            match self.next() {
                Some(Order::Configure(wanted)) if wanted == self.wanted => {}
                Some(Order::Configure(wanted)) => {
                    self.end();
                    self.wanted = wanted;
                    (self.start_at, self.in_vain) = (Instant::now(), 0);
                    self.is_failing = false;
                    self.waiting.store(0, Ordering::Relaxed);
                    self.tell_of_others();
                }
                Some(Order::Finish(_done)) => return self.end(),
                Some(order) => self.take(order),
                None => {}
            }
            if self.wanted.is_some() && self.running.is_none() && self.start_at <= Instant::now() {
                self.start();
            }
        }
    }

    /// Returns the next order, or `None` when a child is to be started.
    fn next(&mut self) -> Option<Order> {
        if let Some(order) = self.later.pop_front() {
            return Some(order);
        }
        // We hold a sender ourselves.
        match self.wanted.is_some() && self.running.is_none() {
            true => self
                .coming
                .recv_timeout(self.start_at.saturating_duration_since(Instant::now()))
                .ok(),
            false => self.coming.recv().ok(),
        }
    }

    /// Takes what a child tells.
    fn take(&mut self, order: Order) {
        let current = self.running.as_ref().map(|running| running.number);
        match order {
            Order::Told(number, line) if Some(number) == current => self.told(line),
            Order::Ended(number, how) if Some(number) == current => {
                self.running = None;
                let why = how.map_or_else(|error| error.to_string(), |status| status.to_string());
                self.fail(&format!("ctrace-store has ended: {why}"));
                self.again();
            }
            _ => {}
        }
    }

    fn told(&mut self, line: Line) {
        match line {
            Line::Begun => {}
            Line::Uploaded => {
                (self.in_vain, self.has_sent) = (0, true);
                self.metrics.count_own(Own::FleetUploads);
            }
            Line::Failed(why) => self.fail(&why),
            Line::Waiting(files) => {
                self.waiting.store(files, Ordering::Relaxed);
                // Files that were removed unsent wait no more, either.
                if self.is_failing && files == 0 && self.has_sent {
                    self.is_failing = false;
                    if let Some(Wanted { store, .. }) = &self.wanted {
                        ui::say(&format!("tables are sent to {store} again; none waits"));
                    }
                }
            }
        }
    }

    fn fail(&mut self, why: &str) {
        self.metrics.count_own(Own::FleetUploadFailures);
        self.has_sent = false;
        let Some(Wanted { folder, store, .. }) = &self.wanted else { return };
        let is_first = !std::mem::replace(&mut self.is_failing, true);
        if self.reasons.is_to_tell(why, is_first, Instant::now()) {
            ui::say(&format!(
                "cannot send tables to {store}: {why}; they wait in {} and are tried again",
                folder.display()
            ));
        }
    }

    fn tell_of_others(&self) {
        let Some(wanted) = &self.wanted else { return };
        let others = others::find(wanted);
        let Some(first) = others.first() else { return };
        let more = match others.len() - 1 {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        ui::say(&format!(
            "{}: files of the host {first}{more} wait there; only those of this one are sent",
            wanted.folder.display()
        ));
    }

    fn start(&mut self) {
        let Some(wanted) = &self.wanted else { return };
        self.last_number += 1;
        let orders = self.orders.clone();
        let started = program::find().and_then(|program| {
            Running::start(&program, wanted, self.last_number, orders)
                .map_err(|error| format!("cannot start {}: {error}", program.display()))
        });
        match started {
            Ok(running) => self.running = Some(running),
            Err(why) => {
                self.fail(&why);
                self.again();
            }
        }
    }

    /// Plans another start.
    fn again(&mut self) {
        let pause = FIRST_PAUSE.saturating_mul(2_u32.saturating_pow(self.in_vain));
        self.in_vain = self.in_vain.saturating_add(1);
        self.start_at = Instant::now() + pause.min(LONGEST_PAUSE);
    }

    /// Ends the child, if one runs: it has some time for what is there, and is killed then.
    fn end(&mut self) {
        let Some(mut running) = self.running.take() else { return };
        running.finish();
        let number = running.number;
        let patience = Instant::now() + PATIENCE;
        // Its failures were told. What stays is sent by the next one.
        loop {
            match self.coming.recv_timeout(patience.saturating_duration_since(Instant::now())) {
                Ok(Order::Ended(ended, _)) if ended == number => return,
                Ok(Order::Told(told, line)) if told == number => self.told(line),
                Ok(order) => self.later.push_back(order),
                Err(RecvTimeoutError::Timeout) => break,
                // We hold a sender ourselves.
                Err(RecvTimeoutError::Disconnected) => return,
            }
        }
        running.kill();
        ui::say(
            "ctrace-store does not end in time, and is killed; its files wait for the next one",
        );
    }
}
