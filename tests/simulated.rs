//! Training runs made up for tests: what a loop allocates, with stacks as PyTorch leaves them.

use std::sync::Arc;

use vramscope::align::{Opened, build};
use vramscope::analysis::findings::{Finding, findings};
use vramscope::analysis::{Index, Query, Selection, UserCode};
use vramscope::model::{
    Allocation, Annotation, Clock, Frame, NEVER_NS, Recording, SourceKind, StackId, TimeRange,
};

/// Where PyTorch is installed.
const TORCH: &str = "/opt/venv/lib/python3.12/site-packages/torch";
/// Time between two events.
const TICK_NS: i64 = 10_000;
const MIB: u64 = 1 << 20;

/// A run that is being made.
pub struct Run {
    recording: Recording,
    now_ns: i64,
    annotates: bool,
    step_start_ns: i64,
    step: i64,
}

/// A live allocation.
pub type Block = usize;

impl Default for Run {
    fn default() -> Self {
        Self {
            recording: Recording::new(SourceKind::Snapshot, "simulated", Clock::Unix),
            now_ns: 1_800_000_000_000_000_000,
            annotates: true,
            step_start_ns: 0,
            step: 0,
        }
    }
}

impl Run {
    /// A run whose steps are annotated or not.
    pub fn new(annotates: bool) -> Self {
        Self { annotates, ..Self::default() }
    }

    /// A stack from `(file, function, line)`, innermost first; `torch:` stands for PyTorch's folder.
    pub fn stack(&mut self, frames: &[(&str, &str, u32)]) -> StackId {
        let ids: Vec<_> = frames
            .iter()
            .map(|&(file, function, line)| {
                let file = file.replace("torch:", TORCH);
                let strings = &mut self.recording.strings;
                let frame = Frame { file: strings.intern(&file), function: strings.intern(function), line };
                self.recording.stacks.intern_frame(frame)
            })
            .collect();
        self.recording.stacks.intern_innermost_first(&ids)
    }

    /// A stack inside a layer of the model, called from a line of the user's loop.
    pub fn layer(&mut self, op: &str, layer: u32, line: u32) -> StackId {
        let file = format!("torch:/nn/modules/{op}.py");
        self.stack(&[
            ("torch:/nn/functional.py", op, 100),
            (&file, "forward", 10),
            ("torch:/nn/modules/module.py", "_call_impl", 1790),
            ("/home/ann/net.py", "forward", layer),
            ("torch:/nn/modules/module.py", "_call_impl", 1790),
            ("/home/ann/run.py", "go", line),
            ("/home/ann/run.py", "<module>", 99),
        ])
    }

    /// A stack of the user's own line.
    pub fn line(&mut self, line: u32) -> StackId {
        self.stack(&[("/home/ann/run.py", "go", line), ("/home/ann/run.py", "<module>", 99)])
    }

    /// Allocates.
    pub fn alloc(&mut self, stack: StackId, bytes: u64) -> Block {
        self.now_ns += TICK_NS;
        let row = Allocation {
            address: 0x7f00_0000_0000 + self.recording.allocations.len() as u64 * 0x1000_0000,
            size_bytes: bytes,
            alloc_ns: self.now_ns,
            stack,
            ..Allocation::default()
        };
        self.recording.allocations.push(row) as usize
    }

    /// Frees.
    pub fn free(&mut self, block: Block) {
        self.now_ns += TICK_NS;
        self.recording.allocations.free_requested_ns[block] = self.now_ns;
        self.recording.allocations.free_completed_ns[block] = self.now_ns;
    }

    /// Frees many.
    pub fn free_all(&mut self, blocks: impl IntoIterator<Item = Block>) {
        for block in blocks {
            self.free(block);
        }
    }

    /// Begins a step.
    pub fn begin_step(&mut self) {
        self.now_ns += TICK_NS;
        self.step_start_ns = self.now_ns;
    }

    /// Ends a step.
    pub fn end_step(&mut self) {
        self.now_ns += TICK_NS;
        if self.annotates {
            let name = self.recording.strings.intern(&format!("tick#{}", self.step));
            let range = TimeRange::new(self.step_start_ns, self.now_ns);
            self.recording.annotations.push(Annotation { name, range });
        }
        self.step += 1;
    }

