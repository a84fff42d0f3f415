//! `ctrace list`: lists what can be traced, and with `-v` how, or why not.

mod texts;

use super::{Failure, process, spec};
use crate::{
    bpf,
    cli::{ListArgs, SelectArgs, ValuesArgs},
    session::{
        keep::sink::{self, Out},
        plan::{Planner, jump_room::JumpRoom, points::cost_at},
        run::setup,
        spec::SelectSpec,
    },
    target::{
        launch::resolve,
        list::{ListRow, list_functions},
        markers::MarkerSite,
        object::Object,
        place::Refusal,
        process::{lookup::ProcessName, maps::MappedObject},
        select::{Selection, not_found::flawed_markers},
        usdt::provider::described,
    },
    ui::{self, listing, output::terminal, text::units::counted},
};
use anyhow::Context;
use ctrace_core::{function::FunctionKind, report::render::json::write_pretty};
use serde::{Serialize, Serializer};
use serde_json::json;
use std::{
    collections::HashSet,
    io::{BufWriter, Write},
    path::Path,
};
use texts::{How, cost_text, function_text, how_text, marker_text, usdt_text};

/// The functions of which inlined ones are named: of a large program they would take long.
const MOST_DESCRIBED: usize = 1000;

/// A row and, on request, how it would be traced.
type Decided = (ListRow, Option<Result<How, Refusal>>);

pub(super) fn main(args: &ListArgs, verbose: u8) -> Result<u8, Failure> {
    let binary = args.binary.as_deref();
    // A number that is no file is a process, as for `attach`.
    let number = binary.filter(|path| !path.exists()).map(Path::as_os_str);
    let number = number.and_then(ProcessName::of_number);
    let process = args.process.chosen(number.as_ref())?;
    let is_process = process.is_some();
    let mapped = match (process, binary) {
        (Some(name), _) => process::open(&name)?.objects()?,
        (None, Some(path)) => with_libraries(path)?,
        (None, None) => unreachable!("the command line asks for one of them"),
    };
    let mut most = spec::limits(&args.most);
    if is_all(&args.select) {
        most.max_functions = usize::MAX;
    }
    let planner = setup::planner(&select(args), most, spec::returns(args.returns))?;
    let mut planner = planner.guarding(bpf::return_guards_lacking().is_none());
    let found = planner.select(&mapped);
    let mut scopes = 0;
    let (objects, selection) = match !is_process && is_all(&args.select) {
        true => {
            let found = found.ok();
            scopes = found.as_ref().map_or(0, scopes_of_libraries);
            match found.and_then(main_alone) {
                Some(found) => found,
                None => planner.select(&mapped[..1])?,
            }
        }
        false => found?,
    };
    if is_all(&args.select) || !args.select.markers.is_empty() {
        objects.iter().filter_map(flawed_markers).for_each(|line| ui::say(&line));
    }
    for object in objects.iter().filter(|object| object.is_main()) {
        if let Some(why) = &object.symbols().broken {
            ui::say(&format!("the symbols of {} are broken: {why}", object.name()));
        }
    }
    if verbose > 0 {
        against_return_probes(&planner).iter().for_each(|line| ui::say(line));
    }
    selection.notes.iter().for_each(|line| ui::say(line));
    let rows = list_functions(&objects, &selection, true);
    let decided = decide(rows, &objects, &planner, verbose > 0 || args.json)?;
    objects.iter().flat_map(Object::left_out).for_each(|line| ui::say(&line));
    let out = Out::open(None, sink::Default::Stdout)?;
    let (style, room) = (out.style, terminal::of_messages(std::io::stdout()).width);
    let out = if args.json { out } else { out.paged() };
    let mut out = BufWriter::new(out.into_writer());
    let written = match args.json {
        true => to_json(&decided, verbose > 0, &mut out),
        false => {
            let more = match scopes {
                0 => String::new(),
                n => {
                    let (one, many) = ("marker scope", "marker scopes");
                    format!("; {} of its libraries: -m '*'", counted(n as u64, one, many))
                }
            };
            let lines = || lines(&decided, verbose > 0);
            listing::write(&mut out, lines, &more, &style, room)
        }
    };
    match written.and_then(|()| out.flush()) {
        Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => Err(error.into()),
        _ => Ok(0),
    }
}

