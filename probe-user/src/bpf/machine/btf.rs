//! Finds fields of the running kernel's structures by its type information (BTF).
//!
//! The kernel documents the format in `Documentation/bpf/btf.rst`. Only members of structures
//! matter here, so one pass over the types suffices, without a table of them.

use super::vmlinux::{VMLINUX, Vmlinux};
use crate::bpf::BpfError;
use std::{
    collections::HashMap,
    sync::{Mutex, OnceLock, PoisonError},
};

const MAGIC: u16 = 0xeb9f;

const STRUCT: u32 = 4;
const UNION: u32 = 5;
const FUNCTION: u32 = 12;
const VARIABLE: u32 = 14;
const SECTION: u32 = 15;

/// A global of the programs, and the way to its field: structures and members, each inside the one
/// before.
type Field = (&'static str, &'static [(&'static str, &'static str)]);

const FIELDS: [Field; 8] = [
    ("TASK_PID", &[("task_struct", "pid")]),
    ("TASK_TGID", &[("task_struct", "tgid")]),
    ("TASK_EXIT_CODE", &[("task_struct", "exit_code")]),
    ("TASK_GROUP_LEADER", &[("task_struct", "group_leader")]),
    ("TASK_SIGNAL", &[("task_struct", "signal")]),
    ("SIGNAL_LIVE", &[("signal_struct", "live")]),
    ("SIGNAL_FLAGS", &[("signal_struct", "flags")]),
    ("SIGNAL_GROUP_EXIT_CODE", &[("signal_struct", "group_exit_code")]),
];

/// The fields that tell how long a thread worked.
const WORK_FIELDS: [Field; 3] = [
    ("TASK_USED", &[("task_struct", "se"), ("sched_entity", "sum_exec_runtime")]),
    ("TASK_QUEUED", &[("task_struct", "sched_info"), ("sched_info", "run_delay")]),
    ("TASK_YIELDS", &[("task_struct", "nvcsw")]),
];

/// The fields that tell of return probes, for their guards and for waits.
const GUARD_FIELDS: [Field; 12] = [
    ("TASK_UTASK", &[("task_struct", "utask")]),
    ("TASK_STACK", &[("task_struct", "stack")]),
    ("TASK_MM", &[("task_struct", "mm")]),
    ("TASK_SAS_SS_SIZE", &[("task_struct", "sas_ss_size")]),
    ("UTASK_RETURN_INSTANCES", &[("uprobe_task", "return_instances")]),
    ("INSTANCE_FUNC", &[("return_instance", "func")]),
    ("INSTANCE_STACK", &[("return_instance", "stack")]),
    ("INSTANCE_ORIG_RET_VADDR", &[("return_instance", "orig_ret_vaddr")]),
    ("INSTANCE_NEXT", &[("return_instance", "next")]),
    ("MM_XOL_AREA", &[("mm_struct", "uprobes_state"), ("uprobes_state", "xol_area")]),
    ("XOL_AREA_VADDR", &[("xol_area", "vaddr")]),
    ("SIGACTION_SA_FLAGS", &[("sigaction", "sa_flags")]),
];

/// The fields by which later processes are admitted.
const ADMISSION_FIELDS: [Field; 7] = [
    ("BINPRM_FILE", &[("linux_binprm", "file")]),
    ("FILE_INODE", &[("file", "f_inode")]),
    ("INODE_INO", &[("inode", "i_ino")]),
    ("INODE_SB", &[("inode", "i_sb")]),
    ("SB_DEV", &[("super_block", "s_dev")]),
    ("TASK_CRED", &[("task_struct", "cred")]),
    ("CRED_EUID", &[("cred", "euid")]),
];

/// The field by which Python names the current thread.
const PYTHON_FIELDS: [Field; 1] =
    [("TASK_FSBASE", &[("task_struct", "thread"), ("thread_struct", "fsbase")])];

/// The fields that lead from a thread to its processor's queue.
const QUEUE_FIELDS: [Field; 2] = [
    ("TASK_CFS_RQ", &[("task_struct", "se"), ("sched_entity", "cfs_rq")]),
    ("CFS_RQ_RQ", &[("cfs_rq", "rq")]),
];

