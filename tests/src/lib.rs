//! Shared helpers of the live tests.
