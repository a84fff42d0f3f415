//! Names of variables, by addresses inside them.

use super::Object;
use super::debug_files::DebugFile;
use crate::target::elf;
use crate::target::elf::tables::{NamedSymbols, is_definition};
use crate::target::names::{cut, demangle};
use crate::target::read::budget::TooLarge;
use crate::target::read::source::Source;
use object::LittleEndian;
use object::elf::STT_OBJECT;
use object::read::elf::Sym as _;
use std::collections::{BTreeSet, HashMap};

impl Object {
    /// Returns the name of the variable around each of these addresses, with the distance from its
    /// beginning, as far as symbols tell.
    pub(crate) fn variables_around(&self, mut addresses: BTreeSet<u64>) -> HashMap<u64, String> {
        let mut found = HashMap::new();
        if addresses.is_empty() {
            return found;
        }
        let _look = self.source.budget().look();
        let debug = self.is_stripped().then(|| self.debug_file());
        let sources = [Some(&self.source), debug.and_then(DebugFile::source)];
        for source in sources.into_iter().flatten() {
            // Variables that were found before a table proved too large are right.
            let _ = find(source, &mut addresses, &mut found);
        }
        found
    }
}

/// Moves the addresses that have a name to `found`: each is looked at once, whatever the symbols are.
fn find(
    source: &Source,
    addresses: &mut BTreeSet<u64>,
    found: &mut HashMap<u64, String>,
) -> Result<(), TooLarge> {
    let budget = source.budget();
    let mut ticker = budget.ticker();
    let (file, refused) = budget.watch(|| elf::parse(source).ok());
    let Some(file) = file else { return refused.map_or(Ok(()), Err) };
    for table in [NamedSymbols::all, NamedSymbols::dynamic] {
        let (table, refused) = budget.watch(|| table(source, &file));
        refused.map_or(Ok(()), Err)?;
        for (symbol, name) in table.named() {
            ticker.tick()?;
            if symbol.st_type() != STT_OBJECT || !is_definition(symbol) || name.is_empty() {
                continue;
            }
            let start = symbol.st_value(LittleEndian);
            let end = start.saturating_add(symbol.st_size(LittleEndian));
            let inside: Vec<u64> = addresses.range(start..end.max(start)).copied().collect();
            if inside.is_empty() {
                continue;
            }
            let name = demangle::short(name);
            let name = cut(&name);
            for address in inside {
                ticker.tick()?;
                budget.charge(name.len() as u64)?;
                addresses.remove(&address);
                let name = match address - start {
                    0 => name.to_owned(),
                    distance => format!("{name}+{distance:#x}"),
                };
                found.insert(address, name);
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::target::fixtures::compile;

    #[test]
    fn a_variable_has_a_name_and_what_is_inside_it_a_distance() {
        let source =
            "long other = 1; struct { long a, b; } pair = { 2, 3 }; int main() { return 0; }";
        let built = compile("gcc -O0", "c", source);
        let object = built.object();
        let at = object.variables(&BTreeSet::from(["pair", "other"]));
        let [pair, other] = ["pair", "other"].map(|name| at[name]);
        let found = object.variables_around(BTreeSet::from([pair, pair + 8, other, 1]));
        let name = |at: u64| found.get(&at).map(String::as_str);
        assert_eq!([pair, pair + 8, other].map(name), ["pair", "pair+0x8", "other"].map(Some));
        assert_eq!(found.len(), 3);
    }

    #[test]
    fn a_long_name_is_cut_and_its_copies_are_counted() {
        let long = "x".repeat(5_000);
        let built =
            compile("gcc -O0", "c", &format!("long {long}[1000]; int main() {{ return 0; }}"));
        let object = built.object();
        let at = object.variables(&BTreeSet::from([&*long]))[&long];
        let before = object.source().budget().used();
        let found = object.variables_around((0..1_000).map(|place| at + 8 * place).collect());
        let name = &found[&(at + 16)];
        assert!(name.len() < 1_100 && name.ends_with("xxx+0x10"), "{name}");
        assert_eq!(found.len(), 1_000);
        assert!(object.source().budget().used() - before >= 1_000 * 1_024);
    }
}
