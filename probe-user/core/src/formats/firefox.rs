//! The Firefox Profiler's format: samples of each thread's call path, taken from the recording at
//! even distances.
//!
//! That profiler keeps all samples in memory, so their number is bounded: a long recording is
//! sampled less often, and calls shorter than the distance are seen only by chance. The file
//! contains the distance. Other formats have exact times. [`ROOM`] bounds the memory of a profile
//! even for a hostile recording.

use super::excerpt::{Excerpt, Step};
use super::labels::{self, Labels, UNKNOWN_FRAMES};
use super::out::Out;
use super::samples::Samples;
use super::{Coverage, ExportError};
use crate::calls::paths::Node;
use crate::colour::Colour;
use crate::recording::{ROOT_PATH, Recording};
use crate::units::{Nanos, ThreadId};
use fxprof_processed_profile::{
    CategoryColor, CategoryHandle, CpuDelta, Frame, FrameFlags, FrameInfo, ProcessHandle, Profile,
    ReferenceTimestamp, SamplingInterval, StackHandle, StringHandle, ThreadHandle, Timestamp,
};
use std::collections::HashMap;

/// Limit of looks, the times at which all threads are sampled.
const MAX_LOOKS: u64 = 100_000;
/// The shortest distance, in nanoseconds.
const LEAST: u64 = 1_000;
/// Limit of samples of all threads together.
const ALL_LOOKS: u64 = 4_000_000;
/// The room of a profile, in samples.
const ROOM: u64 = 4 * ALL_LOOKS;
/// The room that a thread takes.
const THREAD: u64 = 64;

pub(super) fn write(excerpt: &Excerpt<'_>, mut out: Out<'_>) -> Result<Coverage, ExportError> {
    let mut sampler = Sampler::new(excerpt);
    let told = excerpt.chunks(|step| sampler.chunk(&step))?;
    let name = labels::target(&excerpt.recording.start().target);
    sampler.profile.set_product(&format!("{name}: {}", told.in_short()));
    serde_json::to_writer(&mut out, &sampler.profile).map_err(std::io::Error::from)?;
    out.finish()?;
    Ok(told)
}

/// Returns the places of threads: the recorded process first, then by process and thread id, which
/// the system gives in the order of creation.
fn places(recording: &Recording) -> HashMap<ThreadId, u64> {
    let program = recording.start().target.pid;
    let mut threads: Vec<_> = recording.threads().collect();
    threads.sort_by_key(|thread| (Some(thread.pid) != program, thread.pid, thread.tid, thread.id));
    threads.iter().map(|thread| thread.id).zip(0..).collect()
}

/// A thread of the profile.
struct Thread {
    handle: ThreadHandle,
    stacks: HashMap<u32, Option<StackHandle>>,
    /// The path at the last sample.
    last: u32,
}

/// The colours that the viewer has for categories, as it draws them, and their names.
const COLOURS: [(CategoryColor, [u8; 3], &str); 9] = [
    (CategoryColor::LightBlue, [69, 161, 255], "light blue"),
    (CategoryColor::Red, [215, 0, 34], "red"),
    (CategoryColor::Orange, [255, 148, 0], "orange"),
    (CategoryColor::Blue, [0, 96, 223], "blue"),
    (CategoryColor::Green, [18, 188, 0], "green"),
    (CategoryColor::Purple, [128, 0, 215], "purple"),
    (CategoryColor::Yellow, [215, 182, 0], "yellow"),
    (CategoryColor::Brown, [118, 79, 31], "brown"),
    (CategoryColor::Magenta, [237, 0, 181], "magenta"),
];

/// Returns the name of each function and its category. A scope with a colour is in the category whose colour
/// is nearest.
fn names(
    recording: &Recording,
    labels: &Labels,
    profile: &mut Profile,
) -> Vec<(StringHandle, CategoryHandle)> {
    let mut categories = HashMap::new();
    let functions = recording.functions().iter().zip(labels.all());
    let names = functions.map(|(info, name)| {
        let category = info.colour.map_or(CategoryHandle::OTHER, |Colour(own)| {
            let far = |of: &[u8; 3]| {
                let parts = of.iter().zip(own).map(|(a, b)| u32::from(a.abs_diff(b)).pow(2));
                parts.sum::<u32>()
            };
            let nearest = (0..COLOURS.len()).min_by_key(|at| far(&COLOURS[*at].1)).unwrap_or(0);
            let (colour, _, name) = COLOURS[nearest];
            *categories.entry(nearest).or_insert_with(|| profile.add_category(name, colour))
        });
        (profile.intern_string(name), category)
    });
    names.collect()
}

struct Sampler<'a> {
    recording: &'a Recording,
    nodes: &'a [Node],
    profile: Profile,
    /// The name of each function, and the category that has about its colour.
    names: Vec<(StringHandle, CategoryHandle)>,
    unknown: StringHandle,
    processes: HashMap<u32, ProcessHandle>,
    threads: HashMap<ThreadId, Thread>,
    /// The place of each thread in the profile.
    places: HashMap<ThreadId, u64>,
    start: u64,
    distance: u64,
    /// Number of the next look.
    next: u64,
    /// Limit of looks at each thread.
    most: u64,
    samples: Samples,
    /// The remaining part of [`ROOM`].
    room: u64,
}

