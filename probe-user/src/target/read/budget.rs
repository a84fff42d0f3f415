//! Bounds what a look into one object may cost.
//!
//! A file of a few kilobytes can claim sections of terabytes and name a billion things. So every
//! read, every table and every long loop draws from a budget that the object and its debug file
//! share. When the budget is used up, the look ends and reports so.

use rustix::time::{ClockId, clock_gettime};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// The memory and CPU time that an object may take. CPU time, because a busy host makes no file
/// larger.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ObjectLimits {
    /// In bytes.
    pub memory: u64,
    pub time: Duration,
}

impl ObjectLimits {
    pub const DEFAULT: Self = Self { memory: 512 << 20, time: Duration::from_secs(10) };

    /// Returns the limits for all objects of a process: there may be thousands, each at its limit.
    fn together(self) -> Self {
        const OBJECTS: u32 = 4;
        Self {
            memory: self.memory.saturating_mul(OBJECTS.into()),
            time: self.time.saturating_mul(OBJECTS),
        }
    }
}

impl Default for ObjectLimits {
    fn default() -> Self {
        Self::DEFAULT
    }
}

/// The reason why a look at an object ended early.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TooLarge {
    #[error(
        "is too large: looking into it needs more than {} MiB of memory; allow more with \
         --max-object-memory or, for the daemon, max_object_memory",
        .0 >> 20
    )]
    Memory(u64),
    #[error(
        "is too large: looking into it takes longer than {:?}; allow more with --max-object-time \
         or, for the daemon, max_object_time",
        .0
    )]
    Time(Duration),
    #[error(
        "is too large beside the other files of its process, which together may take {} MiB of \
         memory and {:?}; allow more with --max-object-memory and --max-object-time",
        .0.memory >> 20, .0.time
    )]
    Together(ObjectLimits),
    #[error("is too large: the system has no {} MiB of memory left to look into it", .0 >> 20)]
    NoMemory(u64),
}

/// The memory and time that an object and its debug file have left.
#[derive(Debug, Default)]
pub struct Budget {
    limits: ObjectLimits,
    used: AtomicU64,
    clock: Mutex<Clock>,
    refusal: Mutex<Option<TooLarge>>,
    /// The budget that all objects of the process share.
    all: Option<Arc<Budget>>,
}

/// Runs while somebody looks.
#[derive(Debug, Default)]
struct Clock {
    spent: Duration,
    /// The CPU time of the looking thread when the look began.
    since: Option<Duration>,
    lookers: u32,
}

impl Budget {
    pub fn new(limits: ObjectLimits) -> Arc<Self> {
        Arc::new(Self { limits, ..Self::default() })
    }

    /// Returns the budget that the objects of a process, each with these limits, share.
    pub(crate) fn of_all(limits: ObjectLimits) -> Arc<Self> {
        Self::new(limits.together())
    }

    /// Returns the budget of one object that draws from a shared one, too.
    pub(crate) fn within(limits: ObjectLimits, all: &Arc<Self>) -> Arc<Self> {
        Arc::new(Self { limits, all: Some(Arc::clone(all)), ..Self::default() })
    }

    /// Takes memory for as long as the object exists.
    pub(crate) fn charge(&self, bytes: u64) -> Result<(), TooLarge> {
        self.take(bytes).map_err(|why| self.refuse(why))
    }

    /// Like [`Self::charge`], for optional data: a refusal is not recorded.
    pub(crate) fn has_room(&self, bytes: u64) -> bool {
        self.take(bytes).is_ok()
    }

