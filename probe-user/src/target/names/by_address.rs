//! Names of functions that have none in their file: `fn_0x11a3`, by the address that `nm` would show.

const BEGIN: &str = "fn_";

/// Returns the name of the function at an address in the object's headers.
pub(in crate::target) fn name(address: u64) -> String {
    format!("{BEGIN}{address:#x}")
}

/// Returns whether this is such a name of the function at an address.
pub(in crate::target) fn is_name(text: &str, address: u64) -> bool {
    text.starts_with(BEGIN) && text == name(address)
}

/// Returns whether a glob or a regular expression is meant for such names.
pub(in crate::target) fn is_asked_for(pattern: &str) -> bool {
    pattern.trim_start_matches('^').starts_with(BEGIN)
}

#[cfg(test)]
mod tests {
    use super::{is_asked_for, is_name, name};

    #[test]
    fn names_are_those_of_one_address() {
        assert_eq!(name(0x11a3), "fn_0x11a3");
        assert!(is_name("fn_0x11a3", 0x11a3));
        for other in ["fn_0x11a4", "fn_0x11A3", "fn_0x011a3", "fn_", "main"] {
            assert!(!is_name(other, 0x11a3), "{other}");
        }
    }

    #[test]
    fn patterns_ask_for_them_by_their_beginning() {
        assert!(["fn_*", "fn_0x11a3", "^fn_0x1"].into_iter().all(is_asked_for));
        assert!(!["*", "fn*", "*fn_*", "f"].into_iter().any(is_asked_for));
    }
}
