//! Makes programs that compare the turns of their loops fit for kernels which cannot do that. They never
//! run such a loop, but look at it.

use crate::bpf::sys::Insn;

/// `BPF_JMP | BPF_JCOND`
const MAY_GOTO: u8 = 0xe5;
/// `BPF_JMP | BPF_JA`, which goes on with the next instruction if its offset is 0.
const GOTO: u8 = 0x05;

/// Takes away the instructions that such a kernel does not know: it refuses them wherever they are.
pub(super) fn without_turns(instructions: &mut [Insn]) {
    for instruction in instructions.iter_mut().filter(|it| it.code == MAY_GOTO) {
        (instruction.code, instruction.off) = (GOTO, 0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bpf::load::object;

    fn code(instructions: &[(u8, i16)]) -> Vec<Insn> {
        let (_bitfield_align_1, _bitfield_1) = ([], Insn::new_bitfield_1(0, 0));
        let make = |&(code, off)| Insn { code, _bitfield_align_1, _bitfield_1, off, imm: 0 };
        instructions.iter().map(make).collect()
    }

    #[test]
    fn other_instructions_stay() {
        let mut code = code(&[(MAY_GOTO, 7), (GOTO, 7), (0x85, 7)]);
        without_turns(&mut code);
        let left: Vec<_> = code.iter().map(|it| (it.code, it.off)).collect();
        assert_eq!(left, [(GOTO, 0), (GOTO, 7), (0x85, 7)]);
    }

    /// The instructions that may follow one, in the order in which the kernel looks at them, and true for
    /// those to which no jump leads.
    fn next(code: &[Insn], at: usize) -> Vec<(usize, bool)> {
        const LONG_JUMP_CLASSES: [u8; 2] = [5, 6];
        let (kind, operation) = (code[at].code & 7, code[at].code & 0xf0);
        let behind = at + 1;
        let target = behind.wrapping_add_signed(code[at].off.into());
        match operation {
            _ if !LONG_JUMP_CLASSES.contains(&kind) => vec![(behind, true)],
            0x80 => vec![(behind, true)],
            0x90 => Vec::new(),
            0x00 => vec![(target, false)],
            _ => vec![(behind, false), (target, false)],
        }
    }

    /// Returns the instruction that leads back into its loop without a jump. Linux 6.1 refuses it, even
    /// where it is dead.
    fn back_without_jump(code: &[Insn]) -> Option<usize> {
        let (mut seen, mut on_way) = (vec![false; code.len()], vec![false; code.len()]);
        let mut way = vec![(0, 0)];
        (seen[0], on_way[0]) = (true, true);
        while let Some((at, looked_at)) = way.last_mut() {
            let at = *at;
            let Some((to, is_plain)) = next(code, at).get(*looked_at).copied() else {
                on_way[at] = false;
                way.pop();
                continue;
            };
            *looked_at += 1;
            if on_way[to] && is_plain {
                return Some(at);
            }
            if !std::mem::replace(&mut seen[to], true) {
                on_way[to] = true;
                way.push((to, 0));
            }
        }
        None
    }

    #[test]
    fn a_way_back_is_found() {
        let (plain, jump_if, exit) = (0xb7, 0x15, 0x95);
        let back = code(&[(GOTO, 1), (plain, 0), (jump_if, -2), (exit, 0)]);
        assert_eq!(back_without_jump(&back), Some(1));
        let by_jump = code(&[(plain, 0), (jump_if, -2), (exit, 0)]);
        assert_eq!(back_without_jump(&by_jump), None);
    }

    /// How a loop is laid out is up to the compiler.
    #[test]
    fn old_kernels_take_all_loops() {
        let Ok(bytes) = object::bytes() else {
            println!("skipped: this binary has no eBPF programs");
            return;
        };
        let object = aya_obj::Object::parse(bytes).expect("an object");
        for function in object.functions.values() {
            let mut code = function.instructions.clone();
            without_turns(&mut code);
            assert_eq!(back_without_jump(&code), None, "{}", function.name);
        }
    }
}
