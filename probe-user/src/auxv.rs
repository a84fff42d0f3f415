//! The auxiliary vector: pairs of numbers by which the kernel tells a program about itself when it
//! starts. /proc/PID/auxv shows them.

const AT_SECURE: u64 = 23;

/// Returns whether the program has rights that its caller lacked (a set-user-id program, or one with
/// capabilities in its file). Returns `None` if the vector does not tell.
pub(crate) fn has_gained_rights(vector: &[u8]) -> Option<bool> {
    let mut pairs = vector.as_chunks::<16>().0.iter().map(|pair| {
        let (kind, value) = pair.split_at(8);
        let number = |bytes: &[u8]| bytes.try_into().ok().map(u64::from_ne_bytes);
        (number(kind), number(value))
    });
    pairs.find(|(kind, _)| *kind == Some(AT_SECURE))?.1.map(|value| value != 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_pair_for_rights_is_found() {
        let pair = |kind: u64, value: u64| [kind.to_ne_bytes(), value.to_ne_bytes()].concat();
        assert_eq!(has_gained_rights(&[pair(6, 4096), pair(23, 1)].concat()), Some(true));
        assert_eq!(has_gained_rights(&[pair(23, 0), pair(6, 4096)].concat()), Some(false));
        assert_eq!(has_gained_rights(&pair(6, 23)), None);
        assert_eq!(has_gained_rights(&pair(23, 1)[..15]), None);
    }
}
