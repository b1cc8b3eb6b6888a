//! The visible stretch of time, and the one mapping from time to x that all tracks share.

use crate::model::TimeRange;

/// No view is shorter than this.
const MIN_NS: i64 = 1_000;

/// The visible stretch of time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TimeView {
    /// At the left edge.
    pub start_ns: i64,
    /// At the right edge.
    pub end_ns: i64,
}

impl TimeView {
    /// The range with a little room on both sides.
    pub fn around(range: TimeRange) -> Self {
        let room = (range.duration_ns() / 50).max(MIN_NS / 2);
        Self { start_ns: range.start_ns.saturating_sub(room), end_ns: range.end_ns.saturating_add(room) }
    }

    /// How long it is; at least one nanosecond.
    pub fn duration_ns(self) -> i64 {
        self.end_ns.saturating_sub(self.start_ns).max(1)
    }

    /// The same as a range.
    pub fn range(self) -> TimeRange {
        TimeRange::new(self.start_ns, self.end_ns)
    }

    /// Zoomed by `factor` (below 1 is closer) so that `at_ns` stays where it is, within what `span` needs.
    #[must_use]
    pub fn zoomed(self, at_ns: i64, factor: f64, span: TimeRange) -> Self {
        let longest = Self::around(span).duration_ns();
        let duration = ((self.duration_ns() as f64 * factor) as i64).clamp(MIN_NS, longest.max(MIN_NS));
        let share = (at_ns - self.start_ns) as f64 / self.duration_ns() as f64;
        let start_ns = at_ns - (share * duration as f64) as i64;
        Self { start_ns, end_ns: start_ns + duration }.within(span)
    }

    /// Moved by a share of its length, within what `span` needs.
    #[must_use]
    pub fn panned(self, share: f64, span: TimeRange) -> Self {
        let by = (self.duration_ns() as f64 * share) as i64;
        Self { start_ns: self.start_ns + by, end_ns: self.end_ns + by }.within(span)
    }

    /// Moved so that it shows as much of `span` as it can.
    fn within(self, span: TimeRange) -> Self {
        let bounds = Self::around(span);
        if self.duration_ns() >= bounds.duration_ns() {
            return bounds;
        }
        let by = (bounds.start_ns - self.start_ns).max(0) + (bounds.end_ns - self.end_ns).min(0);
        Self { start_ns: self.start_ns + by, end_ns: self.end_ns + by }
    }
}

/// The mapping from time to x. Floats only relative to the view's start, so that nanoseconds survive.
#[derive(Clone, Copy, Debug)]
pub struct Axis {
    /// What is visible.
    pub view: TimeView,
    /// The x of the view's start.
    pub left: f32,
    /// How wide it is drawn.
    pub width: f32,
}

impl Axis {
    /// The x of an instant, which may lie far outside the view.
    pub fn x_of(&self, time_ns: i64) -> f32 {
        let offset = time_ns.saturating_sub(self.view.start_ns) as f64;
        let x = f64::from(self.left) + offset / self.view.duration_ns() as f64 * f64::from(self.width);
        // Far outside, f32 painting goes wrong; nothing there is seen anyway.
        x.clamp(-1e6, 1e6) as f32
    }

    /// The instant at `x`.
    pub fn ns_of(&self, x: f32) -> i64 {
        let share = f64::from(x - self.left) / f64::from(self.width.max(1.0));
        self.view.start_ns.saturating_add((share * self.view.duration_ns() as f64).round() as i64)
    }

    /// The right edge.
    pub fn right(&self) -> f32 {
        self.left + self.width
    }

    /// How much time a point is.
    pub fn ns_per_point(&self) -> f64 {
        self.view.duration_ns() as f64 / f64::from(self.width.max(1.0))
    }

    /// The part of `range` that is visible, as x, or nothing.
    pub fn visible(&self, range: TimeRange) -> Option<egui::Rangef> {
        let is_seen = range.start_ns <= self.view.end_ns && range.end_ns >= self.view.start_ns;
        is_seen.then(|| {
            egui::Rangef::new(
                self.x_of(range.start_ns).max(self.left),
                self.x_of(range.end_ns).min(self.right()),
            )
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const EPOCH: i64 = 1_796_104_323_357_719_911;

    #[test]
    fn time_survives_the_way_to_x_and_back() {
        let axis =
            Axis { view: TimeView { start_ns: EPOCH, end_ns: EPOCH + 10_000 }, left: 100.0, width: 1000.0 };
        for time_ns in [EPOCH, EPOCH + 10, EPOCH + 5_000, EPOCH + 10_000] {
            assert_eq!(axis.ns_of(axis.x_of(time_ns)), time_ns);
        }
    }

    #[test]
    fn zoom_keeps_the_instant_under_the_pointer_and_stays_within_the_session() {
        let span = TimeRange::new(EPOCH, EPOCH + 1_000_000_000);
        let whole = TimeView::around(span);
        let at_ns = EPOCH + 250_000_000;
        let closer = whole.zoomed(at_ns, 0.5, span);
        let share = |view: TimeView| (at_ns - view.start_ns) as f64 / view.duration_ns() as f64;
        assert!((share(whole) - share(closer)).abs() < 1e-6);
        assert_eq!(closer.zoomed(at_ns, 1e9, span), whole);
        assert_eq!(whole.zoomed(at_ns, 1e-12, span).duration_ns(), MIN_NS);
        assert_eq!(closer.panned(-100.0, span).start_ns, whole.start_ns);
        assert_eq!(closer.panned(100.0, span).end_ns, whole.end_ns);
    }
}
