//! What people see on a terminal: pure functions of a report.
