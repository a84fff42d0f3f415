//! The same function, marked in each contender's way.

use super::Contender;
use fastrace::{
    Span,
    collector::{Config, Reporter, SpanContext, SpanRecord},
    local::LocalSpan,
};
use std::{cell::RefCell, hint::black_box, time::Instant};
use tracing::{Subscriber, span::Id};
use tracing_subscriber::{layer::Context, prelude::*, registry::LookupSpan};

pub(super) const ALL: [Contender; 5] = [
    Contender {
        name: "ctrace",
        start: || {},
        within: |calls| {
            let _outer = ctrace_marker::scope!("outer");
            calls();
        },
        scoped: marked,
        messaged: Some(|x| {
            ctrace_marker::message!("connection {} took too long", 1_000_000 + x % 1000);
            black_box(x) + 1
        }),
        plotted: Some(|x| {
            ctrace_marker::plot!("plotted", x as f64);
            black_box(x) + 1
        }),
    },
    Contender {
        name: "tracy-client",
        start: || {
            // Without a server its events stay in its queue.
            tracy_client::Client::start();
        },
        within: |calls| {
            let _outer = tracy_client::span!("outer");
            calls();
        },
        scoped: |x| {
            let _scope = tracy_client::span!("scoped");
            black_box(x) + 1
        },
        messaged: Some(|x| {
            if let Some(client) = tracy_client::Client::running() {
                client.message(&format!("connection {} took too long", 1_000_000 + x % 1000), 0);
            }
            black_box(x) + 1
        }),
        plotted: Some(|x| {
            tracy_client::plot!("plotted", x as f64);
            black_box(x) + 1
        }),
    },
    Contender {
        name: "puffin",
        start: || {
            puffin::set_scopes_on(true);
            puffin::GlobalProfiler::lock().add_sink(Box::new(|frame| {
                black_box(frame);
            }));
        },
        within: |calls| {
            puffin::GlobalProfiler::lock().new_frame();
            puffin::profile_scope!("outer");
            calls();
        },
        scoped: |x| {
            puffin::profile_scope!("scoped");
            black_box(x) + 1
        },
        messaged: None,
        plotted: None,
    },
    Contender {
        name: "fastrace",
        start: || fastrace::set_reporter(Taken, Config::default()),
        within: |calls| {
            let root = Span::root("outer", SpanContext::random());
            let _parent = root.set_local_parent();
            calls();
        },
        scoped: |x| {
            let _scope = LocalSpan::enter_with_local_parent("scoped");
            black_box(x) + 1
        },
        messaged: None,
        plotted: None,
    },
    Contender {
        name: "tracing",
        start: || tracing_subscriber::registry().with(Record).init(),
        within: |calls| {
            let _outer = tracing::info_span!("outer").entered();
            calls();
            RECORDED.with_borrow_mut(|recorded| black_box(recorded).clear());
        },
        scoped: |x| {
            let _scope = tracing::info_span!("scoped").entered();
            black_box(x) + 1
        },
        messaged: None,
        plotted: None,
    },
];

/// Not inlined, so that the benchmarks can find its code.
#[inline(never)]
fn marked(x: u64) -> u64 {
    let _scope = ctrace_marker::scope!("scoped");
    black_box(x) + 1
}

/// Takes fastrace's spans, on fastrace's own thread.
struct Taken;

impl Reporter for Taken {
    fn report(&mut self, spans: Vec<SpanRecord>) {
        black_box(spans);
    }
}

thread_local! {
    static RECORDED: RefCell<Vec<(&'static str, Instant, bool)>> = const { RefCell::new(Vec::new()) };
}

/// The least work by which a layer knows when spans were entered and left.
struct Record;

impl Record {
    fn push<S: Subscriber + for<'a> LookupSpan<'a>>(id: &Id, context: &Context<'_, S>, exit: bool) {
        let name = context.metadata(id).map_or("", |metadata| metadata.name());
        RECORDED.with_borrow_mut(|recorded| recorded.push((name, Instant::now(), exit)));
    }
}

impl<S: Subscriber + for<'a> LookupSpan<'a>> tracing_subscriber::Layer<S> for Record {
    fn on_enter(&self, id: &Id, context: Context<'_, S>) {
        Self::push(id, &context, false);
    }

    fn on_exit(&self, id: &Id, context: Context<'_, S>) {
        Self::push(id, &context, true);
    }
}
