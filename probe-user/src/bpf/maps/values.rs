//! The tables of what programs read at points and functions, and where in them each function's values
//! and its condition are. A function can get other probes while it is traced, which read the same.

use super::{per_cpu::PerCpuCounters, side_table::SideTable};
use crate::bpf::BpfError;
use ctrace_common::{Condition, UNMET_COUNTERS, ValueSources};
use ctrace_core::units::FuncId;
use std::{collections::HashMap, os::fd::OwnedFd, sync::Arc};

/// The sources of a function's values at both ends of a call, and the condition on its arguments.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct CallSources {
    pub entry: ValueSources,
    pub exit: ValueSources,
    pub condition: Option<Condition>,
}

/// The elements of a function's values: those of its entry, and behind it those of its exit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CallElements {
    pub entry: u16,
    pub has_arguments: bool,
    pub has_result: bool,
    pub has_condition: bool,
}

impl CallElements {
    /// Returns the element of the function's result, if it has one.
    pub fn result(self) -> Option<u16> {
        self.has_result.then_some(self.entry + 1)
    }
}

/// Calls of a function that did not meet its condition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unmet {
    pub function: FuncId,
    pub calls: u64,
    /// Those of them whose values could not all be read.
    pub unread: u64,
}

/// The maps of values, of conditions, and of the counters of these.
pub(crate) struct ValueMaps {
    pub(crate) values: Arc<OwnedFd>,
    pub(crate) conditions: Arc<OwnedFd>,
    pub(crate) unmet: PerCpuCounters,
}

pub(crate) struct Values {
    table: SideTable<ValueSources>,
    conditions: SideTable<Condition>,
    /// Functions with a condition, in the order of `conditions`.
    conditional: Vec<FuncId>,
    unmet: PerCpuCounters,
    of_functions: HashMap<FuncId, CallElements>,
}

impl Values {
    pub(crate) fn new(maps: ValueMaps) -> Self {
        Self {
            table: SideTable::new(maps.values),
            conditions: SideTable::new(maps.conditions),
            conditional: Vec::new(),
            unmet: maps.unmet,
            of_functions: HashMap::new(),
        }
    }

    pub(crate) fn add(&mut self, values: &[ValueSources]) -> Result<u16, BpfError> {
        self.table.add(values)
    }

    pub(crate) fn add_call(
        &mut self,
        function: FuncId,
        CallSources { entry, exit, condition }: &CallSources,
    ) -> Result<CallElements, BpfError> {
        if let Some(known) = self.of(function) {
            return Ok(known);
        }
        // One more than the index of the condition.
        let condition = match condition {
            Some(condition) => u32::from(self.conditions.add(&[*condition])?) + 1,
            None => 0,
        };
        if condition > 0 {
            self.conditional.push(function);
        }
        let elements = CallElements {
            entry: self.table.add(&[ValueSources { condition, ..*entry }, *exit])?,
            has_arguments: entry.count > 0,
            has_result: exit.count > 0,
            has_condition: condition > 0,
        };
        self.of_functions.insert(function, elements);
        Ok(elements)
    }

    pub(crate) fn of(&self, function: FuncId) -> Option<CallElements> {
        self.of_functions.get(&function).copied()
    }

    /// Returns the counts of all functions with a condition, since the start.
    pub(crate) fn unmet(&self) -> Result<Vec<Unmet>, BpfError> {
        let firsts = (0..).step_by(UNMET_COUNTERS as usize);
        let count = |(&function, first)| {
            let (calls, unread) = (self.unmet.sum(first)?, self.unmet.sum(first + 1)?);
            Ok(Unmet { function, calls, unread })
        };
        self.conditional.iter().zip(firsts).map(count).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bpf::sys::{Syscall, fake};
    use std::fs::File;

    fn values() -> Values {
        let map = || Arc::new(File::open("/dev/null").unwrap().into());
        let unmet = PerCpuCounters::new(map(), 2, "counts of calls");
        Values::new(ValueMaps { values: map(), conditions: map(), unmet })
    }

    #[test]
    fn conditions_are_counted_by_function() {
        let _fake = fake::Fake::new(|call| {
            let Syscall::Bpf { command, attr } = call else { panic!("not bpf") };
            if *command == 1 {
                let (key, counts) = (attr.get_u64(8) as *const u32, attr.get_u64(16) as *mut u64);
                // SAFETY: the caller's key and its two counts.
                unsafe {
                    counts.write(u64::from(*key));
                    counts.add(1).write(10);
                }
            }
            Ok(0)
        });
        let mut values = values();
        let with = |condition| CallSources { condition, ..CallSources::default() };
        let some = with(Some(Condition::default()));
        let first = values.add_call(FuncId(9), &some).unwrap();
        assert!(first.has_condition && !first.has_arguments);
        assert!(!values.add_call(FuncId(8), &with(None)).unwrap().has_condition);
        values.add_call(FuncId(7), &some).unwrap();
        let expected = [
            Unmet { function: FuncId(9), calls: 10, unread: 11 },
            Unmet { function: FuncId(7), calls: 12, unread: 13 },
        ];
        assert_eq!(values.unmet().unwrap(), expected);
    }

    #[test]
    fn a_function_keeps_its_elements() {
        let _fake = fake::Fake::new(|_| Ok(0));
        let mut values = values();
        let one = ValueSources { count: 1, ..ValueSources::default() };
        let none = ValueSources::default();
        values.add(&[one]).unwrap();
        let (first, second) = (FuncId(7), FuncId(3));
        let of = |entry, exit| CallSources { entry, exit, condition: None };
        let arguments = values.add_call(first, &of(one, none)).unwrap();
        assert_eq!((arguments.entry, arguments.result()), (1, None));
        let result = values.add_call(second, &of(none, one)).unwrap();
        assert_eq!((result.entry, result.has_arguments, result.result()), (3, false, Some(4)));
        assert_eq!(values.add_call(first, &of(one, one)).unwrap(), arguments);
        assert_eq!(values.of(FuncId(4)), None);
    }
}
