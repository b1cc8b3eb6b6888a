//! The boxed table that plain `nvidia-smi` prints, once or again and again (`-l`, `watch`, a shell loop), and the one
//! of `nvitop -1`, which draws the same with finer lines.

use std::borrow::Cow;
use std::sync::LazyLock;

use regex::Regex;

use super::samples::{MIB, Samples, is_failure_line, parse_cell};
use crate::import::text::{LogText, without_prefix};
use crate::import::wall_time::find_stamp;
use crate::import::{ImportError, Input, Progress};
use crate::model::{Device, Quantity, Recording};
use crate::text::t;

struct Patterns {
    /// `|   0  NVIDIA H200    On  | 00000000:01:00.0 Off |`
    gpu: Regex,
    /// `|   0 30%  35C  P8   14W / 300W |`: nvitop's narrow table has one line a GPU.
    narrow: Regex,
    /// `21544MiB / 24564MiB`, nvitop's `22.69MiB / 47.99GiB`
    memory: Regex,
    /// `|  0    3   0   0  |           14366MiB / 19968MiB    |`
    mig: Regex,
    /// `|    0   N/A  N/A   40213   C   .../bin/python   20916MiB |`
    process: Regex,
    /// `|   0  205220 C ikissa+   497MiB   0   0.0   0.3  0:42  python3 train.py |`
    nvitop_process: Regex,
}

static PATTERNS: LazyLock<Option<Patterns>> = LazyLock::new(|| {
    Some(Patterns {
        gpu: Regex::new(r"^\|\s+(?P<index>\d+)\s+(?P<name>\S.*?)\s{2,}.*[0-9A-Fa-f]{4,8}:[0-9A-Fa-f]{2}:").ok()?,
        narrow: Regex::new(r"^\|\s+(?P<index>\d+)\s+\S").ok()?,
        memory: Regex::new(r"(?P<used>[\d.]+[KMGT]?i?B)\s*/\s*(?P<total>[\d.]+[KMGT]iB)").ok()?,
        mig: Regex::new(
            r"^\|\s+(?P<gpu>\d+)\s+(?P<gi>\d+)\s+(?P<ci>\d+)\s+\d+\s*\|\s*(?P<used>[\d.]+[KMG]iB)\s*/\s*(?P<total>[\d.]+[KMG]iB)",
        )
        .ok()?,
        process: Regex::new(
            r"^\|\s+(?P<gpu>\d+)\s+(?:(?:N/A|\d+)\s+(?:N/A|\d+)\s+)?(?P<pid>\d+)\s+(?P<type>[CGM+]{1,5})\s+(?P<name>\S.*?)\s+(?P<used>\d+MiB|N/A)\s*\|?\s*$",
        )
        .ok()?,
        nvitop_process: Regex::new(
            r"^\|\s*(?P<gpu>\d+)\s+(?P<pid>\d+)\s+(?P<type>[CGX+]{1,3})\s+(?P<user>\S+)\s+(?P<used>[\d.]+[KMGT]?i?B|N/A)\s.*?\s(?:\d+:\d[\d:]*|[\d.]+ days)\s+(?P<name>\S.*?)\s*\|?\s*$",
        )
        .ok()?,
    })
});

/// Whether a text holds the box.
pub(super) fn detect(text: &str) -> bool {
    text.lines().take(400).any(|line| begins_box(&plain_lines(line)))
}

fn begins_box(line: &str) -> bool {
    line.contains("| NVIDIA-SMI ") || line.contains("| NVITOP ")
}

/// nvitop's fine lines as nvidia-smi draws them.
fn plain_lines(line: &str) -> Cow<'_, str> {
    if !line.contains(|c: char| ('\u{2500}'..='\u{257f}').contains(&c)) {
        return Cow::Borrowed(line);
    }
    let plain = |c: char| match c {
        '│' | '║' => '|',
        '─' | '═' => '-',
        '\u{2500}'..='\u{257f}' => '+',
        _ => c,
    };
    Cow::Owned(line.chars().map(plain).collect())
}

