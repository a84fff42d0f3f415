//! Functions, or USDT probes, by the reason for which something is not done with them. A pattern may match a
//! thousand of them: a note tells each reason once, with the first of those that it holds for.

use crate::ui::text::units::count;

/// Functions that are named for a reason.
const NAMED: usize = 3;
/// Reasons that are told. The functions that lack something for others are counted.
const REASONS: usize = 3;

#[derive(Default, Debug)]
pub(super) struct ByReason {
    reasons: Vec<OfReason>,
    /// The number of functions with other reasons.
    others: u64,
}

#[derive(Debug)]
struct OfReason {
    why: String,
    functions: u64,
    first: Vec<String>,
}

impl ByReason {
    /// Adds a function. The name is told as it is.
    pub(super) fn add(&mut self, function: &str, why: String) {
        let known = self.reasons.iter().position(|it| it.why == why);
        let at = known.unwrap_or(self.reasons.len());
        if known.is_none() {
            if at == REASONS {
                self.others += 1;
                return;
            }
            self.reasons.push(OfReason { why, functions: 0, first: Vec::new() });
        }
        let of = &mut self.reasons[at];
        of.functions += 1;
        if of.first.len() < NAMED {
            of.first.push(function.to_owned());
        }
    }

    /// Tells the functions and their reasons, behind what they share; `None` if there are none.
    pub(super) fn tell(&self) -> Option<String> {
        self.tell_as(["function", "functions"])
    }

    /// Does the same for things with another name, for one and for several.
    pub(super) fn tell_as(&self, [one, many]: [&str; 2]) -> Option<String> {
        let told = self.reasons.iter().map(|of| {
            let first = of.first.join(", ");
            match of.functions {
                few if few <= NAMED as u64 => format!("{first}: {}", of.why),
                more => format!("{} {many}, such as {first}: {}", count(more), of.why),
            }
        });
        let others = match self.others {
            0 => None,
            1 => Some(format!("1 {one} for another reason")),
            more => Some(format!("{} {many} for other reasons", count(more))),
        };
        let told: Vec<String> = told.chain(others).collect();
        (!told.is_empty()).then(|| told.join("; "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_reason_is_told_once_with_its_functions() {
        let mut all = ByReason::default();
        assert_eq!(all.tell(), None);
        for (function, why) in [("a", "no debug information"), ("b", "it is too short")] {
            all.add(function, why.to_owned());
        }
        assert_eq!(all.tell().as_deref(), Some("a: no debug information; b: it is too short"));
        for function in ["c", "d", "e"] {
            all.add(function, "it is too short".to_owned());
        }
        for why in ["it is deep", "it is wide", "it is late"] {
            all.add("f", why.to_owned());
        }
        let told = "a: no debug information; 4 functions, such as b, c, d: it is too short; f: it is deep; \
                    2 functions for other reasons";
        assert_eq!(all.tell().as_deref(), Some(told));
        let told = all.tell_as(["probe", "probes"]).expect("reasons");
        assert!(
            told.contains("; 4 probes, such as b, ")
                && told.ends_with("; 2 probes for other reasons")
        );
    }
}
