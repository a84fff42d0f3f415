//! The calls table: a row for each call, in row groups of a bounded size.

use super::super::excerpt::{CallRow, Ended, Excerpt};
use super::super::labels::{self, Labels};
use super::super::{Coverage, ExportError};
use super::File;
use super::columns::{Columns, signed};
use crate::calls::paths::Node;
use crate::recording::Recording;
use ::parquet::data_type::ByteArray;
use std::collections::HashMap;

pub(super) const SCHEMA: &str = "message calls {
    required binary host (STRING);
    required int32 pid (INTEGER(32, false));
    required int32 tid (INTEGER(32, false));
    required binary thread (STRING);
    required int64 time (TIMESTAMP(NANOS, true));
    required int64 start_ns;
    required int64 duration_ns;
    required boolean timed;
    required boolean open;
    required int32 function_id (INTEGER(32, false));
    required binary function (STRING);
    required int32 depth (INTEGER(32, false));
    required binary path (STRING);
}";

/// Rows of a group. It is exceeded by less than one chunk.
const GROUP: usize = 200_000;

pub(super) fn write(excerpt: &Excerpt<'_>, file: &mut File<'_>) -> Result<Coverage, ExportError> {
    let mut group = Group::new(excerpt);
    let told = excerpt.chunks(|step| {
        for (thread, rows) in step.rows() {
            let label = labels::thread(excerpt.recording, thread);
            let name = ByteArray::from(label.name.as_str());
            for row in rows {
                group.push(&row);
                group.pids.push(label.pid as i32);
                group.tids.push(label.tid as i32);
                group.threads.push(name.clone());
            }
        }
        if group.starts.len() >= GROUP { group.write(file) } else { Ok(()) }
    })?;
    group.write(file)?;
    Ok(told)
}

/// The cells of a path.
struct PathCells {
    function: i32,
    name: ByteArray,
    depth: i32,
    path: ByteArray,
}

struct Group<'a> {
    recording: &'a Recording,
    nodes: &'a [Node],
    labels: Labels,
    names: Vec<ByteArray>,
    /// The cells of the paths in this group.
    cells: HashMap<u32, PathCells>,
    pids: Vec<i32>,
    tids: Vec<i32>,
    threads: Vec<ByteArray>,
    starts: Vec<i64>,
    durations: Vec<i64>,
    timed: Vec<bool>,
    open: Vec<bool>,
    paths: Vec<u32>,
}

impl<'a> Group<'a> {
    fn new(excerpt: &'a Excerpt<'a>) -> Self {
        let recording = excerpt.recording;
        let labels = Labels::of(recording);
        Self {
            recording,
            nodes: excerpt.nodes(),
            names: labels.all().iter().map(|name| ByteArray::from(name.as_str())).collect(),
            labels,
            cells: HashMap::new(),
            pids: Vec::new(),
            tids: Vec::new(),
            threads: Vec::new(),
            starts: Vec::new(),
            durations: Vec::new(),
            timed: Vec::new(),
            open: Vec::new(),
            paths: Vec::new(),
        }
    }

    fn push(&mut self, row: &CallRow) {
        self.starts.push(signed(row.start));
        self.durations.push(signed(row.duration));
        self.timed.push(row.ended == Ended::Timed);
        self.open.push(row.ended == Ended::Open);
        self.paths.push(row.path);
    }

    fn find_cells(&mut self) {
        self.cells.clear();
        for &path in &self.paths {
            self.cells.entry(path).or_insert_with(|| {
                let function = self.nodes[path as usize].func;
                let frames = self.labels.path(self.nodes, path);
                PathCells {
                    function: function.0 as i32,
                    name: self.names.get(function.index()).cloned().unwrap_or_default(),
                    depth: frames.len() as i32,
                    path: ByteArray::from(frames.join(";").as_str()),
                }
            });
        }
    }

    fn of_paths<T>(&self, cell: impl Fn(&PathCells) -> T) -> Vec<T> {
        self.paths.iter().filter_map(|path| self.cells.get(path)).map(cell).collect()
    }

    fn write(&mut self, file: &mut File<'_>) -> Result<(), ExportError> {
        if self.starts.is_empty() {
            return Ok(());
        }
        self.find_cells();
        let head = self.recording.start();
        let wall = |start: &i64| start.saturating_add(head.epoch_offset_ns);
        let host = vec![ByteArray::from(labels::text(&head.host.name).as_str()); self.starts.len()];
        let mut columns = Columns(file.next_row_group()?);
        columns.text(&host)?.small(&self.pids)?.small(&self.tids)?.text(&self.threads)?;
        columns.large(&self.starts.iter().map(wall).collect::<Vec<_>>())?;
        columns.large(&self.starts)?.large(&self.durations)?;
        columns.truth(&self.timed)?.truth(&self.open)?;
        columns.small(&self.of_paths(|path| path.function))?;
        columns.text(&self.of_paths(|path| path.name.clone()))?;
        columns.small(&self.of_paths(|path| path.depth))?;
        columns.text(&self.of_paths(|path| path.path.clone()))?;
        columns.finish()?;
        self.pids.clear();
        self.tids.clear();
        self.threads.clear();
        self.starts.clear();
        self.durations.clear();
        self.timed.clear();
        self.open.clear();
        self.paths.clear();
        Ok(())
    }
}