    fn take(&self, bytes: u64) -> Result<(), TooLarge> {
        let more = |used: u64| used.checked_add(bytes).filter(|used| *used <= self.limits.memory);
        self.used
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, more)
            .map_err(|_| TooLarge::Memory(self.limits.memory))?;
        let Some(all) = &self.all else { return Ok(()) };
        all.take(bytes).map_err(|_| {
            self.used.fetch_sub(bytes, Ordering::Relaxed);
            TooLarge::Together(all.limits)
        })
    }

    /// Takes memory for as long as the loan lives.
    pub(crate) fn lend(&self, bytes: u64) -> Result<Loan<'_>, TooLarge> {
        self.charge(bytes)?;
        Ok(Loan { budget: self, bytes })
    }

    pub(crate) fn used(&self) -> u64 {
        self.used.load(Ordering::Relaxed)
    }

    /// Gives back the charge of something that is gone.
    pub(crate) fn release(&self, bytes: u64) {
        self.used.fetch_sub(bytes, Ordering::Relaxed);
        if let Some(all) = &self.all {
            all.release(bytes);
        }
    }

    /// Gives back the time spent on something that no longer exists. The objects of a process together have
    /// taken it all the same: a thousand broken files would take a thousand times as long otherwise.
    pub(crate) fn release_time(&self, time: Duration) {
        let mut clock = self.clock();
        let rest = time.saturating_sub(clock.spent);
        clock.spent = clock.spent.saturating_sub(time);
        clock.since = clock.since.map(|since| (since + rest).min(own_time()));
    }

    /// Returns the result of `read`, of something optional. If that is `useless`, its time is given back: the
    /// object can be looked into without it.
    pub(crate) fn try_optional<T>(
        &self,
        read: impl FnOnce() -> T,
        useless: impl FnOnce(&T) -> bool,
    ) -> T {
        let start = own_time();
        let found = read();
        if useless(&found) {
            self.release_time(own_time().saturating_sub(start));
        }
        found
    }

    /// Fails when no time is left.
    pub(crate) fn check(&self) -> Result<(), TooLarge> {
        let late = match &self.all {
            _ if self.is_late() => TooLarge::Time(self.limits.time),
            Some(all) if all.is_late() => TooLarge::Together(all.limits),
            _ => return Ok(()),
        };
        Err(self.refuse(late))
    }

    fn is_late(&self) -> bool {
        let clock = self.clock();
        let spent = clock.spent
            + clock.since.map_or(Duration::ZERO, |since| own_time().saturating_sub(since));
        spent > self.limits.time
    }

    /// Starts the clock, which runs while the result lives.
    pub(crate) fn look(&self) -> Stopwatch<'_> {
        for budget in std::iter::once(self).chain(self.all.as_deref()) {
            let mut clock = budget.clock();
            clock.lookers += 1;
            clock.since.get_or_insert_with(own_time);
        }
        Stopwatch(self)
    }

    /// Checks the clock once in many turns of a loop.
    pub(crate) fn ticker(&self) -> Ticker<'_> {
        Ticker { budget: self, turns: 0 }
    }

    /// Returns the result of `read` and its first refusal. For readers that cannot say why they
    /// found nothing. Earlier refusals are not counted.
    pub(crate) fn watch<T>(&self, read: impl FnOnce() -> T) -> (T, Option<TooLarge>) {
        let before = self.refusal().take();
        let value = read();
        (value, std::mem::replace(&mut *self.refusal(), before))
    }

    /// Records the refusal for a caller that watches.
    pub(crate) fn refuse(&self, why: TooLarge) -> TooLarge {
        self.refusal().get_or_insert(why);
        why
    }

    fn refusal(&self) -> MutexGuard<'_, Option<TooLarge>> {
        self.refusal.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn clock(&self) -> MutexGuard<'_, Clock> {
        self.clock.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns the CPU time of this thread.
pub(crate) fn own_time() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::try_from(time).unwrap_or_default()
}

/// Memory that is given back on drop.
#[must_use]
#[derive(Debug)]
pub(crate) struct Loan<'a> {
    budget: &'a Budget,
    bytes: u64,
}

impl Drop for Loan<'_> {
    fn drop(&mut self) {
        self.budget.release(self.bytes);
    }
}

#[must_use]
pub(crate) struct Stopwatch<'a>(&'a Budget);

impl Drop for Stopwatch<'_> {
    fn drop(&mut self) {
        for budget in std::iter::once(self.0).chain(self.0.all.as_deref()) {
            let mut clock = budget.clock();
            clock.lookers -= 1;
            if clock.lookers == 0
                && let Some(since) = clock.since.take()
            {
                clock.spent += own_time().saturating_sub(since);
            }
        }
    }
}

