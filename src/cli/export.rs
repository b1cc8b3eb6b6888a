//! `vramscope export`: a table as CSV or Parquet, or a folder of Parquet files, one for each rank.

use std::path::{Path, PathBuf};

use anyhow::Context as _;
use rustc_hash::FxHashSet;

use super::args::{ExportArgs, Partition, TableFormat};
use super::ranks::Ranks;
use super::{Status, UsageError, open};
use crate::analysis::{Index, Selection};
use crate::model::ProcessId;
use crate::report::tables::{self, Table};
use crate::report::{WriteError, write_file};
use crate::text::t;

pub(super) fn run(args: &ExportArgs) -> anyhow::Result<Status> {
    let path = args.output.path();
    if let Some(Partition::Rank) = args.partition {
        let folder = path.ok_or_else(|| UsageError(t!("--partition needs -o FOLDER").to_owned()))?;
        return partition(args, args.format.unwrap_or(TableFormat::Parquet), folder);
    }
    let format = args.output.format(args.format, TableFormat::Csv)?;
    args.output.spare(&args.inputs.files, &args.inputs.reading)?;
    let loaded = open::open(&args.inputs.files, &args.inputs.reading)?;
    let status = loaded.complain()?;
    let mut frame = args.table.build(&loaded.index, Selection::of(&loaded.index.session))?;
    args.output.write(|out| match format {
        TableFormat::Csv => Ok(tables::write_csv(&frame, out)?),
        TableFormat::Parquet => Ok(tables::write_parquet(&mut frame, out)?),
    })?;
    Ok(status)
}

fn partition(args: &ExportArgs, format: TableFormat, folder: &Path) -> anyhow::Result<Status> {
    // Its readers would take the ranks of both for one run.
    if holds_ranks(folder) {
        return Err(UsageError(t!(
            "the folder holds the ranks of an earlier export already: {path}",
            path = folder.display()
        ))
        .into());
    }
    let mut dataset = Dataset::new(folder, args.table, format);
    let status = match Ranks::of(&args.inputs.files, args.one_by_one) {
        // A log that belongs to no rank would be in every part.
        Some(ranks) => ranks
            .each(&args.inputs.reading, false, |index| dataset.add(index))
            .map(|failed| Status::with(&failed))?,
        None => {
            let loaded = open::open(&args.inputs.files, &args.inputs.reading)?;
            let status = loaded.complain()?;
            dataset.add(&loaded.index)?;
            status
        }
    };
    dataset.finish()?;
    Ok(status)
}

/// `FOLDER/rank=0/part-0.parquet` for each rank, as Hive lays tables out: polars, DuckDB and Spark read the folder as one
/// table. One process at a time is held as a table.
struct Dataset<'a> {
    folder: &'a Path,
    table: Table,
    extension: &'static str,
    /// The ranks that are written.
    ranks: FxHashSet<u32>,
    /// Written, but of a process without a rank, or with another's: their numbers follow the ranks, which are known at
    /// the end only.
    unnumbered: Vec<PathBuf>,
}

impl<'a> Dataset<'a> {
    fn new(folder: &'a Path, table: Table, format: TableFormat) -> Self {
        let extension = match format {
            TableFormat::Csv => "csv",
            TableFormat::Parquet => "parquet",
        };
        Self { folder, table, extension, ranks: FxHashSet::default(), unnumbered: Vec::new() }
    }

    fn part_of(&self, rank: u32) -> anyhow::Result<PathBuf> {
        let folder = self.folder.join(format!("rank={rank}"));
        make_folder(&folder)?;
        Ok(folder.join(format!("part-0.{}", self.extension)))
    }

    /// Writes the processes of a session.
    fn add(&mut self, index: &Index) -> anyhow::Result<()> {
        make_folder(self.folder)?;
        let all = Selection::of(&index.session);
        for id in (0..index.session.processes.len() as u32).map(ProcessId) {
            let selection = Selection { process: Some(id), ..all };
            let mut frame = tables::plain_texts(self.table.build(index, selection)?)?;
            // The folder's name holds it; a column of the same name would be there twice.
            if frame.schema().contains("rank") {
                frame.drop_in_place("rank")?;
            }
            let path = match index.session.process(id).rank.filter(|&rank| self.ranks.insert(rank)) {
                Some(rank) => self.part_of(rank)?,
                None => {
                    let name = format!(".part-{}.{}", self.unnumbered.len(), self.extension);
                    self.unnumbered.push(self.folder.join(&name));
                    self.folder.join(name)
                }
            };
            write_file(&path, |file| match self.extension {
                "csv" => Ok(tables::write_csv(&frame, file)?),
                _ => Ok(tables::write_parquet(&mut frame, file)?),
            })?;
        }
        Ok(())
    }

    /// Numbers those without a rank.
    fn finish(self) -> anyhow::Result<()> {
        let first = self.ranks.iter().max().map_or(0, |highest| highest.saturating_add(1));
        for (number, path) in (first..).zip(&self.unnumbered) {
            let part = self.part_of(number)?;
            std::fs::rename(path, &part).map_err(|error| WriteError { cause: error.into(), path: part })?;
        }
        Ok(())
    }
}

fn holds_ranks(folder: &Path) -> bool {
    let entries = folder.read_dir().into_iter().flatten().flatten();
    entries.into_iter().any(|entry| entry.file_name().to_string_lossy().starts_with("rank="))
}

fn make_folder(folder: &Path) -> anyhow::Result<()> {
    std::fs::create_dir_all(folder)
        .with_context(|| t!("the folder can't be made: {path}", path = folder.display()))
}