/// Returns what stands against return probes in the process, a line for guards and one for return
/// probes at all.
fn against_return_probes(planner: &Planner) -> Vec<String> {
    /// A process can have thousands of objects.
    const SHOWN: usize = 4;
    let [guards, returns] = planner.against_return_probes();
    let line = |what: &str, objects: Vec<String>| {
        let more = match objects.len().saturating_sub(SHOWN) {
            0 => String::new(),
            more => format!("; and {more} more"),
        };
        let shown = &objects[..objects.len().min(SHOWN)];
        (!shown.is_empty()).then(|| format!("{what}: {}{more}", shown.join("; ")))
    };
    let lines = [
        line("return probes cannot be guarded here", guards),
        line("no return probes here", returns),
    ];
    lines.into_iter().flatten().collect()
}

/// Returns a program with the libraries that `run` would find, as they decide how ends of calls are
/// seen. A library, or a file that cannot be run, comes alone.
fn with_libraries(path: &Path) -> anyhow::Result<Vec<MappedObject>> {
    let main = MappedObject::from_file(path, true).with_context(|| {
        let path = path.display();
        format!("cannot read {path}; for a process: ctrace list -p {path}")
    })?;
    // A name without a slash means a file, not a command in PATH.
    let launch = std::path::absolute(path).ok().and_then(|path| resolve(path.as_os_str()).ok());
    let loaded = launch.filter(|launch| launch.scripts.is_empty()).map(|launch| launch.objects);
    let libraries = loaded.into_iter().flatten().filter(|object| !object.is_main);
    Ok(std::iter::once(main).chain(libraries).collect())
}

/// Keeps the main object: all of a file excludes its libraries. Returns `None` if it has nothing.
fn main_alone(found: (Vec<Object>, Selection)) -> Option<(Vec<Object>, Selection)> {
    let (objects, mut selection) = found;
    selection.functions.retain(|selected| objects[selected.object].is_main());
    selection.usdt.retain(|selected| objects[selected.object].is_main());
    selection.markers.retain(|selected| objects[selected.object].is_main());
    (!selection.is_empty()).then_some((objects, selection))
}

/// Returns the number of scopes in libraries. `run` without a selection traces them as well.
fn scopes_of_libraries((objects, selection): &(Vec<Object>, Selection)) -> usize {
    selection.markers.iter().filter(|selected| !objects[selected.object].is_main()).count()
}

fn is_all(asked: &SelectArgs) -> bool {
    asked.functions.is_empty() && asked.usdt.is_empty() && asked.markers.is_empty()
}

/// Lists everything without a selection.
fn select(args: &ListArgs) -> SelectSpec {
    let mut spec = spec::select(&args.select, &args.program, &ValuesArgs::default());
    if is_all(&args.select) {
        let all = [&mut spec.functions, &mut spec.usdt, &mut spec.markers];
        all.into_iter().for_each(|patterns| *patterns = vec!["*".to_owned()]);
    }
    spec
}

fn decide(
    rows: Vec<ListRow>,
    objects: &[Object],
    planner: &Planner,
    wanted: bool,
) -> anyhow::Result<Vec<Decided>> {
    if !wanted {
        return Ok(rows.into_iter().map(|row| (row, None)).collect());
    }
    let with_functions: HashSet<usize> =
        rows.iter().filter(|row| row.size.is_some()).map(|row| row.object_index).collect();
    let placers = objects.iter().enumerate().map(|(index, object)| {
        with_functions.contains(&index).then(|| planner.placer(object)).transpose()
    });
    let placers = placers.collect::<Result<Vec<_>, _>>()?;
    let mut jumps = JumpRoom::default();
    let decide = |mut row: ListRow| {
        let function = row.size.and_then(|_| objects[row.object_index].functions().get(row.index));
        let placer = placers[row.object_index].as_ref();
        let mut placement =
            function.zip(placer).map(|(function, placer)| placer.place(function, false));
        if let Some(Ok(placement)) = &mut placement {
            jumps.fit(placement);
        }
        let mut how = placement.map(|placement| placement.map(How::Calls));
        if row.kind == FunctionKind::Usdt {
            let probe = &objects[row.object_index].usdt_probes()[row.index];
            if let Some(declared) = planner.declared(probe) {
                row.arguments = described(&probe.sites[row.site], &declared).into();
            }
            let cost = cost_at(&objects[row.object_index], row.file_offset);
            let has_semaphore = probe.sites[row.site].semaphore.is_some();
            how = Some(cost.map(|cost| How::Hits { cost, at: row.address, has_semaphore }));
        }
        (row, how)
    };
    let mut decided: Vec<Decided> = rows.into_iter().map(decide).collect();
    // They take time and memory that places would lack.
    for (row, placement) in &mut decided {
        let object = &objects[row.object_index];
        let function = row.size.and_then(|_| object.functions().get(row.index));
        if let Some(function) = function.filter(|_| matches!(placement, Some(Ok(_)))) {
            row.arguments = object.parameters(function).join(", ").into();
        }
    }
    for (row, _) in decided.iter_mut().filter(|(row, _)| row.size.is_some()).take(MOST_DESCRIBED) {
        let object = &objects[row.object_index];
        row.inlined = object.inlined_into(&object.functions()[row.index]);
    }
    Ok(decided)
}

