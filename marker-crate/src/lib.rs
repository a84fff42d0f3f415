//! Markers for programs that ctrace profiles. Nothing is here yet.
#![no_std]
