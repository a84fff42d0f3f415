//! Reads profiles as receivers do: those of OTLP with OpenTelemetry's types.

use super::{
    Options, Profiled, Profiles, Push,
    base64::base64,
    fixtures::{EVIL, HARMLESS, Pprof, START, deep, profiled, push, unpacked},
    fold::{Bounds as Limits, fold},
    otlp, pprof,
};
use crate::{
    daemon::{
        metrics::{
            accumulator::Bounds,
            catalog::Own,
            fixtures::MS,
            hub::MetricsHub,
            otlp::{
                Receiver, Resource,
                fixtures::{receive, receive_and, receiver, text},
            },
        },
        post::{Endpoint, queue::Ending},
        random_ids::Ids,
    },
    host_name::host_name,
};
use opentelemetry_proto::tonic::{
    collector::profiles::v1development::{
        ExportProfilesPartialSuccess, ExportProfilesServiceRequest, ExportProfilesServiceResponse,
    },
    common::v1::{AnyValue, ArrayValue, any_value::Value},
    profiles::v1development::{
        Link, Location, Mapping, Profile, ProfilesDictionary, Sample, Stack,
    },
};
use prost::Message as _;
use std::{net::TcpListener, sync::atomic::Ordering::Relaxed};

const OK: &str = "200 OK\r\nContent-Length: 0";

fn listen() -> TcpListener {
    TcpListener::bind("127.0.0.1:0").expect("a port")
}

fn start(options: Options) -> (Profiles, MetricsHub) {
    let metrics = MetricsHub::new(Bounds::default());
    (Profiles::start(options, &metrics).expect("a thread").expect("a receiver"), metrics)
}

fn by_otlp(listener: &TcpListener) -> Options {
    Options { otlp: Some(receiver(listener)), ..Options::default() }
}

fn close(profiles: &Profiles) {
    profiles.close().into_iter().for_each(Ending::wait);
}

fn counted(metrics: &MetricsHub, counters: [Own; 3]) -> [u64; 3] {
    counters.map(|own| metrics.counter(own).load(Relaxed))
}

/// The comment of a profile with two calls of each function.
const COMMENT: &str = "6 calls, 3 events lost, 1 call still running";

const BY_OTLP: [Own; 3] = [Own::OtlpProfiles, Own::OtlpProfilesDropped, Own::OtlpFailures];
const BY_PPROF: [Own; 3] = [Own::PprofProfiles, Own::PprofProfilesDropped, Own::PprofFailures];

fn name(dictionary: &ProfilesDictionary, location: i32) -> &str {
    let line = dictionary.location_table[location as usize].lines[0];
    let function = dictionary.function_table[line.function_index as usize];
    &dictionary.string_table[function.name_strindex as usize]
}

/// Returns the names of each stack, innermost first, with its value.
fn stacks<'a>(dictionary: &'a ProfilesDictionary, profile: &Profile) -> Vec<(Vec<&'a str>, i64)> {
    let stack = |sample: &Sample| {
        let [value] = sample.values[..] else { panic!("{sample:?}") };
        let stack = &dictionary.stack_table[sample.stack_index as usize];
        let names = stack.location_indices.iter().map(|at| name(dictionary, *at));
        (names.collect(), value)
    };
    profile.samples.iter().map(stack).collect()
}

