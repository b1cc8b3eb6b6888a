//! What the window knows. Drawing reads it; only commands change it.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::answers::Answers;
use super::data::Data;
use super::history::History;
use super::settings::Settings;
use super::sides::Side;
use super::sorting::{DifferenceColumn, GroupColumn, NetColumn, RankColumn, RowColumn, Sort};
use super::sql::Sql;
use super::survey::{Row, Survey};
use super::timeline::ColoredMap;
use super::timeline::view::TimeView;
use crate::align::Opened;
use crate::analysis::{FlameOrder, FreeBy, GroupBy, RowRef, Selection};
use crate::model::TimeRange;
use crate::report::{Format, LeftOut, Replacement};
use crate::text::t;

/// The tabs below the tracks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[expect(missing_docs, reason = "each is the tab of its name")]
pub enum Tab {
    #[default]
    Kept,
    Findings,
    Live,
    Net,
    Compare,
    Stacks,
    Segments,
    Sql,
    Ranks,
}

impl Tab {
    /// All of them, in the order they stand in.
    pub const ALL: [Self; 9] = [
        Self::Kept,
        Self::Findings,
        Self::Live,
        Self::Net,
        Self::Compare,
        Self::Stacks,
        Self::Segments,
        Self::Sql,
        Self::Ranks,
    ];

    /// The words for people.
    pub fn label(self) -> &'static str {
        match self {
            Self::Kept => t!("Kept"),
            Self::Findings => t!("Findings"),
            Self::Live => t!("Live"),
            Self::Net => t!("Net"),
            Self::Compare => t!("Compare"),
            Self::Stacks => t!("Stacks"),
            Self::Segments => t!("Segments"),
            Self::Sql => t!("SQL"),
            Self::Ranks => t!("Ranks"),
        }
    }
}

/// What the net tab shows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum NetView {
    /// What each group added.
    #[default]
    Groups,
    /// The modules as a tree.
    Modules,
    /// What the driver counts beside the allocator.
    Driver,
}

/// What the live tab shows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LiveView {
    /// All that is alive at the instant.
    #[default]
    All,
    /// What is alive at the instant and was not at the range's start.
    Added,
    /// What was alive at the range's start and is not at the instant.
    Gone,
}

/// What can be undone.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Choices {
    /// The brushed range; without it everything looks at the whole session.
    pub range: Option<TimeRange>,
    /// Whose memory.
    pub selection: Selection,
    /// What "never freed" means.
    pub free_by: FreeBy,
    /// What rows are summed by.
    pub group_by: GroupBy,
    /// What tables are filtered by.
    pub filter: String,
    /// How files lie beside each other.
    pub placement: Placement,
    /// What the user pinned to times.
    pub notes: Vec<Note>,
}

/// What the user set by hand of how files lie beside each other.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Placement {
    /// Offsets, by path.
    pub offsets_ns: BTreeMap<PathBuf, i64>,
    /// The GPUs of drivers' logs in the order in which the processes number them, by path.
    pub visible_devices: BTreeMap<PathBuf, Vec<i8>>,
}

/// What can be set once for all sessions, as typed.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SettingsForm {
    /// Parts of paths that are the user's own code, one a line.
    pub user_code: String,
    /// A regular expression that finds memory figures in logs.
    pub log_pattern: String,
}

/// A note pinned to a time.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Note {
    /// When.
    pub time_ns: i64,
    /// What.
    pub text: String,
}

/// What is selected, and shown in the details.
#[derive(Clone, Debug, PartialEq)]
pub enum Selected {
    /// An allocation.
    Row(RowRef),
    /// Several allocations, in the order in which they were selected.
    Rows(Vec<RowRef>),
    /// A group, by its key.
    Group(String),
    /// A difference of the comparison, by its call site or what else is summed by.
    Difference(String),
    /// A finding, by its place.
    Finding(usize),
    /// A rank, by its place among those that were summed up.
    Rank(usize),
}