pub(crate) struct Ticker<'a> {
    budget: &'a Budget,
    turns: u32,
}

impl Ticker<'_> {
    const EVERY: u32 = 512;

    pub(crate) fn tick(&mut self) -> Result<(), TooLarge> {
        self.turns += 1;
        match self.turns.is_multiple_of(Self::EVERY) {
            true => self.budget.check(),
            false => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_lent_and_spent() {
        let budget = Budget::new(ObjectLimits { memory: 100, ..ObjectLimits::DEFAULT });
        budget.charge(40).unwrap();
        let loan = budget.lend(50).unwrap();
        assert_eq!(budget.charge(11), Err(TooLarge::Memory(100)));
        drop(loan);
        budget.charge(60).unwrap();
        assert!(!budget.has_room(u64::MAX));
    }

    /// Each reader sees its own refusals. Readers within it keep theirs.
    #[test]
    fn refusals_are_told_to_whom_they_concern() {
        let budget = Budget::new(ObjectLimits { memory: 100, ..ObjectLimits::DEFAULT });
        let refused = Some(TooLarge::Memory(100));
        budget.charge(101).unwrap_err();
        assert_eq!(budget.watch(|| 7), (7, None));
        let outer = budget.watch(|| {
            budget.charge(101).unwrap_err();
            assert_eq!(budget.watch(|| budget.has_room(1)), (true, None));
        });
        assert_eq!(outer.1, refused);
        let outer = budget.watch(|| {
            assert_eq!(budget.watch(|| budget.charge(101).ok()), (None, refused));
        });
        assert_eq!(outer.1, None);
    }

    fn work(time: Duration) {
        let end = own_time() + time;
        while own_time() < end {}
    }

    #[test]
    fn time_runs_while_somebody_looks() {
        let time = Duration::from_millis(20);
        let budget = Budget::new(ObjectLimits { time, ..ObjectLimits::DEFAULT });
        work(time * 2);
        assert_eq!(budget.check(), Ok(()));
        let (outer, inner) = (budget.look(), budget.look());
        work(time * 2);
        drop(inner);
        assert_eq!(budget.check(), Err(TooLarge::Time(time)));
        budget.release_time(Duration::from_secs(1));
        assert_eq!(budget.check(), Ok(()));
        work(time * 2);
        drop(outer);
        assert_eq!(budget.check(), Err(TooLarge::Time(time)));
        budget.release_time(time * 3);
        assert_eq!(budget.check(), Ok(()));
    }

    /// However many files are tried in vain.
    #[test]
    fn time_that_is_given_back_is_taken_from_all() {
        let time = Duration::from_millis(5);
        let limits = ObjectLimits { time, ..ObjectLimits::DEFAULT };
        let all = Budget::of_all(limits);
        let mut refused = None;
        for _ in 0..6 {
            let object = Budget::within(limits, &all);
            let _look = object.look();
            refused = object.check().err();
            object.try_optional(|| work(time * 2), |()| true);
        }
        assert_eq!(refused, Some(TooLarge::Together(limits.together())));
    }

    #[test]
    fn objects_of_a_process_share() {
        let limits = ObjectLimits { memory: 100, ..ObjectLimits::DEFAULT };
        let all = Budget::of_all(limits);
        let objects: Vec<_> = (0..5).map(|_| Budget::within(limits, &all)).collect();
        objects[..4].iter().for_each(|object| object.charge(90).unwrap());
        let refused = TooLarge::Together(limits.together());
        assert_eq!(objects[4].watch(|| objects[4].charge(41)), (Err(refused), Some(refused)));
        objects[4].charge(40).unwrap();
        objects[0].release(90);
        objects[4].charge(60).unwrap();
        assert_eq!(objects[4].charge(1), Err(TooLarge::Memory(100)));
    }

    #[test]
    fn says_what_to_do() {
        let text = |why: TooLarge| why.to_string();
        assert!(
            text(TooLarge::Memory(512 << 20)).contains("512 MiB of memory; allow more with --max")
        );
        assert!(text(TooLarge::Time(Duration::from_secs(10))).contains("longer than 10s;"));
    }
}