#[test]
fn a_receiver_of_otlp_reads_stacks_and_values() {
    let listener = listen();
    let options = receiver(&listener);
    let endpoint = Endpoint { path: "/v1development/profiles".into(), ..options.endpoint.clone() };
    let (profiles, metrics) =
        start(Options { otlp: Some(Receiver { endpoint, ..options }), ..Options::default() });
    profiles.put(profiled(3));
    let (head, body) = receive(&listener, OK);
    close(&profiles);
    assert!(head.starts_with("post /v1development/profiles http/1.1\r\n"), "{head}");
    assert!(head.contains("content-type: application/x-protobuf\r\n"), "{head}");
    assert_eq!(counted(&metrics, BY_OTLP), [1, 0, 0]);

    let request = ExportProfilesServiceRequest::decode(&*body).expect("a request");
    let [of_resource] = &request.resource_profiles[..] else { panic!("{request:?}") };
    let attributes = &of_resource.resource.as_ref().expect("a resource").attributes;
    for (key, value) in [
        ("service.name", "shop {1}"),
        ("service.version", "c0ffee"),
        ("process.executable.build_id.gnu", "c0ffee"),
        ("process.executable.name", "we,b}\\u{1b}"),
        ("host.name", &host_name()),
        ("service.instance.id", &format!("{}:4711", host_name())),
        ("ctrace.target", "shop {1}"),
    ] {
        assert_eq!(text(attributes, key).as_deref(), Some(value), "{key}");
    }
    let pid = attributes.iter().find(|one| one.key == "process.pid").expect("a process");
    assert_eq!(pid.value.clone().and_then(|value| value.value), Some(Value::IntValue(4711)));
    let [scope] = &of_resource.scope_profiles[..] else { panic!("{of_resource:?}") };
    assert_eq!(scope.scope.as_ref().map(|scope| &*scope.name), Some("ctrace"));

    let dictionary = request.dictionary.as_ref().expect("a dictionary");
    let string = |at: i32| &*dictionary.string_table[at as usize];
    let [wall, calls] = &scope.profiles[..] else { panic!("{scope:?}") };
    for (profile, kind) in [(wall, ["wall", "nanoseconds"]), (calls, ["calls", "count"])] {
        let told = profile.sample_type.expect("a type");
        assert_eq!([told.type_strindex, told.unit_strindex].map(string), kind);
        let period = profile.period_type.expect("a type");
        assert_eq!([period.type_strindex, period.unit_strindex].map(string), ["calls", "count"]);
        assert_eq!((profile.period, profile.profile_id.len()), (1, 16));
        assert_eq!(profile.time_unix_nano, START as u64);
        assert_eq!(profile.duration_nano, 10_000 * MS);
        let [comment] = profile.attribute_indices[..] else { panic!("{profile:?}") };
        let comment = &dictionary.attribute_table[comment as usize];
        assert_eq!(string(comment.key_strindex), "pprof.profile.comment");
        let told = Value::StringValue("9 calls, 3 events lost, 1 call still running".into());
        let told = ArrayValue { values: vec![AnyValue { value: Some(told) }] };
        let value = comment.value.clone().and_then(|value| value.value);
        assert_eq!(value, Some(Value::ArrayValue(told)));
    }
    assert_ne!(wall.profile_id, calls.profile_id);
    let (handle, query) = (vec!["handle"], vec!["query", "handle"]);
    let evil = vec![HARMLESS, "query", "handle"];
    let ms = MS as i64;
    let own = [(handle.clone(), 60 * ms), (query.clone(), 3 * 38 * ms), (evil.clone(), 6 * ms)];
    assert_eq!(stacks(dictionary, wall), own);
    // The open call is in a later profile.
    assert_eq!(stacks(dictionary, calls), [(handle, 3), (query, 3), (evil, 3)]);
}