fn lines(decided: &[Decided], detailed: bool) -> impl Iterator<Item = listing::ListingLine> {
    let line = move |(row, placement): &Decided| listing::ListingLine {
        kind: row.kind,
        name: match &row.group {
            Some(group) if row.kind == FunctionKind::Marker => format!("{group}/{}", row.name),
            Some(group) => format!("{group}:{}", row.name),
            None => row.name.to_string(),
        },
        object: row.object.to_string(),
        place: match (&row.file, row.line) {
            (Some(file), Some(line)) => format!("{file}:{line}"),
            (Some(file), None) => file.to_string(),
            _ => String::new(),
        },
        how: match row.kind {
            FunctionKind::Marker => marker_text(row, detailed),
            FunctionKind::Usdt => usdt_text(row, placement.as_ref(), detailed),
            _ => placement.as_ref().map(|placement| function_text(row, placement)),
        },
        refused: placement.as_ref().is_some_and(Result::is_err),
    };
    decided.iter().map(line)
}

fn marker_json(sites: &[MarkerSite]) -> Vec<serde_json::Value> {
    let site = |site: &MarkerSite| {
        json!({
            "address": site.address, "code": site.code,
            "semaphore_offset": site.semaphore, "point_offset": site.point,
        })
    };
    sites.iter().map(site).collect()
}

/// A list written row by row: all rows together would be several times as large as the object.
struct Functions<'a> {
    decided: &'a [Decided],
    /// With what functions and USDT probes are passed.
    detailed: bool,
}

impl Serialize for Functions<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.decided.iter().map(|(row, placement)| {
            let is_marker = row.kind == FunctionKind::Marker;
            let has_arguments = self.detailed && !is_marker && !row.arguments.is_empty();
            json!({
                "name": row.name, "kind": row.kind, "group": row.group, "aliases": row.aliases,
                "object": row.object, "file": row.file, "line": row.line,
                "address": row.address, "file_offset": row.file_offset, "size": row.size,
                "traceable": placement.as_ref().is_none_or(Result::is_ok),
                "entry_cost": placement.as_ref().and_then(|p| p.as_ref().ok()).map(How::entry_cost),
                "how": if is_marker { Some(cost_text(row)) } else { placement.as_ref().map(how_text) },
                "call": row.call.as_ref().map(|(call, _)| call),
                "begins_call": row.call.as_ref().map(|(_, is_start)| is_start),
                "point": row.point, "values": is_marker.then_some(&row.arguments),
                "arguments": has_arguments.then_some(&row.arguments),
                "inlined": (!row.inlined.is_empty()).then_some(&row.inlined),
                "sites": is_marker.then(|| marker_json(&row.marker_sites)),
            })
        })
        )
    }
}

