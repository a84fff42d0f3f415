//! The eBPF programs of ctrace: one file per family of programs.
//!
//! - `function`: entries and returns, on session, multi and perf links;
//! - `condition`: the conditions on calls, at entries;
//! - `thrift`: calls that make no events, because they are too deep or too short;
//! - `aggregate`: the same calls, counted where they end, without an event of each;
//! - `exit`: the ways out of a function, where no return probe may be used, and ends of pairs;
//! - `go`: entries and ways out of Go's functions, by goroutine;
//! - `point`: USDT notes, but for the ends of pairs;
//! - `payload`: the values of points, entries and exits;
//! - `python`: the Python function around a call, which is one of the values;
//! - `marker`: the buffers of markers;
//! - `restore`: puts true return addresses back before they are missed;
//! - `control`: forks, execs, exits and renames of the traced processes;
//! - `admit`: later processes of those that were chosen;
//! - `start`: starts of all programs;
//! - `wait`: when threads of the traced processes have no processor, why, and who ends that;
//! - `interrupt`: whether a program runs in an interrupt.
//!
//! `output` makes the records, `ring` takes them, `loss` counts those that find no room there, and
//! `news` wakes user space.
#![no_std]
#![no_main]
// The eBPF target has no atomic arithmetic in `core`; see `atomic`.
#![feature(asm_experimental_arch)]
// Closures that have to be inlined. A closure would be a function in another section than the cold ones, and aya
// ties calls to functions by their addresses within a section: two that have the same one would be mixed up.
// They are passed as `Fn`: what calls one as `FnOnce` is another function around it, which is not inlined.
#![feature(stmt_expr_attributes)]

#[cfg(not(bpf_target_arch = "x86_64"))]
compile_error!("ctrace reads x86-64 registers: other architectures need their own registers.rs");

mod admit;
mod aggregate;
mod atomic;
mod condition;
mod control;
mod exit;
mod function;
mod go;
mod interrupt;
mod jump;
mod kernel;
mod loss;
mod maps;
mod marker;
mod news;
mod operand;
mod output;
mod payload;
mod point;
mod python;
mod registers;
mod restore;
mod ring;
mod settings;
mod start;
mod thrift;
mod turns;
mod wait;

#[cfg(not(test))]
#[panic_handler]
fn panic(_: &core::panic::PanicInfo) -> ! {
    // Every panic is optimised out: the verifier refuses a program that could loop here.
    loop {}
}

// The kernel gives some of the helpers to GPL-compatible programs only.
#[unsafe(link_section = "license")]
#[unsafe(no_mangle)]
static LICENSE: [u8; 13] = *b"Dual MIT/GPL\0";
