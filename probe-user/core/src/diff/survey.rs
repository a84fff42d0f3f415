//! The first pass over each file: finds its functions and paths and their activity. Only the most
//! active ones are compared, so that the second pass needs little memory.

use super::catalogue::Catalogue;
use super::matching::Description;
use super::{ComparedFile, Content, ReportFacts};
use crate::calls::paths::Node;
use crate::function::FunctionInfo;
use crate::recording::replay::count::{FirstPass, count};
use crate::recording::replay::lens::Lens;
use crate::recording::replay::report::period;
use crate::recording::{ChunkEntry, Recording};
use crate::report::LossReport;
use crate::units::{FuncId, Nanos, saturating_sum};
use std::ops::Range;

/// A number of calls, and their total time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Activity {
    pub(crate) total_ns: u64,
    pub(crate) calls: u64,
}

impl Activity {
    pub(crate) fn add(&mut self, other: Self) {
        self.total_ns = self.total_ns.saturating_add(other.total_ns);
        self.calls = self.calls.saturating_add(other.calls);
    }
}

/// The facts about a file after the first pass.
pub(crate) struct Survey<'a> {
    pub(crate) content: Surveyed<'a>,
    pub(crate) index: Index,
}

pub(crate) enum Surveyed<'a> {
    Recording(Box<Read<'a>>),
    Report(&'a ReportFacts),
}

pub(crate) struct Read<'a> {
    pub(crate) recording: &'a Recording,
    pub(crate) lens: Lens<'a>,
    pub(crate) chunks: &'a [ChunkEntry],
    pub(crate) counted: FirstPass,
    pub(crate) period: Range<u64>,
}

impl Read<'_> {
    pub(crate) fn duration(&self) -> Nanos {
        Nanos(self.period.end).since(Nanos(self.period.start))
    }

    pub(crate) fn loss(&self) -> LossReport {
        let counts = &self.counted.counts;
        let functions = self.recording.functions();
        let is_point =
            |node: &Node| functions.get(node.func.index()).is_some_and(FunctionInfo::is_point);
        let of_points = self.lens.paths.nodes().iter().zip(&counts.tallies);
        let of_points = of_points.filter(|(node, _)| is_point(node));
        LossReport {
            events: counts.loss.lost_events(),
            late: counts.loss.late,
            decode_errors: counts.loss.decode_errors,
            calls_untimed: saturating_sum(counts.tallies.iter().map(|tally| tally.untimed)),
            points: saturating_sum(of_points.map(|(_, tally)| tally.untimed)),
            calls_open: self.counted.open.len() as u64,
            calls_headless: saturating_sum(counts.headless.iter().copied()),
            unreadable_calls: counts.unreadable,
            unreadable_bytes: self.recording.unreadable(),
            // Comparisons have no values.
            payloads: 0,
        }
    }
}

/// The positions of a file's functions and paths in the catalogue.
#[derive(Debug, Default)]
pub(crate) struct Index {
    /// Indices in the catalogue, for each function of the file.
    pub(crate) functions: Vec<FuncId>,
    /// Indices in the catalogue, for each path node of the file.
    pub(crate) paths: Vec<Option<u32>>,
    /// The activity of each function of the catalogue.
    pub(crate) of_function: Vec<Activity>,
    pub(crate) of_path: Vec<Activity>,
}

impl<'a> Survey<'a> {
    /// Returns true if waits were told apart.
    pub(crate) fn tells_waits(&self) -> bool {
        match &self.content {
            Surveyed::Recording(read) => {
                read.recording.functions().iter().any(|function| function.wait.is_some())
            }
            Surveyed::Report(facts) => facts.functions.iter().any(|row| row.split.is_known()),
        }
    }

    pub(crate) fn new(source: &ComparedFile<'a>, catalogue: &mut Catalogue) -> Self {
        let functions = described(source).iter().map(|told| catalogue.function(told)).collect();
        match source.content {
            Content::Recording { recording, query } => {
                let lens = Lens::new(query, recording.nodes(), recording.functions());
                let chunks = lens.chunks(recording.chunks());
                let counted = count(recording, &lens, chunks);
                let (Nanos(start), Nanos(end)) = period(recording, &lens);
                let read = Read { recording, lens, chunks, counted, period: start..end };
                let index = Index::of_recording(&read, functions, catalogue);
                Self { content: Surveyed::Recording(Box::new(read)), index }
            }
            Content::Report { facts, functions: chosen } => Self {
                content: Surveyed::Report(facts),
                index: Index::of_report(facts, chosen, functions, catalogue),
            },
        }
    }
}

/// Returns the functions of a file.
pub(super) fn described<'a>(source: &ComparedFile<'a>) -> Vec<Description<'a>> {
    match source.content {
        Content::Recording { recording, .. } => {
            let program = recording.start().target.name();
            let functions = recording.functions().iter();
            functions.map(|info| Description::of_info(info, program)).collect()
        }
        Content::Report { facts, .. } => {
            let program = facts.target.name();
            facts.functions.iter().map(|row| Description::of_row(row, program)).collect()
        }
    }
}

