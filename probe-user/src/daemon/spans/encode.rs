//! Encodes slow calls for OTLP as `ExportTraceServiceRequest`. Each is a trace. Its first span is
//! the call itself, and the others are calls inside it.

use crate::daemon::{
    ids::TargetName,
    metrics::{
        names::label,
        otlp::{
            Resource,
            encode::{attribute, number, request},
        },
    },
    random_ids::Ids,
};
use ctrace_core::{
    formats::protobuf::Message,
    function::qualified,
    recording::{
        Recording,
        replay::{Branch, Tree},
    },
    units::Nanos,
};

/// The span kind for work inside one program, as opposed to serving or asking another.
const INTERNAL: u64 = 1;

/// The source and time of the calls.
pub(super) struct About<'a> {
    pub(super) target: &'a TargetName,
    pub(super) resource: &'a Resource,
    /// Add this to a time on the recording's clock to get the time since 1970.
    pub(super) unix_offset_ns: i64,
}

pub(super) fn encode(
    recording: &Recording,
    trees: &[Tree],
    about: &About<'_>,
    ids: &mut Ids,
) -> Vec<u8> {
    let spans = trees.iter().flat_map(|tree| spans(recording, tree, about, ids));
    request(&about.resource.of_ctrace(), spans.collect::<Vec<_>>().into_iter()).0
}

fn spans(recording: &Recording, tree: &Tree, about: &About<'_>, ids: &mut Ids) -> Vec<Message> {
    let trace = ids.trace();
    let own: Vec<_> = tree.branches.iter().map(|_| ids.span()).collect();
    let spans = tree.branches.iter().zip(&own).map(|(branch, id)| {
        let mut out = Message::default();
        out.bytes(1, &trace).bytes(2, id);
        if let Some(caller) = branch.caller {
            out.bytes(4, &own[caller]);
        }
        put_call(&mut out, recording, branch, about);
        let mut attributes = of_thread(recording, tree);
        attributes.push(attribute("ctrace.target", &label(&about.target.0)));
        if branch.caller.is_none() {
            attributes.extend(of_tree(tree));
        }
        attributes.iter().for_each(|attribute| _ = out.message(9, attribute));
        out
    });
    spans.collect()
}

fn put_call(out: &mut Message, recording: &Recording, branch: &Branch, about: &About<'_>) {
    let call = branch.call;
    let function = recording.path(call.path()).map(|path| path.function.index());
    let function = function.and_then(|function| recording.functions().get(function));
    let name = function.map(|f| qualified(f.kind, f.group.as_deref(), &f.name));
    let unix = |time: Nanos| time.0.saturating_add_signed(about.unix_offset_ns);
    out.text(5, &label(&name.unwrap_or_default())).number(6, INTERNAL);
    out.fixed(7, unix(call.start())).fixed(8, unix(call.end()));
}

fn of_thread(recording: &Recording, tree: &Tree) -> Vec<Message> {
    let Some(thread) = recording.thread(tree.thread) else { return Vec::new() };
    vec![
        attribute("thread.name", &label(&thread.name)),
        number("thread.id", thread.tid.0.into()),
        number("process.pid", thread.pid.0.into()),
    ]
}

fn of_tree(tree: &Tree) -> Vec<Message> {
    let mut out = vec![number("ctrace.calls_left_out", tree.left_out)];
    if tree.is_cut {
        out.push(attribute("ctrace.calls_before", "forgotten"));
    }
    out
}
