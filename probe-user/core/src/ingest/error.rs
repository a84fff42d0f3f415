//! The reasons why a record is refused. Types that read a part of a record know them too.

/// The reason why bytes are no record.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DecodeError {
    #[error("no record is {0} bytes long")]
    Length(usize),
    #[error("no record of this length has kind {0}")]
    Kind(u8),
    #[error("a record of kind {0} has reserved bits set")]
    Reserved(u8),
    #[error("the values of a payload are not what it says of them")]
    Values,
}
