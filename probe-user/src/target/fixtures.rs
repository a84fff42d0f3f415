//! Small programs that the tests compile.
