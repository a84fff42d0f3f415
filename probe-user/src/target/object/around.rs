//! The function around an address.

use super::Object;
use super::symbols::Function;
use crate::target::names::demangle;

impl Object {
    /// Returns the function around an address.
    pub(crate) fn function_around(&self, address: u64) -> Option<&Function> {
        let functions = self.functions();
        let after = functions.partition_point(|function| function.address <= address);
        let function = &functions[after.checked_sub(1)?];
        function.addresses().contains(&address).then_some(function)
    }

    /// Returns the name of the function around an address, of an inlined one where debug
    /// information tells, without the compiler's suffixes for copies and parts. Without a name in the
    /// file there is none.
    pub(super) fn function_name_around(&self, address: u64) -> Option<String> {
        let inlined = self.with_lines(|lines| lines.inlined_function(address));
        inlined.or_else(|| {
            let function = self.function_around(address)?;
            let is_named = !function.is_named_by_address();
            is_named.then(|| demangle::without_suffix(function.name()).to_owned())
        })
    }
}
