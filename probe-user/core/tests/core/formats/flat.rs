//! Formats with a line for each call.

use crate::formats::fixture::{
    bytes_of, deep, export_with, functions, hostile, open, text, typical,
};
use crate::support::{enter, ret};
use ctrace_core::formats::{ChosenFrame, Export, Format, Options};
use ctrace_core::recording::replay::Query;
use ctrace_core::units::FuncId;
use serde_json::Value;
use std::num::NonZeroUsize;

#[test]
fn csv_has_a_row_for_each_call() {
    insta::assert_snapshot!(text("csv", &typical()), @r###"
pid,tid,thread,start_ns,duration_ns,timed,open,function,depth,path
100,100,main,2700,0,false,false,prod/mark,2,outer;prod/mark
100,100,main,2000,500,true,false,inner,2,outer;inner
100,100,main,4000,3000,true,false,inner,2,outer;inner
100,100,main,1000,9000,true,false,outer,1,outer
100,7,,11000,1000,false,true,outer,1,outer
100,7,,12000,0,false,false,prod/mark,2,outer;prod/mark
"###);
}

#[test]
fn csv_quotes_what_needs_it() {
    insta::assert_snapshot!(text("csv", &hostile()), @r###"
pid,tid,thread,start_ns,duration_ns,timed,open,function,depth,path
100,100,main,2700,0,false,false,"gr""oup;/\u{a}\u{d}\u{9}\u{1b}[2J\\u{202e}rtl\u{2028}",2,"a;b ""c"",d 12;gr""oup;/\u{a}\u{d}\u{9}\u{1b}[2J\\u{202e}rtl\u{2028}"
100,100,main,2000,500,true,false,</text><script>alert(1)</script>&amp;\u{0},2,"a;b ""c"",d 12;</text><script>alert(1)</script>&amp;\u{0}"
100,100,main,4000,3000,true,false,</text><script>alert(1)</script>&amp;\u{0},2,"a;b ""c"",d 12;</text><script>alert(1)</script>&amp;\u{0}"
100,100,main,1000,9000,true,false,"a;b ""c"",d 12",1,"a;b ""c"",d 12"
100,7,,11000,1000,false,true,"a;b ""c"",d 12",1,"a;b ""c"",d 12"
100,7,,12000,0,false,false,"gr""oup;/\u{a}\u{d}\u{9}\u{1b}[2J\\u{202e}rtl\u{2028}",2,"a;b ""c"",d 12;gr""oup;/\u{a}\u{d}\u{9}\u{1b}[2J\\u{202e}rtl\u{2028}"
"###);
}

#[test]
fn jsonl_has_a_line_for_each_call() {
    insta::assert_snapshot!(text("jsonl", &typical()), @r###"
{"pid":100,"tid":100,"thread":"main","start_ns":2700,"duration_ns":0,"timed":false,"open":false,"function":"prod/mark","path":["outer","prod/mark"]}
{"pid":100,"tid":100,"thread":"main","start_ns":2000,"duration_ns":500,"timed":true,"open":false,"function":"inner","path":["outer","inner"]}
{"pid":100,"tid":100,"thread":"main","start_ns":4000,"duration_ns":3000,"timed":true,"open":false,"function":"inner","path":["outer","inner"]}
{"pid":100,"tid":100,"thread":"main","start_ns":1000,"duration_ns":9000,"timed":true,"open":false,"function":"outer","path":["outer"]}
{"pid":100,"tid":7,"thread":"","start_ns":11000,"duration_ns":1000,"timed":false,"open":true,"function":"outer","path":["outer"]}
{"pid":100,"tid":7,"thread":"","start_ns":12000,"duration_ns":0,"timed":false,"open":false,"function":"prod/mark","path":["outer","prod/mark"]}
"###);
}

#[test]
fn jsonl_is_json_whatever_the_names() {
    for recording in [hostile(), deep()] {
        for line in text("jsonl", &recording).lines() {
            let call: Value = serde_json::from_str(line).expect("JSON");
            let path = call["path"].as_array().expect("a path");
            assert_eq!(path.last(), Some(&call["function"]));
            assert!(call["duration_ns"].is_u64() && call["timed"].is_boolean());
        }
    }
}

fn frames_of(function: u32, number: Option<usize>) -> Options<'static> {
    let number = number.map(|number| NonZeroUsize::new(number).expect("frames count from 1"));
    let frame = Some(ChosenFrame { function: FuncId(function), number });
    Options { frame, ..Options::default() }
}

#[test]
fn a_frame_has_the_calls_that_ended_in_it() {
    let (bytes, _) = export_with("frame", &typical(), frames_of(0, None));
    insta::assert_snapshot!(String::from_utf8(bytes).expect("text"), @r#"
{"frame":{"name":"outer","number":1,"frames":1,"thread":100,"thread_name":"main","start":0.000500,"duration":0.009000},
"events":[
{"name":"outer","depth":0,"thread":100,"thread_name":"main","start":0.000000,"end":0.009000,"duration":0.009000},
{"name":"inner","depth":1,"thread":100,"thread_name":"main","start":0.001000,"end":0.001500,"duration":0.000500},
{"name":"prod/mark","category":"prod","depth":1,"thread":100,"thread_name":"main","start":0.001700,"end":0.001700,"duration":0.000000,"timed":false},
{"name":"inner","depth":1,"thread":100,"thread_name":"main","start":0.003000,"end":0.006000,"duration":0.003000}
]}
"#);
    let (bytes, _) = export_with("frame", &typical(), frames_of(1, Some(1)));
    insta::assert_snapshot!(String::from_utf8(bytes).expect("text"), @r#"
{"frame":{"name":"inner","number":1,"frames":2,"thread":100,"thread_name":"main","start":0.001500,"duration":0.000500},
"events":[
{"name":"inner","depth":1,"thread":100,"thread_name":"main","start":0.000000,"end":0.000500,"duration":0.000500}
]}
"#);
}

/// The second frame began before the first one ended.
#[test]
fn a_call_of_another_thread_belongs_to_the_frame_in_which_it_ends() {
    let events = vec![
        enter(0, 900, 1_000),
        enter(1, 500, 1_500).on(7),
        ret(0, 900, 2_000),
        enter(0, 900, 2_001_000),
        ret(1, 500, 2_002_500).on(7),
        ret(0, 900, 2_004_000),
    ];
    let recording = open(bytes_of(&functions(), &[events]));
    let names = |number| {
        let (bytes, _) = export_with("frame", &recording, frames_of(0, Some(number)));
        let document: Value = serde_json::from_slice(&bytes).expect("JSON");
        assert_eq!(document["frame"]["frames"], 2);
        let events = document["events"].as_array().expect("events");
        let name =
            |event: &Value| (event["name"].to_string(), event["start"].as_f64().expect("ms"));
        events.iter().map(name).collect::<Vec<_>>()
    };
    assert_eq!(names(1), [("\"outer\"".to_owned(), 0.0)]);
    assert_eq!(names(2), [("\"inner\"".to_owned(), -1.9995), ("\"outer\"".to_owned(), 0.0)]);
}

#[test]
fn a_frame_that_is_not_there_is_an_error() {
    let (recording, query) = (typical(), Query::default());
    let error = |number| {
        let options = frames_of(1, Some(number));
        let export = Export { recording: &recording, query: &query, options, progress: &|_| () };
        let format = Format::find("frame").expect("a format");
        format.write(&export, &mut Vec::new()).map(drop).map_err(|error| error.to_string())
    };
    assert_eq!(error(2), Ok(()));
    let expected = "there is no such frame: 2 calls of the function have a known duration";
    assert_eq!(error(3), Err(expected.to_owned()));
}

#[test]
fn a_frame_is_json_whatever_the_names() {
    for recording in [hostile(), deep()] {
        let document: Value = serde_json::from_str(&text("frame", &recording)).expect("JSON");
        let events = document["events"].as_array().expect("events");
        assert!(events.iter().all(|event| event["name"].is_string() && event["end"].is_f64()));
        assert_eq!(events.len(), text("jsonl", &recording).lines().count());
    }
}
