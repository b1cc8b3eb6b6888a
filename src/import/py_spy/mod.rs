//! Output of py-spy: what Python was doing, in each of the forms that it writes.

mod dump;
mod folded;
mod frames;
mod timeline;

use super::text::{clean_head, read_text};
use super::{Head, ImportError, Importer, Input, Progress};
use crate::model::Recording;
use crate::text::t;

/// Reads output of py-spy.
pub struct PySpyImporter;

/// The forms that are told apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    DumpText,
    DumpJson,
    Folded,
    Speedscope,
    ChromeTrace,
}

fn form_of(text: &str) -> Option<Form> {
    let start = text.trim_start();
    if start.starts_with('{') {
        return start.contains("speedscope.app/file-format-schema").then_some(Form::Speedscope);
    }
    if start.starts_with('[') && timeline::detect_chrome(start) {
        return Some(Form::ChromeTrace);
    }
    if start.starts_with('[') && dump::detect_json(start) {
        return Some(Form::DumpJson);
    }
    if dump::detect_text(start) {
        return Some(Form::DumpText);
    }
    folded::detect(start).then_some(Form::Folded)
}

impl Importer for PySpyImporter {
    fn name(&self) -> &'static str {
        "py-spy output"
    }

    fn detect(&self, head: &Head<'_>) -> bool {
        form_of(&clean_head(head)).is_some()
    }

    fn import(&self, input: &Input, progress: &Progress) -> Result<Recording, ImportError> {
        let log = read_text(input, progress)?;
        let read = match form_of(&log.text) {
            Some(Form::DumpText) => dump::read_text(&log.text),
            Some(Form::DumpJson) => dump::read_json(&log.text),
            Some(Form::Folded) => Ok(folded::read(&log.text)),
            Some(Form::Speedscope) => timeline::read_speedscope(&log.text),
            Some(Form::ChromeTrace) => timeline::read_chrome(&log.text),
            None => Err(t!("the text holds no output of py-spy").to_owned()),
        };
        if progress.is_cancelled() {
            return Err(ImportError::Cancelled { file: input.name() });
        }
        let mut recording = read.map_err(|cause| ImportError::content(cause, input.name()))?;
        if let Some(cut) = log.cut {
            recording.warn("cut", cut);
        }
        Ok(recording)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::import::import;
    use crate::model::{Clock, SourceKind, Stacks};

    fn read(text: &str) -> Recording {
        let recording =
            import(&Input::from_bytes("x", text.as_bytes().to_vec()), &Progress::default()).unwrap();
        assert_eq!(recording.kind, SourceKind::PySpy, "{text}");
        recording
    }

    /// Frames of a stack, innermost first.
    fn frames(recording: &Recording, nth: usize) -> Vec<String> {
        let stack = recording.stack_counts[nth].0;
        recording.stacks.frames(stack).map(|frame| Stacks::format_frame(&recording.strings, frame)).collect()
    }

    fn slices(recording: &Recording) -> Vec<(i64, i64, u16, &str)> {
        (0..recording.slices.len())
            .map(|row| recording.slices.get(row))
            .map(|one| (one.range.start_ns, one.range.end_ns, one.depth, recording.strings.get(one.name)))
            .collect()
    }

    #[test]
    fn dumps_with_locals_as_text_and_as_json() {
        let dump = read(
            "Process 1004: python3 train.py --lr 1\nPython v3.12.3 (/usr/bin/python3.12)\n\nThread 1004 (active+gil): \"MainThread\"\n    step (train.py:12)\n        Arguments:\n            x: (1, 2)\n    <module> (train.py:40)\nThread 1010 (idle): \"worker (a)\"\n    wait (threading.py:5)\n",
        );
        assert_eq!((dump.format, dump.process.pid), ("py-spy dump", Some(1004)));
        assert_eq!(frames(&dump, 0), ["train.py:12 step", "train.py:40 <module>"]);
        assert_eq!(frames(&dump, 1), ["threading.py:5 wait"]);
        let json = read(
            r#"[{"pid": 1004, "thread_id": 5, "thread_name": "MainThread", "os_thread_id": 1004, "active": true, "owns_gil": true, "frames": [{"name": "step", "filename": "/home/me/train.py", "short_filename": "train.py", "line": 12}, {"name": "<module>", "filename": "/home/me/train.py", "line": 40}]}]"#,
        );
        assert_eq!(frames(&json, 0), ["train.py:12 step", "train.py:40 <module>"]);
        assert_eq!(json.process.pid, Some(1004));
    }

    #[test]
    fn folded_stacks_with_blanks_and_carriage_returns() {
        let folded = read("<module> (train.py:40);A.step (train.py:12) 37\r\n<module> (train.py:40) 3\r\n");
        assert_eq!(frames(&folded, 0), ["train.py:12 A.step", "train.py:40 <module>"]);
        let counts: Vec<u64> = folded.stack_counts.iter().map(|&(_, count)| count).collect();
        assert_eq!((counts, folded.span), (vec![37, 3], None));
    }

    #[test]
    fn samples_become_nested_slices() {
        let scope = read(
            r#"{"$schema":"https://www.speedscope.app/file-format-schema.json","profiles":[{"type":"sampled","name":"Thread 1 \"Main\"","unit":"seconds","startValue":0.0,"endValue":0.06,"samples":[[1,0],[1,0],[1]],"weights":[0.02,0.02,0.02]}],"shared":{"frames":[{"name":"step","file":"/a/train.py","line":12,"col":null},{"name":"<module>","file":"/a/train.py","line":40,"col":null}]}}"#,
        );
        assert_eq!(scope.clock, Clock::Relative);
        assert_eq!(
            slices(&scope),
            [(0, 60_000_000, 0, "train.py:40 <module>"), (0, 40_000_000, 1, "train.py:12 step")]
        );
        assert_eq!(scope.stack_counts.len(), 2);
    }

    #[test]
    fn begin_and_end_events_become_slices_even_when_cut() {
        let event = |name: &str, line: u32, phase: &str, ts: u32| {
            format!(
                r#"{{"args":{{"filename":"/a/train.py","line":{line}}},"cat":"py-spy","name":"{name}","ph":"{phase}","pid":7,"tid":9,"ts":{ts}}}"#
            )
        };
        let events = [
            event("main", 40, "B", 10),
            event("step", 12, "B", 10),
            event("step", 12, "E", 30),
            event("main", 40, "E", 50),
        ];
        let whole = read(&format!("[{}]", events.join(",")));
        assert_eq!(
            slices(&whole),
            [(10_000, 50_000, 0, "train.py:40 main"), (10_000, 30_000, 1, "train.py:12 step")]
        );
        assert_eq!(whole.process.pid, Some(7));
        let cut = read(&format!("[{},{{\"args\":", events[..3].join(",")));
        assert_eq!(slices(&cut).len(), 2);
        assert!(cut.warnings.iter().any(|warning| warning.code == "cut"));
    }
}
