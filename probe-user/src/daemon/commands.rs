//! Reads command lines off the supervisor's thread. They are in the memory of the processes, and a
//! process can delay each read by a second.

use super::event::DaemonEvent;
use crate::target::process::facts::Facts;
use ctrace_core::units::Pid;
use std::{
    collections::HashMap,
    sync::{
        Arc, Mutex, PoisonError,
        mpsc::{Receiver, Sender, channel},
    },
    thread,
};

/// Threads that read. A silent process blocks one of them for a second, twice.
const READERS: usize = 8;

/// A process at the time when its command line was read.
pub(crate) struct ReadCommand {
    pub pid: Pid,
    /// `None` for a process that has ended.
    pub facts: Option<Facts>,
    number: u64,
}

pub(super) struct Commands {
    events: Sender<DaemonEvent>,
    /// The latest question about each process whose command line is being read.
    underway: HashMap<Pid, u64>,
    asked: u64,
    /// `None` until there are readers.
    questions: Option<Sender<(Pid, u64)>>,
}

impl Commands {
    pub(super) fn new(events: Sender<DaemonEvent>) -> Self {
        Self { events, underway: HashMap::new(), asked: 0, questions: None }
    }

    /// Asks for a command line. The answer comes as a [`DaemonEvent`]. Answers to earlier questions are
    /// ignored: the process may run another program by now.
    pub(super) fn ask(&mut self, pid: Pid) {
        self.asked += 1;
        let question = (pid, self.asked);
        let questions = self.questions.take().or_else(|| start(&self.events));
        // Without a thread, the next look at all processes asks again.
        if let Some(questions) = questions
            && questions.send(question).is_ok()
        {
            self.underway.insert(pid, self.asked);
            self.questions = Some(questions);
        }
    }

    pub(super) fn is_underway(&self, pid: Pid) -> bool {
        self.underway.contains_key(&pid)
    }

    pub(super) fn is_latest(&mut self, answer: &ReadCommand) -> bool {
        let is_latest = self.underway.get(&answer.pid) == Some(&answer.number);
        if is_latest {
            self.underway.remove(&answer.pid);
        }
        is_latest
    }
}

/// Starts the readers. They end with the sender. Fewer than wanted may start.
fn start(events: &Sender<DaemonEvent>) -> Option<Sender<(Pid, u64)>> {
    let (sender, questions) = channel();
    let questions = Arc::new(Mutex::new(questions));
    let started = (0..READERS).map(|_| {
        let (questions, events) = (Arc::clone(&questions), events.clone());
        thread::Builder::new().name("commands".into()).spawn(move || read(&questions, &events))
    });
    match started.flatten().count() {
        0 => None,
        _ => Some(sender),
    }
}

fn read(questions: &Mutex<Receiver<(Pid, u64)>>, events: &Sender<DaemonEvent>) {
    loop {
        let next = questions.lock().unwrap_or_else(PoisonError::into_inner).recv();
        let Ok((pid, number)) = next else { return };
        let facts = Facts::with_command(pid);
        if events.send(DaemonEvent::Known(ReadCommand { pid, facts, number })).is_err() {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_answer_to_the_last_question_counts() {
        let (events, arriving) = channel();
        let mut commands = Commands::new(events);
        let own = Pid(std::process::id());
        for _ in 0..2 {
            commands.ask(own);
        }
        assert!(commands.is_underway(own));
        let mut counted = [(); 2].map(|()| {
            let Ok(DaemonEvent::Known(answer)) = arriving.recv() else { panic!("an answer") };
            let command = answer.facts.as_ref().map_or("", |facts| &facts.command);
            assert!(!command.is_empty());
            (answer.number, commands.is_latest(&answer))
        });
        counted.sort_unstable();
        assert_eq!(counted, [(1, false), (2, true)]);
        assert!(!commands.is_underway(own));
    }
}
