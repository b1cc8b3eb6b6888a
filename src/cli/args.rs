//! The command line as clap reads it.

use std::ffi::OsString;
use std::path::PathBuf;
use std::str::FromStr;

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use clap::{Parser, Subcommand, ValueEnum};
use clap_complete::Shell;
use regex::Regex;

use super::output::Output;
use crate::analysis::{FreeBy, GroupBy};
use crate::model::time::{TimeSpec, TimeSpecError, parse_duration};
use crate::report::{Format, Table};
use crate::text::Language;

const EXAMPLES: &str = "\
EXAMPLES
  vramscope run/                                       open a folder in the window
  vramscope report run/ --format html -o report.html   what grew, where, and what to change
  vramscope report trace.json.gz snapshot.pickle --from step:8 --to step:16
  vramscope inspect run/                               what each file is";

const REPORT_EXAMPLES: &str = "\
EXAMPLES
  vramscope report run/                                      where memory grew, as Markdown
  vramscope report run/ --from step:8 --to step:16 -o kept.html
  vramscope report run/ --from +2s --to 80% --group-by op --format csv
  vramscope report run/ --format json | jq '.groups[0]'

TIMES
  step:8                  the start of step 8
  +1.25s                  after the session's start
  40%                     a share of the session
  1796104323.357          Unix seconds
  2026-12-01T05:52:03Z    RFC 3339

EXIT STATUS
  0 done, 1 an input could not be used, 2 wrong usage";

const QUERY_EXAMPLES: &str = "\
EXAMPLES
  vramscope query run/ 'SHOW TABLES'
  vramscope query run/ 'DESCRIBE allocations'          its columns; times are Unix nanoseconds
  vramscope query run/ 'SELECT * FROM steps'
  vramscope query run/ \"SELECT call_site, COUNT(*) AS count, SUM(size_bytes) AS bytes FROM allocations
                        WHERE state = 'kept' GROUP BY call_site ORDER BY bytes DESC LIMIT 10\"";

/// Tells what is holding your GPU memory.
#[derive(Debug, Parser)]
#[command(
    name = "vramscope",
    version = env!("VRAMSCOPE_VERSION"),
    about = "Tells what is holding your GPU memory",
    long_about = "Tells what is holding your GPU memory. Opens what a PyTorch run left behind (profiler traces, memory \
                  snapshots, nvidia-smi logs, memory summaries, training logs, py-spy stacks) on one time axis. \
                  Without a command it shows a window.",
    after_help = EXAMPLES
)]
pub struct Args {
    /// Files and folders to open in the window; of a run of many ranks, each is summed up and one can be opened
    #[arg(value_name = "FILE|FOLDER")]
    pub paths: Vec<PathBuf>,
    /// Speak English or Chinese [default: VRAMSCOPE_LANG, else English, and in the window the system's]
    #[arg(long, global = true, value_enum, value_name = "LANGUAGE")]
    pub language: Option<Language>,
    /// What to do instead of showing the window.
    #[command(subcommand)]
    pub command: Option<Command>,
}

/// What can be done without a window.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Say what each file is: counts, span, clock and alignment, warnings
    Inspect(InspectArgs),
    /// Report what was allocated in a range and never freed, where, and what to change
    #[command(after_help = REPORT_EXAMPLES)]
    Report(ReportArgs),
    /// Write a table as CSV or Parquet
    Export(ExportArgs),
    /// Ask with SQL: SELECT from the tables that SHOW TABLES lists, whose columns DESCRIBE names
    #[command(after_help = QUERY_EXAMPLES)]
    Query(QueryArgs),
    /// Compare what two runs keep
    Compare(CompareArgs),
    /// Print the Python that records everything vramscope can read
    Record(RecordArgs),
    /// Print the completions of a shell
    Completions {
        /// The shell
        shell: Shell,
    },
    /// Print the man page, or write one page for each command
    Man {
        /// Write the pages into this folder
        #[arg(short, long, value_name = "FOLDER")]
        output: Option<PathBuf>,
    },
}

/// Which files to open, and how.
#[derive(Clone, Debug, Default, clap::Args)]
pub struct Inputs {
    /// Files and folders
    #[arg(value_name = "FILE|FOLDER", required = true)]
    pub files: Vec<PathBuf>,
    /// How to read them.
    #[command(flatten)]
    pub reading: Reading,
}

