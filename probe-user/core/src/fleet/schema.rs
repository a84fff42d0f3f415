//! The tables and their columns. docs/fleet/tables.md explains each; a test compares the two.

/// The version in the column `schema`. Columns are only ever added within one.
pub const SCHEMA: i32 = 1;

/// One of the tables.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Table {
    /// A row for each function, process and interval.
    Functions,
    /// A row for each call path, process and interval.
    Paths,
    /// A row for each process and interval.
    Targets,
}

impl Table {
    pub const ALL: [Self; 3] = [Self::Functions, Self::Paths, Self::Targets];

    /// Returns the name of its folder.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Functions => "functions",
            Self::Paths => "paths",
            Self::Targets => "targets",
        }
    }

    pub(super) const fn schema(self) -> &'static str {
        match self {
            Self::Functions => FUNCTIONS,
            Self::Paths => PATHS,
            Self::Targets => TARGETS,
        }
    }
}

const FUNCTIONS: &str = "message functions {
    required int32 schema;
    required int64 start_ns;
    required int64 end_ns;
    required binary target (STRING);
    required int32 pid;
    optional binary version (STRING);
    required binary function (STRING);
    required binary object (STRING);
    required binary kind (STRING);
    optional binary marker_group (STRING);
    optional binary short_name (STRING);
    optional binary full_name (STRING);
    optional binary build_id (STRING);
    required int64 calls;
    required int64 timed;
    required int64 untimed;
    required int64 headless;
    required int64 total_ns;
    required int64 timed_ns;
    required int64 self_ns;
    required int64 active_ns;
    required int64 innermost_ns;
    required fixed_len_byte_array(16) squares (DECIMAL(38,0));
    optional int64 min_ns;
    optional int64 max_ns;
    required group buckets (LIST) { repeated group list { required int32 element; } }
    required group counts (LIST) { repeated group list { required int64 element; } }
    required int64 cost_ns;
    required int64 armed_ns;
    required int64 lost_events;
}";

const PATHS: &str = "message paths {
    required int32 schema;
    required int64 start_ns;
    required int64 end_ns;
    required binary target (STRING);
    required int32 pid;
    optional binary version (STRING);
    required group path (LIST) { repeated group list { required binary element (STRING); } }
    required int64 calls;
    required int64 total_ns;
    required int64 self_ns;
    required int64 lost_events;
}";

const TARGETS: &str = "message targets {
    required int32 schema;
    required int64 start_ns;
    required int64 end_ns;
    required binary target (STRING);
    required int32 pid;
    required int32 processes;
    optional binary version (STRING);
    required binary program (STRING);
    required int64 functions;
    required int64 calls;
    required int64 cost_ns;
    optional int64 cpu_ns;
    required int64 lost_events;
    required int64 late_events;
    required int64 decode_errors;
    required int64 untimed;
    required int64 open;
    required int64 headless;
    required int64 calls_without_path;
}";
