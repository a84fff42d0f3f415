//! Files that are put together have the rows that they had.

use super::*;
use crate::fleet::FunctionNames;
use crate::fleet::buckets::Buckets;
use crate::fleet::rows::{FunctionRow, FunctionSums, Losses, Origin, PathRow, TargetRow};
use crate::fleet::slow::{CalleeRow, OneCall, SlowRow};
use crate::function::FunctionKind;
use crate::stats::Summary;
use crate::units::{Nanos, Pid};
use parquet::data_type::{ByteArray, ByteArrayType};
use parquet::record::reader::RowIter;
use parquet::schema::parser::parse_message_type;
use proptest::prelude::*;

/// Returns all cells of all rows of files, whatever their order.
fn rows(files: &[Vec<u8>]) -> Vec<String> {
    let mut all = Vec::new();
    for file in files {
        let reader = SerializedFileReader::new(bytes::Bytes::from(file.clone())).expect("a file");
        let rows = RowIter::from_file_into(Box::new(reader));
        all.extend(rows.map(|row| row.expect("a row").to_string()));
    }
    all.sort();
    all
}

fn open(file: &[u8]) -> Part {
    Part::open(file.to_vec()).expect("a file")
}

/// Puts files together. All have the same columns.
fn together(table: Table, files: &[Vec<u8>], names: &[String]) -> Vec<u8> {
    let mut all: Option<Rows> = None;
    for file in files {
        let rows = Rows::read(&open(file)).expect("rows");
        match &mut all {
            Some(all) => assert!(all.append(rows).expect("room").is_none()),
            None => all = Some(rows),
        }
    }
    all.expect("a file").encode(table, names).expect("a file")
}

fn origin(start_ns: i64, version: Option<String>) -> Arc<Origin> {
    let (target, pid) = ("web".into(), Pid(start_ns as u32 % 3));
    let version = version.map(Into::into);
    Arc::new(Origin { start_ns, end_ns: start_ns + 9, target, pid, version })
}

fn names(function: &str, group: Option<String>) -> FunctionNames {
    FunctionNames {
        function: function.into(),
        object: "server".into(),
        kind: FunctionKind::Marker,
        group: group.map(Into::into),
        short_name: None,
        full_name: None,
    }
}

/// A row of each table with lists.
#[derive(Clone, Debug)]
struct Made {
    start_ns: i64,
    name: String,
    group: Option<String>,
    durations: Vec<u64>,
    path: Vec<String>,
}

fn made() -> impl Strategy<Value = Made> {
    let name = prop_oneof!["[a-c]", "\\PC{0,6}"];
    let durations = prop::collection::vec(any::<u64>().prop_map(|ns| ns >> 12), 0..5);
    let parts =
        (0i64..5, name, prop::option::of("[xy]"), durations, prop::collection::vec("[a-c]", 0..4));
    parts.prop_map(|(start_ns, name, group, durations, path)| Made {
        start_ns,
        name,
        group,
        durations,
        path,
    })
}

impl Made {
    fn function(&self) -> FunctionRow {
        let durations: Vec<Nanos> = self.durations.iter().copied().map(Nanos).collect();
        let summary = Summary::of(&durations);
        FunctionRow {
            origin: origin(self.start_ns, self.group.clone()),
            names: names(&self.name, self.group.clone()),
            build_id: self.group.clone().map(Into::into),
            sums: FunctionSums {
                buckets: summary.histogram.as_ref().map(Buckets::of).unwrap_or_default(),
                tally: summary.tally,
                ..FunctionSums::default()
            },
        }
    }

    fn path(&self) -> PathRow {
        let sums = self.function().sums;
        PathRow {
            origin: origin(self.start_ns, None),
            path: self.path.iter().map(|name| name.as_str().into()).collect(),
            calls: sums.tally.ended(),
            total_ns: 1,
            self_ns: 1,
            lost_events: 0,
            untimed: 0,
            min_ns: sums.tally.min(),
            max_ns: sums.tally.max(),
            buckets: sums.buckets,
        }
    }

    fn slow(&self) -> SlowRow {
        let duration_ns = self.durations.first().copied().unwrap_or(7);
        let self_ns = self.durations.get(1).copied();
        SlowRow {
            origin: origin(self.start_ns, self.group.clone()),
            names: names(&self.name, None),
            call: OneCall { duration_ns, self_ns, thread: "io".into(), ..OneCall::default() },
            path: self.path().path,
            inside: (self.path.iter().map(|name| name.as_str().into()))
                .map(|function| CalleeRow { function, calls: 1, total_ns: 2 })
                .collect(),
            lost_events: 1,
        }
    }

    fn target(&self) -> TargetRow {
        TargetRow {
            origin: origin(self.start_ns, self.group.clone()),
            processes: 1,
            program: self.name.as_str().into(),
            functions: 2,
            calls: 3,
            cost_ns: 4,
            cpu_ns: self.durations.first().copied(),
            losses: Losses::default(),
        }
    }
}

