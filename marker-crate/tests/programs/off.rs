//! Items with the attribute stay the same without markers, whatever name the crate has.

use ctrace_marker as markers;

struct Numbers;

#[markers::mark(group = "numbers", colour = 0x33aaff)]
impl Numbers {
    #[mark(skip)]
    fn one(&self) -> u8 {
        1
    }

    /// Named.
    #[markers::mark(name = "second")]
    #[must_use]
    fn two(&self) -> u8 {
        2
    }
}

#[markers::mark]
fn three() -> impl Fn() -> u8 {
    || 3
}

#[markers::mark]
async fn four() -> u8 {
    markers::async_scope!("the fourth", group = "numbers", async { 4 }).await
}

fn main() {
    drop(four());
    println!("{}", Numbers.one() + Numbers.two() + three()());
}
