//! Pairs of USDT probes in a plan: calls that begin at one probe and end at another.

use super::{
    Plan, Planned, Planner, Sites,
    points::{Chosen, probed_sites},
    values::Point,
};
use crate::target::{
    place::Frames,
    usdt::{UsdtSite, pairs::UsdtPair},
};
use ctrace_common::Kind;
use ctrace_core::function::{ByOrder, ExitSeen, FunctionInfo, FunctionKind};
use std::{collections::HashSet, sync::Arc};

/// The places where calls of a pair begin and end.
pub struct PairSites {
    pub(crate) starts: Vec<Point>,
    pub(crate) ends: Vec<UsdtSite>,
    pub(crate) joined: JoinClue,
}

/// The clue that tells which start an end belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum JoinClue {
    /// The stack pointer: both are in one function.
    ByFrame,
    /// The order of the thread's events.
    ByOrder,
}

impl JoinClue {
    /// Returns the kinds of the records of starts and of ends.
    pub(crate) fn kinds(self) -> [Kind; 2] {
        match self {
            Self::ByFrame => [Kind::ScopeEnter, Kind::ScopeExit],
            Self::ByOrder => [Kind::PairEnter, Kind::PairExit],
        }
    }
}

impl Planner {
    /// Adds the pairs of an object. Returns the indices of the probes that are parts of them.
    pub(super) fn place_pairs(
        &mut self,
        chosen: &Chosen<'_>,
        pairs: &[UsdtPair],
        planned: &mut Vec<Planned>,
        plan: &mut Plan,
    ) -> anyhow::Result<HashSet<usize>> {
        let mut parts = HashSet::new();
        if pairs.is_empty() {
            return Ok(parts);
        }
        let object = chosen.object;
        let (frames, probes) = (Frames::read(object.source()), object.usdt_probes());
        for pair in pairs {
            parts.extend(pair.parts());
            let start = &probes[pair.start];
            let starts = probed_sites(object, start, plan);
            let ends = pair.ends.iter().filter_map(|&end| probed_sites(object, &probes[end], plan));
            let ends: Vec<UsdtSite> = ends.flatten().collect();
            let Some(starts) = starts.filter(|_| !ends.is_empty()) else {
                let (provider, name) = (&start.provider, &pair.name);
                let what = "either its start or its ends carry no probe";
                plan.notes.push(format!("{provider}:{name} is not traced: {what}"));
                continue;
            };
            let at = |sites: &[UsdtSite]| sites.iter().map(|it| it.address).collect::<Vec<_>>();
            let joined = match frames.are_alike(&at(&starts), &at(&ends)) {
                true => JoinClue::ByFrame,
                false => JoinClue::ByOrder,
            };
            let begins_at = starts.first().map(|site| site.address);
            let (variables, asked) = (&chosen.variables, chosen.asked(pair.start));
            // An end that the stack pointer joins would have to find the name of its call.
            let named = (joined == JoinClue::ByOrder)
                .then(|| self.values.plan_names((start, &pair.name), &starts, variables, asked));
            let (named_by, values, starts) = match named.flatten() {
                Some((between, values, starts)) => (Some(between), values, starts),
                None => {
                    let notes = &mut plan.notes;
                    let (values, starts) =
                        self.values.plan(start, starts, variables, asked, notes)?;
                    (None, values, starts)
                }
            };
            // A method of a language is not where its interpreter is.
            let place = begins_at.filter(|_| named_by.is_none());
            let place = place.and_then(|address| object.source_line(address));
            let order = if pair.nests { ByOrder::Nested } else { ByOrder::InTurn };
            let aliases = pair.parts();
            let info = FunctionInfo {
                line: place.as_ref().and_then(|place| place.line),
                file: place.map(|place| place.file),
                kind: FunctionKind::Usdt,
                group: Some(Arc::clone(&start.provider)),
                exit: ExitSeen::ByExitSites,
                aliases: aliases.map(|probe| Arc::clone(&probes[probe].name)).collect(),
                by_order: (joined == JoinClue::ByOrder).then_some(order),
                named_by,
                values,
                ..FunctionInfo::new(Arc::clone(&pair.name), Arc::clone(object.name()))
            };
            if info.by_order == Some(ByOrder::Nested) {
                plan.notes.push(format!(
                    "{}:{}: an end is taken for that of the latest start; where many ends are without \
                     a start, the program does not announce all starts, and durations are too short",
                    start.provider, pair.name
                ));
            }
            planned.push(Planned::new(info, Sites::Pair(PairSites { starts, ends, joined })));
        }
        Ok(parts)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::target::{
        fixtures::compile,
        place::Returns,
        process::maps::MappedObject,
        select::{Patterns, Selector},
    };

    const SOURCE: &str = r#"
        #define PROBE(name) __asm__ volatile("990: nop\n.pushsection .note.stapsdt,\"\",\"note\"\n" \
            ".balign 4\n.4byte 992f-991f, 994f-993f, 3\n991: .asciz \"stapsdt\"\n992: .balign 4\n" \
            "993: .8byte 990b, 0, 0\n.asciz \"app\"\n.asciz \"" name "\"\n" \
            ".asciz \"8@$7\"\n994: .balign 4\n.popsection")
        static volatile int sink;
        void in_one(int early) {
            PROBE("in_one__start");
            if (early) { PROBE("in_one__done"); return; }
            sink = 1;
            PROBE("in_one__done");
        }
        void begin(void) { PROBE("apart__start"); PROBE("language__entry"); }
        void commit(void) { PROBE("apart__commit"); PROBE("language__return"); }
        void cancel(void) { PROBE("apart__abort"); }
        int main(int c, char **v) {
            PROBE("lone__start"); in_one(c); begin(); commit(); cancel(); return 0;
        }
    "#;