/// How files are put together.
#[derive(Clone, Debug, Default, clap::Args)]
pub struct Reading {
    /// A part of a path that is your own code although it lies in an installed package (repeatable)
    #[arg(long, value_name = "PATH")]
    pub user_code: Vec<String>,
    /// Show C++ frames too that only pass a call on (unwinding, boxing, dispatch)
    #[arg(long)]
    pub all_frames: bool,
    /// What to add to a source's times, `train.log=-8h` (repeatable); `inspect` says what would lie outside then
    #[arg(long, value_name = "NAME=DURATION", allow_hyphen_values = true)]
    pub offset: Vec<Offset>,
    /// Move logs by the lag that `inspect` estimates: nvidia-smi shows a level some time after it is reached
    #[arg(long)]
    pub apply_lag: bool,
    /// The GPUs of nvidia-smi's logs that the run saw, as CUDA_VISIBLE_DEVICES lists them: `2,3` when its cuda:0 is GPU 2
    #[arg(long, value_name = "N,N", value_delimiter = ',', value_parser = clap::value_parser!(i8).range(0..))]
    pub visible_devices: Vec<i8>,
    /// A regular expression that finds memory figures in logs of your own; groups named allocated, reserved,
    /// max_allocated, max_reserved, mem, step say which, a single group without a name is allocated memory
    #[arg(long, value_name = "REGEX")]
    pub log_pattern: Option<Regex>,
}

/// `--offset NAME=DURATION`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Offset {
    /// The source's name.
    pub name: String,
    /// What to add to its times.
    pub offset_ns: i64,
}

impl FromStr for Offset {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let parts = text.rsplit_once('=').filter(|(name, _)| !name.trim().is_empty());
        let (name, duration) = parts.ok_or("write it as NAME=DURATION, `train.log=-8h`")?;
        let offset_ns = parse_duration(duration)
            .ok_or_else(|| format!("not a length of time: `{duration}`; write -8h, 30min, 1.5s or 200ms"))?;
        Ok(Self { name: name.to_owned(), offset_ns })
    }
}

/// Whose memory, and when.
#[derive(Clone, Debug, Default, clap::Args)]
pub struct Selecting {
    /// Where the range begins: step:8, +1.25s, 40%, Unix seconds or RFC 3339 [default: where memory grows]
    #[arg(long, value_name = "T", value_parser = time_spec, allow_hyphen_values = true)]
    pub from: Option<TimeSpec>,
    /// Where it ends, not included
    #[arg(long, value_name = "T", value_parser = time_spec, allow_hyphen_values = true)]
    pub to: Option<TimeSpec>,
    /// What "never freed" means
    #[arg(long, value_enum, default_value = "recording-end")]
    pub free_by: FreeBy,
    /// Only this device: 0, cuda:1, xpu:0, cpu or all [default: every GPU; the CPU where nothing else was recorded]
    #[arg(long, value_name = "N")]
    pub device: Option<String>,
    /// Only this process: the name of one of its files, `rank 1`, or its process id
    #[arg(long, value_name = "NAME")]
    pub source: Option<String>,
}

fn time_spec(text: &str) -> Result<TimeSpec, TimeSpecError> {
    text.parse()
}

impl ValueEnum for FreeBy {
    fn value_variants<'a>() -> &'a [Self] {
        &[Self::RecordingEnd, Self::RangeEnd]
    }

    fn to_possible_value(&self) -> Option<PossibleValue> {
        let help = match self {
            Self::RecordingEnd => "Not freed by the end of the recording",
            Self::RangeEnd => "Not freed by the end of the range",
        };
        Some(PossibleValue::new(self.name()).help(help))
    }
}

impl ValueEnum for Language {
    fn value_variants<'a>() -> &'a [Self] {
        &Self::ALL
    }

    fn to_possible_value(&self) -> Option<PossibleValue> {
        Some(PossibleValue::new(self.tag()))
    }
}

impl ValueEnum for GroupBy {
    fn value_variants<'a>() -> &'a [Self] {
        &Self::ALL
    }

    fn to_possible_value(&self) -> Option<PossibleValue> {
        Some(PossibleValue::new(self.name()))
    }
}

/// `--format` of a report.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ReportFormat {
    /// One file for a browser
    #[value(alias = "htm")]
    Html,
    /// Markdown, for an issue
    #[value(alias = "markdown")]
    Md,
    /// For scripts
    Json,
    /// The groups as a table
    Csv,
    /// The curves as a picture that scales
    Svg,
    /// The curves as a picture of pixels
    Png,
}

impl From<ReportFormat> for Format {
    fn from(arg: ReportFormat) -> Self {
        match arg {
            ReportFormat::Html => Self::Html,
            ReportFormat::Md => Self::Markdown,
            ReportFormat::Json => Self::Json,
            ReportFormat::Csv => Self::Csv,
            ReportFormat::Svg => Self::Svg,
            ReportFormat::Png => Self::Png,
        }
    }
}

/// `--format` of what is read in a terminal or by a script.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum TextFormat {
    /// For people
    #[default]
    Text,
    /// For scripts
    Json,
}

/// `inspect`.
#[derive(Clone, Debug, clap::Args)]
pub struct InspectArgs {
    /// Which files.
    #[command(flatten)]
    pub inputs: Inputs,
    /// How to write it
    #[arg(long, value_enum, default_value = "text")]
    pub format: TextFormat,
}