/// The section of the data that each processor has.
const PER_CPU: &str = ".data..percpu";
/// The globals that are places in it, and their variables.
const CPU_DATA: [(&str, &str); 3] = [
    ("RUNQUEUES", "runqueues"),
    ("CPU_CURRENT", "current_task"),
    ("CPU_PREEMPT_COUNT", "__preempt_count"),
];
/// From Linux 6.2 to 6.14, the last two are members of one variable.
const HOT: &str = "pcpu_hot";
const HOT_FIELDS: [Field; 2] =
    [("CPU_CURRENT", &[(HOT, "current_task")]), ("CPU_PREEMPT_COUNT", &[(HOT, "preempt_count")])];

/// The function whose type an iterator over tasks is attached to.
const TASK_ITERATOR: &str = "bpf_iter_task";

/// Byte offsets of the fields that the programs read.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Offsets {
    needed: [u32; FIELDS.len()],
    /// `None` if this kernel does not tell one.
    work: Option<[u32; WORK_FIELDS.len()]>,
    guards: Result<Guards, &'static str>,
}

/// The kernel's fields and types that guards of return probes need.
#[derive(Debug, PartialEq, Eq)]
struct Guards {
    offsets: [u32; GUARD_FIELDS.len()],
    task_iterator: u32,
}

impl Offsets {
    /// Reads the offsets once, or waits for whoever does.
    pub(crate) fn of_running_kernel() -> Result<&'static Self, BpfError> {
        static READ: OnceLock<Offsets> = OnceLock::new();
        static READING: Mutex<()> = Mutex::new(());
        let _only = READING.lock().unwrap_or_else(PoisonError::into_inner);
        match READ.get() {
            Some(read) => Ok(read),
            None => Self::read().map(|offsets| READ.get_or_init(|| offsets)),
        }
    }

    fn read() -> Result<Self, BpfError> {
        let bytes = Vmlinux::open()?;
        let types = Types::parse(&bytes).ok_or(BpfError::Malformed { path: VMLINUX.into() })?;
        Self::find(&types)
    }

    /// Returns the globals by which later processes are admitted, and their values; `None` if this
    /// kernel does not tell one.
    pub(crate) fn of_admissions() -> Option<Vec<(&'static str, u32)>> {
        of_fields(&ADMISSION_FIELDS)
    }

    /// Returns the global by which programs tell a thread of Python, and its value; `None` if this kernel does
    /// not tell it.
    pub(crate) fn of_python() -> Option<Vec<(&'static str, u32)>> {
        of_fields(&PYTHON_FIELDS)
    }

    /// Returns the globals by which programs tell whether they run in an interrupt, and their values; `None`
    /// if this kernel does not tell one.
    pub(crate) fn of_interrupts() -> Option<Vec<(&'static str, u32)>> {
        let bytes = Vmlinux::open().ok()?;
        Types::parse(&bytes)?.of_interrupts()
    }

    fn find(types: &Types<'_>) -> Result<Self, BpfError> {
        let known = types.structures(FIELDS.iter().chain(&WORK_FIELDS).chain(&GUARD_FIELDS));
        let work = types.offsets(&known, &WORK_FIELDS).ok();
        let needed = types.offsets(&known, &FIELDS).map_err(|field| BpfError::NoField { field })?;
        let guards = types.offsets(&known, &GUARD_FIELDS).and_then(|offsets| {
            let task_iterator = types.function(TASK_ITERATOR).ok_or(TASK_ITERATOR)?;
            Ok(Guards { offsets, task_iterator })
        });
        Ok(Self { needed, work, guards })
    }

    /// Returns the programs' globals and their values.
    pub(crate) fn globals(&self) -> impl Iterator<Item = (&'static str, &u32)> {
        let named = |fields: &'static [Field]| fields.iter().map(|(global, _)| *global);
        let guards = self.guards.iter().flat_map(|guards| &guards.offsets);
        named(&FIELDS).zip(&self.needed).chain(named(&GUARD_FIELDS).zip(guards))
    }

    /// Returns the globals by which programs tell how long a thread worked, and their values. There are none if
    /// this kernel does not tell one.
    pub(crate) fn of_work(&self) -> impl Iterator<Item = (&'static str, &u32)> {
        WORK_FIELDS.iter().map(|(global, _)| *global).zip(self.work.iter().flatten())
    }

    /// Returns true if the kernel's list of open return probes can be read.
    pub(crate) fn know_return_probes(&self) -> bool {
        self.guards.is_ok()
    }

    /// Returns the type of the function that an iterator over tasks is attached to, or what this
    /// kernel lacks for guards of return probes.
    pub(crate) fn task_iterator(&self) -> Result<u32, &'static str> {
        self.guards.as_ref().map(|guards| guards.task_iterator).map_err(|lacking| *lacking)
    }
}

