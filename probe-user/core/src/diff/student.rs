//! Student's t distribution for whole degrees of freedom.

use std::f64::consts::FRAC_PI_2;

/// Above this, the normal distribution is as good.
const MOST: u32 = 1_000;

/// Returns the chance that |t| is larger (Abramowitz and Stegun, 26.7.3 and 26.7.4).
fn beyond(t: f64, freedom: u32) -> f64 {
    let angle = (t / f64::from(freedom).sqrt()).atan();
    let (sin, cos) = angle.sin_cos();
    let is_odd = freedom % 2 == 1;
    let mut term = if is_odd { cos } else { 1.0 };
    let mut sum = if freedom == 1 { 0.0 } else { term };
    let mut power = if is_odd { 3 } else { 2 };
    while power < freedom {
        term *= cos * cos * f64::from(power - 1) / f64::from(power);
        sum += term;
        power += 2;
    }
    let within = if is_odd { (angle + sin * sum) / FRAC_PI_2 } else { sin * sum };
    1.0 - within
}

/// Returns the t that |t| exceeds with this chance.
pub(crate) fn quantile(chance: f64, freedom: u32) -> f64 {
    let freedom = freedom.clamp(1, MOST);
    let (mut low, mut high) = (0.0, 1.0);
    while beyond(high, freedom) > chance && high < 1e12 {
        high *= 2.0;
    }
    for _ in 0..80 {
        let middle = (low + high) / 2.0;
        if beyond(middle, freedom) > chance {
            low = middle;
        } else {
            high = middle;
        }
    }
    high
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Values from printed tables.
    #[test]
    fn tables_say_the_same() {
        for (chance, freedom, expected) in [
            (0.05, 1, 12.706),
            (0.05, 2, 4.303),
            (0.05, 3, 3.182),
            (0.01, 3, 5.841),
            (0.001, 4, 8.610),
            (0.05, 10, 2.228),
            (0.001, 11, 4.437),
            (0.05, 30, 2.042),
            (0.01, 120, 2.617),
            (0.05, u32::MAX, 1.962),
        ] {
            let got = quantile(chance, freedom);
            assert!((got - expected).abs() < 6e-4, "{chance} {freedom}: {got}");
        }
        assert!(quantile(1e-7, 1).is_finite());
    }
}
