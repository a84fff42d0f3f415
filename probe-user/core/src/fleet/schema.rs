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
    /// A row for each of the slowest calls of a function, process and interval.
    SlowCalls,
    /// A row for each process and interval.
    Targets,
}

impl Table {
    pub const ALL: [Self; 4] = [Self::Functions, Self::Paths, Self::SlowCalls, Self::Targets];

    /// Returns the name of its folder.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Functions => "functions",
            Self::Paths => "paths",
            Self::SlowCalls => "slow_calls",
            Self::Targets => "targets",
        }
    }

    /// Returns the columns by which rows are sorted, so that what is equal is together.
    pub(super) const fn order(self) -> &'static [&'static str] {
        match self {
            Self::Functions => &FUNCTIONS_BY,
            Self::SlowCalls => &SLOW_CALLS_BY,
            Self::Paths => &["path.list.element", "start_ns", "pid"],
            Self::Targets => &["start_ns", "pid"],
        }
    }

    pub(super) const fn schema(self) -> &'static str {
        match self {
            Self::Functions => FUNCTIONS,
            Self::Paths => PATHS,
            Self::SlowCalls => SLOW_CALLS,
            Self::Targets => TARGETS,
        }
    }
}

const FUNCTIONS_BY: [&str; 8] =
    ["function", "object", "kind", "marker_group", "short_name", "full_name", "start_ns", "pid"];

const SLOW_CALLS_BY: [&str; 9] = [
    "function",
    "object",
    "kind",
    "marker_group",
    "short_name",
    "full_name",
    "start_ns",
    "pid",
    "call_start_ns",
];

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
    required int64 timed;
    required int64 untimed;
    optional int64 min_ns;
    optional int64 max_ns;
    required group buckets (LIST) { repeated group list { required int32 element; } }
    required group counts (LIST) { repeated group list { required int64 element; } }
}";

const SLOW_CALLS: &str = "message slow_calls {
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
    required int32 process;
    required int32 tid;
    required binary thread (STRING);
    required int64 call_start_ns;
    required int64 duration_ns;
    optional int64 self_ns;
    required group path (LIST) { repeated group list { required binary element (STRING); } }
    required group inside (LIST) { repeated group list { required binary element (STRING); } }
    required group inside_calls (LIST) { repeated group list { required int64 element; } }
    required group inside_ns (LIST) { repeated group list { required int64 element; } }
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

#[cfg(test)]
mod tests {
    use super::*;
    use parquet::schema::parser::parse_message_type;

    /// Returns the first two cells of the rows below a heading of the documentation.
    fn documented(table: Table) -> Vec<String> {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/fleet/tables.md");
        let text = std::fs::read_to_string(path).expect("the documentation");
        let (_, rest) = text.split_once(&format!("## `{}`\n", table.name())).expect("its heading");
        let section = rest.split("\n## ").next().unwrap_or_default();
        let rows = section.lines().filter(|line| line.starts_with("| `"));
        let cells =
            rows.map(|row| row.split('|').skip(1).take(2).map(str::trim).collect::<Vec<_>>());
        cells.map(|cells| cells.join(" ").replace('`', "")).collect()
    }

    #[test]
    fn the_documentation_has_all_columns() {
        for table in Table::ALL {
            let schema = parse_message_type(table.schema()).expect("a schema");
            let columns = schema.get_fields().iter().map(|column| {
                let inner = if column.is_group() {
                    &column.get_fields()[0].get_fields()[0]
                } else {
                    column
                };
                let list = if column.is_group() { "list of " } else { "" };
                let kind = match inner.get_physical_type() {
                    parquet::basic::Type::INT32 => "int32",
                    parquet::basic::Type::INT64 => "int64",
                    parquet::basic::Type::BYTE_ARRAY => "string",
                    _ => "decimal(38, 0)",
                };
                let or_null = if column.is_optional() { " or null" } else { "" };
                format!("{} {list}{kind}{or_null}", column.name())
            });
            assert_eq!(columns.collect::<Vec<_>>(), documented(table), "{table:?}");
        }
    }
}