fn to_json(decided: &[Decided], detailed: bool, out: &mut impl Write) -> std::io::Result<()> {
    #[derive(Serialize)]
    struct List<'a> {
        functions: Functions<'a>,
        schema: &'a str,
    }
    let list = List { functions: Functions { decided, detailed }, schema: "ctrace.list.v1" };
    write_pretty(&list, out)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::target::{
        fixtures::{MARKERS, compile},
        select::{Patterns, Selector},
    };

    #[test]
    fn shows_the_arguments_of_usdt_probes() {
        let source = r#"
            int main(void) {
                __asm__ volatile("990: nop\n.pushsection .note.stapsdt,\"\",\"note\"\n.balign 4\n"
                    ".4byte 992f-991f, 994f-993f, 3\n991: .asciz \"stapsdt\"\n992: .balign 4\n"
                    "993: .8byte 990b, 0, 0\n.asciz \"app\"\n.asciz \"step\"\n"
                    ".asciz \"8@%rax 4@$5\"\n994: .balign 4\n.popsection");
                return 0;
            }
        "#;
        let built = compile("gcc", "c", source);
        let objects = [built.object()];
        let all = ["*".to_owned()];
        let asked = Patterns { usdt: &all, ..Patterns::default() };
        let selection = Selector::parse(asked).unwrap().select(&objects, 9).unwrap();
        let decided: Vec<Decided> =
            list_functions(&objects, &selection, true).into_iter().map(|row| (row, None)).collect();
        let how = |detailed| lines(&decided, detailed).next().unwrap().how;
        assert_eq!(how(true).as_deref(), Some("arguments: 8@%rax 4@$5"));
        assert_eq!(how(false), None);
        let arguments = |detailed| {
            let mut json = Vec::new();
            to_json(&decided, detailed, &mut json).unwrap();
            let json: serde_json::Value = serde_json::from_slice(&json).unwrap();
            json["functions"][0]["arguments"].clone()
        };
        assert_eq!((arguments(true), arguments(false)), (json!("8@%rax 4@$5"), json!(null)));
    }

    #[test]
    fn parts_of_a_function_follow_it_and_inlined_ones_are_named() {
        let source = "
            __attribute__((cold, noinline)) void fail(volatile int *x) { *x = 1; }
            static inline __attribute__((always_inline)) int hash(int x) { return x * 31 + x / 7; }
            __attribute__((noinline)) int handle(volatile int *x) {
                if (*x == 77) { fail(x); fail(x); *x += 5; }
                return hash(*x);
            }
            int main(int c, char **v) { volatile int x = c; return handle(&x); }
        ";
        let built = compile("gcc -g -O2", "c", source);
        let objects = [built.object()];
        let all = ["handle*".to_owned()];
        let asked = Patterns { functions: &all, ..Patterns::default() };
        let selection = Selector::parse(asked).unwrap().select(&objects, 9).unwrap();
        let mut rows = list_functions(&objects, &selection, true);
        let names: Vec<&str> = rows.iter().map(|row| &*row.name).collect();
        assert_eq!(names, ["handle", "handle.cold"]);
        let function = &objects[0].functions()[rows[0].index];
        rows[0].inlined = objects[0].inlined_into(function);
        let refused = Err(Refusal::NotCode);
        let text = function_text(&rows[0], &refused);
        assert!(text.ends_with("; holds code of inlined hash"), "{text}");
    }

    #[test]
    fn shows_marker_scopes() {
        let source = r#"
            static inline __attribute__((always_inline)) void step(void) { SCOPE("step", "prod", 0); }
            int main(int c, char **v) { step(); step(); return 0; }
        "#;
        let built = compile("gcc", "c", &format!("{MARKERS}\n#line 1\n{source}"));
        let objects = [built.object()];
        let all = ["*".to_owned()];
        let asked = Patterns { markers: &all, ..Patterns::default() };
        let selection = Selector::parse(asked).unwrap().select(&objects, 9).unwrap();
        let rows = list_functions(&objects, &selection, true);
        let decided: Vec<Decided> = rows.into_iter().map(|row| (row, None)).collect();
        let all: Vec<listing::ListingLine> = lines(&decided, false).collect();
        let [line] = &all[..] else { panic!("one line") };
        assert_eq!((&*line.name, &*line.place, &line.how), ("prod/step", "input.c:2", &None));
        let how = lines(&decided, true).next().unwrap().how.unwrap();
        assert!(how.starts_with("marker: free while off, about 25 ns while on"), "{how}");
        assert_eq!(how.matches("0x").count(), 2, "{how}");
        let mut json = Vec::new();
        to_json(&decided, true, &mut json).unwrap();
        let json: serde_json::Value = serde_json::from_slice(&json).unwrap();
        let scope = &json["functions"][0];
        assert_eq!((&scope["name"], &scope["group"]), (&json!("step"), &json!("prod")));
        assert_eq!((&scope["kind"], &scope["line"]), (&json!("marker"), &json!(2)));
        assert_eq!(scope["sites"].as_array().unwrap().len(), 2);
        assert!(scope["sites"][1]["semaphore_offset"].is_u64());
    }
}
