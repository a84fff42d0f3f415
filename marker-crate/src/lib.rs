//! Markers for programs that ctrace profiles; see the README for what is there.
#![no_std]
