//! Damaged files: old ones, whose blocks do not state the number of definitions before them, and
//! gaps that may have held definitions.

use super::block::{self, Block, BlockKind};
use super::varint::put;
use super::{Recording, Start};

/// Defines a function of this name and a path of it alone.
fn definitions(name: &str) -> [Block; 2] {
    let names = format!(
        r#"{{"functions":[{{"name":"{name}","aliases":[],"object":"a","kind":"function",
        "exit":"never","entry_is_loop_head":false,"may_tail_jump":false}}]}}"#
    );
    let mut path = Vec::new();
    put(&mut path, 0);
    put(&mut path, u64::from(name.as_bytes()[0] - b'a') << 1);
    [Block::new(BlockKind::Names, names.into_bytes()), Block::new(BlockKind::Paths, path)]
}

/// Returns a chunk with one call of path `node` that took `node` ns.
fn chunk(from: u64, node: u64) -> Block {
    let mut bytes = Vec::new();
    let head = [from, 10, 0, 0, 0, 0, 0, 1, 7, 1, 0];
    head.into_iter().for_each(|number| put(&mut bytes, number));
    for column in [1, node, node << 1 | 1] {
        put(&mut bytes, 1);
        put(&mut bytes, column);
    }
    Block::new(BlockKind::Calls, bytes)
}

/// Checks the names of the called functions and the number of unreadable bytes.
#[track_caller]
fn check(bytes: &[u8], calls: &[&str], unreadable: usize) {
    let recording = Recording::open(bytes.to_vec()).expect("it begins well");
    let mut names = Vec::new();
    for entry in recording.chunks() {
        let chunk = recording.chunk(entry).expect("it was read before");
        for call in chunk.threads().iter().flat_map(|thread| chunk.calls(thread)) {
            let path = recording.path(call.path()).expect("known");
            names.push(&*recording.functions()[path.function.index()].name);
        }
    }
    assert_eq!((&names[..], recording.unreadable()), (calls, unreadable as u64));
}

/// Returns a file and the offsets of its blocks, which state the definitions before them if `tell`.
fn file(blocks: &[Block], tell: bool) -> (Vec<u8>, Vec<usize>) {
    let start = serde_json::to_vec(&Start::default()).expect("JSON");
    let start = [Block::new(BlockKind::Start, start)];
    let (mut bytes, mut begins, mut definitions) = (block::file_header().to_vec(), vec![], 0);
    for block in start.iter().chain(blocks) {
        let mut block_bytes = block.to_bytes(true);
        if tell {
            block::tell(&mut block_bytes, definitions);
        }
        definitions += u64::from(block.kind.defines());
        begins.push(bytes.len());
        bytes.extend(block_bytes);
    }
    (bytes, begins)
}

fn two_functions() -> Vec<Block> {
    let ([a, path_a], [b, path_b]) = (definitions("a"), definitions("b"));
    vec![a, path_a, chunk(0, 1), chunk(10, 1), b, path_b, chunk(20, 2)]
}

/// A call that lies in two chunks would count twice.
#[test]
fn a_chunk_that_begins_within_another_is_left_out() {
    let [a, path_a] = definitions("a");
    for (from, calls) in [(9, 2), (10, 3), (11, 3)] {
        let blocks = [a.clone(), path_a.clone(), chunk(0, 1), chunk(from, 1), chunk(30, 1)];
        let (bytes, begins) = file(&blocks, true);
        let left_out = if calls == 2 { begins[5] - begins[4] - block::BLOCK_HEADER } else { 0 };
        check(&bytes, &["a"; 3][..calls], left_out);
    }
}

#[test]
fn what_comes_behind_damage_is_read_if_nothing_it_needs_is_missing() {
    for tell in [true, false] {
        let (bytes, begins) = file(&two_functions(), tell);
        check(&bytes, &["a", "a", "b"], 0);
        let damaged = |block: usize| {
            let mut bytes = bytes.clone();
            bytes[begins[block] + 9] ^= 0x55;
            bytes
        };
        let chunk = begins[4] - begins[3];
        let rest = |block: usize| bytes.len() - begins[block];
        // Without the stated numbers, the damaged chunk could as well have been names.
        match tell {
            true => check(&damaged(3), &["a", "b"], chunk),
            false => check(&damaged(3), &[], rest(3)),
        }
        check(&damaged(5), &["a", "a"], rest(5));
        check(&damaged(6), &["a", "a"], rest(6));
    }
}

#[test]
fn what_was_cut_out_is_missed() {
    let (bytes, begins) = file(&two_functions(), true);
    // First the name and the path of b are cut out, then only the name.
    for next in [7, 6] {
        let cut = [&bytes[..begins[5]], &bytes[begins[next]..]].concat();
        check(&cut, &["a", "a"], bytes.len() - begins[next]);
    }
}

#[test]
fn a_gap_in_which_the_count_could_come_round_ends_it() {
    let [a, path_a] = definitions("a");
    let (bytes, begins) = file(&[a, path_a, chunk(0, 1), chunk(10, 1)], true);
    let with_gap = |length: u64| {
        let gap = vec![0; length as usize];
        [&bytes[..begins[4]], &gap, &bytes[begins[4]..]].concat()
    };
    let longest = block::TOLD_MODULO * block::BLOCK_HEADER as u64;
    check(&with_gap(longest - 1), &["a", "a"], longest as usize - 1);
    check(&with_gap(longest), &["a"], longest as usize + bytes.len() - begins[4]);
}