/// Reads every box.
pub(super) fn import(input: &Input, progress: &Progress, log: LogText) -> Result<Recording, ImportError> {
    let mut samples = Samples::new("nvidia-smi table");
    let Some(patterns) = PATTERNS.as_ref() else {
        return Err(ImportError::content(t!("the table can't be read"), input.name()));
    };
    let mut device: Option<Device> = None;
    let mut pending_stamp = None;
    let mut in_mig = false;
    let mut in_processes = false;
    for line in log.text.lines() {
        let line = plain_lines(without_prefix(line));
        let line = line.as_ref();
        if begins_box(line) {
            if line.contains("NVITOP") {
                samples.recording().format = "nvitop table";
            }
            if progress.is_cancelled() {
                return Err(ImportError::Cancelled { file: input.name() });
            }
            match pending_stamp.take() {
                Some(stamp) => samples.set_time(stamp),
                None => samples.next_untimed(),
            }
            (device, in_mig, in_processes) = (None, false, false);
        } else if !line.trim_start().starts_with(['|', '+']) {
            // The time stands above the box, or in the line that `watch` writes at the top.
            if let Some(stamp) = find_stamp(line) {
                pending_stamp = Some(stamp);
            } else if is_failure_line(line) {
                samples.gpu_failed(Device::default(), line);
            } else if let Some(at) = line.find("  ") {
                pending_stamp = find_stamp(&line[at..]).or(pending_stamp);
            }
        } else if line.contains("MIG devices:") {
            in_mig = true;
        } else if line.contains("Processes:") {
            (in_mig, in_processes) = (false, true);
        } else if in_processes {
            let found = patterns.process.captures(line).or_else(|| patterns.nvitop_process.captures(line));
            if let Some(found) = found {
                let gpu = found["gpu"].parse().unwrap_or(0);
                if let (Ok(pid), Some(bytes)) = (found["pid"].parse(), parse_cell(&found["used"], MIB)) {
                    samples.process(Device::cuda(gpu), pid, &found["name"], bytes);
                }
            }
        } else if in_mig {
            if let Some(found) = patterns.mig.captures(line) {
                let gpu = Device::cuda(found["gpu"].parse().unwrap_or(0));
                if let Some(used) = parse_cell(&found["used"], MIB) {
                    samples.mig(gpu, &found["gi"], &found["ci"], used);
                }
            }
        } else {
            if device.is_none() && patterns.memory.is_match(line) {
                let found = patterns.narrow.captures(line);
                device = found.and_then(|found| found["index"].parse().ok()).map(Device::cuda);
            }
            if let Some(found) = patterns.gpu.captures(line) {
                let of_row = Device::cuda(found["index"].parse().unwrap_or(0));
                samples.device(of_row, &found["name"], "", None);
                device = Some(of_row);
            } else if let (Some(of_row), Some(found)) = (device, patterns.memory.captures(line)) {
                samples.count_row();
                let bytes = |name: &str| parse_cell(&found[name], MIB);
                if let Some(used) = bytes("used") {
                    samples.gpu(Quantity::DriverUsed, of_row, used);
                }
                if let Some(total) = bytes("total") {
                    samples.gpu(Quantity::Capacity, of_row, total);
                    samples.device(of_row, "", "", u64::try_from(total).ok());
                }
                device = None;
            } else if line.contains("ERR!")
                && let Some(of_row) = device
            {
                samples.gpu_failed(of_row, &format!("{of_row}: ERR!"));
            }
        }
    }
    samples.finish(input, log.cut)
}

#[cfg(test)]
mod tests {
    use crate::import::{Input, Progress, import};
    use crate::model::{Clock, Device, Quantity};

    const BOX: &str = "\
+-----------------------------------------------------------------------------------------+
| NVIDIA-SMI 580.95.05              Driver Version: 580.95.05      CUDA Version: 13.0     |
|-----------------------------------------+------------------------+----------------------+
| GPU  Name                 Persistence-M | Bus-Id          Disp.A | Volatile Uncorr. ECC |
|=========================================+========================+======================|
|   0  NVIDIA GeForce RTX 4090        Off |   00000000:01:00.0 Off |                  Off |
| 41%   63C    P2            311W /  450W |   21544MiB /  24564MiB |     97%      Default |
|                                         |                        |                  N/A |
|   1  NVIDIA GeForce RTX 4090        Off |   00000000:02:00.0 Off |                  Off |
|ERR!   63C    P2            311W /  450W |     544MiB /  24564MiB |     97%      Default |
+-----------------------------------------+------------------------+----------------------+
| MIG devices:                                                                            |
|  0    3   0   0  |           14366MiB / 19968MiB    | 42      0 |  3   0    2    0    0 |
|                  |               2MiB / 32767MiB    |           |                       |
+-----------------------------------------------------------------------------------------+
| Processes:                                                                              |
|  GPU   GI   CI              PID   Type   Process name                        GPU Memory |
|    0   N/A  N/A           40213      C   .../envs/t/bin/python                 20916MiB |
|    0         1234      G   /usr/lib/xorg/Xorg                   N/A
+-----------------------------------------------------------------------------------------+
";

