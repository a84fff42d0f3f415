//! Finds the variables that USDT notes refer to by name.

use crate::target::elf;
use crate::target::elf::tables::{NamedSymbols, is_definition};
use crate::target::read::budget::TooLarge;
use crate::target::read::source::Source;
use object::LittleEndian;
use object::elf::STT_TLS;
use object::read::elf::Sym as _;
use std::collections::{BTreeSet, HashMap};

/// Returns the addresses of these symbols. A name that symbols at several addresses share has none,
/// because it is unknown which one a note means. A thread-local variable has none either.
pub(crate) fn addresses(source: &Source, names: &BTreeSet<&str>) -> HashMap<String, u64> {
    // If no table can be read, no symbol is known.
    let found = find(source, names).unwrap_or_default();
    let known = found.into_iter().filter_map(|(name, at)| Some((name.to_owned(), at?)));
    known.collect()
}

/// Finds the address of each name; `None` if it has several.
fn find<'n>(
    source: &Source,
    names: &BTreeSet<&'n str>,
) -> Result<HashMap<&'n str, Option<u64>>, TooLarge> {
    let mut found = HashMap::new();
    if names.is_empty() {
        return Ok(found);
    }
    let budget = source.budget();
    let mut ticker = budget.ticker();
    let (file, refused) = budget.watch(|| elf::parse(source).ok());
    let Some(file) = file else { return refused.map_or(Ok(found), Err) };
    for table in [NamedSymbols::all, NamedSymbols::dynamic] {
        let (table, refused) = budget.watch(|| table(source, &file));
        refused.map_or(Ok(()), Err)?;
        for (symbol, name) in table.named() {
            ticker.tick()?;
            let Some(name) = names.get(name) else { continue };
            if symbol.st_type() == STT_TLS || !is_definition(symbol) {
                continue;
            }
            let address = symbol.st_value(LittleEndian);
            let entry = found.entry(*name).or_insert(Some(address));
            *entry = entry.filter(|known| *known == address);
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::target::fixtures::compile;

    #[test]
    fn a_name_that_one_symbol_has_is_found() {
        let source = r#"
            int once = 1;
            static int hidden = 2;
            __thread int each = 3;
            __asm__(".data\n twice: .long 1\n .globl other\n other: .long 2\n");
            static int shared = 5;
            int main(int c, char **v) { return ++shared + hidden++ + each++; }
        "#;
        let built = compile("gcc -O0", "c", source);
        let other = "static int shared = 6; int other_user(void) { return ++shared; }";
        std::fs::write(built.dir().join("other.c"), other).unwrap();
        built.run("gcc -O0 -o program input.c other.c");
        let object = built.object();
        let names = ["once", "hidden", "each", "other", "twice", "absent", "main", "shared"];
        let names = BTreeSet::from(names);
        let found = addresses(object.source(), &names);
        let mut known: Vec<&str> = found.keys().map(String::as_str).collect();
        known.sort_unstable();
        assert_eq!(known, ["hidden", "main", "once", "other", "twice"]);
        assert_eq!(found["other"], found["twice"] + 4);
    }
}
