//! The numbers that markers plot, and how each changes over the report's time.

use super::Context;
use crate::ui::output::style::Tone;
use crate::ui::table::grid::{self, Cell, ColumnGroup, GridColumn};
use crate::ui::table::plot;
use crate::ui::text;
use crate::ui::text::names;
use crate::ui::text::units::count;
use ctrace_core::report::PlotReport;
use ctrace_core::report::render::{clean::clean, rows};

/// The columns of a sparkline, at most and at least.
const SPARKS: usize = 60;
const FEW_SPARKS: usize = 8;
/// The least width of a name.
const LEAST_ROOM: usize = 12;
/// The greatest width of a unit.
const MOST_UNIT: usize = 12;
/// The heights of a sparkline.
const HEIGHTS: f64 = 7.0;

pub(super) fn draw(context: &Context<'_>) -> String {
    let list = &context.report.plots;
    if list.is_empty() {
        return text::title("Plots") + "No marker plotted a number.\n";
    }
    let chosen = rows::plots(context.report, context.selection);
    let shown: Vec<&PlotReport> = chosen.indices.iter().map(|&index| &list[index]).collect();
    let cells = |of: fn(&PlotReport) -> Option<f64>| shown.iter().map(move |plot| number(of(plot)));
    let numbers = ColumnGroup::untitled(vec![
        GridColumn::right("count", shown.iter().map(|plot| count(plot.count))),
        GridColumn::right("min", cells(|plot| plot.min)),
        GridColumn::right("mean", cells(|plot| plot.mean)),
        GridColumn::right("max", cells(|plot| plot.max)),
        GridColumn::right("last", cells(|plot| plot.last)),
    ]);
    let unit = |plot: &&PlotReport| {
        names::cut_end(&clean(plot.unit.as_deref().unwrap_or_default()), MOST_UNIT)
    };
    let units = shown.iter().any(|plot| plot.unit.is_some());
    let units = units.then(|| GridColumn::left("unit", shown.iter().map(unit)));
    let units = ColumnGroup::untitled(units.into_iter().collect());
    let taken = grid::total_width(&[&numbers, &units]) + 4;
    let left = context.style.width.map_or(usize::MAX, |width| width.saturating_sub(taken));
    let room = left.saturating_sub(FEW_SPARKS + 2).max(LEAST_ROOM);
    let name = |plot: &&PlotReport| {
        let name = clean(&context.report.name_of(plot.function)).into_owned();
        let name = names::shorten(&name, room);
        let tone = Tone::of(&name, context.report.colour_of(plot.function));
        Cell::toned(name, tone)
    };
    let names = ColumnGroup::untitled(vec![GridColumn::left("plot", shown.iter().map(name))]);
    let sparks = left.saturating_sub(grid::total_width(&[&names]) + 2).min(SPARKS);
    let mut groups = vec![&names, &numbers];
    groups.extend(shown.iter().any(|plot| plot.unit.is_some()).then_some(&units));
    let line = |plot: &&PlotReport| sparkline(&plot.over_time, sparks);
    let lines = ColumnGroup::untitled(vec![GridColumn::left("over time", shown.iter().map(line))]);
    groups.extend((sparks >= FEW_SPARKS).then_some(&lines));
    text::title("Plots")
        + &grid::draw(&groups)
        + &context.left_out(chosen.left_out, "plot", "plots")
}

/// Formats a number with four digits at least, and a whole one with all of its digits.
fn number(number: Option<f64>) -> String {
    let Some(number) = number else { return "–".to_owned() };
    let size = number.abs();
    if size >= 1e12 || size != 0.0 && size < 1e-3 {
        return format!("{number:.3e}");
    }
    if number.fract() == 0.0 {
        return format!("{number:.0}");
    }
    let digits = (0..=6).find(|digits| size * 10_f64.powi(*digits) >= 1e3).unwrap_or(6);
    format!("{number:.*}", digits as usize)
}

/// Draws the means of slices in so many columns at most: the least has the lowest mark.
fn sparkline(over_time: &[Option<f64>], room: usize) -> String {
    let each = over_time.len().div_ceil(room.max(1)).max(1);
    let mean = |slices: &[Option<f64>]| {
        let known: Vec<f64> = slices.iter().flatten().copied().collect();
        (!known.is_empty()).then(|| known.iter().sum::<f64>() / known.len() as f64)
    };
    let means: Vec<Option<f64>> = over_time.chunks(each).map(mean).collect();
    let known = || means.iter().flatten().copied();
    let (least, most) =
        (known().fold(f64::INFINITY, f64::min), known().fold(f64::NEG_INFINITY, f64::max));
    let height = |mean: &Option<f64>| match mean {
        None => 0,
        Some(mean) if most - least > 0.0 => {
            1 + ((mean - least) / (most - least) * HEIGHTS).round() as u64
        }
        Some(_) => 1,
    };
    plot::sparkline(&means.iter().map(height).collect::<Vec<_>>())
}
