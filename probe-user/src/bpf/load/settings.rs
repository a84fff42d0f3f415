//! The settings of a session, as the sizes of maps and the globals of the programs.

use super::maps::{self, MapSettings, Maps};
use crate::bpf::{
    BpfError, Config,
    machine::{btf::Offsets, cpus::some_run_without_ticks, release::Release},
    maps::side_table::{CONDITIONS_LIMIT, VALUES_LIMIT},
    processes::control::PROCESSES_LIMIT,
    rings::layout::RingLayout,
};
use ctrace_common::{
    MET_SLOTS, MOST_ADMISSIONS, MOST_COUNTED_THREADS, MOST_KEPT_THREADS, MOST_PYTHON_THREADS,
    PAGE_LEN, UNMET_COUNTERS,
};

/// Bytes for requests: each of some hundred threads can wait at the same time.
const REQUEST_BYTES: u32 = 1 << 20;
/// Words of the map of functions without return probes: a bit for each function.
const UNRETURNED_WORDS: u32 = 1 << 14;

/// Warnings and errors, in the numbers of aya-log's levels.
const LOG_LEVEL: u8 = 2;

/// The settings in the programs' globals and maps.
pub(crate) struct Settings<'a> {
    pub(crate) config: &'a Config,
    pub(crate) layout: RingLayout,
    /// The first page of each CPU's ring.
    pub(crate) first_pages: &'a [u32],
    /// True if the programs check the set of traced processes.
    pub(crate) filter: bool,
    pub(crate) news_bytes: u32,
}

pub(crate) fn load_maps(settings: &Settings<'_>) -> Result<Maps, BpfError> {
    let Settings { config, layout, first_pages, filter, news_bytes } = settings;
    let offsets = Offsets::of_running_kernel()?;
    let admission = (config.admits != 0).then(Offsets::of_admissions).flatten();
    let admits = if admission.is_some() { config.admits } else { 0 };
    let interrupts = match config.wakers {
        true => Offsets::of_interrupts().ok_or(BpfError::Unsupported {
            what: "count of interrupts of each processor",
            remedy: "leave out --wakers",
        })?,
        false => Vec::new(),
    };
    let python = match config.python {
        true => Offsets::of_python().ok_or(BpfError::Unsupported {
            what: "description of threads",
            remedy: "leave out `python` in --arg",
        })?,
        false => Vec::new(),
    };
    let counted = config.counted;
    // Where calls are counted, those of a thread are known in any case.
    let kept = config.thrift.filter(|_| counted.is_none());
    let first_counts = |page: &u32| {
        let ring = page / (1 + layout.slot_pages());
        counted.map_or(0, |sizes| ring % sizes.groups * sizes.paths)
    };
    let first_counts: Vec<u32> = first_pages.iter().map(first_counts).collect();
    let conditions = if config.conditions { CONDITIONS_LIMIT as u32 } else { 1 };
    let sizes = vec![
        ("RINGS", layout.pages()),
        // While children are not followed, only chosen processes are in the set.
        ("TRACED", if config.follow { PROCESSES_LIMIT } else { 64 }),
        ("ADMITTED", if admits != 0 { MOST_ADMISSIONS as u32 } else { 1 }),
        ("NEWS", *news_bytes),
        ("RESTORES", if config.guards { REQUEST_BYTES } else { PAGE_LEN as u32 }),
        ("GUARDED", if config.guards { PROCESSES_LIMIT } else { 1 }),
        ("UNRETURNED", if config.guards { UNRETURNED_WORDS } else { 1 }),
        ("VALUES", if config.values { VALUES_LIMIT as u32 } else { 1 }),
        ("PYTHONS", if config.python { PROCESSES_LIMIT } else { 1 }),
        ("PYTHON_THREADS", if config.python { MOST_PYTHON_THREADS } else { 1 }),
        ("CONDITIONS", conditions),
        ("UNMET", conditions * UNMET_COUNTERS),
        ("MET", if config.conditions { MET_SLOTS } else { 1 }),
        ("PATH_COUNTS", counted.map_or(1, |sizes| sizes.paths * sizes.groups)),
        ("PATHS", counted.map_or(1, |sizes| sizes.paths)),
        ("PATH_KEYS", counted.map_or(1, |sizes| sizes.paths)),
        ("VALUE_NUMBERS", counted.map_or(1, |sizes| sizes.values)),
        ("COUNTED_VALUES", counted.map_or(1, |sizes| sizes.values)),
        ("COUNTED_FUNCTIONS", counted.map_or(1, |sizes| sizes.functions)),
        ("OPEN_CALLS", counted.map_or(1, |_| MOST_COUNTED_THREADS)),
        ("KEPT_CALLS", kept.map_or(1, |_| MOST_KEPT_THREADS)),
        ("LEFT_OUT", config.thrift.map_or(1, |thrift| thrift.functions)),
        ("BUFFERS", if config.markers { 65536 } else { 1 }),
        ("CUT_OFF", if config.markers { 16384 } else { 1 }),
    ];
    let words = |words: &[u32]| words.iter().flat_map(|word| word.to_ne_bytes()).collect();
    let mut globals: Vec<(&str, Vec<u8>)> = vec![
        ("RING_PAGES", words(&[layout.slot_pages()])),
        ("FIRST_PAGE", words(first_pages)),
        ("FILTER", words(&[u32::from(*filter)])),
        ("FOLLOW", words(&[u32::from(config.follow)])),
        ("GUARDS", words(&[u32::from(config.guards)])),
        ("MARKS", words(&[u32::from(config.markers)])),
        ("PYTHON", words(&[u32::from(config.python)])),
        ("COMPARES_TURNS", words(&[u32::from(Release::running().compares_turns())])),
        ("ADMITS", words(&[admits])),
        ("AGGREGATES", words(&[u32::from(counted.is_some())])),
        ("SHORTEST_CALL", counted.map_or(0, |sizes| sizes.shortest.0).to_ne_bytes().to_vec()),
        ("MOST_NESTED", words(&[config.thrift.map_or(0, |thrift| thrift.most_nested)])),
        (
            "SHORTEST_EVENTS",
            config.thrift.map_or(0, |thrift| thrift.shortest.0).to_ne_bytes().to_vec(),
        ),
        ("PATH_LIMIT", words(&[counted.map_or(1, |sizes| sizes.paths)])),
        ("FIRST_COUNTS", words(&first_counts)),
        ("LAUNCHES", words(&[u32::from(config.launches)])),
        (aya_log::LEVEL, vec![LOG_LEVEL]),
    ];
    let admission = admission.into_iter().flatten().chain(interrupts).chain(python);
    globals.extend(admission.map(|(name, offset)| (name, words(&[offset]))));
    // Without ticks, a thread's last stretch on a processor may not be counted when it ends.
    let work = (!some_run_without_ticks()).then(|| offsets.of_work()).into_iter().flatten();
    globals.extend(offsets.globals().chain(work).map(|(name, offset)| (name, words(&[*offset]))));
    maps::load(&MapSettings { sizes, globals })
}