/// Reads globals and their values; `None` if this kernel does not tell one.
fn of_fields<const N: usize>(fields: &'static [Field; N]) -> Option<Vec<(&'static str, u32)>> {
    let bytes = Vmlinux::open().ok()?;
    let types = Types::parse(&bytes)?;
    let known = types.structures(fields.iter());
    let offsets = types.offsets(&known, fields).ok()?;
    Some(fields.iter().map(|(global, _)| *global).zip(offsets).collect())
}

/// The types of one BTF blob.
struct Types<'a> {
    types: &'a [u8],
    strings: &'a [u8],
}

/// A structure or union: its members' records.
#[derive(Clone, Copy)]
struct Structure<'a> {
    members: &'a [u8],
    /// True if bit-field sizes share the word with the offsets.
    has_bit_fields: bool,
}

impl<'a> Types<'a> {
    fn parse(bytes: &'a [u8]) -> Option<Self> {
        if u16::from_le_bytes(bytes.get(..2)?.try_into().ok()?) != MAGIC {
            return None;
        }
        let header = |index: usize| word(bytes, 4 + index * 4).map(|value| value as usize);
        let (length, type_at, type_len) = (header(0)?, header(1)?, header(2)?);
        let (string_at, string_len) = (header(3)?, header(4)?);
        let part = |at: usize, len: usize| {
            let start = length.checked_add(at)?;
            bytes.get(start..start.checked_add(len)?)
        };
        Some(Self { types: part(type_at, type_len)?, strings: part(string_at, string_len)? })
    }

    /// Calls `each` with every type's number, name offset, kind and record, until it answers.
    fn find<T>(
        &self,
        mut each: impl FnMut(u32, u32, u32, Structure<'a>) -> Option<T>,
    ) -> Option<T> {
        // A kernel has more than 100,000 types: this loop is a good part of ctrace's start.
        let mut rest = self.types;
        let mut id = 1;
        while let Some((&[n0, n1, n2, n3, i0, i1, i2, i3, ..], after)) =
            rest.split_first_chunk::<12>()
        {
            let name = u32::from_le_bytes([n0, n1, n2, n3]);
            let info = u32::from_le_bytes([i0, i1, i2, i3]);
            let (kind, count) = (info >> 24 & 0x1f, (info & 0xffff) as usize);
            let extra = match kind {
                1 | 14 | 17 => 4,
                3 => 12,
                STRUCT | UNION | 15 | 19 => 12 * count,
                6 | 13 => 8 * count,
                _ => 0,
            };
            let (members, after) = after.split_at_checked(extra)?;
            let structure = Structure { members, has_bit_fields: info >> 31 != 0 };
            if let Some(found) = each(id, name, kind, structure) {
                return Some(found);
            }
            rest = after;
            id += 1;
        }
        None
    }

    /// Finds the structures that these fields lie in. One pass over the types finds all.
    fn structures<'f>(
        &self,
        fields: impl Iterator<Item = &'f Field>,
    ) -> HashMap<&'static str, Structure<'a>> {
        let mut wanted: Vec<&'static str> =
            fields.flat_map(|(_, way)| way.iter().map(|(structure, _)| *structure)).collect();
        let mut found = HashMap::new();
        self.find(|_, name, kind, structure| -> Option<()> {
            if kind == STRUCT
                && !structure.members.is_empty()
                && let Some(at) = wanted.iter().position(|wanted| self.is_named(name, wanted))
            {
                found.insert(wanted[at], structure);
                wanted.retain(|it| !found.contains_key(it));
            }
            wanted.is_empty().then_some(())
        });
        found
    }

