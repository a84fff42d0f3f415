use super::*;
use ctrace_common::SINGLES;
use std::sync::Arc;

fn site(address: u64, arguments: &str) -> UsdtSite {
    UsdtSite { address, file_offset: address, semaphore: None, arguments: arguments.into() }
}

fn values(arguments: &[&str]) -> Values {
    let sites: Vec<_> = (0..).zip(arguments).map(|(at, text)| site(16 * at, text)).collect();
    let variables = Variables(HashMap::from([("known".to_owned(), 0x100)]));
    Values::of(&sites, &variables, &[])
}

fn names(values: &Values) -> Vec<(&str, ValueKind)> {
    values.infos.iter().map(|info| (&*info.name, info.kind)).collect()
}

use ValueKind::{Float, Signed, Unsigned};

#[test]
fn what_cannot_be_read_leaves_its_number_behind() {
    let found = values(&["-4@%edi 8f@%xmm0 8@%rax"]);
    assert_eq!(names(&found), [("arg0", Signed), ("arg2", Unsigned)]);
    let [sources] = found.sources[..] else { panic!("one place") };
    assert_eq!(sources.count, 2);
    assert_eq!(sources.sources.map(|it| it.base)[..2], [7, 0]);
    let unread = "arg1 (8f@%xmm0) is not read: it is in a register that ctrace does not read";
    assert_eq!(found.unread.as_deref(), Some(unread));
}

#[test]
fn arguments_beyond_the_twelfth_are_told() {
    let constants = |n| (1..=n).map(|n| format!("-4@${n}")).collect::<Vec<_>>().join(" ");
    let unread = |all: &[usize]| {
        let texts: Vec<String> = all.iter().map(|&n| constants(n)).collect();
        let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
        let found = values(&texts);
        assert_eq!(found.infos.len(), 12);
        found.unread
    };
    assert_eq!(unread(&[12]), None);
    let why = "only the first 12 arguments of a probe are";
    assert_eq!(unread(&[13]), Some(format!("arg12 is not read: {why}")));
    assert_eq!(unread(&[12, 15]), Some(format!("arg12 to arg14 are not read: {why}")));
}

#[test]
fn arguments_are_read_as_asked() {
    let sites = [site(0, "8@%rdi 4@%esi 8f@(%rbx)"), site(16, "8@8(%rbp) 2@%ax 8f@%rbx")];
    let read = |text: &str| {
        let asked = AskedValues::arguments(&format!("p:q: {text}")).unwrap().arguments;
        Values::asked(&sites, &Variables::default(), &asked)
    };
    let found = read("key=0:str, 1:i16, 2:f64");
    let kinds = [("key", ValueKind::Text), ("arg1", Signed), ("arg2", Float)];
    assert_eq!((names(&found), found.unread.as_deref()), (kinds.to_vec(), None));
    assert!(found.sources.iter().all(ValueSources::has_texts));
    assert_eq!(found.sources[0].sources.map(|it| it.size)[..3], [8, 2, 8]);
    // The second place has two bytes only.
    let found = read("1:u32, 0:u64");
    assert_eq!(names(&found), [("arg1", Unsigned), ("arg0", Unsigned)]);
    assert_eq!(found.sources[1].sources[0].base, Operand::NOWHERE.base);
    let unread = found.unread.unwrap();
    assert!(unread.starts_with("arg1 is not read at 1 of 2 places: it is smaller"), "{unread}");
    let found = read("3:str, 2:u64");
    assert_eq!((found.infos.len(), found.sources.len()), (0, 0));
}

#[test]
fn arguments_have_declared_types_and_names_where_the_notes_allow_them() {
    let sites = [site(0, "8@%rdi 4@%esi 8f@(%rbx) 4@%ecx 8@%r8"), site(16, "8@8(%rbp) -2@%ax")];
    let integer = |bytes| Type::Integer { bytes, signed: true };
    let declared = [Some(Type::Text), None, None, Some(integer(4)), None].map(|of| Declared {
        name: of.filter(|of| *of == Type::Text).map(|_| "path".into()),
        of,
        length: None,
    });
    let found = Values::of(&sites, &Variables::default(), &declared);
    let kinds = [
        ("path", ValueKind::Text),
        ("arg1", Signed),
        ("arg2", Float),
        ("arg3", Signed),
        ("arg4", Unsigned),
    ];
    assert_eq!(names(&found), kinds);
    assert!(found.sources.iter().all(ValueSources::has_texts));
    assert_eq!(found.sources[0].sources.map(|it| it.size)[..4], [8, 4, 8, 4]);
    assert_eq!(found.sources[1].sources[1].size, 2);
    assert_eq!(found.sources[0].sources[3].signed, 1, "declared as int, although the note is not");
}

