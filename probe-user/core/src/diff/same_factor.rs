//! Tells a change that all functions share. A busier or another machine makes all of them slower by about
//! the same factor, and a change of the program hardly does.

use super::metric::Metric;
use super::model::{Compared, Presence};
use super::verdict::Verdict;

/// Fewer functions may change alike by chance.
const LEAST: usize = 3;
/// Factors that are this near to the middle one are about the same.
const NEAR: f64 = 0.1;

/// Returns a sentence if all functions that can be judged have become slower, or faster, by about the
/// same factor.
pub(super) fn note<'a>(
    functions: impl Iterator<Item = &'a Compared>,
    metric: Metric,
) -> Option<String> {
    if metric.is_rate() {
        return None;
    }
    let both = functions.filter(|compared| compared.presence == Presence::Both);
    let changes = both.map(|compared| compared.changes.of(metric));
    let judged: Vec<_> = changes.filter(|change| change.verdict != Verdict::TooFew).collect();
    let verdict = judged.first()?.verdict;
    let is_shared = judged.iter().all(|change| change.verdict == verdict);
    if !verdict.is_significant() || !is_shared || judged.len() < LEAST {
        return None;
    }
    let factor = |percent: f64| 1.0 + percent / 100.0;
    let factors = judged.iter().map(|change| change.change_percent.map(factor));
    let mut factors = factors.collect::<Option<Vec<f64>>>()?;
    factors.sort_by(f64::total_cmp);
    let middle = factors[factors.len() / 2];
    let is_near = |factor: &f64| (factor / middle - 1.0).abs() <= NEAR;
    factors.iter().all(is_near).then(|| {
        format!(
            "All {} functions that can be judged are {} by about the same factor ({middle:.2}): the load \
             or the machine may differ, and not the program.",
            judged.len(),
            verdict.name(),
        )
    })
}

#[cfg(test)]
mod tests {
    use super::super::model::{Change, Changes};
    use super::*;

    fn compared(percent: f64, verdict: Verdict) -> Compared {
        let change = Change {
            old: Some(100.0),
            new: Some(100.0 + percent),
            change_percent: Some(percent),
            low_percent: Some(percent - 2.0),
            high_percent: Some(percent + 2.0),
            verdict,
        };
        Compared {
            presence: Presence::Both,
            old_calls: 70,
            new_calls: 80,
            verdict,
            failed: false,
            changes: Changes::of_one(Metric::P50, change),
        }
    }

    fn told(changes: &[(f64, Verdict)]) -> Option<String> {
        let all: Vec<Compared> = changes.iter().map(|(by, of)| compared(*by, *of)).collect();
        note(all.iter(), Metric::P50)
    }

    #[test]
    fn only_what_all_functions_share_is_told() {
        use Verdict::{Faster, Noise, Slower, TooFew};
        let slower = [(28.0, Slower), (30.0, Slower), (35.0, Slower)];
        let sentence = "All 3 functions that can be judged are slower by about the same factor (1.30): \
                        the load or the machine may differ, and not the program.";
        assert_eq!(told(&slower).as_deref(), Some(sentence));
        assert_eq!(told(&[&slower[..], &[(900.0, TooFew)]].concat()).as_deref(), Some(sentence));
        let faster = told(&[(-20.0, Faster), (-22.0, Faster), (-25.0, Faster)]).expect("told");
        assert!(faster.contains(" faster by about the same factor (0.78): "), "{faster}");
        for other in [(60.0, Slower), (30.0, Noise), (-20.0, Faster)] {
            assert_eq!(told(&[&slower[..], &[other]].concat()), None, "{other:?}");
        }
        assert_eq!(told(&slower[..2]), None);
        let noise = [(0.1, Noise), (0.2, Noise), (0.1, Noise)];
        assert_eq!(told(&noise), None);
    }

    #[test]
    fn functions_of_one_side_do_not_count() {
        let mut all = [28.0, 30.0, 35.0].map(|by| compared(by, Verdict::Slower));
        all[2].presence = Presence::New;
        assert_eq!(note(all.iter(), Metric::P50), None);
    }
}