impl<'a> Sampler<'a> {
    fn new(excerpt: &'a Excerpt<'a>) -> Self {
        let recording = excerpt.recording;
        let head = recording.start();
        let (Nanos(start), Nanos(end)) = excerpt.period();
        let threads = recording.threads().count().max(1) as u64;
        let most = (ALL_LOOKS / threads).clamp(1, MAX_LOOKS);
        let distance = (end.saturating_sub(start) / most).max(LEAST);
        let wall = start.saturating_add_signed(head.epoch_offset_ns);
        let reference = ReferenceTimestamp::from_millis_since_unix_epoch(wall as f64 / 1e6);
        let interval = SamplingInterval::from_nanos(distance);
        let mut profile = Profile::new("", reference, interval);
        profile.set_os_name(&format!("Linux {}", labels::text(&head.host.kernel)));
        let labels = Labels::of(recording);
        Self {
            recording,
            nodes: excerpt.nodes(),
            names: names(recording, &labels, &mut profile),
            unknown: profile.intern_string(UNKNOWN_FRAMES),
            profile,
            processes: HashMap::new(),
            threads: HashMap::new(),
            places: places(recording),
            start,
            distance,
            next: 0,
            most,
            samples: Samples::default(),
            room: ROOM,
        }
    }

    /// Takes the samples in the chunk.
    fn chunk(&mut self, step: &Step<'_>) -> Result<(), ExportError> {
        let to = step.chunk.to.0.saturating_sub(self.start);
        let (first, end) = (self.next, (to / self.distance).min(self.most) + 1);
        if end <= first {
            return Ok(());
        }
        self.next = end;
        for ((thread, rows), calls) in step.rows().zip(step.chunk.threads()) {
            self.spend(end - first)?;
            self.samples.begin((end - first) as usize);
            // Callers come before their callees, so the callee decides.
            for open in &calls.open {
                self.mark(first, open.start.0, u64::MAX, open.path);
            }
            for row in rows {
                self.mark(first, row.start, row.start.saturating_add(row.duration), row.path);
            }
            self.samples(thread, first)?;
        }
        Ok(())
    }

    fn spend(&mut self, room: u64) -> Result<(), ExportError> {
        self.room = self.room.checked_sub(room).ok_or(ExportError::TooMuch)?;
        Ok(())
    }

    /// Marks the looks within a call, counted from `first`.
    fn mark(&mut self, first: u64, start: u64, end: u64, path: u32) {
        let look = |time: u64| time.saturating_sub(self.start).div_ceil(self.distance);
        self.samples.mark(look(start).saturating_sub(first), look(end).saturating_sub(first), path);
    }

    fn samples(&mut self, id: ThreadId, first: u64) -> Result<(), ExportError> {
        let mut samples = std::mem::take(&mut self.samples);
        for (&path, number) in samples.paths().iter().zip(first..) {
            let last = self.threads.get(&id).map_or(ROOT_PATH, |thread| thread.last);
            // A thread in no traced function is sampled once.
            if path == ROOT_PATH && last == ROOT_PATH {
                continue;
            }
            let since = Timestamp::from_nanos_since_reference(number * self.distance);
            let thread = self.thread(id)?;
            let stack = self.stack(id, thread, path)?;
            let busy = if path == ROOT_PATH { 0 } else { self.distance };
            self.profile.add_sample(thread, since, stack, CpuDelta::from_nanos(busy), 1);
        }
        self.samples = samples;
        Ok(())
    }

    fn thread(&mut self, id: ThreadId) -> Result<ThreadHandle, ExportError> {
        if let Some(thread) = self.threads.get(&id) {
            return Ok(thread.handle);
        }
        self.spend(THREAD)?;
        let label = labels::thread(self.recording, id);
        // A profile lists threads in the order of their beginnings.
        let place = self.places.get(&id).copied().unwrap_or(u64::MAX >> 16);
        let since = Timestamp::from_nanos_since_reference(place);
        let process = *self.processes.entry(label.pid).or_insert_with(|| {
            let name = labels::process(self.recording, label.pid);
            self.profile.add_process(&name, label.pid, since)
        });
        let is_main = label.pid == label.tid;
        let handle = self.profile.add_thread(process, label.tid, since, is_main);
        self.profile.set_thread_name(handle, &label.name);
        self.threads.insert(id, Thread { handle, stacks: HashMap::new(), last: ROOT_PATH });
        Ok(handle)
    }

    fn stack(
        &mut self,
        id: ThreadId,
        handle: ThreadHandle,
        path: u32,
    ) -> Result<Option<StackHandle>, ExportError> {
        if let Some(thread) = self.threads.get_mut(&id) {
            thread.last = path;
            if let Some(stack) = thread.stacks.get(&path) {
                return Ok(*stack);
            }
        }
        let (frames, is_whole) = labels::frames(self.nodes, path);
        self.spend(frames.len() as u64)?;
        let unknown = (!is_whole).then_some((self.unknown, CategoryHandle::OTHER));
        let names = frames.iter().filter_map(|function| self.names.get(function.index()).copied());
        let frames: Vec<FrameInfo> = unknown
            .into_iter()
            .chain(names)
            .map(|(name, category)| FrameInfo {
                frame: Frame::Label(name),
                category_pair: category.into(),
                flags: FrameFlags::empty(),
            })
            .collect();
        let stack = self.profile.intern_stack_frames(handle, frames.into_iter());
        if let Some(thread) = self.threads.get_mut(&id) {
            thread.stacks.insert(path, stack);
        }
        Ok(stack)
    }
}
