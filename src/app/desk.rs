//! A thread that answers the latest question and drops those that a newer one has overtaken.

use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Condvar, Mutex, PoisonError};

use super::opening::Wake;

/// Where questions are left and answers are picked up. `Q` is a question, `A` a part of an answer.
pub struct Desk<Q, A> {
    slot: Arc<Slot<Q>>,
    answers: Receiver<(u64, Option<A>)>,
    generation: u64,
    done: u64,
}

/// The latest question.
struct Slot<Q> {
    latest: Mutex<Latest<Q>>,
    is_changed: Condvar,
}

struct Latest<Q> {
    generation: u64,
    question: Option<Q>,
    is_closed: bool,
}

/// What the thread holds while it answers one question.
pub struct Reply<'a, Q, A> {
    slot: &'a Slot<Q>,
    sender: &'a Sender<(u64, Option<A>)>,
    wake: &'a Wake,
    generation: u64,
}

impl<Q: Send + 'static, A: Send + 'static> Desk<Q, A> {
    /// Starts the thread, which calls `answer` for each question that is not overtaken before it begins.
    ///
    /// # Errors
    /// When the system has no thread to give.
    pub fn start(
        name: &str,
        wake: Wake,
        answer: impl Fn(Q, &Reply<'_, Q, A>) + Send + 'static,
    ) -> std::io::Result<Self> {
        let latest = Latest { generation: 0, question: None, is_closed: false };
        let slot = Arc::new(Slot { latest: Mutex::new(latest), is_changed: Condvar::new() });
        let (sender, answers) = channel();
        let shared = slot.clone();
        std::thread::Builder::new().name(name.to_owned()).spawn(move || {
            while let Some((generation, question)) = shared.next() {
                let reply = Reply { slot: &shared, sender: &sender, wake: &wake, generation };
                answer(question, &reply);
                // The receiver is gone when the window has closed; then there is nobody to tell.
                let _ = sender.send((generation, None));
                wake();
            }
        })?;
        Ok(Self { slot, answers, generation: 0, done: 0 })
    }

    /// Asks; an older question that is still being answered is overtaken.
    pub fn ask(&mut self, question: Q) {
        self.generation += 1;
        let mut latest = self.slot.lock();
        latest.generation = self.generation;
        latest.question = Some(question);
        drop(latest);
        self.slot.is_changed.notify_one();
    }

    /// The next part of the answer to the latest question; late parts of older answers are dropped.
    pub fn poll(&mut self) -> Option<A> {
        while let Ok((generation, part)) = self.answers.try_recv() {
            match part {
                Some(part) if generation == self.generation => return Some(part),
                Some(_) => {}
                None => self.done = generation,
            }
        }
        None
    }

    /// Whether the latest question is still being answered.
    pub fn is_busy(&self) -> bool {
        self.done != self.generation
    }
}

impl<Q, A> Drop for Desk<Q, A> {
    fn drop(&mut self) {
        self.slot.lock().is_closed = true;
        self.slot.is_changed.notify_one();
    }
}

impl<Q> Slot<Q> {
    fn lock(&self) -> std::sync::MutexGuard<'_, Latest<Q>> {
        self.latest.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for a question; nothing when the desk is closed.
    fn next(&self) -> Option<(u64, Q)> {
        let mut latest = self.lock();
        loop {
            if latest.is_closed {
                return None;
            }
            if let Some(question) = latest.question.take() {
                return Some((latest.generation, question));
            }
            latest = self.is_changed.wait(latest).unwrap_or_else(PoisonError::into_inner);
        }
    }
}

impl<Q, A> Reply<'_, Q, A> {
    /// Whether a newer question waits, or nobody does.
    pub fn is_overtaken(&self) -> bool {
        let latest = self.slot.lock();
        latest.is_closed || latest.generation != self.generation
    }

    /// Hands over a part of the answer.
    pub fn send(&self, part: A) {
        // The receiver is gone when the window has closed; then there is nobody to tell.
        let _ = self.sender.send((self.generation, Some(part)));
        (self.wake)();
    }
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use super::*;

    #[test]
    fn only_the_latest_question_is_answered() {
        let (started, has_started) = channel();
        let (go, may_go) = channel::<()>();
        let answer = move |question: u32, reply: &Reply<'_, u32, u32>| {
            started.send(question).expect("the test waits");
            may_go.recv().expect("the test says go");
            reply.send(question);
        };
        let mut desk = Desk::start("test", Arc::new(|| {}), answer).expect("a thread");
        desk.ask(1);
        assert_eq!(has_started.recv(), Ok(1));
        desk.ask(2);
        desk.ask(3);
        for _ in 0..2 {
            go.send(()).expect("the thread waits");
        }
        assert_eq!(has_started.recv(), Ok(3), "question 2 was overtaken before it began");
        let deadline = Instant::now() + Duration::from_secs(10);
        let mut parts = Vec::new();
        while desk.is_busy() {
            assert!(Instant::now() < deadline);
            parts.extend(desk.poll());
        }
        assert_eq!(parts, [3], "the late answer to question 1 was dropped");
    }
}
