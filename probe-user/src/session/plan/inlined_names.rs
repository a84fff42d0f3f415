//! The functions that the compiler put into traced ones. They have no calls of their own, so their time is
//! looked for in vain.

use crate::target::{
    object::{Object, symbols::Function},
    read::budget::own_time,
};
use std::{sync::Arc, time::Duration};

/// Functions of an object that are looked into.
const MOST_FUNCTIONS: usize = 64;
/// The CPU time after which no further one is.
const MOST_TIME: Duration = Duration::from_millis(50);
/// Names of a function, those with the most code.
const MOST_NAMES: usize = 4;

/// See the module.
#[derive(Default)]
pub(super) struct InlinedNames {
    functions: usize,
    spent: Duration,
}

impl InlinedNames {
    /// Returns the names of functions with inlined code in this one, if it is among the first.
    pub(super) fn of(&mut self, object: &Object, function: &Function) -> Vec<Arc<str>> {
        if self.functions == MOST_FUNCTIONS || self.spent > MOST_TIME {
            return Vec::new();
        }
        let begun = own_time();
        let names = object.inlined_into(function);
        self.functions += 1;
        self.spent += own_time().saturating_sub(begun);
        names.into_iter().take(MOST_NAMES).map(Arc::from).collect()
    }
}
