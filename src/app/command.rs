//! What the user can ask for. Drawing emits commands; they are applied in one place.

use std::path::PathBuf;

use super::sides::Side;
use super::sorting::{DifferenceColumn, GroupColumn, NetColumn, RankColumn, RowColumn};
use super::state::{Dialog, ExportForm, LiveView, NetView, Note, Selected, SettingsForm, Tab};
use crate::analysis::{FlameOrder, FreeBy, GroupBy, RowRef, Selection};
use crate::model::{SourceId, TimeRange};
use crate::text::Language;

/// Where a rank is opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Placing {
    /// In the place of the ranks that are open.
    Alone,
    /// Beside them.
    Beside,
}

/// Something to do.
#[derive(Clone, Debug, PartialEq)]
pub enum Command {
    /// Add files and folders to the session.
    Open(Vec<PathBuf>),
    /// Ask the system for files.
    AskForFiles,
    /// Ask the system for a folder.
    AskForFolder,
    /// Open one of the samples.
    OpenSample(&'static str),
    /// Read all files again.
    Reload,
    /// Take a file out of the session.
    CloseSource(SourceId),
    /// Take all files out.
    CloseAll,
    /// Stop reading a file.
    CancelFile(usize),
    /// Stop reading all files.
    CancelAll,
    /// Set an offset by hand, or let it be found again.
    SetOffset(SourceId, Option<i64>),
    /// Number the GPUs of a driver's log as `CUDA_VISIBLE_DEVICES` lists them; empty as the log does.
    SetVisibleDevices(SourceId, Vec<i8>),

    /// Brush: the pointer is still moving it.
    MoveRange(TimeRange),
    /// Brush: the pointer has let go.
    SetRange(Option<TimeRange>),
    /// Show what grows the most.
    SuggestGrowth,
    /// The next or previous suggestion or step.
    GoToStep(i64),
    /// Show where allocated memory is highest.
    GoToPeak,
    /// Set the instant of the live set.
    SetCursor(Option<i64>),

    /// Zoom by a factor, below 1 is closer, around an instant or the middle.
    Zoom(Option<i64>, f64),
    /// Pan by a share of the view.
    Pan(f64),
    /// Show exactly this.
    Show(TimeRange),
    /// Show the range.
    FitRange,
    /// Show everything.
    FitAll,
    /// The view before.
    ViewBack,
    /// The view after.
    ViewForward,

    /// Whose memory.
    SetSelection(Selection),
    /// What "never freed" means.
    SetFreeBy(FreeBy),
    /// What rows are summed by.
    SetGroupBy(GroupBy),
    /// What tables are filtered by.
    SetFilter(String),
    /// A click on a header.
    SortRows(RowColumn),
    /// A click on a header.
    SortGroups(GroupColumn),
    /// A click on a header.
    SortNets(NetColumn),
    /// A click on a header.
    SortDifferences(DifferenceColumn),
    /// A click on a header.
    SortRanks(RankColumn),
    /// Open a rank, by its place, in the place of the ranks that are open or beside them.
    OpenRank(usize, Placing),
    /// Open all ranks at once.
    OpenAllRanks,
    /// Stop summing ranks up.
    StopSurvey,
    /// What is compared, A and B.
    Compare([Side; 2]),
    /// How large the allocation map is drawn, in columns and rows of pixels; nothing while it is folded.
    SetMapPixels(Option<[u32; 2]>),
    /// List allocations one by one, or groups.
    SetFlat(bool),
    /// What the net tab shows.
    SetNetView(NetView),
    /// What the live tab shows.
    SetLiveView(LiveView),
    /// Fold the modules inside one, or unfold them.
    ToggleModule(String),
    /// Which end of the stacks is the root of the flame graph.
    SetFlameOrder(FlameOrder),
    /// Bring a tab to the front.
    ShowTab(Tab),
    /// Put the keyboard into the filter.
    FocusFilter,
    /// The filter has the keyboard now.
    FilterFocused,
    /// Select something.
    Select(Option<Selected>),
    /// Select the row below (1) or above (−1) in the table in front.
    SelectNext(isize),
    /// Select an allocation besides those that are, or not any more.
    SelectAlso(RowRef),
    /// Show where in time the selected thing is.
    RevealSelected,

    /// Undo a change of range, selection, filter or offset.
    Undo,
    /// Undo the undoing.
    Redo,
    /// Esc: close what is open, else clear the range.
    Escape,

    /// Show a curve or not.
    ToggleCurve(String),
    /// Show a source's curves or not.
    ToggleSource(PathBuf),
    /// Fold a track or unfold it.
    ToggleTrack(&'static str),
    /// What the blocks of the allocation map are coloured by.
    SetColorBy(GroupBy),
    /// Move a track up (−1) or down (1).
    MoveTrack(&'static str, i32),
    /// Hide a column of a table or show it, by table and name.
    ToggleColumn(&'static str, &'static str),
    /// Write figures to the last byte, or in units that suit them.
    ToggleExactBytes,
    /// Copy the table in front.
    CopyTable,
    /// Open the dialog that saves the table in front.
    AskToSaveTable,
    /// Write the table in front as CSV.
    SaveTable(PathBuf),
    /// Give a track another height, in points.
    ResizeTrack(&'static str, f32),
    /// Fold the sources panel or unfold it.
    ToggleSources,
    /// Fold the details panel or unfold it.
    ToggleDetails,
    /// Show or hide C++ frames that only pass a call on.
    ToggleAllFrames,
    /// Open the dialog of the settings.
    AskForSettings,
    /// Change the settings; what they change is read again.
    Set(SettingsForm),
    /// Dark, light, or as the system.
    SetTheme(egui::ThemePreference),

    /// Speak a language, or that of the system.
    SetLanguage(Option<Language>),
    /// Change the SQL statement.
    SetSql(String),
    /// Ask the SQL statement.
    RunSql,
    /// Write the session into a file.
    SaveSession(PathBuf),
    /// Pin a note to a time.
    AddNote(Note),
    /// Take a note away.
    RemoveNote(usize),
    /// Open a dialog.
    ShowDialog(Dialog),
    /// Open the dialog that saves the session.
    AskToSave,
    /// Open the export dialog.
    AskForReport,
    /// Ask the system where to write the report.
    AskForReportPath(ExportForm),
    /// Write a report.
    Export(ExportForm),
    /// Close the dialog.
    CloseDialog,
    /// Put text on the clipboard.
    Copy(String),
    /// Take a message off the screen.
    Dismiss(usize),
    /// Close the window.
    Quit,
}