/// `report`.
#[derive(Clone, Debug, clap::Args)]
pub struct ReportArgs {
    /// Which files.
    #[command(flatten)]
    pub inputs: Inputs,
    /// Whose memory, and when.
    #[command(flatten)]
    pub selecting: Selecting,
    /// What survivors are summed by
    #[arg(long, value_enum, default_value = "call-site")]
    pub group_by: GroupBy,
    /// How to write it [default: by the name of the output file, else md]
    #[arg(long, value_enum)]
    pub format: Option<ReportFormat>,
    /// Where to.
    #[command(flatten)]
    pub output: Output,
    /// List every survivor instead of the largest 1,000
    #[arg(long)]
    pub all: bool,
    /// Replace the names of users, hosts, folders, files, boards and processes; of lines of logs only figures stay
    #[arg(long)]
    pub redact: bool,
    /// Replace the names of your own source files, functions and ops, and of modules, too
    #[arg(long)]
    pub redact_code: bool,
    /// Instead of the report, list what --redact replaces in it and what of yours would still leave
    #[arg(long, requires = "redact")]
    pub preview: bool,
    /// Hold one rank at a time: all ranks in a table, the worst (or --source) in full [default: from 17 files of ranks]
    #[arg(long)]
    pub one_by_one: bool,
}

impl ReportArgs {
    /// Whether names are replaced.
    pub fn is_redacted(&self) -> bool {
        self.redact || self.redact_code
    }
}

/// `export`.
#[derive(Clone, Debug, clap::Args)]
pub struct ExportArgs {
    /// Which files.
    #[command(flatten)]
    pub inputs: Inputs,
    /// Which table
    #[arg(long, value_name = "NAME", value_parser = table())]
    pub table: Table,
    /// How to write it [default: by the name of the output file, else csv]
    #[arg(long, value_enum)]
    pub format: Option<TableFormat>,
    /// Write a folder of Parquet files, one for each rank (`rank=0/…`)
    #[arg(long, value_enum)]
    pub partition: Option<Partition>,
    /// Hold one rank at a time [default: from 17 files of ranks]
    #[arg(long, requires = "partition")]
    pub one_by_one: bool,
    /// Where to.
    #[command(flatten)]
    pub output: Output,
}

fn table() -> impl TypedValueParser<Value = Table> {
    PossibleValuesParser::new(Table::ALL.map(Table::name))
        .try_map(|name| Table::of_name(&name).ok_or("no such table"))
}

/// `--format` of a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum TableFormat {
    /// Text with commas
    Csv,
    /// Apache Parquet
    Parquet,
}

/// `--partition`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Partition {
    /// By rank, or by process where there are no ranks
    Rank,
}

/// `query`.
#[derive(Clone, Debug, clap::Args)]
pub struct QueryArgs {
    /// Files and folders, then the SQL
    #[arg(value_names = ["FILE|FOLDER", "SQL"], required = true, num_args = 2..)]
    pub files_and_sql: Vec<OsString>,
    /// How to read the files.
    #[command(flatten)]
    pub reading: Reading,
    /// How to write the result [default: by the name of the output file, else text]
    #[arg(long, value_enum)]
    pub format: Option<QueryFormat>,
    /// Where to.
    #[command(flatten)]
    pub output: Output,
}

/// `--format` of a query's result.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum QueryFormat {
    /// A table for people, long ones cut
    #[value(alias = "txt")]
    Text,
    /// Text with commas
    Csv,
    /// An object for each row
    Json,
    /// Apache Parquet
    Parquet,
}

/// `compare`.
#[derive(Clone, Debug, clap::Args)]
pub struct CompareArgs {
    /// The run before: a file or folder
    #[arg(value_name = "A")]
    pub before: PathBuf,
    /// The run after
    #[arg(value_name = "B")]
    pub after: PathBuf,
    /// How to read them.
    #[command(flatten)]
    pub reading: Reading,
    /// How to write it [default: by the name of the output file, else text]
    #[arg(long, value_enum)]
    pub format: Option<CompareFormat>,
    /// Where to.
    #[command(flatten)]
    pub output: Output,
}

/// `--format` of a comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum CompareFormat {
    /// For people
    #[value(alias = "txt")]
    Text,
    /// Markdown, for an issue
    #[value(alias = "markdown")]
    Md,
    /// For scripts
    Json,
}

/// `record`.
#[derive(Clone, Debug, clap::Args)]
pub struct RecordArgs {
    /// How many steps the profiler records
    #[arg(long, value_name = "N", default_value_t = 6)]
    pub steps: u32,
    /// After how many steps the profiler starts
    #[arg(long, value_name = "N", default_value_t = 5)]
    pub after: u32,
    /// How many events the memory history keeps
    #[arg(long, value_name = "N", default_value_t = 1_000_000)]
    pub max_entries: u32,
    /// Leave the profiler out: the memory history alone costs little
    #[arg(long)]
    pub light: bool,
    /// The folder that the run writes into
    #[arg(long, value_name = "FOLDER", default_value = "vramscope-run")]
    pub folder: String,
}
