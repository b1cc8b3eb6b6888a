//! `dmon` and `pmon`: columns under two `#` lines, the first with names, the second with units.

use super::samples::{MIB, Samples, is_failure_line, is_missing, parse_cell};
use crate::import::text::{LogText, without_prefix};
use crate::import::wall_time::find_stamp;
use crate::import::{ImportError, Input, Progress};
use crate::model::{Device, Quantity, Recording};
use crate::text::t;

/// How often the user's wish to stop is looked at, in lines.
const CANCEL_LINES: usize = 4096;

/// Whether a text has the header line of `dmon` or `pmon`.
pub(super) fn detect(text: &str) -> bool {
    text.lines().take(200).any(|line| header(without_prefix(line)).is_some())
}

/// The names of a header line; `None` for any other line, the one with the units too.
fn header(line: &str) -> Option<Vec<String>> {
    let line = line.trim_start().strip_prefix('#')?;
    let names: Vec<String> = cells(line).map(str::to_ascii_lowercase).collect();
    let has = |name: &str| names.iter().any(|known| known == name);
    (has("gpu") && (has("sm") || has("fb") || has("pwr") || has("pid") || has("mclk"))).then_some(names)
}

/// Cells are separated by blanks, and by commas where the tool was asked for CSV.
fn cells(line: &str) -> impl Iterator<Item = &str> {
    line.split(|c: char| c.is_whitespace() || c == ',').filter(|cell| !cell.is_empty())
}

/// Reads the log.
pub(super) fn import(input: &Input, progress: &Progress, log: LogText) -> Result<Recording, ImportError> {
    let mut samples = Samples::new("nvidia-smi dmon");
    let mut names: Vec<String> = Vec::new();
    let mut has_fb = false;
    let mut first_gpu = None;
    for (index, line) in log.text.lines().enumerate() {
        if index % CANCEL_LINES == 0 && progress.is_cancelled() {
            return Err(ImportError::Cancelled { file: input.name() });
        }
        let line = without_prefix(line).trim();
        if let Some(found) = header(line) {
            has_fb |= found.iter().any(|name| name == "fb");
            if found.iter().any(|name| name == "pid") {
                samples.recording().format = "nvidia-smi pmon";
            }
            names = found;
            continue;
        }
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        if is_failure_line(line) {
            samples.gpu_failed(Device::default(), line);
            continue;
        }
        let row: Vec<&str> = cells(line).collect();
        let at = |name: &str| names.iter().position(|known| known == name);
        let cell = |name: &str| at(name).and_then(|at| row.get(at).copied());
        let gpu = cell("gpu").and_then(|gpu| gpu.parse::<i64>().ok());
        let Some(gpu) = gpu.filter(|_| row.len() + 1 >= names.len()) else {
            samples.lose_row(index as u64 + 1);
            continue;
        };
        if at("date").is_some() || at("time").is_some() {
            match find_stamp(line) {
                Some(stamp) => samples.set_time(stamp),
                None => {
                    samples.lose_row(index as u64 + 1);
                    continue;
                }
            }
        } else if *first_gpu.get_or_insert(gpu) == gpu {
            // Without times the first GPU's row begins a sample.
            samples.next_untimed();
        }
        samples.count_row();
        let device = Device::cuda(gpu);
        samples.device(device, "", "", None);
        let bytes = cell("fb").and_then(|fb| parse_cell(fb, MIB));
        match (at("pid"), bytes) {
            (None, Some(bytes)) => samples.gpu(Quantity::DriverUsed, device, bytes),
            (Some(_), Some(bytes)) => {
                let name = at("command")
                    .and_then(|command| row.get(command..))
                    .map(|words| words.join(" "))
                    .unwrap_or_default();
                if let Some(pid) = cell("pid").filter(|pid| !is_missing(pid)).and_then(|pid| pid.parse().ok())
                {
                    samples.process(device, pid, &name, bytes);
                }
            }
            (_, None) => {}
        }
    }
    if !has_fb {
        return Err(ImportError::content(
            t!(
                "the log has no memory column fb (mem is how busy the memory is): run dmon or pmon with -s um"
            ),
            input.name(),
        ));
    }
    samples.finish(input, log.cut)
}

#[cfg(test)]
mod tests {
    use crate::import::{Input, Progress, import};
    use crate::model::{Clock, Quantity, Recording};

    fn read(text: &str) -> Recording {
        import(&Input::from_bytes("dmon.log", text.as_bytes().to_vec()), &Progress::default()).unwrap()
    }

    #[test]
    fn dmon_with_date_and_repeated_header() {
        let header = "#Date       Time        gpu     sm    mem    enc    dec    fb   bar1\n#YYYYMMDD   HH:MM:SS    Idx      %      %      %      %    MB     MB\n";
        let log = read(&format!(
            "{header} 20260302   09:15:00      0     97     61      0      0  21544      9\n 20260302   09:15:00      1      -      -      -      -  12004      5\n{header} 20260302   09:15:01      0     97     61      0      0      -      9\n"
        ));
        assert_eq!((log.clock, log.events, log.lost.events), (Clock::LocalWall, 3, 0));
        let used: Vec<(i8, &[i64])> =
            log.series.iter().map(|series| (series.device.index, &series.bytes[..])).collect();
        assert_eq!(used, [(0, &[21_544_i64 << 20][..]), (1, &[12_004_i64 << 20][..])]);
    }

    #[test]
    fn dmon_without_times_and_pmon_with_time_only() {
        let log = read(
            "# gpu    pwr     sm    fb\n# Idx      W      %    MB\n    0     78      0   600\n    1     78      0   700\n    0     78      0   610\n    1     78      0   710\n",
        );
        assert_eq!(log.clock, Clock::Order);
        assert_eq!(log.series[0].times_ns, [0, 1_000_000_000]);
        assert_eq!(log.series[1].times_ns, [0, 1_000_000_000]);
        let log = read(
            "#Time        gpu         pid   type     sm    mem     fb   command\n#HH:MM:SS    Idx           #    C/G      %      %     MB   name\n 23:59:59      0       40213      C     95     60  20916   python train.py\n 00:00:01      0       40213      C     95     60  20917   python train.py\n 00:00:01      1           -      -      -      -      -   -\n",
        );
        assert_eq!((log.clock, log.format), (Clock::LocalTimeOfDay, "nvidia-smi pmon"));
        let series = &log.series[0];
        assert_eq!((&series.quantity, series.pid), (&Quantity::ProcessUsed, Some(40_213)));
        assert_eq!(series.process_name, "python train.py");
        assert_eq!(series.times_ns[1] - series.times_ns[0], 2_000_000_000);
    }

    #[test]
    fn without_fb_it_says_which_flag_to_use() {
        let text = "# gpu    pwr     sm    mem\n# Idx      W      %      %\n    0     78      0     12\n";
        let error =
            import(&Input::from_bytes("x", text.as_bytes().to_vec()), &Progress::default()).unwrap_err();
        assert!(error.to_string().contains("-s um"), "{error}");
    }
}