    /// The run as a session.
    pub fn finish(mut self) -> Index {
        let start_ns = self.recording.allocations.alloc_ns.first().copied().unwrap_or(self.now_ns);
        self.recording.span = Some(TimeRange::new(start_ns, self.now_ns + 1));
        let opened = Opened::new("run.pickle", Arc::new(self.recording));
        Index::new(Arc::new(build(&[opened])), UserCode::default())
    }
}

/// A model with what a training loop makes of it.
pub struct Model {
    gradients: Vec<Block>,
    has_state: bool,
    /// Bytes of each layer's output.
    pub activation_bytes: u64,
}

/// The layers' ops, in their order.
const LAYERS: [&str; 6] = ["conv", "batchnorm", "activation", "linear", "activation", "linear"];

impl Model {
    /// Makes the parameters.
    pub fn new(run: &mut Run) -> Self {
        let stack = run.stack(&[
            ("torch:/nn/modules/module.py", "_apply", 930),
            ("torch:/nn/modules/module.py", "cuda", 1097),
            ("/home/ann/run.py", "<module>", 5),
        ]);
        for layer in 0..LAYERS.len() as u64 {
            run.alloc(stack, (layer + 1) * MIB);
        }
        Self { gradients: Vec::new(), has_state: false, activation_bytes: 4 * MIB }
    }

    /// A forward pass from a line of the loop: what autograd saves, and the output.
    pub fn forward(&self, run: &mut Run, line: u32) -> (Vec<Block>, Block) {
        let mut saved: Vec<Block> = LAYERS
            .iter()
            .enumerate()
            .map(|(layer, op)| {
                let stack = run.layer(op, layer as u32 + 1, line);
                run.alloc(stack, self.activation_bytes)
            })
            .collect();
        let output = saved.pop().expect("an output");
        (saved, output)
    }

    /// A backward pass: temporaries, one gradient for each parameter, and the saved tensors go.
    pub fn backward(&mut self, run: &mut Run, saved: Vec<Block>) {
        let is_first = self.gradients.is_empty();
        for layer in 0..LAYERS.len() as u64 {
            let temporary = run.alloc(StackId::EMPTY, 2 * MIB);
            if is_first {
                self.gradients.push(run.alloc(StackId::EMPTY, (layer + 1) * MIB));
            }
            run.free(temporary);
        }
        run.free_all(saved);
    }

    /// An optimizer's step, which makes its state the first time.
    pub fn optimize(&mut self, run: &mut Run, line: u32) {
        let stack = run.stack(&[
            ("torch:/optim/adam.py", "_init_group", 178),
            ("torch:/optim/optimizer.py", "wrapper", 533),
            ("/home/ann/run.py", "go", line),
            ("/home/ann/run.py", "<module>", 99),
        ]);
        if !self.has_state {
            for layer in 0..LAYERS.len() as u64 {
                run.alloc(stack, (layer + 1) * MIB);
                run.alloc(stack, (layer + 1) * MIB);
            }
            self.has_state = true;
        }
        let temporary = run.alloc(stack, 3 * MIB);
        run.free(temporary);
    }

    /// Sets the gradients to none.
    pub fn zero_grad(&mut self, run: &mut Run) {
        run.free_all(std::mem::take(&mut self.gradients));
    }
}

/// The findings of a whole run.
pub fn findings_of(run: Run) -> Vec<Finding> {
    let index = run.finish();
    let range = TimeRange { start_ns: index.session.span.start_ns, end_ns: NEVER_NS - 1 };
    let query = Query { selection: Selection::default(), range, free_by: Default::default() };
    findings(&index, &query)
}

/// What a run does beside plain training.
pub type Habit<'a> = &'a mut dyn FnMut(&mut Run, &mut Model, i64);

/// A plain training loop of so many steps: batch, forward, loss, backward, optimizer; `habit` runs at each step's end.
pub fn train(run: &mut Run, steps: i64, habit: Habit<'_>) {
    let mut model = Model::new(run);
    for step in 0..steps {
        run.begin_step();
        let batch_line = run.line(20);
        let batch = run.alloc(batch_line, MIB);
        let (saved, output) = model.forward(run, 21);
        let loss_line = run.stack(&[
            ("torch:/nn/functional.py", "cross_entropy", 3504),
            ("/home/ann/run.py", "go", 22),
            ("/home/ann/run.py", "<module>", 99),
        ]);
        let loss = run.alloc(loss_line, 4);
        model.zero_grad(run);
        model.backward(run, saved);
        model.optimize(run, 24);
        run.free_all([output, loss, batch]);
        habit(run, &mut model, step);
        run.end_step();
    }
}
