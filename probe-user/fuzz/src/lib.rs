//! The properties that must hold for any file or name of a target, each as a function of the
//! input's bytes.
//!
//! The fuzz targets call these functions with bytes that libFuzzer makes up. A test of `ctrace`
//! calls them with the corpus, so that an ordinary build checks every input that ever failed.

pub mod arguments;
pub mod list;
pub mod names;
pub mod providers;
