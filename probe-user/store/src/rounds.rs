//! Looks for files again and again, and sends them one by one.
//!
//! A round ends at the first failure: most are of the store as a whole. The next round begins with
//! files that have failed less often, so one that cannot be sent keeps up no other.

use crate::{
    destination::Destination,
    phase::{Phase, reached},
    spool::{Spool, Spooled},
    told::Teller,
    upload::{UploadError, upload},
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
}

impl<W: Write> Shipper<W> {
    /// Sends what is there. Returns after the last file or the first failure.
    pub(crate) async fn once(&mut self) -> Ended {
        match self.round().await {
            Ok(()) => Ended::AllSent,
            Err(_) => Ended::SomeWait,
        }
    }

    /// Sends what comes, until it is told to end.
    pub(crate) async fn run(&mut self) -> Ended {
        let mut in_a_row = 0;
        loop {
            // What is written before the end is told is seen in the round after that.
            let is_last = *self.phase.borrow() >= Phase::Finish;
            match self.round().await {
                Ok(()) if is_last => return Ended::AllSent,
                Ok(()) => in_a_row = 0,
                Err(_) if is_last => return Ended::SomeWait,
                // The store works: only some files do not.
                Err(sent) if sent > 0 => in_a_row = 1,
                Err(_) => in_a_row += 1,
            }
            let pause = self.pauses.after(in_a_row);
            tokio::select! {
                () = tokio::time::sleep(pause) => {}
                () = reached(&mut self.phase, Phase::Finish) => {}
            }
        }
    }

    /// Sends all files. After a failure returns how many were sent before it.
    async fn round(&mut self) -> Result<(), usize> {
        let mut files = match self.spool.look() {
            Ok(files) => files,
            Err(error) => {
                self.teller.failed(&format!("the folder cannot be read: {error}"));
                return Err(0);
            }
        };
        let mut bytes: u64 = files.iter().map(|file| file.size).sum();
        self.teller.waiting(files.len(), bytes);
        let there: HashSet<_> = files.iter().map(Spooled::path).collect();
        self.failures.retain(|path, _| there.contains(path));
        files.sort_by_cached_key(|file| {
            let failed = self.failures.get(&file.path()).copied().unwrap_or(0);
            (failed, file.day().to_owned(), file.name().to_owned())
        });
        for (sent, file) in files.iter().enumerate() {
            if let Err(why) = self.send(file).await {
                self.teller.failed(&why);
                *self.failures.entry(file.path()).or_default() += 1;
                return Err(sent);
            }
            bytes -= file.size;
            self.teller.waiting(files.len() - sent - 1, bytes);
        }
        Ok(())
    }

    async fn send(&mut self, spooled: &Spooled) -> Result<(), String> {
        let unreadable = |error| UploadError::File(error).to_string();
        let Some(opened) = self.spool.file(spooled).map_err(unreadable)? else { return Ok(()) };
        if let Some(missing) = self.destination.missing() {
            return Err(missing);
        }
        let object = format!("{}/{}", self.destination.prefix, spooled.path());
        let object = Path::parse(object.trim_start_matches('/'))
            .map_err(|_| "the name is not possible in a store".to_owned())?;
        let store = &*self.destination.store;
        let file = (&opened.file, opened.size);
        upload(store, &object, file, &mut self.phase).await.map_err(|error| error.to_string())?;
        opened.remove().map_err(|error| format!("a file that is sent stays: {error}"))?;
        self.teller.uploaded(opened.size, object.as_ref());
        Ok(())
    }
}
