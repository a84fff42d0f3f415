//! Tests marked async functions: what their polls and their ends write.

mod support;

use ctrace_common::{AsyncCall, AsyncStep, SiteEntry};
use ctrace_marker::{async_scope, mark};
use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::task::{Context, Poll, Waker};
use support::{On, entries::written_by, events_of, hook, image::own, on_thread};

/// Is pending so many times.
fn pending(mut times: u32) -> impl Future<Output = u32> {
    poll_fn(move |_| {
        if times == 0 {
            return Poll::Ready(7);
        }
        times -= 1;
        Poll::Pending
    })
}

fn poll<T>(future: Pin<&mut impl Future<Output = T>>) -> Poll<T> {
    future.poll(&mut Context::from_waker(Waker::noop()))
}

/// Polls a future until it is ready.
fn run<T>(future: impl Future<Output = T>) -> T {
    let mut future = pin!(future);
    loop {
        if let Poll::Ready(result) = poll(future.as_mut()) {
            return result;
        }
    }
}

#[mark(name = "doubles")]
async fn doubles(times: u32) -> Result<u32, Box<dyn std::error::Error>> {
    if times > 9 {
        return Err("too often".into());
    }
    let parsed: u32 = "2".parse()?;
    Ok(pending(times).await * parsed)
}

struct Store<T>(T);

#[mark(group = "stores")]
impl<T: Clone> Store<T> {
    async fn get<'a>(&'a self, other: &'a mut T) -> &'a T {
        pending(1).await;
        *other = self.0.clone();
        &self.0
    }

    async fn names(&self) -> Vec<impl Copy + use<T>> {
        vec![1]
    }

    #[mark(name = "deep")]
    async fn deep(&self, depth: u32) -> u32 {
        if depth == 0 { 0 } else { Box::pin(self.deep(depth - 1)).await + 1 }
    }
}

fn is_send<T: Send>(of: T) -> T {
    of
}

/// Returns the steps of the calls of a site on a thread. Calls are numbered from 0 as they come: other tests
/// take numbers, too.
fn steps(tid: u32, sites: &[u64]) -> Vec<(usize, AsyncStep)> {
    let (written, mut seen) = (written_by(tid), Vec::new());
    let step = |values: &[u64]| {
        let value = AsyncCall(values[0]);
        let Some(id) = value.id() else { return (99, value.step()) };
        let known = seen.iter().position(|other| *other == id);
        let number = known.unwrap_or_else(|| {
            seen.push(id);
            seen.len() - 1
        });
        (number, value.step())
    };
    written.values(sites).into_iter().map(step).collect()
}

#[test]
fn the_program_has_the_shape_and_the_value() {
    drop(doubles(0));
    let [site] = &own().named("doubles")[..1] else { panic!("no site") };
    assert_eq!(
        (site.flags, site.shape),
        (SiteEntry::WHOLE_FUNCTION | SiteEntry::VALUES, SiteEntry::ASYNC)
    );
    assert_eq!(site.values.as_deref(), Some("call:u64"));
}

#[test]
fn each_poll_and_the_end_are_told() {
    use AsyncStep::{Begun, Completed, Resumed};
    hook::install();
    let (_on, sites) = On::new("doubles");
    let (tid, results) =
        on_thread(|| (run(is_send(doubles(2))).unwrap(), run(doubles(10)).is_err()));
    assert_eq!(results, (14, true));
    assert_eq!(
        steps(tid, &sites),
        [(0, Begun), (0, Resumed), (0, Resumed), (0, Completed), (1, Begun), (1, Completed)]
    );
    let events = events_of(tid, &sites);
    let exits = events.iter().filter(|event| event.exit).count();
    assert_eq!((events.len() - exits, exits), (6, 4), "an end has no exit");
}

#[test]
fn methods_are_marked() {
    hook::install();
    let (_on, sites) = On::new("async_fn::Store::get");
    let (tid, other) = on_thread(|| {
        let (store, mut other) = (Store("a".to_owned()), String::new());
        assert_eq!(run(store.get(&mut other)), "a");
        assert_eq!((run(store.names()).len(), run(store.deep(3))), (1, 3));
        other
    });
    assert_eq!((other.as_str(), steps(tid, &sites).len()), ("a", 3));
}

#[test]
fn a_dropped_call_is_told_and_so_is_one_that_panics() {
    use AsyncStep::{Begun, Dropped};
    hook::install();
    let (_on, sites) = On::new("to be dropped");
    let (tid, ()) = on_thread(|| {
        let marked = |times| async_scope!("to be dropped", pending(times));
        drop(marked(1));
        {
            let mut future = pin!(marked(1));
            assert!(poll(future.as_mut()).is_pending());
        }
        let panics =
            || run(async_scope!("to be dropped", group = "bad", async { panic!("as it should") }));
        std::panic::set_hook(Box::new(|_| {}));
        assert!(std::panic::catch_unwind(panics).is_err());
    });
    assert_eq!(steps(tid, &sites), [(0, Begun), (0, Dropped), (1, Begun), (1, Dropped)]);
}

#[test]
fn a_call_that_began_while_nobody_looked_has_no_number() {
    use AsyncStep::{Begun, Completed, Resumed};
    hook::install();
    let sites: Vec<u64> = own().named("began before").iter().map(|site| site.address).collect();
    let (tid, ()) = on_thread(|| {
        let marked = || async_scope!("began before", colour = 0x33_aa_ff, pending(1));
        let (mut before, mut ended) = (pin!(marked()), pin!(marked()));
        assert!(poll(before.as_mut()).is_pending());
        {
            let (_on, _) = On::new("began before");
            assert!(poll(before.as_mut()).is_ready());
            assert!(poll(ended.as_mut()).is_pending());
        }
        assert!(poll(ended.as_mut()).is_ready(), "it ends while nobody looks");
        let (_on, _) = On::new("began before");
        assert_eq!(run(marked()), 7);
    });
    assert_eq!(
        steps(tid, &sites),
        [(99, Resumed), (0, Begun), (1, Begun), (1, Resumed), (1, Completed)]
    );
}
