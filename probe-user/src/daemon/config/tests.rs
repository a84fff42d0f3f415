use super::{keys::TARGET, *};
use crate::{
    session::budget::slowdown::SlowdownPolicy,
    target::{
        place::Returns,
        process::facts::{Facts, ProgramFacts},
    },
};

fn one(keys: &str) -> Target {
    let text = format!("[[target]]\nid = \"web\"\nexe = \"/bin/web\"\n{keys}");
    Config::parse(&text).unwrap_or_else(|error| panic!("{keys}: {error}")).targets.remove(0)
}

#[track_caller]
fn mistake(text: &str, line: usize, column: usize, part: &str) {
    let mistake = Config::parse(text).expect_err(text);
    assert_eq!((mistake.line, mistake.column), (line, column), "{mistake}");
    assert!(mistake.what.contains(part), "{mistake}");
}

#[test]
fn defaults_are_those_of_the_registry() {
    let target = one("");
    assert_eq!(target.reports.interval, Duration::from_secs(60));
    assert_eq!(target.what.probes.ring_size, Some(512 << 10));
    assert_eq!(target.what.probes.max_slowdown, SlowdownPolicy::Warn);
    assert_eq!(target.what.most.max_functions, 1000);
    assert_eq!((target.what.probes.budget, target.flight.slow), (None, None));
    let daemon = Config::parse("").unwrap().daemon;
    assert_eq!(daemon.socket, Path::new("/run/ctrace/ctrace.sock"));
    assert_eq!(daemon.recordings.bytes, 1 << 30);
}

#[test]
fn every_default_and_example_is_taken() {
    for key in &TARGET {
        for value in std::iter::once(key.default).chain(key.example) {
            let id = if key.name == "id" { "" } else { "id = \"web\"\n" };
            let exe = if key.name == "exe" { "" } else { "exe = \"/bin/web\"\n" };
            let user = value.contains("www-data");
            let text = format!("[[target]]\n{id}{exe}{} = {value}", key.name);
            match Config::parse(&text) {
                Ok(_) => {}
                Err(_) if user || ["id", "exe"].contains(&key.name) => {}
                Err(error) => panic!("{text}: {error}"),
            }
        }
    }
}

#[test]
fn a_store_needs_a_folder_outside_of_it() {
    mistake("[fleet]\nstore = \"s3://b\"\n", 2, 1, "`store` needs `folder`");
    let both = |store: &str| format!("[fleet]\nfolder = \"/a/b\"\nstore = \"{store}\"\n");
    mistake(&both("file:///a/b/c"), 3, 1, "`store` is in `folder`");
    mistake(&both("http://b"), 3, 9, "there is no http://");
    for store in ["file:///a/bc", "file:///a", "s3://b"] {
        assert_eq!(Config::parse(&both(store)).unwrap().fleet.store.as_deref(), Some(store));
    }
    assert_eq!(Config::parse(&both("off")).unwrap().fleet.store, None);
}

#[test]
fn keys_mean_what_they_say() {
    let target = one(
        "functions = \"f*\"\ngroups = [\"prod\"]\nmarkers = [\"m\"]\nmin_duration = \"10us\"\n\
         returns = \"ret-sites\"\nbudget = \"1.5%\"\nslow = \"250ms\"\nreport = \"table\"\n\
         output = \"/var/log/web\"\nmax_slowdown = \"20%\"\ndepth = 3\n\
         args = \"ns::handle: key=1:str\"\nrets = \"load: i32\"\nby = \" ns::handle : key\"\n\
         by_values = 7",
    );
    let asked = target.what.select.values.iter().map(|asked| asked.functions.as_str());
    assert_eq!(asked.collect::<Vec<_>>(), ["ns::handle", "load"]);
    let by = target.by.expect("a value");
    assert_eq!((&*by.function, &*by.argument, target.by_values), ("ns::handle", "key", 7));
    assert_eq!(target.what.select.functions, ["f*"]);
    let mut markers = target.what.select.markers.clone();
    markers.sort();
    assert_eq!(markers, ["m", "prod/*"]);
    assert_eq!(target.what.probes.returns, Returns::RetSites);
    assert_eq!(target.what.probes.max_slowdown, SlowdownPolicy::StopBeyond(20.0));
    assert_eq!(target.what.filter.max_depth, Some(3));
    assert_eq!(target.what.probes.budget, Some(1.5));
    assert_eq!(target.flight.slow, Some(Duration::from_millis(250)));
    assert_eq!(target.reports.kind, ReportKind::Table);
    assert_eq!(target.reports.output, Output::File("/var/log/web".into()));
}

#[test]
fn provider_files_are_read_with_the_configuration() {
    let file = tempfile::NamedTempFile::new().expect("a file");
    std::fs::write(&file, "provider app { probe start(char *path); };").expect("it is written");
    let path = file.path().display();
    let target = one(&format!("usdt = \"*\"\nproviders = \"{path}\""));
    assert_eq!(target.what.select.providers.len(), 1);
    let failure = |path: &str| {
        let text = format!("[[target]]\nid = \"a\"\nexe = \"/a\"\nproviders = [\"{path}\"]");
        Config::parse(&text).expect_err("it has no provider").to_string()
    };
    assert!(failure("app.d").contains("app.d: a path from the root is needed"));
    assert!(failure("/dev/null").contains("/dev/null: declares no probe"));
}

#[test]
fn what_is_common_can_be_overruled() {
    let config = Config::parse(
        "[defaults]\ninterval = \"5s\"\nuser = \"root\"\n\
         [[target]]\nid = \"a\"\nname = \"a\"\n[[target]]\nid = \"b\"\nname = \"b\"\ninterval = \"7s\"",
    )
    .unwrap();
    let seconds: Vec<_> = config.targets.iter().map(|t| t.reports.interval.as_secs()).collect();
    assert_eq!(seconds, [5, 7]);
    assert_eq!(config.targets[1].matching.user, [0]);
}

