//! Decides which files of a folder count: not those for which another one stands.
//!
//! A compacted file has the names of all files whose rows it has. Two may have the same names, where two
//! processes worked on a folder without a lock, or where a copy kept what its original had not. Then the
//! one that has all names of the other stands for it. If neither has, both are doubtful: with either,
//! rows are missing, and with both, rows count twice. A file that names another compacted one, but not
//! all files that this one names, has no say about it.

use std::collections::{BTreeSet, HashMap, HashSet};

/// The reason why a doubtful file is left out.
pub(crate) const DOUBTFUL: &str = "has some rows of another compacted file, and others";

/// See the module.
#[derive(Debug, Default)]
pub(crate) struct Claims {
    /// Files, each with the one that stands for it.
    pub replaced: HashMap<String, String>,
    pub doubtful: BTreeSet<String>,
    /// Files for which a doubtful one says to stand.
    pub unsure: HashSet<String>,
}

impl Claims {
    /// Takes the compacted files of a folder, with the names that they have.
    pub(crate) fn new(compacted: Vec<(String, Vec<String>)>) -> Self {
        let without_itself = |(name, files): (String, Vec<String>)| {
            let files: HashSet<String> = files.into_iter().filter(|file| *file != name).collect();
            (name, files)
        };
        let mut all: Vec<_> = compacted.into_iter().map(without_itself).collect();
        // One with all names of another comes before it.
        all.sort_by(|a, b| b.1.len().cmp(&a.1.len()).then_with(|| a.0.cmp(&b.0)));
        // The place of the file that stands for a name. No two have the same.
        let mut taken: HashMap<&str, usize> = HashMap::new();
        let mut by: Vec<Option<usize>> = vec![None; all.len()];
        let mut doubtful: HashSet<usize> = HashSet::new();
        for (place, (name, files)) in all.iter().enumerate() {
            let owners = files.iter().filter_map(|file| taken.get(&**file).copied());
            let owners: BTreeSet<usize> = owners.collect();
            let other = match owners.len() {
                0 => taken.get(&**name).copied(),
                1 => owners.first().copied(),
                _ => None,
            };
            let other = other.filter(|other| files.is_subset(&all[*other].1));
            if other.is_some() {
                by[place] = other;
            } else if owners.is_empty() {
                taken.extend(files.iter().map(|file| (&**file, place)));
            } else {
                doubtful.insert(place);
                doubtful.extend(owners);
            }
        }
        let mut claims = Self::default();
        for (place, (name, _)) in all.iter().enumerate() {
            let other = by[place];
            if doubtful.contains(&place) || other.is_some_and(|other| doubtful.contains(&other)) {
                claims.doubtful.insert(name.clone());
            } else if let Some(other) = other {
                claims.replaced.insert(name.clone(), all[other].0.clone());
            }
        }
        let compacted: HashSet<&str> = all.iter().map(|(name, _)| &**name).collect();
        for (name, place) in taken.into_iter().filter(|(name, _)| !compacted.contains(name)) {
            if !doubtful.contains(&place) {
                claims.replaced.insert(name.to_owned(), all[place].0.clone());
            }
        }
        let unsure = all.iter().filter(|(name, _)| claims.doubtful.contains(name));
        let unsure: HashSet<String> = unsure.flat_map(|(_, files)| files.iter().cloned()).collect();
        claims.replaced.retain(|name, _| !unsure.contains(name));
        claims.unsure = unsure;
        claims
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn claims(files: &[(&str, &[&str])]) -> Claims {
        let owned = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
        Claims::new(files.iter().map(|(name, all)| ((*name).to_owned(), owned(all))).collect())
    }

    /// Returns the replaced files and the doubtful ones.
    fn judged(files: &[(&str, &[&str])]) -> (Vec<String>, Vec<String>) {
        let claims = claims(files);
        let mut replaced: Vec<_> =
            claims.replaced.iter().map(|(name, by)| format!("{name} by {by}")).collect();
        replaced.sort();
        (replaced, claims.doubtful.into_iter().collect())
    }

    #[test]
    fn one_file_stands_for_those_that_it_names() {
        assert_eq!(judged(&[("c", &["a", "b", "c"])]).0, ["a by c", "b by c"]);
        let later = judged(&[("c", &["a", "b"]), ("d", &["c", "a", "b", "e"])]);
        assert_eq!(later.0, ["a by d", "b by d", "c by d", "e by d"]);
        assert!(later.1.is_empty());
    }

    #[test]
    fn of_two_with_the_same_names_one_counts() {
        let same = judged(&[("d", &["a", "b"]), ("c", &["b", "a"])]);
        assert_eq!(same.0, ["a by c", "b by c", "d by c"]);
        let more = judged(&[("c", &["a"]), ("d", &["a", "b"])]);
        assert_eq!(
            (more.0, more.1.len()),
            (vec!["a by d".into(), "b by d".into(), "c by d".into()], 0)
        );
    }

    #[test]
    fn of_two_with_some_of_the_same_names_none_counts() {
        let files: [(&str, &[&str]); 2] = [("c", &["a", "b"]), ("d", &["b", "e"])];
        assert_eq!(judged(&files), (vec![], vec!["c".to_owned(), "d".to_owned()]));
        let mut unsure: Vec<_> = claims(&files).unsure.into_iter().collect();
        unsure.sort();
        assert_eq!(unsure, ["a", "b", "e"]);
    }

    #[test]
    fn claims_against_each_other_are_none() {
        let (replaced, doubtful) = judged(&[("c", &["d", "a"]), ("d", &["c", "b"])]);
        assert_eq!((replaced, doubtful.len()), (vec!["a by c".to_owned(), "b by d".to_owned()], 0));
    }
}
