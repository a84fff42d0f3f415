//! For tests: a function that can be traced and has no debug information.

use super::{Planned, Sites, call_values::Described};
use crate::target::{
    plan::{CostClass, EntrySite, ExitPlacement, Placement},
    values::{
        asked::AskedPlace,
        named::{NoValue, Typed},
    },
};
use ctrace_core::function::FunctionInfo;

pub(super) struct Plain(pub(super) &'static str);

impl Plain {
    pub(super) fn planned(&self, exit: ExitPlacement, entry_is_loop_head: bool) -> Planned {
        let placement = Placement {
            entry: EntrySite { offset: 0, cost: CostClass::Emulated, skipped: 0 },
            exit,
            entry_is_loop_head,
            may_tail_jump: false,
            go: None,
            no_return_probe: None,
        };
        Planned::new(FunctionInfo::new(self.0, "program"), Sites::Function(placement))
    }
}

impl Described for Plain {
    fn symbol(&self) -> &str {
        self.0
    }

    fn argument(&self, place: &AskedPlace) -> Result<Typed, NoValue> {
        match place {
            AskedPlace::At(position, of) => super::call_values::at(*position, *of),
            AskedPlace::Python(fact) => Ok(fact.typed()),
            AskedPlace::Named(..) => Err(NoValue::NotDescribed),
        }
    }

    fn result(&self) -> Result<Typed, NoValue> {
        Err(NoValue::ResultNotDescribed)
    }
}
