//! The session's tables.

/// A table of a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Table {
    /// One row an allocation.
    Allocations,
    /// One row an allocation, free or segment event.
    Events,
    /// One row a slice of a trace: op, Python function, kernel, annotation.
    Ops,
    /// One row a point of a curve.
    Samples,
    /// One row a training step.
    Steps,
    /// One row a block of a segment, at the moment of a snapshot.
    Segments,
    /// One row a distinct stack that allocated.
    Stacks,
}

impl Table {
    /// All of them.
    pub const ALL: [Self; 7] = [
        Self::Allocations,
        Self::Events,
        Self::Ops,
        Self::Samples,
        Self::Steps,
        Self::Segments,
        Self::Stacks,
    ];

    /// The name on the command line and in SQL.
    pub fn name(self) -> &'static str {
        match self {
            Self::Allocations => "allocations",
            Self::Events => "events",
            Self::Ops => "ops",
            Self::Samples => "samples",
            Self::Steps => "steps",
            Self::Segments => "segments",
            Self::Stacks => "stacks",
        }
    }

    /// The table of a name.
    pub fn of_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|table| table.name() == name)
    }
}