    #[test]
    fn boxes_with_times_gpus_and_processes() {
        let text = format!("Mon Mar  2 09:15:00 2026       \n{BOX}Mon Mar  2 09:15:01 2026       \n{BOX}");
        let log = import(&Input::from_bytes("smi.log", text.into_bytes()), &Progress::default()).unwrap();
        assert_eq!((log.clock, log.format), (Clock::LocalWall, "nvidia-smi table"));
        let series = |quantity: Quantity, index: i64| {
            let found = log
                .series
                .iter()
                .find(|series| series.quantity == quantity && series.device == Device::cuda(index));
            found.unwrap().bytes.clone()
        };
        assert_eq!(series(Quantity::DriverUsed, 0), [21_544 << 20; 2]);
        assert_eq!(series(Quantity::DriverUsed, 1), [544 << 20; 2]);
        assert_eq!(series(Quantity::ProcessUsed, 0), [20_916 << 20; 2]);
        assert_eq!(series(Quantity::InstanceUsed("MIG 3/0 used".to_owned()), 0), [14_366 << 20; 2]);
        assert_eq!(log.devices[0].name, "NVIDIA GeForce RTX 4090");
        assert_eq!(log.series[0].times_ns[1] - log.series[0].times_ns[0], 1_000_000_000);
    }
    const NVITOP: &str = "\
Wed Feb 19 11:44:37 2025
╒═════════════════════════════════════════════════════════════════════════════╕
│ NVITOP 1.4.2       Driver Version: 550.90.12      CUDA Driver Version: 12.4 │
├───────────────────────────────┬──────────────────────┬──────────────────────┤
│ GPU  Name        Persistence-M│ Bus-Id        Disp.A │ MIG M.   Uncorr. ECC │
│ Fan  Temp  Perf  Pwr:Usage/Cap│         Memory-Usage │ GPU-Util  Compute M. │
╞═══════════════════════════════╪══════════════════════╪══════════════════════╪════════════════════╕
│   0  H800                Off  │ 00000000:18:00.0 Off │ Disabled           0 │ MEM: ▏ 0.6%        │
│ N/A   36C    P0    85W / 700W │    497MiB / 79.65GiB │      0%      Default │ UTL: ▏ 0%          │
├───────────────────────────────┼──────────────────────┼──────────────────────┼────────────────────┤
│   1  H800                Off  │ 00000000:3A:00.0 Off │ Disabled           0 │ MEM: ▏ 0.0%        │
│ N/A   36C    P0    83W / 700W │   3.50MiB / 79.65GiB │      0%      Default │ UTL: ▏ 0%          │
╘═══════════════════════════════╧══════════════════════╧══════════════════════╧════════════════════╛
[ CPU: ▏ 0.3%                                UPTIME: 22:52:42 ]  ( Load Average:  0.15  0.07  0.08 )
[ MEM: ▍ 0.8%                                   USED: 7.92GiB ]  [ SWP: ▏ 0.0%                     ]

╒══════════════════════════════════════════════════════════════════════════════════════════════════╕
│ Processes:                                                                       me@node16       │
│ GPU     PID      USER  GPU-MEM %SM  %CPU  %MEM  TIME  COMMAND                                    │
╞══════════════════════════════════════════════════════════════════════════════════════════════════╡
│   0  205220 C ikissa+   497MiB   0   0.0   0.3  0:42  python3 ex4.py                             │
╘══════════════════════════════════════════════════════════════════════════════════════════════════╛
";

    const NVITOP_NARROW: &str = "\
╒═════════════════════════════════════════════════════════════════════════════╕
│ NVITOP 1.3.2        Driver Version: 570.144       CUDA Driver Version: 12.8 │
├───────────────────────────────┬──────────────────────┬──────────────────────┤
│ GPU Fan Temp Perf Pwr:Usg/Cap │         Memory-Usage │ GPU-Util  Compute M. │
╞═══════════════════════════════╪══════════════════════╪══════════════════════╪════════════════════════════════════════╕
│   0 30%  35C  P8   14W / 300W │  22.69MiB / 47.99GiB │      0%      Default │ MEM: ▏ 0.0%                            │
├───────────────────────────────┼──────────────────────┼──────────────────────┼────────────────────────────────────────┤
│   1 MAX  36C  P8   11W / 300W │        0B / 47.99GiB │      0%      Default │ MEM: ▏ 0.0%                            │
";

    #[test]
    fn nvitop_in_both_widths() {
        let read = |text: &str| {
            import(&Input::from_bytes("nvitop.log", text.as_bytes().to_vec()), &Progress::default()).unwrap()
        };
        let bytes = |log: &crate::model::Recording, quantity: Quantity, index: i64| {
            let is_it = |series: &&crate::model::Series| {
                series.quantity == quantity && series.device == Device::cuda(index)
            };
            log.series.iter().find(is_it).unwrap().bytes.clone()
        };
        let log = read(NVITOP);
        assert_eq!((log.format, log.clock), ("nvitop table", Clock::LocalWall));
        assert_eq!(bytes(&log, Quantity::DriverUsed, 0), [497 << 20]);
        assert_eq!(bytes(&log, Quantity::DriverUsed, 1), [7 << 19]);
        assert_eq!(bytes(&log, Quantity::ProcessUsed, 0), [497 << 20]);
        let process = log.series.iter().find(|series| series.pid.is_some()).unwrap();
        assert_eq!((process.pid, process.process_name.as_str()), (Some(205_220), "python3 ex4.py"));
        let log = read(NVITOP_NARROW);
        assert_eq!(bytes(&log, Quantity::DriverUsed, 0), [(22.69 * f64::from(1 << 20)).round() as i64]);
        assert_eq!(bytes(&log, Quantity::DriverUsed, 1), [0]);
    }
}