/// A dialog over the window.
#[derive(Clone, Debug, PartialEq)]
pub enum Dialog {
    /// The key sheet.
    Keys,
    /// What this is.
    About,
    /// Writing a report.
    Export(ExportForm),
    /// Opening by a typed path.
    OpenPath(String),
    /// Saving the session at a typed path.
    SaveSession(String),
    /// Saving the table in front at a typed path.
    SaveTable(String),
    /// A note at an instant.
    AddNote(i64, String),
    /// What was said since the start.
    Log,
    /// What can be set once for all sessions.
    Settings(SettingsForm),
}

/// What the export dialog asks.
#[derive(Clone, Debug, PartialEq)]
pub struct ExportForm {
    /// As what.
    pub format: Format,
    /// Where to, as typed.
    pub path: String,
    /// Whether names of users, hosts and folders are replaced.
    pub redact: bool,
    /// What that replaces.
    pub replaced: Arc<[Replacement]>,
    /// Whether there is a file at the path, and the user was told that it makes way.
    pub overwrites: bool,
}

/// How grave a message is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "plain")]
pub enum Tone {
    Good,
    Warning,
    Error,
}

/// A message to the user, shown for a while and kept in the log.
#[derive(Clone, Debug)]
pub struct Message {
    /// How grave.
    pub tone: Tone,
    /// One sentence.
    pub text: String,
    /// When it came, in egui's seconds.
    pub at_s: f64,
    /// Whether it is still on the screen.
    pub is_shown: bool,
}

/// Which tracks are folded or hidden, and other things of taste.
#[derive(Clone, Debug, Default)]
pub struct Looks {
    /// Curves that are switched the other way than they begin, by label.
    pub switched_curves: BTreeSet<String>,
    /// Sources that are switched off, by path.
    pub hidden_sources: BTreeSet<PathBuf>,
    /// Whether the sources panel is folded away.
    pub is_sources_folded: bool,
    /// Whether the details panel is folded away.
    pub is_details_folded: bool,
    /// Heights of tracks that were changed, by name.
    pub heights: BTreeMap<&'static str, f32>,
    /// Tracks that are folded away, by name.
    pub folded_tracks: BTreeSet<&'static str>,
    /// Columns that are hidden, by table and name.
    pub hidden_columns: BTreeSet<(&'static str, &'static str)>,
    /// The tracks from top to bottom, when the user has moved one.
    pub track_order: Vec<&'static str>,
    /// Modules whose inner ones are folded away, by path.
    pub folded_modules: BTreeSet<String>,
    /// What the blocks of the allocation map are coloured by.
    pub color_by: GroupBy,
}

/// What the window knows.
pub struct State {
    /// What the session is built from.
    pub opened: Vec<Opened>,
    /// What was meant to be in the session and could not be read.
    pub left_out: Vec<LeftOut>,
    /// The session; without it the window says what to drop.
    pub data: Option<Arc<Data>>,
    /// A run of many ranks, summed up one by one.
    pub survey: Option<Survey>,
    /// What is answered of it.
    pub answers: Answers,
    /// What can be undone.
    pub choices: Choices,
    /// The choices before and after.
    pub undo: History<Choices>,
    /// What is visible.
    pub view: TimeView,
    /// The views before and after.
    pub views: History<TimeView>,
    /// Whether the pointer is moving the range right now.
    pub is_brushing: bool,
    /// The instant that was clicked: the live set is of it.
    pub cursor_ns: Option<i64>,
    /// The allocation map of what was visible when it was made.
    pub map: Option<Arc<ColoredMap>>,
    /// How large the allocation map is drawn, in columns and rows of pixels.
    pub map_pixels: Option<[u32; 2]>,
    /// What was asked in SQL.
    pub sql: Sql,
    /// What is remembered from one start to the next.
    pub settings: Settings,
    /// The tab in front.
    pub tab: Tab,
    /// What is selected.
    pub selected: Option<Selected>,
    /// The row that a key has just selected: its table scrolls to it.
    pub row_to_show: Option<usize>,
    /// Whether Kept and Live list allocations one by one.
    pub is_flat: bool,
    /// What the net tab shows.
    pub net_view: NetView,
    /// What the live tab shows.
    pub live_view: LiveView,
    /// What is compared, A and B, once the user has chosen.
    pub sides: Option<[Side; 2]>,
    /// Which end of the stacks is the root of the flame graph.
    pub flame_order: FlameOrder,
    /// How allocations are sorted.
    pub row_sort: Sort<RowColumn>,
    /// How groups are sorted.
    pub group_sort: Sort<GroupColumn>,
    /// How the net table is sorted.
    pub net_sort: Sort<NetColumn>,
    /// How the comparison is sorted.
    pub difference_sort: Sort<DifferenceColumn>,
    /// How ranks are sorted.
    pub rank_sort: Sort<RankColumn>,
    /// The dialog over the window.
    pub dialog: Option<Dialog>,
    /// The format and the path that the export dialog had last.
    pub exported: Option<(Format, String)>,
    /// What was said, the newest last.
    pub messages: Vec<Message>,
    /// What is shown and how.
    pub looks: Looks,
    /// Whether the filter field shall take the keyboard.
    pub wants_filter_focus: bool,
}