#[test]
fn a_dictionary_begins_with_what_stands_for_none_and_has_nothing_twice() {
    let listener = listen();
    let (profiles, _) = start(by_otlp(&listener));
    profiles.put(profiled(1));
    let (_, body) = receive(&listener, OK);
    close(&profiles);
    let request = ExportProfilesServiceRequest::decode(&*body).expect("a request");
    let dictionary = request.dictionary.expect("a dictionary");
    assert_eq!(dictionary.mapping_table[0], Mapping::default());
    assert_eq!(dictionary.location_table[0], Location::default());
    assert_eq!(dictionary.stack_table[0], Stack::default());
    assert_eq!(dictionary.function_table[0], Default::default());
    assert_eq!(dictionary.attribute_table[0], Default::default());
    assert_eq!(dictionary.link_table, [Link::default()]);
    assert_eq!(dictionary.string_table[0], "");
    assert_eq!(dictionary.function_table.len(), 4);
    let mut strings = dictionary.string_table.clone();
    strings.sort();
    strings.dedup();
    assert_eq!(strings.len(), dictionary.string_table.len());
    assert!(!strings.iter().any(|text| text.contains(EVIL) || text.contains('\x1b')));

    let [_, web, db] = &dictionary.mapping_table[..] else { panic!("{dictionary:?}") };
    let file = |of: &Mapping| &*dictionary.string_table[of.filename_strindex as usize];
    assert_eq!([file(web), file(db)], ["web", "libdb.so"]);
    let [id] = web.attribute_indices[..] else { panic!("{web:?}") };
    let id = &dictionary.attribute_table[id as usize];
    let key = &dictionary.string_table[id.key_strindex as usize];
    assert_eq!(key, "process.executable.build_id.gnu");
    let value = id.value.clone().and_then(|value| value.value);
    assert_eq!(value, Some(Value::StringValue("c0ffee".into())));
    assert!(db.attribute_indices.is_empty());
}

#[test]
fn configured_attributes_replace_those_of_the_process() {
    let listener = listen();
    let mut options = receiver(&listener);
    options.resource.more = vec![("service.name".into(), "all".into()), ("a".into(), "b".into())];
    let (profiles, _) = start(Options { otlp: Some(options), ..Options::default() });
    profiles.put(profiled(1));
    let (_, body) = receive(&listener, OK);
    close(&profiles);
    let request = ExportProfilesServiceRequest::decode(&*body).expect("a request");
    let attributes = &request.resource_profiles[0].resource.as_ref().expect("one").attributes;
    assert_eq!(attributes.iter().filter(|one| one.key == "service.name").count(), 1);
    assert_eq!(text(attributes, "service.name").as_deref(), Some("all"));
    assert_eq!(text(attributes, "a").as_deref(), Some("b"));
    assert_eq!(text(attributes, "ctrace.target").as_deref(), Some("shop {1}"));
}

