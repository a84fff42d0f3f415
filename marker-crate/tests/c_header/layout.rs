//! Compares the layout that the header repeats with the one that ctrace reads.

use super::*;
use core::mem::offset_of;
use ctrace_common::{
    BUFFER_LEN, BUFFER_MAGIC, BUFFER_SLOTS, BufferHeader, CLOCK_MONOTONIC, CLOCK_TSC, HEADER_LEN,
    MARK_LEN, Mark, SiteEntry,
};

const SITE: u64 = 0x5555_5555_4020;
const STACK: u64 = 0x7ffd_cafe_b010;
const TIME: u64 = 0x5_1234_5678_9abc;

/// Returns pairs of C expressions that must be equal.
fn equations() -> Vec<(String, u64)> {
    let mut equations = Vec::new();
    macro_rules! fields {
        ($($field:ident),*) => {
            $(equations.push((
                format!("offsetof(struct ctrace_c1_buffer, {})", stringify!($field)),
                offset_of!(BufferHeader, $field) as u64,
            ));)*
        };
    }
    fields!(magic, next, tid, position, nested, events, clock, flushing, whole, reserved);
    fields!(batch, stack);
    let mut more = |c: &str, value: u64| equations.push((c.to_owned(), value));
    more("sizeof(struct ctrace_c1_buffer)", BUFFER_LEN as u64);
    more("offsetof(struct ctrace_c1_buffer, slots)", HEADER_LEN as u64);
    more("sizeof buffer.slots / sizeof buffer.slots[0]", BUFFER_SLOTS as u64);
    more("sizeof buffer.slots[0]", MARK_LEN as u64);
    more("CTRACE_SIZE_", BUFFER_LEN as u64);
    more("CTRACE_FIRST_", HEADER_LEN as u64);
    more("CTRACE_LAST_", (BUFFER_LEN - MARK_LEN) as u64);
    more("CTRACE_MAGIC_", BUFFER_MAGIC);
    more("CTRACE_BEGINS_", Mark::NAME_BEGINS);
    more("CTRACE_GOES_ON_", Mark::NAME_GOES_ON);
    more("CTRACE_FILLER_", Mark::FILLER);
    more("CTRACE_VALUE_", Mark::VALUE);
    more("CTRACE_BEGINS_ + CTRACE_LONG_", Mark::LONG_NAME_BEGINS);
    more("CTRACE_GOES_ON_ + CTRACE_LONG_", Mark::LONG_NAME_GOES_ON);
    more("CTRACE_SAMPLE_", Mark::SAMPLE);
    more("CTRACE_PIECE_", Mark::LONGEST_PIECE as u64);
    more("CTRACE_LONGEST_", Mark::LONGEST_NAME as u64);
    more("CTRACE_LONGEST_TEXT_", Mark::LONGEST_TEXT as u64);
    more("CTRACE_COLOUR_FLAG_", SiteEntry::COLOURED.into());
    more("CTRACE_FRAME_SHAPE_", SiteEntry::FRAME.into());
    more("CTRACE_ERROR", SiteEntry::HIGHEST_LEVEL.into());
    more("CTRACE_TSC_", CLOCK_TSC.into());
    more("CTRACE_MONOTONIC_", CLOCK_MONOTONIC.into());
    // The words of an entry, and of the whole call after its exit.
    let low = STACK >> Mark::SP_LOW << Mark::TIME_BITS;
    let time = TIME & ((1 << Mark::TIME_BITS) - 1) | low;
    let tag = SITE | STACK >> Mark::SP_NEAR << Mark::REST_SHIFT;
    more("buffer.slots[1][0]", time);
    more("tag", tag);
    more("whole", SITE | Mark::WHOLE | 77 << Mark::REST_SHIFT);
    more("buffer.slots[1][1]", tag | Mark::EXIT);
    equations
}

#[test]
fn layout() {
    let build = Build::new();
    let mut source = format!(
        r#"#include <ctrace.h>
#include <stddef.h>
#include <stdio.h>
static struct ctrace_c1_buffer buffer;
static int failed;
static void equal(const char *what, uint64_t is, uint64_t should_be) {{
    if (is == should_be) return;
    failed = 1;
    printf("%s is %llx, not %llx\n", what, (unsigned long long)is, (unsigned long long)should_be);
}}
int main(void) {{
    uint64_t time = UINT64_C({TIME}), sp = UINT64_C({STACK}), site = UINT64_C({SITE});
    uint64_t tag = ctrace_tag_(site, sp), whole;
    buffer.stack = sp;
    buffer.position = CTRACE_FIRST_;
    ctrace_write_(&buffer, ctrace_take_(&buffer), time, sp >> 4, tag);
    if (!ctrace_complete_(&buffer, time + 77, sp, site, tag)) return 2;
    whole = buffer.slots[0][1];
    ctrace_write_(&buffer, ctrace_take_(&buffer), time, sp >> 4, tag | 1);
"#
    );
    for (c, value) in equations() {
        source += &format!("    equal(\"{c}\", {c}, UINT64_C({value}));\n");
    }
    source += "    return failed;\n}\n";
    let file = build.out.path().join("layout.c");
    std::fs::write(&file, source).expect("a folder of our own");
    let file = file.to_str().expect("an ASCII path");
    for compiler in ["gcc", "clang"] {
        if there(compiler) {
            let flags = [C, &["-O2", "-Wno-pedantic"]];
            let (mut command, program) = build.command(compiler, &flags, &[file], compiler);
            let output = command.output().expect("the compiler runs");
            assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
            run(&program, &[]);
        }
    }
}
