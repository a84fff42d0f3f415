//! The table of what programs read at points and functions, and where in it each function's values
//! are. A function can get other probes while it is traced, which read the same.

use super::{BpfError, side_table::SideTable};
use ctrace_common::ValueSources;
use ctrace_core::units::FuncId;
use std::{collections::HashMap, os::fd::OwnedFd, sync::Arc};

/// The elements of a function's values: those of its entry, and behind it those of its exit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CallElements {
    pub entry: u16,
    pub has_arguments: bool,
    pub has_result: bool,
}

impl CallElements {
    /// Returns the element of the function's result, if it has one.
    pub fn result(self) -> Option<u16> {
        self.has_result.then_some(self.entry + 1)
    }
}

pub(super) struct Values {
    table: SideTable<ValueSources>,
    of_functions: HashMap<FuncId, CallElements>,
}

impl Values {
    pub(super) fn new(map: Arc<OwnedFd>) -> Self {
        Self { table: SideTable::new(map), of_functions: HashMap::new() }
    }

    pub(super) fn add(&mut self, values: &[ValueSources]) -> Result<u16, BpfError> {
        self.table.add(values)
    }

    pub(super) fn add_call(
        &mut self,
        function: FuncId,
        [entry, exit]: [&ValueSources; 2],
    ) -> Result<CallElements, BpfError> {
        if let Some(known) = self.of(function) {
            return Ok(known);
        }
        let elements = CallElements {
            entry: self.table.add(&[*entry, *exit])?,
            has_arguments: entry.count > 0,
            has_result: exit.count > 0,
        };
        self.of_functions.insert(function, elements);
        Ok(elements)
    }

    pub(super) fn of(&self, function: FuncId) -> Option<CallElements> {
        self.of_functions.get(&function).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::{super::sys::fake, *};
    use std::fs::File;

    #[test]
    fn a_function_keeps_its_elements() {
        let _fake = fake::Fake::new(|_| Ok(0));
        let mut values = Values::new(Arc::new(File::open("/dev/null").unwrap().into()));
        let one = ValueSources { count: 1, ..ValueSources::default() };
        let none = ValueSources::default();
        values.add(&[one]).unwrap();
        let (first, second) = (FuncId(7), FuncId(3));
        let arguments = values.add_call(first, [&one, &none]).unwrap();
        assert_eq!((arguments.entry, arguments.result()), (1, None));
        let result = values.add_call(second, [&none, &one]).unwrap();
        assert_eq!((result.entry, result.has_arguments, result.result()), (3, false, Some(4)));
        assert_eq!(values.add_call(first, [&one, &one]).unwrap(), arguments);
        assert_eq!(values.of(FuncId(4)), None);
    }
}