impl Default for State {
    fn default() -> Self {
        Self {
            left_out: Vec::new(),
            opened: Vec::new(),
            data: None,
            survey: None,
            answers: Answers::default(),
            choices: Choices::default(),
            undo: History::default(),
            view: TimeView { start_ns: 0, end_ns: 1 },
            views: History::default(),
            is_brushing: false,
            cursor_ns: None,
            sql: Sql::default(),
            settings: Settings::default(),
            map: None,
            map_pixels: None,
            tab: Tab::default(),
            selected: None,
            row_to_show: None,
            is_flat: false,
            net_view: NetView::default(),
            live_view: LiveView::default(),
            sides: None,
            flame_order: FlameOrder::default(),
            row_sort: Sort::descending(RowColumn::Bytes),
            group_sort: Sort::descending(GroupColumn::Bytes),
            net_sort: Sort::descending(NetColumn::Net),
            difference_sort: Sort::descending(DifferenceColumn::Change),
            rank_sort: Sort::descending(RankColumn::PerStep),
            dialog: None,
            exported: None,
            messages: Vec::new(),
            looks: Looks::default(),
            wants_filter_focus: false,
        }
    }
}

impl State {
    /// The brushed range, or the whole session.
    pub fn range_or_all(&self, data: &Data) -> TimeRange {
        self.choices.range.unwrap_or_else(|| data.span())
    }

    /// The instant of the live set: where it was clicked, else the peak.
    pub fn live_at_ns(&self, data: &Data) -> i64 {
        self.cursor_ns.or(data.peak.map(|(at_ns, _)| at_ns)).unwrap_or_else(|| data.span().end_ns)
    }

    /// The files that are open, or summed up.
    pub fn source_paths(&self) -> Vec<PathBuf> {
        let of_ranks = self.survey.iter().flat_map(|survey| survey.files.paths());
        self.opened.iter().map(|file| &file.path).chain(of_ranks).cloned().collect()
    }

    /// The ranks: those of the survey, else the processes of the session when there are several.
    pub fn ranks(&self) -> &[Row] {
        self.survey.as_ref().map_or(&self.answers.processes, |survey| &survey.rows)
    }

    /// Whether a tab has something to show.
    pub fn has_tab(&self, tab: Tab) -> bool {
        let has_processes = |data: &Arc<Data>| data.session().processes.len() > 1;
        tab != Tab::Ranks || self.survey.is_some() || self.data.as_ref().is_some_and(has_processes)
    }

    /// What is compared, A and B.
    pub fn compared(&self, data: &Data) -> [Side; 2] {
        self.sides.unwrap_or_else(|| Side::first(data))
    }

    /// Whether a curve is shown.
    pub fn is_curve_shown(&self, data: &Data, curve: &super::data::Curve) -> bool {
        let source = curve.source.map(|id| data.session().source(id));
        let is_source_hidden = source.is_some_and(|source| self.looks.hidden_sources.contains(&source.path));
        let is_admitted = self.choices.selection.device.admits(curve.device);
        let is_switched = self.looks.switched_curves.contains(&curve.label);
        is_admitted && !is_source_hidden && (curve.is_shown_at_first() != is_switched)
    }
}
