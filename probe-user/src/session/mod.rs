//! One tracing session: plans probes, attaches them, moves records into the engine, ends.
