//! What was before, and what was undone.

/// How far back it goes.
const MAX: usize = 200;

/// Values before and after the present one, which lives elsewhere.
#[derive(Clone, Debug)]
pub struct History<T> {
    before: Vec<T>,
    after: Vec<T>,
}

impl<T> Default for History<T> {
    fn default() -> Self {
        Self { before: Vec::new(), after: Vec::new() }
    }
}

impl<T: PartialEq> History<T> {
    /// Remembers what was, before it changes.
    pub fn push(&mut self, was: T) {
        self.after.clear();
        if self.before.last() == Some(&was) {
            return;
        }
        if self.before.len() == MAX {
            self.before.remove(0);
        }
        self.before.push(was);
    }

    /// Takes a step back from `now`.
    pub fn back(&mut self, now: T) -> Option<T> {
        let was = self.before.pop()?;
        self.after.push(now);
        Some(was)
    }

    /// Takes a step forward from `now`.
    pub fn forward(&mut self, now: T) -> Option<T> {
        let next = self.after.pop()?;
        self.before.push(now);
        Some(next)
    }

    /// Whether there is a step back.
    pub fn can_go_back(&self) -> bool {
        !self.before.is_empty()
    }

    /// Whether there is a step forward.
    pub fn can_go_forward(&self) -> bool {
        !self.after.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn back_and_forward_and_a_new_branch() {
        let mut history = History::default();
        history.push(1);
        history.push(2);
        assert_eq!(history.back(3), Some(2));
        assert_eq!(history.back(2), Some(1));
        assert_eq!(history.back(1), None);
        assert_eq!(history.forward(1), Some(2));
        history.push(2);
        assert!(!history.can_go_forward());
        assert_eq!(history.back(9), Some(2));
    }
}