#[test]
fn a_file_of_another_version_is_ignored_with_a_note() {
    let probe = |arguments| UsdtProbe {
        provider: "app".into(),
        name: "say".into(),
        sites: vec![site(0, arguments)],
        part: None,
    };
    let file = ProviderFile::parse("provider app { probe say(char *text, int n); };").unwrap();
    let planned = |arguments| {
        let declared = [file.clone()].into();
        let mut planner = ValuePlanner { reads: true, declared, ..ValuePlanner::default() };
        let (probe, mut notes) = (probe(arguments), Vec::new());
        let sites = probe.sites.clone();
        let planned = planner.plan(&probe, sites, &Variables::default(), &[], &mut notes);
        let names: Vec<String> = planned
            .unwrap()
            .0
            .iter()
            .map(|info| format!("{} {:?}", info.name, info.kind))
            .collect();
        (names.join(", "), notes.join("; "))
    };
    assert_eq!(planned("8@%rdi -4@%esi"), ("text Text, n Signed".into(), String::new()));
    assert_eq!(planned("8@%rdi 8@%rsi").0, "text Text, n Unsigned", "too large for an int");
    let (names, note) = planned("8@%rdi 8@%rsi 8@%rdx");
    assert_eq!(names, "arg0 Unsigned, arg1 Unsigned, arg2 Unsigned");
    assert!(
        note.starts_with(
            "app:say: the provider file has another number of arguments (2, the program has 3)"
        ),
        "{note}"
    );
}

#[test]
fn the_length_of_a_declared_text_is_not_shown_but_read() {
    let sites = [site(0, "-4@%edi 8@%rsi -4@%edx 8@%rcx")];
    let file = ProviderFile::parse("provider hotspot { probe m(int, char *, int, char *name); };");
    let probe = UsdtProbe {
        provider: "hotspot".into(),
        name: "m".into(),
        sites: sites.to_vec(),
        part: None,
    };
    let declared = declared(&[file.unwrap()], &probe).unwrap().unwrap();
    let found = Values::of(&sites, &Variables::default(), &declared);
    let kinds = [("arg0", Signed), ("arg1", ValueKind::Text), ("name", ValueKind::Text)];
    assert_eq!(names(&found), kinds);
    assert_eq!(found.infos[1].length_at, Some(3));
    assert_eq!(found.sources[0].sources.map(|it| it.base)[..4], [7, 6, 1, 2]);
}

#[test]
fn the_length_of_a_text_is_read_beside_it() {
    let sites = [site(0, "8@%rax 8@%rdx -4@%ecx 8@%rsi -4@%edi"), site(16, "8@%rax 8@%rdx")];
    let asked = AskedValues::arguments("hotspot:method: class=1:str[2], 0:u64, name=3:str[4]");
    let found = Values::asked(&sites, &Variables::default(), &asked.unwrap().arguments);
    let kinds = [("class", ValueKind::Text), ("arg0", Unsigned), ("name", ValueKind::Text)];
    assert_eq!(names(&found), kinds);
    let lengths: Vec<_> = found.infos.iter().map(|info| info.length_at).collect();
    assert_eq!(lengths, [Some(3), None, Some(4)]);
    let [whole, short] = &found.sources[..] else { panic!("two places") };
    assert_eq!((whole.count, short.count), (5, 5));
    assert_eq!(whole.sources.map(|it| it.base)[3..5], [1, 7]);
    assert_eq!(short.sources.map(|it| it.base)[2..5], [Operand::NOWHERE.base; 3]);
}

#[test]
fn a_floating_point_number_is_no_length() {
    let sites = [site(0, "8@%rax 8f@(%rbx)")];
    let asked = AskedValues::arguments("app:say: text=0:str[1]").unwrap().arguments;
    let found = Values::asked(&sites, &Variables::default(), &asked);
    assert_eq!(found.sources[0].sources[1], Operand::NOWHERE);
    let unread = "arg1 is not read: a floating-point number is no length of a text";
    assert_eq!(found.unread.as_deref(), Some(unread));
}

#[test]
fn floating_point_numbers_say_their_size() {
    let found = values(&["8@%rax 4f@-4(%rbp) 8f@(%rbx)", "8@%rax 8f@%rcx -4f@(%rbx)"]);
    assert_eq!(names(&found), [("arg0", Unsigned), ("arg1", Float), ("arg2", Float)]);
    let forms: Vec<_> = found.sources.iter().map(|it| it.forms >> SINGLES).collect();
    assert_eq!(forms, [0b010, 0b100]);
    assert_eq!(found.unread, None);
}

