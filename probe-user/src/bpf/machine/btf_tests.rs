//! Tests the search for fields, in the type information of a small kernel.

use super::*;

/// Strings and types of a small kernel.
#[derive(Default)]
struct Builder {
    types: Vec<u8>,
    strings: Vec<u8>,
}
impl Builder {
    fn new() -> Self {
        Self { types: Vec::new(), strings: vec![0] }
    }
    fn string(&mut self, text: &str) -> u32 {
        if text.is_empty() {
            return 0;
        }
        let at = self.strings.len() as u32;
        self.strings.extend(text.bytes());
        self.strings.push(0);
        at
    }
    fn words(&mut self, words: &[u32]) {
        self.types.extend(words.iter().flat_map(|word| word.to_le_bytes()));
    }
    fn int(&mut self) {
        let name = self.string("int");
        self.words(&[name, 1 << 24, 4, 32]);
    }
    fn structure(&mut self, name: &str, kind: u32, flag: u32, members: &[(&str, u32, u32)]) {
        let name = self.string(name);
        self.words(&[name, flag << 31 | kind << 24 | members.len() as u32, 64]);
        for (name, id, bits) in members {
            let name = self.string(name);
            self.words(&[name, *id, *bits]);
        }
    }
    fn variable(&mut self, name: &str) {
        let name = self.string(name);
        self.words(&[name, VARIABLE << 24, 1, 0]);
    }
    /// Adds a section with these variables, each with its place.
    fn section(&mut self, name: &str, variables: &[(u32, u32)]) {
        let name = self.string(name);
        self.words(&[name, SECTION << 24 | variables.len() as u32, 4096]);
        variables.iter().for_each(|(id, place)| self.words(&[*id, *place, 8]));
    }
    fn build(self) -> Vec<u8> {
        let (types, strings) = (self.types.len() as u32, self.strings.len() as u32);
        let mut bytes = vec![0x9f, 0xeb, 1, 0];
        for word in [24, 0, types, types, strings] {
            bytes.extend(u32::to_le_bytes(word));
        }
        bytes.extend(self.types);
        bytes.extend(self.strings);
        bytes
    }
}
fn small_kernel() -> Vec<u8> {
    let mut builder = Builder::new();
    builder.int(); // 1
    builder.structure("task_struct", 4, 0, &[]); // 2: a declaration elsewhere
    builder.structure("", 5, 0, &[("tgid", 1, 0), ("tgid_too", 1, 0)]); // 3
    builder.structure(
        "task_struct",
        4,
        1,
        &[
            ("pidx", 1, 0),
            ("pid", 1, 4 << 24 | 32),
            ("", 3, 128),
            ("exit_code", 1, 160),
            ("group_leader", 1, 192),
            ("signal", 1, 256),
        ],
    ); // 4
    builder.structure(
        "signal_struct",
        4,
        0,
        &[("live", 1, 0), ("flags", 1, 64), ("group_exit_code", 1, 96)],
    ); // 5
    builder.build()
}
#[test]
fn fields_are_found_in_nameless_members_too() {
    let bytes = small_kernel();
    let offsets = Offsets::find(&Types::parse(&bytes).unwrap()).unwrap();
    assert_eq!(offsets.needed, [4, 16, 20, 24, 32, 0, 8, 12]);
    assert_eq!(offsets.task_iterator(), Err("utask"));
    assert_eq!(offsets.globals().nth(1), Some(("TASK_TGID", &16)));
}
#[test]
fn the_work_of_threads_is_told_whole_or_not_at_all() {
    let work = |queued: &str| {
        let mut builder = Builder::new();
        builder.int(); // 1
        let task = [
            ("pid", 1, 0),
            ("tgid", 1, 32),
            ("exit_code", 1, 64),
            ("group_leader", 1, 128),
            ("signal", 1, 192),
            ("se", 3, 256),
            ("sched_info", 4, 512),
            ("nvcsw", 1, 1024),
        ];
        builder.structure("task_struct", 4, 0, &task); // 2
        builder.structure("sched_entity", 4, 0, &[("sum_exec_runtime", 1, 64)]); // 3
        builder.structure("sched_info", 4, 0, &[("pcount", 1, 0), (queued, 1, 64)]); // 4
        let signal = [("live", 1, 0), ("flags", 1, 64), ("group_exit_code", 1, 96)];
        builder.structure("signal_struct", 4, 0, &signal); // 5
        let bytes = builder.build();
        let offsets = Offsets::find(&Types::parse(&bytes).unwrap()).unwrap();
        offsets.of_work().map(|(name, offset)| (name, *offset)).collect::<Vec<_>>()
    };
    let all = [("TASK_USED", 40), ("TASK_QUEUED", 72), ("TASK_YIELDS", 128)];
    assert_eq!(work("run_delay"), all);
    assert_eq!(work("another"), []);
}
/// Returns the places of a kernel with these variables. They have the numbers from 6 on.
fn places(variables: &[&str], section: &[(u32, u32)]) -> Option<Vec<u32>> {
    let mut builder = Builder::new();
    builder.int(); // 1
    builder.structure("task_struct", 4, 0, &[("pid", 1, 0), ("se", 3, 128 * 8)]); // 2
    builder.structure("sched_entity", 4, 0, &[("cfs_rq", 1, 24 * 8)]); // 3
    builder.structure("cfs_rq", 4, 0, &[("rq", 1, 40 * 8)]); // 4
    builder.structure(HOT, 4, 0, &[("current_task", 1, 0), ("preempt_count", 1, 8 * 8)]); // 5
    variables.iter().for_each(|name| builder.variable(name));
    builder.section(".data..other", &[(6, 1), (7, 1), (8, 1)]);
    builder.section(PER_CPU, section);
    let bytes = builder.build();
    let found = Types::parse(&bytes)?.of_interrupts()?;
    Some(found.into_iter().map(|(_, place)| place).collect())
}
#[test]
fn data_of_processors_is_found_by_name() {
    let own = places(
        &["__preempt_count", "runqueues", "current_task"],
        &[(8, 0x1000), (6, 0x1018), (7, 0x9000)],
    );
    assert_eq!(own, Some(vec![152, 40, 0x9000, 0x1000, 0x1018]));
    let hot = places(&["runqueues", HOT], &[(7, 0x400), (6, 0x2000)]);
    assert_eq!(hot, Some(vec![152, 40, 0x2000, 0x400, 0x408]));
    assert_eq!(places(&["runqueues", "current_task"], &[(6, 64), (7, 128)]), None);
}
#[test]
fn a_missing_field_is_named() {
    let bytes = small_kernel();
    let at = bytes.windows(10).position(|w| w == b"exit_code\0").unwrap();
    let mut bytes = bytes;
    bytes[at] = b'E';
    let error = Offsets::find(&Types::parse(&bytes).unwrap()).unwrap_err();
    assert!(matches!(error, BpfError::NoField { field: "exit_code" }), "{error}");
}
#[test]
fn damage_is_no_panic() {
    let bytes = small_kernel();
    for len in 0..bytes.len() {
        if let Some(types) = Types::parse(&bytes[..len]) {
            let _ = Offsets::find(&types);
        }
    }
    for at in 0..bytes.len() {
        let mut bytes = bytes.clone();
        bytes[at] ^= 0xff;
        if let Some(types) = Types::parse(&bytes) {
            let _ = Offsets::find(&types);
        }
    }
}
#[test]
fn the_running_kernel_has_them_all() {
    if !std::path::Path::new(VMLINUX).exists() {
        eprintln!("skipped: this kernel has no {VMLINUX}");
        return;
    }
    let offsets = Offsets::of_running_kernel().unwrap();
    assert_eq!(offsets.needed[1], offsets.needed[0] + 4, "tgid follows pid");
    let interrupts = Offsets::of_interrupts().expect("it has data of each processor");
    let globals: Vec<_> = interrupts.iter().map(|(global, _)| *global).collect();
    let places = ["RUNQUEUES", "CPU_CURRENT", "CPU_PREEMPT_COUNT"];
    assert_eq!(globals, [["TASK_CFS_RQ", "CFS_RQ_RQ"].as_slice(), &places].concat());
}
