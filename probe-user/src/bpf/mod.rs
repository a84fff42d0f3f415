//! The only door to the kernel, and the only unsafe code of this crate.