impl Index {
    fn of_recording(read: &Read<'_>, functions: Vec<FuncId>, catalogue: &mut Catalogue) -> Self {
        let nodes = read.lens.paths.nodes();
        let paths = catalogue.paths(nodes, &functions);
        let mut index = Self { functions, paths, ..Self::default() };
        let mut add = |node: usize, activity| {
            let function = index.functions[nodes[node].func.index()];
            add_at(&mut index.of_function, function.index(), activity);
            if let Some(path) = index.paths[node] {
                add_at(&mut index.of_path, path as usize, activity);
            }
        };
        for (node, tally) in read.counted.counts.tallies.iter().enumerate().skip(1) {
            let calls = tally.ended();
            add(node, Activity { total_ns: tally.total_ns(), calls });
        }
        for (_, node) in &read.counted.open {
            add(*node as usize, Activity { total_ns: 0, calls: 1 });
        }
        index
    }

    /// Surveys the chosen functions of a report; paths of a choice are unknown.
    fn of_report(
        facts: &ReportFacts,
        chosen: Option<&[bool]>,
        functions: Vec<FuncId>,
        catalogue: &mut Catalogue,
    ) -> Self {
        let paths = catalogue.paths(&facts.nodes(), &functions);
        let mut index = Self { functions, paths, ..Self::default() };
        for (place, function) in facts.functions.iter().enumerate() {
            if chosen.is_none_or(|chosen| chosen.get(place).copied().unwrap_or(false)) {
                let activity = Activity { total_ns: function.total_ns.0, calls: function.calls };
                add_at(&mut index.of_function, index.functions[place].index(), activity);
            }
        }
        for (path, at) in facts.paths.iter().zip(&index.paths[1..]) {
            if let (Some(at), None) = (at, chosen) {
                let activity = Activity { total_ns: path.total_ns.0, calls: path.calls };
                add_at(&mut index.of_path, *at as usize, activity);
            }
        }
        index
    }

    pub(crate) fn of_slot(&self, chosen: &Chosen, slot: usize) -> Activity {
        let activity = match chosen.functions.get(slot) {
            Some(function) => self.of_function.get(function.index()),
            None => self.of_path.get(chosen.paths[slot - chosen.functions.len()] as usize),
        };
        activity.copied().unwrap_or_default()
    }
}

fn add_at(activities: &mut Vec<Activity>, place: usize, activity: Activity) {
    if place >= activities.len() {
        activities.resize(place + 1, Activity::default());
    }
    activities[place].add(activity);
}

/// The compared functions and paths. Each has a slot, functions first.
pub(crate) struct Chosen {
    /// Indices in the catalogue, the most active first.
    pub(crate) functions: Vec<FuncId>,
    pub(crate) paths: Vec<u32>,
    /// The slot for each function of the catalogue.
    pub(crate) slot_of_function: Vec<Option<u32>>,
    pub(crate) slot_of_path: Vec<Option<u32>>,
    /// The number of functions that are not active enough.
    pub(crate) functions_left_out: u64,
    pub(crate) paths_left_out: u64,
}

impl Chosen {
    pub(crate) fn new(surveys: &[Vec<Survey<'_>>; 2], catalogue: &Catalogue, most: usize) -> Self {
        let all = || surveys.iter().flatten();
        let (functions, functions_left_out) =
            most_active(all().map(|survey| &survey.index.of_function), most);
        let (paths, paths_left_out) = most_active(all().map(|survey| &survey.index.of_path), most);
        let mut slot_of_function = vec![None; catalogue.functions.len()];
        let mut slot_of_path = vec![None; catalogue.path_count()];
        for (slot, &place) in functions.iter().enumerate() {
            slot_of_function[place] = Some(slot as u32);
        }
        for (slot, &place) in (functions.len()..).zip(&paths) {
            slot_of_path[place] = Some(slot as u32);
        }
        Self {
            functions: functions.into_iter().map(|place| FuncId(place as u32)).collect(),
            paths: paths.into_iter().map(|place| place as u32).collect(),
            slot_of_function,
            slot_of_path,
            functions_left_out,
            paths_left_out,
        }
    }

    /// Chooses among functions alone, by the activity of each on both sides.
    #[cfg(feature = "parquet")]
    pub(crate) fn of_functions(sides: &[Vec<Activity>; 2], count: usize, most: usize) -> Self {
        let (functions, functions_left_out) = most_active(sides.iter(), most);
        let mut slot_of_function = vec![None; count];
        for (slot, &place) in functions.iter().enumerate() {
            slot_of_function[place] = Some(slot as u32);
        }
        Self {
            functions: functions.into_iter().map(|place| FuncId(place as u32)).collect(),
            paths: Vec::new(),
            slot_of_function,
            slot_of_path: Vec::new(),
            functions_left_out,
            paths_left_out: 0,
        }
    }

    pub(crate) fn slots(&self) -> usize {
        self.functions.len() + self.paths.len()
    }
}

fn most_active<'a>(
    files: impl Iterator<Item = &'a Vec<Activity>>,
    most: usize,
) -> (Vec<usize>, u64) {
    let mut sums: Vec<Activity> = Vec::new();
    for file in files {
        for (place, activity) in file.iter().enumerate() {
            add_at(&mut sums, place, *activity);
        }
    }
    let mut places: Vec<usize> = (0..sums.len()).filter(|&place| sums[place].calls > 0).collect();
    places.sort_by_key(|&place| (std::cmp::Reverse(sums[place]), place));
    let left_out = places.len().saturating_sub(most);
    places.truncate(most);
    (places, left_out as u64)
}
