//! Patterns of functions that have no name but their address.
//!
//! Those of the program are chosen like any other. A process has hundreds of times as many in its
//! libraries, so these are chosen only where a pattern begins as they do and names the library.

use super::{Selector, pattern::Pattern};
use crate::target::names::by_address::is_asked_for;
use crate::target::object::Object;

impl Pattern {
    /// Returns whether it may choose such functions of an object.
    pub(super) fn may_mean_unnamed(&self, object: &Object) -> bool {
        object.is_main() || self.names_object() && is_asked_for(&self.stem)
    }
}

impl Selector {
    /// Returns whether a pattern asks for such functions of a library.
    pub(crate) fn asks_by_address(&self, library: &Object) -> bool {
        let asks = |it: &Pattern| it.may_mean_unnamed(library) && it.matches_object(library);
        !library.is_main() && self.functions.iter().any(asks)
    }
}