    /// Returns each planned thing with what joins its ends, the numbers of its starts and ends, and
    /// whether it nests.
    fn planned(asked: Patterns<'_>) -> Vec<(String, Option<JoinClue>, [usize; 2], bool)> {
        let built = compile("gcc -O1", "c", SOURCE);
        let mapped = [MappedObject::from_file(&built.program, true).unwrap()];
        let selector = Selector::parse(asked).unwrap();
        let plan = Planner::new(selector, 100, Returns::Auto).reading_values(true).plan(&mapped);
        let plan = plan.unwrap();
        let one = |planned: &Planned| {
            let (joined, places) = match &planned.sites {
                Sites::Pair(pair) => (Some(pair.joined), [pair.starts.len(), pair.ends.len()]),
                Sites::Usdt(points) => (None, [points.len(), 0]),
                _ => panic!("no other kind is asked for"),
            };
            assert_eq!(planned.info.values.len(), 1);
            (
                planned.info.name.to_string(),
                joined,
                places,
                planned.info.by_order == Some(ByOrder::Nested),
            )
        };
        let mut all: Vec<_> = plan.planned().map(one).collect();
        all.sort_by(|a, b| a.0.cmp(&b.0));
        all
    }

    #[test]
    fn ends_are_joined_by_the_frame_where_they_share_one() {
        let usdt = ["*".to_owned()];
        let expected = [
            ("apart", Some(JoinClue::ByOrder), [1, 2], false),
            ("in_one", Some(JoinClue::ByFrame), [1, 2], false),
            ("language", Some(JoinClue::ByOrder), [1, 1], true),
            ("lone__start", None, [1, 0], false),
        ];
        let expected =
            expected.map(|(name, joined, places, nests)| (name.to_owned(), joined, places, nests));
        assert_eq!(planned(Patterns { usdt: &usdt, ..Patterns::default() }), expected);
    }

    #[test]
    fn a_pair_has_the_place_in_the_source_where_it_begins() {
        let built = compile("gcc -g -O0", "c", SOURCE);
        let mapped = [MappedObject::from_file(&built.program, true).unwrap()];
        let usdt = ["in_one".to_owned()];
        let asked = Patterns { usdt: &usdt, ..Patterns::default() };
        let selector = Selector::parse(asked).unwrap();
        let plan = Planner::new(selector, 100, Returns::Auto).plan(&mapped).unwrap();
        let of = &plan.planned().next().expect("the pair").info;
        let file = of.file.as_deref().expect("a file");
        assert!(file.ends_with(".c"), "{file}");
        let line = SOURCE.lines().position(|line| line.contains("PROBE(\"in_one__start"));
        assert_eq!(of.line, line.map(|at| at as u32 + 1));
    }

    #[test]
    fn a_probe_is_part_of_one_pair() {
        let end = ["apart__abort".to_owned()];
        let pairs = ["app:apart-start,app:apart-commit,app:apart-abort".to_owned()];
        let asked = Patterns { pairs: &pairs, ..Patterns::default() };
        let by_order = |ends| ("apart".to_owned(), Some(JoinClue::ByOrder), [1, ends], false);
        assert_eq!(planned(asked), [by_order(2)]);
        assert_eq!(planned(Patterns { exclude: &end, ..asked }), [by_order(1)]);
        let pairs = ["a=apart-start,apart-commit", "b=apart-start,apart-abort"].map(str::to_owned);
        let first = ("a".to_owned(), Some(JoinClue::ByOrder), [1, 1], false);
        let rest = ("apart__abort".to_owned(), None, [1, 0], false);
        assert_eq!(planned(Patterns { pairs: &pairs, ..asked }), [first, rest]);
    }

    #[test]
    fn pairs_by_hand_come_first_and_no_pairs_leaves_them() {
        let pairs = ["app:lone-start,app:apart-abort".to_owned()];
        let usdt = ["app:apart".to_owned()];
        let asked = Patterns { usdt: &usdt, pairs: &pairs, ..Patterns::default() };
        let by_hand = ("lone__start".to_owned(), Some(JoinClue::ByOrder), [1, 1], false);
        let rest = ("apart".to_owned(), Some(JoinClue::ByOrder), [1, 1], false);
        assert_eq!(planned(asked), [rest, by_hand.clone()]);
        let points =
            ["apart__commit", "apart__start"].map(|it| (it.to_owned(), None, [1, 0], false));
        let asked = Patterns { no_pairs: true, ..asked };
        assert_eq!(planned(asked), [&points[..], &[by_hand]].concat());
    }
}
