//! The allocation map with its colours: which blocks look alike, and what the legend says of them.

use rustc_hash::FxHashMap;

use crate::analysis::{BlockMap, Category, GroupBy, RowRef, label_words};
use crate::app::data::Data;
use crate::app::theme::COLORS;
use crate::model::StrId;
use crate::text::{say, t};

/// What blocks can be coloured by.
pub const COLOR_BY: [GroupBy; 4] = [GroupBy::CallSite, GroupBy::Module, GroupBy::Category, GroupBy::Step];
/// How many steps of one colour the legend names.
const MAX_STEPS: usize = 3;

/// A map of which each piece has a class.
#[derive(Debug)]
pub struct ColoredMap {
    /// The blocks.
    pub map: BlockMap,
    /// What they are coloured by.
    pub by: GroupBy,
    /// The class of each piece, as a place in [`Self::legend`].
    pub classes: Vec<u8>,
    /// The classes, those with most memory over time first.
    pub legend: Vec<Class>,
}

/// Blocks of one colour.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Class {
    /// What they have in common.
    pub label: String,
    /// Which colour; `None` is the neutral one of everything that has no colour of its own.
    pub color: Option<usize>,
}

/// What blocks of one colour have in common, as a number; nothing where the recording doesn't tell.
type Key = Option<u64>;

/// Gives every piece its colour. The classes that hold the most get colours of their own, which they keep from view to
/// view as far as another one doesn't have it; all others share one.
pub fn color(data: &Data, map: BlockMap, by: GroupBy) -> ColoredMap {
    let keys: Vec<Key> = map.pieces.iter().map(|piece| key_of(data, piece.row, by)).collect();
    let mut areas: FxHashMap<Key, f64> = FxHashMap::default();
    for (piece, &key) in map.pieces.iter().zip(&keys) {
        let duration_ns = piece.end_ns.saturating_sub(piece.start_ns).max(1);
        *areas.entry(key).or_default() += piece.bytes as f64 * duration_ns as f64;
    }
    let mut order: Vec<(Key, f64)> = areas.into_iter().collect();
    order.sort_by(|a, b| b.1.total_cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
    let own: Vec<u64> = order.iter().filter_map(|&(key, _)| key).take(COLORS).collect();
    let colors = colors_of(data, &own, by);

    let mut legend = Vec::new();
    let mut places: FxHashMap<Key, u8> = FxHashMap::default();
    let mut others = None;
    for (key, _) in order {
        let color = key.and_then(|key| colors.get(&key).copied());
        let is_other = key.is_some() && color.is_none();
        let place = match others {
            Some(place) if is_other => place,
            _ => {
                let label =
                    if is_other { t!("others").to_owned() } else { label_of(data, &map, &keys, key, by) };
                legend.push(Class { label, color });
                legend.len() as u8 - 1
            }
        };
        if is_other {
            others = Some(place);
        }
        places.insert(key, place);
    }
    let classes = keys.iter().map(|key| places.get(key).copied().unwrap_or_default()).collect();
    ColoredMap { map, by, classes, legend }
}

/// What a row is coloured by, in words.
pub fn class_text(data: &Data, row: RowRef, by: GroupBy) -> String {
    let process = data.session().process(row.process);
    let step = process.steps.get(process.allocations.step[row.row as usize] as usize);
    match (by, step) {
        (GroupBy::Step, Some(step)) => t!("step {number}", number = step.number),
        _ => text_of(data, key_of(data, row, by), by),
    }
}

fn key_of(data: &Data, row: RowRef, by: GroupBy) -> Key {
    let index = &data.index;
    let process = data.session().process(row.process);
    let at = row.row as usize;
    let label = match by {
        GroupBy::Category => return Some(index.category(row) as u64),
        // Steps take turns, so that neighbours differ.
        GroupBy::Step => {
            let step = process.steps.get(process.allocations.step[at] as usize)?;
            return Some(step.number.rem_euclid(COLORS as i64) as u64);
        }
        GroupBy::Module => index.module(row.process, process.allocations.op[at])?,
        _ => index.call_site(row.process, process.allocations.stack[at]),
    };
    Some(u64::from(label.0))
}

/// The colour that each key has: its own one, else the next that is free.
fn colors_of(data: &Data, keys: &[u64], by: GroupBy) -> FxHashMap<u64, usize> {
    let rank = |key: u64| match by {
        GroupBy::Category | GroupBy::Step => key as usize,
        GroupBy::Module => data.module_rank(StrId(key as u32)),
        _ => data.call_site_rank(StrId(key as u32)),
    };
    let mut ranked: Vec<(usize, u64)> = keys.iter().map(|&key| (rank(key), key)).collect();
    ranked.sort_unstable();
    let mut is_taken = [false; COLORS];
    ranked
        .into_iter()
        .filter_map(|(rank, key)| {
            let color = (0..COLORS).map(|by| (rank + by) % COLORS).find(|&color| !is_taken[color])?;
            is_taken[color] = true;
            Some((key, color))
        })
        .collect()
}

fn label_of(data: &Data, map: &BlockMap, keys: &[Key], key: Key, by: GroupBy) -> String {
    if by != GroupBy::Step || key.is_none() {
        return text_of(data, key, by);
    }
    let mut numbers: Vec<i64> = Vec::new();
    for (piece, _) in map.pieces.iter().zip(keys).filter(|(_, other)| **other == key) {
        let process = data.session().process(piece.row.process);
        let step = process.steps.get(process.allocations.step[piece.row.row as usize] as usize);
        if let Some(number) = step.map(|step| step.number).filter(|number| !numbers.contains(number)) {
            numbers.push(number);
        }
    }
    numbers.sort_unstable();
    let more = if numbers.len() > MAX_STEPS { ", …" } else { "" };
    let names: Vec<String> = numbers.iter().take(MAX_STEPS).map(i64::to_string).collect();
    t!("step {number}", number = names.join(", ") + more)
}

fn text_of(data: &Data, key: Key, by: GroupBy) -> String {
    match (by, key) {
        (GroupBy::Module, None) => t!("outside modules").to_owned(),
        (_, None) => t!("outside steps").to_owned(),
        (GroupBy::Category, Some(key)) => {
            let known = Category::ALL.into_iter().find(|&category| category as u64 == key);
            say(known.unwrap_or(Category::Unknown).label()).to_owned()
        }
        (GroupBy::Step, Some(key)) => t!("step {number}", number = key),
        (_, Some(key)) => label_words(data.index.label(StrId(key as u32))).into_owned(),
    }
}
