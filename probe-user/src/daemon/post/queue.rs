//! A thread that exports jobs one after the other, so that nobody waits for a receiver.

use std::{
    iter::from_fn,
    sync::{Mutex, PoisonError},
    thread::JoinHandle,
    time::Duration,
};
use tokio::sync::{mpsc, oneshot};

/// Time limit for all waiting jobs before the daemon ends.
pub(crate) const LAST: Duration = Duration::from_secs(3);

/// The work of the thread.
pub(crate) trait Exporter<J>: Send + 'static {
    /// Exports a job, or gives it up and counts it.
    fn deliver(&mut self, job: &J) -> impl Future<Output = ()>;

    /// Counts a job that was not delivered when the time was over.
    fn lose(&mut self, job: &J);
}

/// The way to the thread.
pub(crate) struct ExportQueue<J> {
    running: Mutex<Option<Running<J>>>,
}

struct Running<J> {
    jobs: mpsc::Sender<J>,
    /// Only dropped, to stop the thread.
    _stop: oneshot::Sender<()>,
    thread: JoinHandle<()>,
}

impl<J: Send + 'static> ExportQueue<J> {
    /// Starts the thread. At most so many jobs wait.
    pub(crate) fn start(
        name: &str,
        most: usize,
        exporter: impl Exporter<J>,
    ) -> std::io::Result<Self> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let (jobs, arriving) = mpsc::channel(most);
        let (stop, stopped) = oneshot::channel();
        let main = move || {
            runtime.block_on(run(exporter, arriving, stopped));
            // A name that nobody resolves would hold up the end.
            runtime.shutdown_background();
        };
        let thread = std::thread::Builder::new().name(name.into()).spawn(main)?;
        Ok(Self { running: Mutex::new(Some(Running { jobs, _stop: stop, thread })) })
    }

    /// Queues a job and returns at once, true if there was room.
    pub(crate) fn put(&self, job: J) -> bool {
        let running = self.running.lock().unwrap_or_else(PoisonError::into_inner);
        running.as_ref().is_some_and(|running| running.jobs.try_send(job).is_ok())
    }

    /// Takes no more jobs. What waits is exported or given up, for which the time begins now.
    pub(crate) fn close(&self) -> Option<Ending> {
        let running = self.running.lock().unwrap_or_else(PoisonError::into_inner).take();
        running.map(|running| Ending(running.thread))
    }
}

/// A thread that ends soon.
#[must_use]
pub(crate) struct Ending(JoinHandle<()>);

impl Ending {
    /// Waits until all is exported or given up.
    pub(crate) fn wait(self) {
        let name = self.0.thread().name().unwrap_or_default().to_owned();
        if self.0.join().is_err() {
            tracing::warn!("the thread {name} panicked");
        }
    }
}

async fn run<J>(
    mut exporter: impl Exporter<J>,
    mut jobs: mpsc::Receiver<J>,
    stopped: oneshot::Receiver<()>,
) {
    let mut present = None;
    let late = async {
        let _ = stopped.await;
        tokio::time::sleep(LAST).await;
    };
    let all = async {
        while let Some(job) = jobs.recv().await {
            exporter.deliver(present.insert(job)).await;
            present = None;
        }
    };
    tokio::select! {
        () = all => {}
        () = late => {}
    }
    present.iter().for_each(|job| exporter.lose(job));
    from_fn(|| jobs.try_recv().ok()).for_each(|job| exporter.lose(&job));
}
