//! Async calls on two threads: each wake sends a task to the other one. Prints how many calls and polls there
//! were, and how long they slept at least.

use ctrace_marker::{async_scope, scope};
use std::collections::BTreeMap;
use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Wake, Waker};
use std::time::{Duration, Instant};

const NAP: Duration = Duration::from_millis(2);

type Boxed<T> = Pin<Box<dyn Future<Output = T> + Send>>;

struct Task {
    future: Mutex<Option<Boxed<()>>>,
    workers: [Sender<Arc<Task>>; 2],
    turn: AtomicUsize,
    left: Arc<AtomicUsize>,
}

impl Wake for Task {
    fn wake(self: Arc<Self>) {
        let turn = self.turn.fetch_add(1, SeqCst);
        self.workers[turn % 2].clone().send(self).unwrap();
    }
}

fn work(tasks: Receiver<Arc<Task>>) {
    for task in tasks {
        let waker = Waker::from(Arc::clone(&task));
        let mut slot = task.future.lock().unwrap();
        let Some(mut future) = slot.take() else { continue };
        let poll = std::panic::AssertUnwindSafe(|| future.as_mut().poll(&mut Context::from_waker(&waker)));
        match std::panic::catch_unwind(poll) {
            Ok(Poll::Pending) => *slot = Some(future),
            Ok(Poll::Ready(())) | Err(_) => {
                drop(future);
                task.left.fetch_sub(1, SeqCst);
            }
        }
    }
}

/// What really happened: calls and polls, and the time that calls slept at least.
static TOLD: Mutex<BTreeMap<(&str, &str), u64>> = Mutex::new(BTreeMap::new());

fn tell(what: &'static str, name: &'static str, number: u64) {
    *TOLD.lock().unwrap().entry((what, name)).or_default() += number;
}

/// Counts polls of a future, which is inside the marker.
fn counted<F: Future>(name: &'static str, future: F) -> impl Future<Output = F::Output> {
    tell("calls", name, 1);
    let mut future = Box::pin(future);
    poll_fn(move |context| {
        tell("polls", name, 1);
        future.as_mut().poll(context)
    })
}

/// Sleeps once, in a thread of its own, or for ever.
fn sleep(time: Option<Duration>) -> impl Future<Output = ()> {
    let mut until = None;
    poll_fn(move |context| {
        if until.is_some_and(|until| Instant::now() >= until) {
            return Poll::Ready(());
        }
        if let (None, Some(time)) = (until, time) {
            until = Some(Instant::now() + time);
            let waker = context.waker().clone();
            std::thread::spawn(move || {
                std::thread::sleep(time);
                waker.wake();
            });
        }
        Poll::Pending
    })
}

async fn nap() {
    let body = counted("nap", async {
        let _scope = scope!("lie_down");
        tell("calls", "lie_down", 1);
        drop(_scope);
        sleep(Some(NAP)).await;
    });
    tell("least_time", "nap", NAP.as_nanos() as u64);
    async_scope!("nap", body).await
}

async fn handle() {
    tell("least_time", "handle", 2 * NAP.as_nanos() as u64);
    async_scope!("handle", counted("handle", async {
        nap().await;
        nap().await;
    }))
    .await
}

/// Two at one time, polled in turns.
async fn both() {
    async_scope!("both", counted("both", async {
        let (mut one, mut other) = (pin!(nap()), pin!(nap()));
        let mut done = [false; 2];
        poll_fn(move |context| {
            done[0] = done[0] || one.as_mut().poll(context).is_ready();
            done[1] = done[1] || other.as_mut().poll(context).is_ready();
            if done == [true; 2] { Poll::Ready(()) } else { Poll::Pending }
        })
        .await
    }))
    .await
}

/// The first one that is ready; the other one is dropped.
async fn race() {
    async_scope!("race", counted("race", async {
        let mut never =
            Box::pin(async_scope!("never", group = "lost", counted("never", sleep(None))));
        let mut nap = pin!(nap());
        tell("untimed", "never", 1);
        poll_fn(|context| {
            assert!(never.as_mut().poll(context).is_pending());
            nap.as_mut().poll(context)
        })
        .await
    }))
    .await
}

fn descend(depth: u32) -> Boxed<u32> {
    Box::pin(async_scope!("descend", counted("descend", async move {
        nap().await;
        if depth == 0 { 0 } else { descend(depth - 1).await + 1 }
    })))
}

async fn fail() {
    tell("untimed", "fail", 1);
    async_scope!("fail", counted("fail", async {
        nap().await;
        panic!("as it should");
    }))
    .await
}

fn main() {
    let rounds: usize = std::env::args().nth(1).and_then(|text| text.parse().ok()).unwrap_or(3);
    std::panic::set_hook(Box::new(|_| {}));
    let (senders, receivers): (Vec<_>, Vec<_>) = (0..2).map(|_| channel()).unzip();
    let workers: [Sender<Arc<Task>>; 2] = senders.try_into().ok().unwrap();
    for tasks in receivers {
        std::thread::spawn(|| work(tasks));
    }
    let left = Arc::new(AtomicUsize::new(0));
    let spawn = |future: Boxed<()>| {
        left.fetch_add(1, SeqCst);
        let future = Mutex::new(Some(future));
        let (workers, left) = (workers.clone(), Arc::clone(&left));
        Arc::new(Task { future, workers, turn: AtomicUsize::new(0), left }).wake();
    };
    for _ in 0..rounds {
        spawn(Box::pin(handle()));
        spawn(Box::pin(both()));
        spawn(Box::pin(race()));
        spawn(Box::pin(fail()));
        spawn(Box::pin(async { assert_eq!(descend(2).await, 2) }));
    }
    while left.load(SeqCst) > 0 {
        std::thread::sleep(Duration::from_millis(1));
    }
    for ((what, name), number) in &*TOLD.lock().unwrap() {
        println!("{what} {name} {number}");
    }
}
