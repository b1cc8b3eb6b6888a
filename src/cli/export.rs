//! `vramscope export`: a table as CSV or Parquet, or a folder of Parquet files, one for each rank.

use std::fs;
use std::path::Path;

use anyhow::Context as _;

use super::args::{ExportArgs, Partition, TableFormat};
use super::{Status, UsageError, open, output};
use crate::analysis::{Index, Selection};
use crate::model::{ProcessId, Session};
use crate::report::tables::{self, Table};
use crate::report::write_file;

pub(super) fn run(args: &ExportArgs) -> anyhow::Result<Status> {
    let path = args.output.path();
    let format = match (args.format, path.and_then(Path::extension)) {
        (Some(format), _) => format,
        (None, Some(extension)) if extension.eq_ignore_ascii_case("parquet") => TableFormat::Parquet,
        (None, _) if args.partition.is_some() => TableFormat::Parquet,
        (None, _) => TableFormat::Csv,
    };
    let loaded = open::open(&args.inputs.files, &args.inputs.reading)?;
    let status = loaded.complain()?;
    match (args.partition, path) {
        (Some(Partition::Rank), Some(folder)) => partition(&loaded.index, args.table, format, folder)?,
        (Some(Partition::Rank), None) => {
            return Err(UsageError("--partition needs -o FOLDER".to_owned()).into());
        }
        (None, _) => {
            let mut frame = args.table.build(&loaded.index, Selection::default())?;
            let mut write = |out: &mut dyn std::io::Write| match format {
                TableFormat::Csv => tables::write_csv(&frame, out),
                TableFormat::Parquet => tables::write_parquet(&mut frame, out),
            };
            match path {
                Some(path) => write_file(path, |file| Ok(write(file)?))?,
                None => {
                    let mut bytes = Vec::new();
                    write(&mut bytes)?;
                    output::print(&bytes)?;
                }
            }
        }
    }
    Ok(status)
}

/// `FOLDER/rank=0/allocations.parquet` for each rank, as Hive lays tables out: polars, DuckDB and Spark read the folder
/// as one table. One process at a time is held as a table.
fn partition(index: &Index, table: Table, format: TableFormat, folder: &Path) -> anyhow::Result<()> {
    let session = &index.session;
    let extension = match format {
        TableFormat::Csv => "csv",
        TableFormat::Parquet => "parquet",
    };
    for id in (0..session.processes.len() as u32).map(ProcessId) {
        let rank_folder = folder.join(format!("rank={}", rank_of(session, id)));
        fs::create_dir_all(&rank_folder)
            .with_context(|| format!("the folder can't be made: {}", rank_folder.display()))?;
        let selection = Selection { process: Some(id), ..Selection::default() };
        let mut frame = table.build(index, selection)?;
        // The folder's name holds it; a column of the same name would be there twice.
        if frame.schema().contains("rank") {
            frame.drop_in_place("rank")?;
        }
        write_file(&rank_folder.join(format!("{}.{extension}", table.name())), |file| match format {
            TableFormat::Csv => Ok(tables::write_csv(&frame, file)?),
            TableFormat::Parquet => Ok(tables::write_parquet(&mut frame, file)?),
        })?;
    }
    Ok(())
}

/// The rank; processes without one, or with another's, are numbered after the ranks.
fn rank_of(session: &Session, id: ProcessId) -> u32 {
    let rank = |id: ProcessId| session.process(id).rank;
    let is_taken = |rank_value: u32| (0..id.0).any(|other| rank(ProcessId(other)) == Some(rank_value));
    match rank(id) {
        Some(rank) if !is_taken(rank) => rank,
        _ => {
            let highest = session.processes.iter().filter_map(|process| process.rank).max();
            highest.map_or(id.0, |highest| highest.saturating_add(1).saturating_add(id.0))
        }
    }
}
