//! A run that the benchmarks are about: so many allocations, a microsecond apart, of stacks and sizes that come again.

use vramscope::model::{
    Allocation, Annotation, Clock, Frame, NEVER_NS, Recording, SourceKind, StackId, TimeRange,
};

/// What the run is like, and when each row is freed: so long after its allocation, or never.
pub struct Run {
    pub rows: usize,
    pub stacks: usize,
    pub steps: i64,
    pub lives_ns: fn(usize) -> Option<i64>,
}

impl Run {
    pub fn recording(&self) -> Recording {
        let mut recording = Recording::new(SourceKind::Snapshot, "made up", Clock::Unix);
        let file = recording.strings.intern("/home/ann/run.py");
        let stacks: Vec<StackId> = (0..self.stacks as u32)
            .map(|line| {
                let function = recording.strings.intern(&format!("f{}", line % 50));
                let frame = recording.stacks.intern_frame(Frame { file, function, line });
                recording.stacks.push(StackId::EMPTY, frame)
            })
            .collect();
        recording.allocations.reserve(self.rows);
        for row in 0..self.rows {
            let alloc_ns = row as i64 * 1000;
            let free_ns = (self.lives_ns)(row).map_or(NEVER_NS, |lives_ns| alloc_ns + lives_ns);
            let size_bytes = 512 << (row * 7919 % 12);
            recording.allocations.push(Allocation {
                address: 0x1000 + row as u64 * 512,
                size_bytes,
                rounded_bytes: size_bytes,
                alloc_ns,
                free_requested_ns: free_ns,
                free_completed_ns: free_ns,
                stack: stacks[row * 31 % stacks.len()],
                ..Allocation::default()
            });
        }
        let end_ns = self.rows as i64 * 1000;
        for step in 0..self.steps {
            let name = recording.strings.intern(&format!("ProfilerStep#{step}"));
            let range = TimeRange::new(step * end_ns / self.steps, (step + 1) * end_ns / self.steps);
            recording.annotations.push(Annotation { name, range });
        }
        recording.span = Some(TimeRange::new(0, end_ns));
        recording
    }
}