#[test]
fn a_value_has_one_type_at_all_places() {
    let found = values(&["4f@(%rax)", "-4@%edi", "8@%rax"]);
    assert_eq!(names(&found), [("arg0", Signed)]);
    let sources: Vec<_> = found.sources.iter().map(|it| (it.forms, it.sources[0])).collect();
    assert_eq!(sources[0], (0, Operand::NOWHERE));
    assert_eq!((sources[1].1.base, sources[2].1.base), (7, 0));
    let unread = "arg0 is not read at 1 of 3 places: it is a floating-point number only there";
    assert_eq!(found.unread.as_deref(), Some(unread));
}

#[test]
fn places_of_one_name_share_a_list() {
    let found = values(&["4@%edi 8@%rax", "-4@$-3", "4@%esi 8@absent(%rip)"]);
    assert_eq!(names(&found), [("arg0", Signed), ("arg1", Unsigned)]);
    assert!(found.sources.iter().all(|sources| sources.count == 2));
    let seconds: Vec<_> = found.sources.iter().map(|it| it.sources[1]).collect();
    assert_eq!(seconds[0].base, 0);
    assert_eq!(seconds[1..], [Operand::NOWHERE; 2]);
    assert_eq!(
        found.unread.as_deref(),
        Some("arg1 is not read at 2 of 3 places: the note of this place has no such argument")
    );
}

#[test]
fn variables_are_as_far_away_as_they_are_from_their_place() {
    let found = values(&["", "8@known+1(%rip)"]);
    assert_eq!(found.sources[0].sources[0], Operand::NOWHERE);
    let Operand { displacement, relative, .. } = found.sources[1].sources[0];
    assert_eq!((displacement, relative), (0x100 + 1 - 16, 1));
}

#[test]
fn nothing_to_read_is_no_values() {
    assert_eq!(values(&["", ""]), Values::default());
    let found = values(&["8@%xmm0"]);
    assert!(found.infos.is_empty() && found.sources.is_empty() && found.unread.is_some());
}

#[test]
fn a_long_argument_is_cut_in_the_note() {
    let found = values(&[&format!("8@é{}", "x".repeat(90))]);
    let unread = found.unread.unwrap();
    assert!(unread.starts_with("arg0 (8@éxxx") && unread.len() < 120, "{unread}");
    assert!(unread.contains("…) is not read: it is in no form"), "{unread}");
}

#[test]
fn a_full_table_costs_a_probe_its_values_only() {
    let probe = |name: &str, sites: usize| UsdtProbe {
        provider: "app".into(),
        name: Arc::from(name),
        sites: (0..sites as u64).map(|at| site(at, "8@%rax")).collect(),
        part: None,
    };
    let mut planner =
        ValuePlanner { reads: true, room: TableRoom::of(5), ..ValuePlanner::default() };
    let mut notes = Vec::new();
    let mut with_values = |sites| {
        let probe = probe("probe", sites);
        let (infos, points) = planner
            .plan(&probe, probe.sites.clone(), &Variables::default(), &[], &mut notes)
            .unwrap();
        assert_eq!(points.len(), sites);
        assert!(points.iter().all(|point| point.values.is_some() != infos.is_empty()));
        !infos.is_empty()
    };
    assert_eq!([3, 3, 2, 1].map(&mut with_values), [true, false, true, false]);
    assert!(notes.is_empty());
    let note = planner.take_note().unwrap();
    assert!(note.starts_with("the values of 2 functions and USDT probes are not read"), "{note}");
    assert_eq!(planner.take_note(), None);
}

#[test]
fn values_that_nobody_sees_are_not_read() {
    let probe = UsdtProbe {
        provider: "app".into(),
        name: "probe".into(),
        sites: vec![site(0, "8@%rax 8f@%xmm0")],
        part: None,
    };
    let planned = |reads: bool| {
        let mut planner = ValuePlanner { reads, ..ValuePlanner::default() };
        let (sites, mut notes) = (probe.sites.clone(), Vec::new());
        let (infos, points) =
            planner.plan(&probe, sites, &Variables::default(), &[], &mut notes).unwrap();
        (infos.len(), points.len(), points[0].values.is_some(), notes.len())
    };
    assert_eq!(planned(true), (1, 1, true, 1));
    assert_eq!(planned(false), (0, 1, false, 0));
}
