//! Measures the code that a scope adds, by two functions that differ only in it.

use super::Row;
use crate::bench::output;
use anyhow::{Result, bail};
use std::ops::Sub;
use std::path::Path;
use std::process::Command;

/// A function's code: that of a dormant scope, and that of an active one only.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Code {
    bytes: [usize; 2],
    instructions: [usize; 2],
}

impl Sub for Code {
    type Output = Code;

    fn sub(self, other: Code) -> Code {
        let less = |a: [usize; 2], b: [usize; 2]| [0, 1].map(|i| a[i].saturating_sub(b[i]));
        Code {
            bytes: less(self.bytes, other.bytes),
            instructions: less(self.instructions, other.instructions),
        }
    }
}

pub(super) fn row(language: &str, program: &Path, bare: &str, scoped: &str) -> Result<Row> {
    let [without, with] = [bare, scoped].map(|function| code(program, function));
    let added = with? - without?;
    let ([way, aside], [way_bytes, aside_bytes]) = (added.instructions, added.bytes);
    Ok(Row::new(
        format!("code that a scope adds, {language}"),
        format!(
            "{way} instructions of {way_bytes} bytes in the way, {aside} of {aside_bytes} bytes \
             aside"
        ),
    ))
}

fn code(program: &Path, function: &str) -> Result<Code> {
    let mut command = Command::new("objdump");
    command.args(["--disassemble=".to_owned() + function, "-Cw".into()]).arg(program);
    let code = parse(&output("objdump", &mut command)?);
    if code == Code::default() {
        bail!("{} has no function {function}", program.display());
    }
    Ok(code)
}

/// Parses a listing. All jumps of a dormant scope are forward and not taken, up to the first `ret`.
/// Padding is not counted.
fn parse(listing: &str) -> Code {
    let instructions = listing.lines().filter_map(|line| {
        let mut fields = line.split('\t').skip(1);
        Some((fields.next()?.split_whitespace().count(), fields.next()?))
    });
    let mut code = Code::default();
    let mut part = 0;
    for (bytes, text) in instructions {
        if text.contains("nop") || text.starts_with("xchg   %ax,%ax") {
            continue;
        }
        code.bytes[part] += bytes;
        code.instructions[part] += 1;
        if text.starts_with("ret") {
            part = 1;
        }
    }
    code
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_listing_is_counted() {
        let listing = "\nx: file format\n\n0000000000001150 <f>:\n\
             1150:\t48 8d 47 01 \tlea    0x1(%rdi),%rax\n\
             1154:\tc3 \tret\n\
             1155:\t66 90 \txchg   %ax,%ax\n\
             1157:\teb f7 \tjmp    1150 <f>\n";
        let code = parse(listing);
        assert_eq!(code, Code { bytes: [5, 2], instructions: [2, 1] });
    }
}
