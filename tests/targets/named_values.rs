//! Functions with references and numbers. Each call prints a line `call {"function":…,"values":{…}}`
//! with what the program itself knows of it. Usage: named_values [ROUNDS=20]

pub struct Order {
    pub items: Vec<u8>,
    pub price: u64,
    pub count: u32,
    pub is_paid: bool,
    pub ratio: f64,
    pub grade: Grade,
}

pub struct Letter {
    pub to: String,
    pub seal: &'static str,
}

#[unsafe(no_mangle)]
#[inline(never)]
pub fn post(from: &str, letter: &Letter, paper: &String, times: u8) -> usize {
    let texts = from.bytes().map(usize::from).sum::<usize>();
    let texts = texts + letter.to.len() + letter.seal.len() + paper.len();
    std::hint::black_box(texts + usize::from(times))
}

#[unsafe(no_mangle)]
#[inline(never)]
pub fn cut(text: &str, to: usize) -> &str {
    std::hint::black_box(&text[..to.min(text.len())])
}

#[unsafe(no_mangle)]
#[inline(never)]
pub fn repeated(text: &str, times: usize) -> String {
    text.repeat(times)
}

#[derive(Clone, Copy, Debug)]
#[repr(i8)]
pub enum Grade {
    Bad = -5,
    Good = 7,
}

pub struct Shop {
    pub total: i64,
}

/// Other files could call it, so the compiler passes what the source says.
#[unsafe(no_mangle)]
#[inline(never)]
pub fn bill(shop: &mut Shop, order: &Order, times: u16, less: i32) -> i64 {
    shop.total += order.price as i64 * i64::from(order.count) + i64::from(times) - i64::from(less);
    shop.total += i64::from(order.is_paid) + order.ratio as i64 + order.items.len() as i64;
    shop.total += order.grade as i64;
    std::hint::black_box(shop.total)
}

fn main() {
    let rounds = std::env::args().nth(1).and_then(|text| text.parse().ok()).unwrap_or(20);
    let mut shop = Shop { total: 3 };
    for i in 0..rounds {
        let order = std::hint::black_box(Order {
            items: vec![1; i as usize % 5],
            price: 1 << (i % 40),
            count: i,
            is_paid: i % 2 == 1,
            ratio: f64::from(i) * 0.5,
            grade: if i % 3 == 0 { Grade::Bad } else { Grade::Good },
        });
        let all = "a text of which only a part is passed";
        let from = &all[i as usize % 3..3 + i as usize % 30];
        let to = all[..i as usize % 20].to_owned();
        let letter = std::hint::black_box(Letter { to, seal: &all[2..2 + i as usize % 9] });
        let paper = if i % 2 == 0 { "thick".to_owned() } else { "thin".to_owned() };
        let posted = post(std::hint::black_box(from), &letter, &paper, i as u8);
        println!(
            "call {{\"function\":\"post\",\"values\":{{\"from\":{from:?},\"to\":{:?},\"seal\":{:?},\
             \"paper\":{paper:?},\"times\":{},\"retval\":{posted}}}}}",
            letter.to, letter.seal, i as u8
        );
        let to = i as usize % 7;
        println!(
            "call {{\"function\":\"cut\",\"values\":{{\"text\":{from:?},\"to\":{to},\"retval\":{:?}}}}}",
            cut(from, to)
        );
        println!(
            "call {{\"function\":\"repeated\",\"values\":{{\"text\":\"größer\",\"times\":{to},\"retval\":{:?}}}}}",
            repeated(std::hint::black_box("größer"), to)
        );
        let before = shop.total;
        let after = bill(&mut shop, &order, i as u16, -(i as i32));
        println!(
            "call {{\"function\":\"bill\",\"values\":{{\"total\":{before},\"price\":{},\
             \"count\":{},\"paid\":{},\"ratio\":{:?},\"grade\":\"{:?}\",\"times\":{},\"less\":{},\"retval\":{after}}}}}",
            order.price,
            order.count,
            order.is_paid,
            order.ratio,
            order.grade,
            i as u16,
            -(i as i32)
        );
    }
}
