//! Looks for files again and again, and sends them one by one.
//!
//! A round ends at the first failure: most are of the store as a whole. The next round begins with
//! files that have failed less often, so one that cannot be sent keeps up no other.

use crate::{
    destination::Destination,
    phase::{Phase, reached},
    spool::{MOST, Spool, Spooled},
    told::Teller,
    upload::{UploadError, check, put},
};
use object_store::path::Path;
use std::{
    collections::{HashMap, HashSet},
    io::Write,
    time::Duration,
};
use tokio::sync::watch;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ended {
    AllSent,
    SomeWait,
}

/// The pauses between rounds.
#[derive(Clone, Copy)]
pub(crate) struct Pauses {
    /// After a round without a failure.
    pub(crate) looks: Duration,
    /// After the first failure. Each further one in a row doubles it.
    pub(crate) first: Duration,
    pub(crate) longest: Duration,
}

impl Pauses {
    pub(crate) const USUAL: Self = Self {
        looks: Duration::from_secs(10),
        first: Duration::from_secs(1),
        longest: Duration::from_secs(60),
    };

    fn after(&self, failures: u32) -> Duration {
        match failures {
            0 => self.looks,
            _ => self.first.saturating_mul(2_u32.saturating_pow(failures - 1)).min(self.longest),
        }
    }
}

pub(crate) struct Shipper<W> {
    pub(crate) spool: Spool,
    pub(crate) destination: Destination,
    pub(crate) teller: Teller<W>,
    pub(crate) pauses: Pauses,
    pub(crate) phase: watch::Receiver<Phase>,
    /// Files that could not be sent, and how often.
    pub(crate) failures: HashMap<String, u32>,
    /// Files that were sent, and are not seen in the store or not removed yet.
    pub(crate) sent: HashMap<String, Sent>,
}

/// A file that was sent. It is not sent again: a store that keeps versions would have it twice.
#[derive(Clone)]
pub(crate) struct Sent {
    id: (u64, u64),
    size: u64,
    tag: Option<String>,
}

/// The end of a round.
enum Round {
    /// The look has found as many files as it can: there may be more.
    Full,
    AllSent,
    Failed(Failed),
}

struct Failed {
    /// Files that were sent before.
    sent: usize,
    /// Others may be sent all the same: they have not failed yet, and the store answers.
    others: bool,
}

/// A reason to end a round.
struct Failure {
    why: String,
    is_of_all: bool,
}

impl<W: Write> Shipper<W> {
    /// Sends what is there. Returns when each file is sent or has failed, or the store as a whole does.
    pub(crate) async fn once(&mut self) -> Ended {
        loop {
            match self.round().await {
                Round::AllSent => return Ended::AllSent,
                Round::Full => {}
                Round::Failed(failed) if failed.others => {}
                Round::Failed(_) => return Ended::SomeWait,
            }
        }
    }

    /// Sends what comes, until it is told to end.
    pub(crate) async fn run(&mut self) -> Ended {
        let mut in_a_row = 0;
        loop {
            // What is written before the end is told is seen after it.
            if *self.phase.borrow() >= Phase::Finish {
                return self.once().await;
            }
            match self.round().await {
                Round::Full => continue,
                Round::AllSent => in_a_row = 0,
                // The store works: only some files do not.
                Round::Failed(failed) if failed.sent > 0 => in_a_row = 1,
                Round::Failed(_) => in_a_row += 1,
            }
            if *self.phase.borrow() >= Phase::GiveUp {
                return Ended::SomeWait;
            }
            let pause = self.pauses.after(in_a_row);
            tokio::select! {
                () = tokio::time::sleep(pause) => {}
                () = reached(&mut self.phase, Phase::Finish) => {}
            }
        }
    }

    /// Sends all files, up to the first failure.
    async fn round(&mut self) -> Round {
        let mut files = match self.spool.look() {
            Ok(files) => files,
            Err(error) => {
                self.teller.failed(&format!("the folder cannot be read: {error}"));
                return Round::Failed(Failed { sent: 0, others: false });
            }
        };
        let mut bytes: u64 = files.iter().map(|file| file.size).sum();
        self.teller.waiting(files.len(), bytes);
        let there: HashSet<_> = files.iter().map(Spooled::path).collect();
        self.failures.retain(|path, _| there.contains(path));
        self.sent.retain(|path, _| there.contains(path));
        files.sort_by_cached_key(|file| {
            let failed = self.failures.get(&file.path()).copied().unwrap_or(0);
            (failed, file.day().to_owned(), file.name().to_owned())
        });
        for (sent, file) in files.iter().enumerate() {
            if let Err(Failure { why, is_of_all }) = self.send(file).await {
                self.teller.failed(&why);
                *self.failures.entry(file.path()).or_default() += 1;
                let is_new = |file: &Spooled| !self.failures.contains_key(&file.path());
                let others = !is_of_all && files[sent + 1..].iter().any(is_new);
                return Round::Failed(Failed { sent, others });
            }
            bytes -= file.size;
            self.teller.waiting(files.len() - sent - 1, bytes);
        }
        if files.len() < MOST { Round::AllSent } else { Round::Full }
    }

    async fn send(&mut self, spooled: &Spooled) -> Result<(), Failure> {
        let unreadable = |error| Failure::from(UploadError::File(error));
        let Some(opened) = self.spool.file(spooled).map_err(unreadable)? else { return Ok(()) };
        if let Some(why) = self.destination.missing() {
            return Err(Failure { why, is_of_all: true });
        }
        let object = format!("{}/{}", self.destination.prefix, spooled.path());
        let object = Path::parse(object.trim_start_matches('/'))
            .map_err(|_| Failure::of_one("the name is not possible in a store".to_owned()))?;
        let store = &*self.destination.store;
        let (id, size, path) = (opened.id, opened.size, spooled.path());
        let stays = |error| Failure::of_one(format!("a file stays, sent or not: {error}"));
        let known = self.sent.get(&path).filter(|sent| (sent.id, sent.size) == (id, size)).cloned();
        let tag = match known {
            Some(sent) => sent.tag,
            None => {
                opened.can_be_removed().map_err(stays)?;
                let tag = put(store, &object, (&opened.file, size), &mut self.phase).await?;
                self.sent.insert(path.clone(), Sent { id, size, tag: tag.clone() });
                tag
            }
        };
        let checked = check(store, &object, (size, tag.as_deref()), &mut self.phase).await;
        if let Err(UploadError::Store(object_store::Error::NotFound { .. })) = checked {
            // The store has lost it.
            self.sent.remove(&path);
        }
        checked?;
        opened.remove().map_err(stays)?;
        self.sent.remove(&path);
        self.teller.uploaded(size, object.as_ref());
        Ok(())
    }
}

impl Failure {
    fn of_one(why: String) -> Self {
        Self { why, is_of_all: false }
    }
}

impl From<UploadError> for Failure {
    fn from(error: UploadError) -> Self {
        Self { why: error.to_string(), is_of_all: error.is_of_all() }
    }
}