#[test]
fn pyroscope_and_parca_read_the_same_file() {
    let (pyroscope, parca) = (listen(), listen());
    let dir = tempfile::tempdir().expect("a folder");
    let token = dir.path().join("token");
    std::fs::write(&token, "s3cret\n").expect("written");
    let (profiles, metrics) = start(Options {
        otlp: None,
        pyroscope: Some(Push { token: Some(token), ..push(&pyroscope) }),
        parca: Some(push(&parca)),
    });
    profiles.put(profiled(2));
    let (head, file) = receive(&pyroscope, OK);
    let host = host_name();
    let name = format!(
        "shop__1_%7bhost%3d{host}%2cprogram%3dwe_b__u_1b_%2cversion%3dc0ffee%2ctarget%3dshop__1_%2c\
         env%3dtest%7d"
    );
    let path = format!(
        "post /pre/ingest?name={name}&from={START}&until={}&format=pprof&spyname=ctrace \
         http/1.1\r\n",
        START + 10_000 * MS as i64
    );
    assert!(head.starts_with(&path), "{head}\n{path}");
    assert!(head.contains("authorization: bearer s3cret\r\n"), "{head}");

    let (head, body) = receive(&parca, OK);
    close(&profiles);
    assert!(head.starts_with("post /pre/api/profiles/writeraw http/1.1\r\n"), "{head}");
    assert!(head.contains("content-type: application/json\r\n"), "{head}");
    assert!(!head.contains("authorization"), "{head}");
    let body: serde_json::Value = serde_json::from_slice(&body).expect("JSON");
    let labels: Vec<_> = body["series"][0]["labels"]["labels"].as_array().expect("labels").clone();
    let labels: Vec<_> = labels
        .iter()
        .map(|one| format!("{}={}", one["name"].as_str().unwrap(), one["value"].as_str().unwrap()))
        .collect();
    let host = format!("host={host}");
    let wanted = [
        "__name__=ctrace",
        "service_name=shop__1_",
        &host,
        "program=we_b__u_1b_",
        "version=c0ffee",
        "target=shop__1_",
        "env=test",
    ];
    assert_eq!(labels, wanted);
    let sent = &body["series"][0]["samples"][0]["rawProfile"];
    assert_eq!(sent.as_str(), Some(&*base64(&file)));
    assert_eq!(counted(&metrics, BY_PPROF), [2, 0, 0]);

    let read = Pprof::read(&file);
    let types = read.sample_type.iter().map(|one| [one.first, one.second].map(|at| read.text(at)));
    assert_eq!(types.collect::<Vec<_>>(), [["calls", "count"], ["wall", "nanoseconds"]]);
    assert_eq!((read.time_nanos, read.duration_nanos), (START, 10_000 * MS as i64));
    let comments: Vec<_> = read.comment.iter().map(|at| read.text(*at)).collect();
    assert_eq!(comments, [COMMENT]);
    let period = read.period_type.as_ref().expect("a type");
    assert_eq!((read.text(period.first), read.period), ("calls", 1));
    let ms = MS as i64;
    let wanted: [(Vec<&str>, &[i64]); 3] = [
        (vec!["handle"], &[2, 40 * ms]),
        (vec!["query", "handle"], &[2, 76 * ms]),
        (vec![HARMLESS, "query", "handle"], &[2, 4 * ms]),
    ];
    assert_eq!(read.stacks(), wanted);
    let objects =
        read.mapping.iter().map(|one| [one.filename, one.build_id].map(|at| read.text(at)));
    assert_eq!(objects.collect::<Vec<_>>(), [["web", "c0ffee"], ["libdb.so", ""]]);
    assert_eq!(read.location.iter().map(|one| one.mapping_id).collect::<Vec<_>>(), [1, 2, 2]);
}

#[test]
fn a_profile_is_tried_again_and_then_the_next_one_is_sent() {
    let listener = listen();
    let (profiles, metrics) =
        start(Options { pyroscope: Some(push(&listener)), ..Options::default() });
    (1..=2).for_each(|calls| profiles.put(profiled(calls)));
    let busy = "503 Service Unavailable\r\nRetry-After: 0\r\nContent-Length: 0";
    let bodies = [busy, busy, OK, "400 Bad Request\r\nContent-Length: 0"];
    let bodies = bodies.map(|answer| receive(&listener, answer).1);
    close(&profiles);
    let [one, two] = [1, 2].map(|calls| pprof::encode(&profiled(calls)).expect("written"));
    assert!(bodies[..3].iter().all(|body| *body == one) && bodies[3] == two);
    // The second one was refused for good.
    assert_eq!(counted(&metrics, BY_PPROF), [1, 1, 3]);
}

/// Pyroscope says the same of a wrong profile and of a limit. A wrong one must not hold up others.
#[test]
fn doubtful_answers_are_tried_a_few_times_and_temporary_ones_on() {
    let listener = listen();
    let (profiles, metrics) =
        start(Options { pyroscope: Some(push(&listener)), ..Options::default() });
    (1..=2).for_each(|calls| profiles.put(profiled(calls)));
    let answer = |status: &str| {
        let busy = format!("{status} X\r\nRetry-After: 0\r\nContent-Length: 0");
        receive(&listener, &busy).1
    };
    let refused = ["422", "408", "422", "500", "500", "422"].map(answer);
    let taken = receive(&listener, OK).1;
    close(&profiles);
    let [one, two] = [1, 2].map(|calls| pprof::encode(&profiled(calls)).expect("written"));
    assert!(refused.iter().all(|body| *body == one) && taken == two);
    assert_eq!(counted(&metrics, BY_PPROF), [1, 1, 6]);
}

