//! Timed slices of a trace: ops, Python functions, modules, annotations, kernels.

use super::{StrId, TimeRange};

/// What a slice is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum SliceKind {
    /// `cpu_op`.
    CpuOp,
    /// `python_function`.
    PythonFunction,
    /// `python_function` of an `nn.Module`.
    Module,
    /// `user_annotation`, `ProfilerStep#N` among them.
    Annotation,
    /// The same on the GPU's clock.
    GpuAnnotation,
    /// `kernel`, `gpu_memcpy`, `gpu_memset`.
    Kernel,
    /// `cuda_runtime`, `cuda_driver`.
    Runtime,
    /// A sampled Python stack of py-spy.
    Sample,
}

/// A lane of a [`Slices`] table: a thread or a GPU stream.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct LaneId(pub u16);

/// A thread or a GPU stream.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Lane {
    /// `thread 445`, `stream 7`, or the name that the file gives.
    pub name: String,
    /// Whether it is a GPU's.
    pub is_gpu: bool,
}

/// One slice: a row of [`Slices`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Slice {
    /// When it ran.
    pub range: TimeRange,
    /// Its name.
    pub name: StrId,
    /// What it is.
    pub kind: SliceKind,
    /// Where it ran.
    pub lane: LaneId,
    /// How many slices of its lane enclose it.
    pub depth: u16,
}

/// Slices as columns, sorted by lane, then by start.
#[derive(Clone, Debug, Default)]
#[expect(missing_docs, reason = "each column is the field of the same name in Slice")]
pub struct Slices {
    pub lanes: Vec<Lane>,
    pub start_ns: Vec<i64>,
    pub end_ns: Vec<i64>,
    pub name: Vec<StrId>,
    pub kind: Vec<SliceKind>,
    pub lane: Vec<LaneId>,
    pub depth: Vec<u16>,
}

impl Slices {
    /// How many slices there are.
    pub fn len(&self) -> usize {
        self.start_ns.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.start_ns.is_empty()
    }

    /// Adds a slice; the caller sees to the order.
    pub fn push(&mut self, slice: Slice) {
        self.start_ns.push(slice.range.start_ns);
        self.end_ns.push(slice.range.end_ns);
        self.name.push(slice.name);
        self.kind.push(slice.kind);
        self.lane.push(slice.lane);
        self.depth.push(slice.depth);
    }

    /// The slice at `index`. Panics beyond the end, as slices do.
    pub fn get(&self, index: usize) -> Slice {
        Slice {
            range: TimeRange::new(self.start_ns[index], self.end_ns[index]),
            name: self.name[index],
            kind: self.kind[index],
            lane: self.lane[index],
            depth: self.depth[index],
        }
    }

    /// The rows of one lane: they stand together.
    pub fn rows_of(&self, lane: LaneId) -> std::ops::Range<usize> {
        self.lane.partition_point(|&other| other < lane)..self.lane.partition_point(|&other| other <= lane)
    }
}