    /// Returns the offsets of all these fields, or the name of one that is missing.
    fn offsets<const N: usize>(
        &self,
        known: &HashMap<&'static str, Structure<'a>>,
        fields: &[Field; N],
    ) -> Result<[u32; N], &'static str> {
        let mut offsets = [0; N];
        for (offset, (_, way)) in offsets.iter_mut().zip(fields) {
            for (structure, field) in *way {
                let structure = known.get(structure).ok_or(*field)?;
                *offset += self.member(*structure, field, 0).ok_or(*field)?;
            }
        }
        Ok(offsets)
    }

    fn of_interrupts(&self) -> Option<Vec<(&'static str, u32)>> {
        let known = self.structures(QUEUE_FIELDS.iter().chain(&HOT_FIELDS));
        let fields = self.offsets(&known, &QUEUE_FIELDS).ok()?;
        let [hot] = self.per_cpu([HOT]);
        let data = self.per_cpu(CPU_DATA.map(|(_, variable)| variable));
        let data = match (data, hot) {
            ([queues, _, _], Some(hot)) => {
                let [current, count] = self.offsets(&known, &HOT_FIELDS).ok()?;
                [queues?, hot.checked_add(current)?, hot.checked_add(count)?]
            }
            ([queues, current, count], None) => [queues?, current?, count?],
        };
        let fields = QUEUE_FIELDS.iter().map(|(global, _)| *global).zip(fields);
        Some(fields.chain(CPU_DATA.iter().map(|(global, _)| *global).zip(data)).collect())
    }

    /// Returns the places of variables among the data of each processor.
    fn per_cpu<const N: usize>(&self, wanted: [&str; N]) -> [Option<u32>; N] {
        let (mut ids, mut places) = ([None; N], [None; N]);
        // The section comes after its variables.
        self.find(|id, name, kind, section| match kind {
            VARIABLE => {
                let found = wanted.iter().position(|wanted| self.is_named(name, wanted));
                found.into_iter().for_each(|at| ids[at] = Some(id));
                None
            }
            SECTION if self.is_named(name, PER_CPU) => {
                for variable in section.members.chunks_exact(12) {
                    let at = ids.iter().position(|id| id.is_some() && *id == word(variable, 0));
                    at.into_iter().for_each(|at| places[at] = word(variable, 4));
                }
                Some(())
            }
            _ => None,
        });
        places
    }

    /// Returns the number of a function's type.
    fn function(&self, wanted: &str) -> Option<u32> {
        self.find(|id, name, kind, _| {
            (kind == FUNCTION && self.is_named(name, wanted)).then_some(id)
        })
    }

    /// Returns the byte offset of a member, also of a nameless member's.
    fn member(&self, structure: Structure<'a>, wanted: &str, depth: u32) -> Option<u32> {
        structure.members.chunks_exact(12).find_map(|member| {
            let (name, id, offset) = (word(member, 0)?, word(member, 4)?, word(member, 8)?);
            let bits = if structure.has_bit_fields { offset & 0xff_ffff } else { offset };
            if name == 0 && depth < 8 {
                let inner =
                    self.find(|number, _, kind, inner| (number == id).then_some((kind, inner)));
                let (STRUCT | UNION, inner) = inner? else { return None };
                return Some(bits / 8 + self.member(inner, wanted, depth + 1)?);
            }
            self.is_named(name, wanted).then_some(bits / 8)
        })
    }

    fn is_named(&self, offset: u32, wanted: &str) -> bool {
        let Some(name) = self.strings.get(offset as usize..) else { return false };
        name.strip_prefix(wanted.as_bytes()).is_some_and(|rest| rest.first() == Some(&0))
    }
}

fn word(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_le_bytes(bytes.get(at..at + 4)?.try_into().ok()?))
}

#[cfg(test)]
#[path = "btf_tests.rs"]
mod tests;
