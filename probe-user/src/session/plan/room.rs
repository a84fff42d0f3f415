//! Room in one of the kernel's tables. A feature that finds none is left out, so that a large
//! selection is not refused.

use crate::target::object::Object;

/// The free room of a table for the plans to come.
pub(super) struct TableRoom {
    left: usize,
    limit: usize,
}

impl TableRoom {
    pub(super) fn of(limit: usize) -> Self {
        Self { left: limit, limit }
    }

    /// Takes this many elements. Returns `false` and takes nothing if there are too few.
    pub(super) fn take(&mut self, elements: usize) -> bool {
        let left = self.left.checked_sub(elements);
        self.left = left.unwrap_or(self.left);
        left.is_some()
    }

    pub(super) fn limit(&self) -> usize {
        self.limit
    }
}

/// Returns an error if the program is too large: the findings would be incomplete. A library like
/// that is left out.
pub(super) fn is_small_enough(objects: &[Object]) -> anyhow::Result<()> {
    let main = objects.iter().filter(|object| object.is_main());
    main.filter_map(Object::too_large).next().map_or(Ok(()), |why| Err(why.into()))
}
