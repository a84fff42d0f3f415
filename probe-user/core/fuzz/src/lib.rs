//! The properties that must hold for any input, each as a function of the input's bytes.
//!
//! The fuzz targets call these functions with bytes that libFuzzer makes up. A test of `ctrace-core`
//! calls them with the corpus, so that an ordinary build checks every input that ever failed.

pub mod exports;
pub mod marker_buffers;
pub mod recording;
pub mod records;
pub mod report_facts;