#[test]
fn a_targets_own_scopes_and_groups_take_the_place_of_the_common_ones() {
    let config = Config::parse(
        "[defaults]\nmarkers = \"common\"\ngroups = \"all\"\n\
         [[target]]\nid = \"a\"\nname = \"a\"\n\
         [[target]]\nid = \"b\"\nname = \"b\"\nmarkers = \"own\"\n\
         [[target]]\nid = \"c\"\nname = \"c\"\ngroups = [\"prod\", \"dev\"]",
    )
    .unwrap();
    let selected = config.targets.iter().map(|target| target.what.select.markers.join(" "));
    let selected: Vec<_> = selected.collect();
    assert_eq!(selected, ["common all/*", "own all/*", "common prod/* dev/*"]);
}

#[test]
fn mistakes_name_their_place_and_the_nearest_key() {
    let target = "[[target]]\nid = \"web\"\nexe = \"/bin/web\"\n";
    mistake(&format!("{target}intervall = \"1s\""), 4, 1, "nearest is `interval`");
    mistake("[deamon]\n", 1, 2, "nearest is `daemon`");
    mistake("[daemon]\n  sokket = \"/x\"", 2, 3, "nearest is `socket`");
    mistake(&format!("{target}interval = \"1 parsec\""), 4, 12, "interval: `1 parsec`");
    mistake(&format!("{target}follow = 1"), 4, 10, "true or false");
    mistake(&format!("{target}report = \"xml\""), 4, 10, "json, table, none");
    mistake(&format!("{target}functions = [\"a\", 7]"), 4, 13, "text");
    mistake(&format!("{target}functions = [\"/(/\"]"), 1, 1, "target `web`");
    mistake(&format!("{target}views = [\"nothing\"]"), 1, 1, "no view");
    mistake(&format!("{target}by = \"handle\""), 4, 6, "FUNCTION: ARG");
    mistake(&format!("{target}by = \"/(/: key\""), 4, 6, "/(/");
    mistake(&format!("{target}by_values = 101"), 4, 13, "at most 100");
    mistake(&format!("{target}args = \"handle: 1:word\""), 4, 8, "word");
    mistake("[[target]]\nid = \"x\"", 1, 1, "matches nothing");
    mistake("[[target]]\nexe = \"/x\"", 1, 1, "needs a name");
    mistake("[[target]]\nid = \"x\"\nexe = \"web\"", 3, 7, "`web` is no path from the root");
    mistake(&format!("{target}{target}"), 4, 1, "already");
    mistake("[target]\nid = \"x\"", 1, 1, "[[target]]");
    mistake("[defaults]\nid = \"x\"", 2, 1, "[[target]]");
    mistake("[daemon\n", 1, 8, "");
    mistake("[[target]]\nid = \"a b\"", 2, 6, "letters");
}

#[test]
fn all_that_is_given_must_match() {
    let facts = Facts {
        program: ProgramFacts { exe: "/usr/bin/web".into(), name: "web".into() },
        command: "/usr/bin/web --port 80".into(),
        user: 33,
        cgroup: "/system.slice/web.service".into(),
        ..Facts::default()
    };
    let matches = |keys: &str| {
        let config = Config::parse(&format!("[[target]]\nid = \"x\"\n{keys}"));
        config.unwrap_or_else(|error| panic!("{error}")).targets[0].matching.matches(&facts)
    };
    assert!(matches("exe = \"/usr/bin/*\""));
    assert!(matches("exe = [\"/bin/no\", \"/usr/**\"]\nuser = \"33\""));
    assert!(!matches("exe = \"/usr/bin/*\"\nuser = \"0\""));
    assert!(matches("name = \"w?b\"\ncommand = \"*--port 80\"\nunit = \"web.service\""));
    assert!(!matches("name = \"we\""));
    assert!(matches("cgroup = \"/system.slice/**\""));
    assert!(!matches("container = \"4f\""));
}

/// `UPDATE_DOCS=1` rewrites the files.
#[test]
fn the_documentation_is_what_the_registry_says() {
    let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs");
    let example = docs.join("ctrace.toml");
    let page = docs.join("daemon.md");
    let text = std::fs::read_to_string(&page).unwrap();
    let (begin, end) = ("<!-- keys: made from the registry -->\n", "<!-- end of keys -->\n");
    let (before, rest) = text.split_once(begin).expect("the mark");
    let (keys, after) = rest.split_once(end).expect("the mark");
    let made = format!("\n{}\n", docs::tables());
    if std::env::var_os("UPDATE_DOCS").is_some() {
        std::fs::write(&example, docs::example()).unwrap();
        std::fs::write(&page, format!("{before}{begin}{made}{end}{after}")).unwrap();
        return;
    }
    assert!(keys == made, "docs/daemon.md is out of date: run this test with UPDATE_DOCS=1");
    let there = std::fs::read_to_string(&example).unwrap();
    assert!(there == docs::example(), "docs/ctrace.toml is out of date: UPDATE_DOCS=1");
}

#[test]
fn the_example_file_is_sound() {
    let all = docs::example();
    assert_eq!(Config::parse(&all).unwrap().targets, []);
    // Without the comments as well.
    let opened: Vec<&str> = all
        .lines()
        .filter_map(|line| {
            line.strip_prefix('#').filter(|line| !line.starts_with(' ')).or(Some(line))
        })
        .filter(|line| !line.starts_with('#'))
        .collect();
    let config = Config::parse(&opened.join("\n")).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(&*config.targets[0].id.0, "redis");
}