fn encoded(table: Table, rows: &[Made]) -> Vec<u8> {
    let file = match table {
        Table::Functions => {
            encode::functions(&mut rows.iter().map(Made::function).collect::<Vec<_>>())
        }
        Table::Paths => encode::paths(&mut rows.iter().map(Made::path).collect::<Vec<_>>()),
        Table::SlowCalls => {
            encode::slow_calls(&mut rows.iter().map(Made::slow).collect::<Vec<_>>())
        }
        Table::Targets => encode::targets(&rows.iter().map(Made::target).collect::<Vec<_>>()),
    };
    file.expect("a file")
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 30, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_row_is_lost_or_changed(files in prop::collection::vec(prop::collection::vec(made(), 0..8), 1..5)) {
        for table in Table::ALL {
            let files: Vec<_> = files.iter().map(|rows| encoded(table, rows)).collect();
            let whole = together(table, &files, &["part-1-aa.parquet".to_owned()]);
            prop_assert_eq!(rows(&files), rows(&[whole]));
        }
    }
}

fn some(name: &str, count: i64) -> Vec<Made> {
    let row = |start_ns| Made {
        start_ns,
        name: name.to_owned(),
        group: None,
        durations: vec![5, 6_000],
        path: vec!["a".into(), "b".into()],
    };
    (0..count).map(row).collect()
}

#[test]
fn equal_names_are_together_in_the_order_of_time() {
    let files: Vec<_> = [some("b", 3), some("a", 2), some("b", 1)]
        .map(|rows| encoded(Table::Functions, &rows))
        .into();
    let whole = open(&together(Table::Functions, &files, &[]));
    let mut seen = Vec::new();
    let visit = |row: &crate::fleet::decode::FunctionSeen<'_>| {
        seen.push((row.names.function.to_string(), row.start_ns));
    };
    whole.functions(0, &crate::fleet::Wanted::default(), visit).expect("rows");
    let expected = [("a", 0), ("a", 1), ("b", 0), ("b", 0), ("b", 1), ("b", 2)];
    assert_eq!(seen, expected.map(|(name, start)| (name.to_owned(), start)));
}

#[test]
fn a_file_names_all_for_which_it_stands() {
    let name = |text: &str| text.to_owned();
    let first = [encoded(Table::Targets, &some("a", 2)), encoded(Table::Targets, &some("b", 2))];
    let first = together(Table::Targets, &first, &[name("one"), name("two")]);
    let later = [first, encoded(Table::Targets, &some("c", 1))];
    let later = together(Table::Targets, &later, &[name("first"), name("three")]);
    let names = replaces(bytes::Bytes::from(later)).expect("names");
    assert_eq!(names, ["first", "three", "one", "two"]);
}

/// Rows with other columns stay apart: of a later version, or of another table.
#[test]
fn files_with_other_columns_are_not_put_together() {
    let read = |table| Rows::read(&open(&encoded(table, &some("a", 2)))).expect("rows");
    let mut all = read(Table::Functions);
    let other = all.append(read(Table::Targets)).expect("room");
    assert_eq!((all.count(), other.map(|other| other.count())), (2, Some(2)));
}

/// A column of another program may have one of our names, and another type.
#[test]
fn columns_of_other_types_are_written_all_the_same() {
    let schema = parse_message_type("message m { required binary total_ns; }").expect("a schema");
    let schema = Arc::new(schema);
    let properties = Arc::new(encode::properties(&schema).expect("properties"));
    let mut file = encode::File::new(Vec::new(), schema, properties).expect("a file");
    let mut group = file.next_row_group().expect("a group");
    let mut column = group.next_column().expect("no error").expect("a column");
    let values = ["b", "a"].map(ByteArray::from);
    column.typed::<ByteArrayType>().write_batch(&values, None, None).expect("written");
    column.close().expect("closed");
    group.close().expect("closed");
    let file = file.into_inner().expect("a file");
    let whole = together(Table::Functions, &[file.clone(), file.clone()], &[]);
    assert_eq!(rows(&[whole]), rows(&[file.clone(), file]));
}

#[test]
fn damage_is_an_error() {
    let file = encoded(Table::SlowCalls, &some("a", 40));
    let mut refused = 0;
    std::panic::set_hook(Box::new(|_| {}));
    for place in (0..file.len()).step_by(7) {
        let mut bytes = file.clone();
        bytes[place] ^= 0x55;
        let read = Part::open(bytes).and_then(|part| Rows::read(&part));
        refused += usize::from(read.is_err());
    }
    drop(std::panic::take_hook());
    assert!(refused > file.len() / 28, "{refused}");
}

#[test]
fn names_of_files_have_their_time() {
    let name = compacted_name(-12, 0xab, 3);
    assert_eq!(name, "part--12-000000ab-of-3.parquet");
    assert!(is_compacted(&name) && first_ms(&name) == Some(-12));
    assert_eq!(first_ms("part-1795858031000-9f02c1aa.parquet"), Some(1_795_858_031_000));
    assert!(!is_compacted("part-1795858031000-9f02c1aa.parquet"));
    for stranger in ["mine.parquet", "part-.parquet", "part-x-1.parquet", "part-1.parquet", ""] {
        assert!(!is_compacted(stranger) && first_ms(stranger).is_none(), "{stranger}");
    }
}
