//! Requests for tables that wait until everything before them is in order. A program can ask as often as it
//! likes, so they have limits, and those that find no place are counted.

use crate::marker::Request;
use crate::tables::may_wait;
use crate::units::Nanos;

#[derive(Debug, Default)]
pub(super) struct Requests {
    waiting: Vec<Request>,
    refused: u64,
}

impl Requests {
    pub(super) fn add(&mut self, request: Request) {
        if may_wait(request.pid, self.waiting.iter().map(|other| other.pid)) {
            self.waiting.push(request);
        } else {
            self.refused += 1;
        }
    }

    /// Takes those that were made before `settled`.
    pub(super) fn take(&mut self, settled: Nanos) -> Vec<Request> {
        self.waiting.extract_if(.., |request| request.time <= settled).collect()
    }

    pub(super) fn refused(&self) -> u64 {
        self.refused
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::units::Pid;

    #[test]
    fn one_process_does_not_take_all_places() {
        let mut requests = Requests::default();
        let request =
            |pid, time| Request { pid: Pid(pid), time: Nanos(time), file: 3, cleared: None };
        (0..100).for_each(|time| requests.add(request(1, time)));
        (0..5).for_each(|time| requests.add(request(2, time)));
        assert_eq!(requests.refused(), 97);
        assert_eq!(requests.take(Nanos(1)).len(), 4);
        (3..20).for_each(|pid| requests.add(request(pid, 9)));
        assert_eq!(requests.refused(), 102, "16 places in all");
        assert_eq!(requests.take(Nanos(9)).len(), 16);
    }
}
