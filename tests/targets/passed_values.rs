//! Functions with the parameters that Rust passes in its own way: structures in registers, options,
//! slices and strings by value, some of which the function prints. Each call prints a line
//! `call {"function":…,"values":{…}}` with what the program itself knows of it.
//! Usage: passed_values [ROUNDS=20]

use std::hint::black_box;

pub struct Order {
    pub id: u64,
    pub name: String,
    pub is_paid: bool,
}

#[derive(Clone, Copy)]
pub struct Pair {
    pub small: u32,
    pub large: u64,
}

#[derive(Clone, Copy)]
pub struct Halves {
    pub low: u32,
    pub high: u16,
}

#[derive(Clone, Copy)]
pub struct Triple {
    pub a: u64,
    pub b: i64,
    pub c: u32,
}

#[derive(Clone, Copy, Debug)]
pub enum Kind {
    Get,
    Put,
}

#[inline(never)]
pub fn pair(pair: Pair, times: u32) -> u64 {
    black_box(pair.large).wrapping_mul(u64::from(black_box(pair.small))) + u64::from(times)
}

#[inline(never)]
pub fn halves(halves: Halves, kind: Kind, less: i32) -> i64 {
    let sum = i64::from(black_box(halves.low)) + i64::from(black_box(halves.high));
    sum * (kind as i64 + 1) - i64::from(less)
}

#[inline(never)]
pub fn maybe(order: Option<&Order>, times: u32) -> u64 {
    order.map_or(7, |order| black_box(order.id) + order.name.len() as u64) + u64::from(times)
}

#[inline(never)]
pub fn bytes(bytes: &[u8], is_last: bool, times: u32) -> u64 {
    let sum: u64 = bytes.iter().map(|byte| u64::from(*byte)).sum();
    if black_box(is_last) { sum } else { sum + u64::from(times) }
}

/// Prints its parameters, so they have places in the frame.
#[inline(never)]
pub fn shown(key: &str, number: u64, less: i32, is_last: bool, pair: Pair, last: u32) -> u64 {
    println!(
        "call {{\"function\":\"passed_values::shown\",\"values\":{{\"key\":{key:?},\"number\":{number},\
         \"less\":{less},\"is_last\":{is_last},\"small\":{},\"last\":{last}}}}}",
        pair.small
    );
    number
}

/// The same with what is passed by its address.
#[inline(never)]
pub fn owned(name: String, triple: Triple, order: &Order, times: u32) -> usize {
    println!(
        "call {{\"function\":\"passed_values::owned\",\"values\":{{\"name\":{name:?},\"b\":{},\"c\":{},\
         \"id\":{},\"paid\":{},\"times\":{times}}}}}",
        triple.b, triple.c, order.id, order.is_paid
    );
    black_box(name).len()
}

fn main() {
    let rounds = std::env::args().nth(1).and_then(|text| text.parse().ok()).unwrap_or(20);
    for i in 0..rounds {
        let order = black_box(Order {
            id: 1 << (i % 60),
            name: "x".repeat(i as usize % 5),
            is_paid: i % 3 == 0,
        });
        let two = Pair { small: i * 3, large: u64::from(i) << 33 };
        black_box(pair(black_box(two), black_box(i)));
        println!(
            "call {{\"function\":\"passed_values::pair\",\"values\":{{\"small\":{},\"large\":{},\
             \"times\":{i}}}}}",
            two.small, two.large
        );
        let half = Halves { low: i + 70_000, high: i as u16 * 100 };
        let kind = if i % 2 == 0 { Kind::Get } else { Kind::Put };
        black_box(halves(black_box(half), black_box(kind), black_box(-(i as i32))));
        println!(
            "call {{\"function\":\"passed_values::halves\",\"values\":{{\"low\":{},\"high\":{},\
             \"kind\":\"{kind:?}\",\"less\":{}}}}}",
            half.low,
            half.high,
            -(i as i32)
        );
        let from = (i % 4 != 0).then_some(&order);
        black_box(maybe(black_box(from), black_box(i)));
        let id = from.map_or("null".to_owned(), |order| order.id.to_string());
        println!(
            "call {{\"function\":\"passed_values::maybe\",\"values\":{{\"id\":{id},\"times\":{i}}}}}"
        );
        let text = &"some bytes of a text"[..i as usize % 20];
        black_box(bytes(black_box(text.as_bytes()), black_box(i % 2 == 1), black_box(i)));
        println!(
            "call {{\"function\":\"passed_values::bytes\",\"values\":{{\"bytes\":{text:?},\
             \"is_last\":{},\"times\":{i}}}}}",
            i % 2 == 1
        );
        let triple = Triple { a: 5, b: -i64::from(i), c: i * 2 };
        black_box(shown(black_box(text), u64::from(i) << 40, -(i as i32), i % 2 == 0, black_box(two), i));
        black_box(owned(format!("name {i}"), black_box(triple), &order, black_box(i)));
    }
}
