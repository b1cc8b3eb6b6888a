//! What the window costs on the CPU: a frame at rest, a frame while the view moves, and a brush until its totals and
//! groups are there. Drawing on the GPU comes on top; software rendering is another matter.
//!
//! A display of 60 Hz leaves 16 ms for a frame. On a machine with 2 cores, at a million allocations: a frame at rest
//! 1.7 ms, while zooming 7.8 ms (another thread makes the allocation map meanwhile), a brush until its totals are there
//! 9.0 ms. The README has the figures for fewer.

mod made_up;

use std::hint::black_box;
use std::sync::Arc;
use std::time::{Duration, Instant};

use criterion::{BenchmarkId, Criterion, criterion_group, criterion_main};
use egui::{Context, Event, PointerButton, Pos2, RawInput, Rect, pos2, vec2};
use vramscope::align::Opened;
use vramscope::app::App;
use vramscope::model::Recording;

const SIZE: egui::Vec2 = vec2(1600.0, 1000.0);

/// A run of so many allocations in 500 steps: most live for a part of a step, some for good.
fn recording(rows: usize) -> Recording {
    let lives_ns = |row: usize| (!row.is_multiple_of(50)).then_some(1000 * (1 + row * 7919 % 400) as i64);
    made_up::Run { rows, stacks: 1000, steps: 500, lives_ns }.recording()
}

/// The app without a window around it.
struct Bench {
    ctx: Context,
    app: App,
    time_s: f64,
}

impl Bench {
    fn new(rows: usize) -> Self {
        let opened = Opened::new("made-up", Arc::new(recording(rows)));
        let mut bench = Self { ctx: Context::default(), app: App::of(vec![opened]), time_s: 0.0 };
        bench.settle();
        bench
    }

    /// One frame: input, layout and painting, up to triangles.
    fn frame(&mut self, events: Vec<Event>) {
        self.time_s += 1.0 / 60.0;
        let input = RawInput {
            screen_rect: Some(Rect::from_min_size(Pos2::ZERO, SIZE)),
            time: Some(self.time_s),
            events,
            ..RawInput::default()
        };
        let app = &mut self.app;
        let mut output = self.ctx.run_ui(input, |ui| {
            app.logic(ui.ctx());
            app.ui(ui);
        });
        let shapes = std::mem::take(&mut output.shapes);
        black_box(self.ctx.tessellate(shapes, output.pixels_per_point));
        output.drop_without_applying_deltas();
    }

    fn settle(&mut self) {
        for _ in 0..5 {
            self.frame(Vec::new());
        }
        while !self.app.is_idle() {
            std::thread::sleep(Duration::from_millis(1));
            self.frame(Vec::new());
        }
        for _ in 0..5 {
            self.frame(Vec::new());
        }
    }

    fn button(pos: Pos2, pressed: bool) -> Event {
        Event::PointerButton {
            pos,
            button: PointerButton::Primary,
            pressed,
            modifiers: egui::Modifiers::NONE,
        }
    }
}

fn window(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("window");
    group.sample_size(20);
    for (name, rows) in [("10 k", 10_000), ("100 k", 100_000), ("1 M", 1_000_000)] {
        let mut bench = Bench::new(rows);
        group.bench_function(BenchmarkId::new("frame at rest", name), |b| b.iter(|| bench.frame(Vec::new())));
        // On the memory track, below toolbar, ruler and overview.
        let mut x = 500.0;
        group.bench_function(BenchmarkId::new("frame while zooming", name), |b| {
            b.iter(|| {
                x = if x > 900.0 { 500.0 } else { x + 3.0 };
                let wheel = Event::MouseWheel {
                    unit: egui::MouseWheelUnit::Line,
                    delta: vec2(0.0, if x > 700.0 { -0.5 } else { 0.5 }),
                    phase: egui::TouchPhase::Move,
                    source: egui::MouseWheelSource::Unknown,
                    modifiers: egui::Modifiers::NONE,
                };
                bench.frame(vec![Event::PointerMoved(pos2(x, 200.0)), wheel]);
            });
        });
        bench.frame(vec![Event::Key {
            key: egui::Key::Home,
            physical_key: None,
            pressed: true,
            repeat: false,
            modifiers: egui::Modifiers::NONE,
        }]);
        bench.settle();
        let start = pos2(600.0, 200.0);
        bench.frame(vec![Event::PointerMoved(start), Bench::button(start, true)]);
        let mut at = start;
        group.bench_function(BenchmarkId::new("brush until its totals are there", name), |b| {
            b.iter_custom(|moves| {
                let mut total = Duration::ZERO;
                for _ in 0..moves {
                    at.x = if at.x > 1000.0 { 650.0 } else { at.x + 5.0 };
                    let asked = Instant::now();
                    bench.frame(vec![Event::PointerMoved(at)]);
                    let range = bench.app.state().choices.range;
                    while bench.app.state().answers.totals_of != range {
                        std::thread::yield_now();
                        bench.app.logic(&bench.ctx.clone());
                    }
                    total += asked.elapsed();
                }
                total
            });
        });
        bench.frame(vec![Bench::button(at, false)]);
        bench.settle();
    }
    group.finish();
}

criterion_group!(benches, window);
criterion_main!(benches);
