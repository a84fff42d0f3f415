//! Formats with a line for each call.

use crate::formats::fixture::{deep, hostile, text, typical};
use serde_json::Value;

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