#[test]
fn each_attempt_reads_the_token_anew() {
    let listener = listen();
    let dir = tempfile::tempdir().expect("a folder");
    let token = dir.path().join("token");
    let (profiles, metrics) = start(Options {
        parca: Some(Push { token: Some(token.clone()), ..push(&listener) }),
        ..Options::default()
    });
    std::fs::write(&token, "old").expect("written");
    profiles.put(profiled(1));
    let busy = "503 Service Unavailable\r\nRetry-After: 0\r\nContent-Length: 0";
    let replace = || std::fs::write(&token, "new").expect("written");
    let (first, _) = receive_and(&listener, busy, replace);
    let (second, _) = receive(&listener, OK);
    close(&profiles);
    assert!(first.contains("authorization: bearer old\r\n"), "{first}");
    assert!(second.contains("authorization: bearer new\r\n"), "{second}");
    assert_eq!(counted(&metrics, BY_PPROF), [1, 0, 1]);
}

#[test]
fn the_largest_profiles_are_within_the_limits_of_servers() {
    let mut profiled = Profiled { profile: deep(), ..profiled(1) };
    fold(&mut profiled.profile, Limits::USUAL);
    let file = unpacked(&pprof::encode(&profiled).expect("written")).len();
    assert!((2 << 20..4 << 20).contains(&file), "{file}");
    let body = otlp::encode(&profiled, &Resource::default(), &mut Ids::new());
    assert!(body.len() < 5 << 20, "{}", body.len());
    let request = ExportProfilesServiceRequest::decode(&*body).expect("a request");
    let dictionary = request.dictionary.as_ref().expect("a dictionary");
    let of_otlp = stacks(dictionary, &request.resource_profiles[0].scope_profiles[0].profiles[1]);
    let read = Pprof::read(&pprof::encode(&profiled).expect("written"));
    let mut of_pprof = read.stacks().into_iter().map(|(stack, values)| (stack, values[0]));
    assert!(of_pprof.by_ref().zip(&of_otlp).all(|(one, other)| one == *other));
    assert_eq!(read.stacks().len(), of_otlp.len());
}

#[test]
fn a_profile_that_is_left_out_is_counted_as_lost() {
    let listener = listen();
    let (profiles, metrics) = start(by_otlp(&listener));
    let part = ExportProfilesPartialSuccess { rejected_profiles: 2, error_message: "no".into() };
    let answer = ExportProfilesServiceResponse { partial_success: Some(part) }.encode_to_vec();
    let answer = String::from_utf8(answer).expect("ASCII");
    profiles.put(profiled(1));
    receive(&listener, &format!("200 OK\r\nConnection: close\r\n\r\n{answer}"));
    close(&profiles);
    assert_eq!(counted(&metrics, BY_OTLP), [0, 1, 0]);
}

#[test]
fn an_interval_without_ended_calls_is_not_sent() {
    let listener = listen();
    let (profiles, metrics) = start(by_otlp(&listener));
    profiles.put(profiled(0));
    close(&profiles);
    listener.set_nonblocking(true).expect("a socket");
    assert!(listener.accept().is_err());
    assert_eq!(counted(&metrics, BY_OTLP), [0, 0, 0]);
}

/// Nobody answers: all is counted, and neither the one who puts nor the end waits for long.
#[test]
fn profiles_that_nobody_takes_are_counted() {
    let silent = listen();
    let (profiles, metrics) = start(Options {
        otlp: Some(receiver(&silent)),
        parca: Some(push(&silent)),
        ..Options::default()
    });
    (0..5_000).for_each(|_| profiles.put(profiled(1)));
    let full = counted(&metrics, BY_OTLP)[1];
    assert!((900..5_000).contains(&full), "{full} found no room");
    close(&profiles);
    assert_eq!(counted(&metrics, BY_OTLP)[..2], [0, 5_000]);
    assert_eq!(counted(&metrics, BY_PPROF)[..2], [0, 5_000]);
}
