//! The ruler: offsets from the session's start, and the band of the range, which can be held and moved.

use egui::{Align2, Rect, Stroke, Ui, pos2};

use super::Tracks;
use crate::app::theme::track_font;
use crate::model::time::format_duration;
use crate::text::t;

const HEIGHT: f32 = 20.0;
/// Labels are at least this far apart.
const MIN_GAP_POINTS: f64 = 90.0;

/// Draws the ruler.
pub fn show(ui: &mut Ui, tracks: &mut Tracks<'_, '_>) {
    let label = tracks.range_text();
    let (rect, _) = tracks.body(ui, "Ruler", HEIGHT, || t!("Time ruler, {range}", range = label));
    let painter = ui.painter().with_clip_rect(rect);
    let palette = tracks.scene.palette;
    let axis = tracks.axis;
    let start_ns = tracks.scene.data.span().start_ns;
    let step_ns = step_ns(axis.ns_per_point() * MIN_GAP_POINTS);
    let first = (axis.view.start_ns - start_ns).div_euclid(step_ns);
    let last = (axis.view.end_ns - start_ns).div_euclid(step_ns);
    for tick in first..=last.min(first + 100) {
        let offset_ns = tick * step_ns;
        let x = axis.x_of(start_ns + offset_ns);
        painter.vline(x, rect.bottom() - 6.0..=rect.bottom(), Stroke::new(1.0, palette.weak_text));
        let text = if offset_ns == 0 { "0".to_owned() } else { tick_text(offset_ns, step_ns) };
        painter.text(
            pos2(x + 3.0, rect.center().y),
            Align2::LEFT_CENTER,
            text,
            track_font(),
            palette.weak_text,
        );
    }
    if let Some(range) = tracks.scene.state.choices.range
        && let Some(x) = axis.visible(range)
    {
        let band = Rect::from_x_y_ranges(x, rect.top()..=rect.top() + 5.0);
        painter.rect_filled(band, 2, palette.range_edge);
    }
    tracks.overlay(ui, rect);
}

/// The smallest round length that is at least `least_ns`: 1, 2 or 5 times a power of ten, or parts of minutes.
fn step_ns(least_ns: f64) -> i64 {
    const S: i64 = 1_000_000_000;
    let mut power = 1_i64;
    while power < S {
        for factor in [1, 2, 5] {
            if (power * factor) as f64 >= least_ns {
                return power * factor;
            }
        }
        power *= 10;
    }
    let seconds = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1_800, 3_600, 7_200, 21_600, 43_200, 86_400];
    let found = seconds.into_iter().map(|s| s * S).find(|&step| step as f64 >= least_ns);
    found.unwrap_or_else(|| {
        ((least_ns / (86_400.0 * S as f64)).ceil() as i64).max(1).saturating_mul(86_400 * S)
    })
}

/// Offsets with as many digits as the step needs: `1.25 s` rather than `1 s`.
fn tick_text(offset_ns: i64, step_ns: i64) -> String {
    const S: i64 = 1_000_000_000;
    if offset_ns.abs() >= 60 * S && step_ns >= S {
        return format_duration(offset_ns);
    }
    let decimals = (0..9).find(|&digits| step_ns % 10_i64.pow(9 - digits) == 0).unwrap_or(9) as usize;
    format!("{:.decimals$} s", offset_ns as f64 / S as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_are_round_and_wide_enough() {
        for (least, step) in
            [(1.0, 1), (3.0, 5), (6e5, 1_000_000), (3e9, 5_000_000_000), (7e9, 10_000_000_000)]
        {
            assert_eq!(step_ns(least), step);
        }
        assert!(step_ns(1e18) as f64 >= 1e18);
        assert_eq!(tick_text(1_250_000_000, 50_000_000), "1.25 s");
        assert_eq!(tick_text(3_000_000_000, 1_000_000_000), "3 s");
    }
}
