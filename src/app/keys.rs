//! The keys, and the sheet that lists them.

use egui::{Context, Event, Key, Modifiers};

use super::command::Command;
use super::state::{Dialog, State, Tab};
use crate::text::msg;

/// The sheet: what, and by which keys or mouse buttons.
pub const SHEET: &[(&str, &[(&str, &str)])] = &[
    (
        msg!("Range"),
        &[
            (msg!("Brush a range"), msg!("drag on any track")),
            (msg!("Move an edge, or the whole range"), msg!("drag the edge, or its band in the ruler")),
            (msg!("Extend to the pointer"), msg!("Shift+click")),
            (msg!("Next, previous step"), msg!("] and [")),
            (msg!("Suggested growth"), "G"),
            (msg!("Clear"), "Esc"),
        ],
    ),
    (
        msg!("View"),
        &[
            (msg!("Zoom at the pointer"), msg!("wheel, or W and S")),
            (msg!("Pan"), msg!("middle drag or Shift+drag, A and D, arrows")),
            (msg!("Fit the range"), "F"),
            (msg!("Fit everything"), msg!("Home, or double click")),
            (msg!("Back and forward"), msg!("Alt+Left, Alt+Right")),
            (msg!("Go to the peak"), "P"),
        ],
    ),
    (
        msg!("Everything else"),
        &[
            (msg!("Open files"), "Ctrl+O"),
            (msg!("Export a report"), "Ctrl+S"),
            (msg!("Filter the table"), "Ctrl+F"),
            (msg!("Undo, redo"), "Ctrl+Z, Ctrl+Shift+Z"),
            (msg!("Tabs"), msg!("1 to 8")),
            (msg!("Ranks, of a run that has several"), "9"),
            (msg!("Next, previous row of the table"), msg!("Down, Up")),
            (msg!("Run the SQL statement"), "Ctrl+Enter"),
            (msg!("Select several blocks or rows"), msg!("Ctrl+click")),
            (msg!("This sheet"), msg!("? or F1")),
        ],
    ),
];

/// The keys of the tabs, in their order.
const DIGITS: [Key; Tab::ALL.len()] =
    [Key::Num1, Key::Num2, Key::Num3, Key::Num4, Key::Num5, Key::Num6, Key::Num7, Key::Num8, Key::Num9];

/// What the keys that were pressed ask for; the keys are taken out of the input.
pub fn commands(ctx: &Context, state: &State) -> Vec<Command> {
    // A button that has the keyboard takes Space, Enter and, to hand it on, Tab and arrows; letters stay ours.
    let is_typing = ctx.text_edit_focused();
    // Esc leaves a field, which egui has done before this is asked.
    let was_typing_id = egui::Id::unique("was typing");
    let was_typing =
        ctx.data_mut(|data| std::mem::replace(data.get_temp_mut_or_default(was_typing_id), is_typing));
    let is_focused = ctx.memory(|memory| memory.focused().is_some());
    let has_dialog = state.dialog.is_some();
    // An open menu closes by Esc, and nothing else changes.
    let has_menu = egui::Popup::is_any_open(ctx);
    let mut commands = Vec::new();
    ctx.input_mut(|input| {
        input.events.retain(|event| {
            let &Event::Key { key, physical_key, pressed: true, modifiers, .. } = event else { return true };
            if key == Key::Escape && (has_menu || (was_typing && !has_dialog)) {
                return true;
            }
            let command = global(key, modifiers).or_else(|| match (has_dialog, is_typing) {
                (true, _) => (key == Key::Escape).then_some(Command::Escape),
                (false, true) => None,
                (false, false) if is_focused && is_arrow(key) && modifiers.is_none() => None,
                (false, false) => in_window(state, key, physical_key.unwrap_or(key), modifiers),
            });
            let is_ours = command.is_some();
            commands.extend(command);
            !is_ours
        });
    });
    commands
}

fn is_arrow(key: Key) -> bool {
    matches!(key, Key::ArrowLeft | Key::ArrowRight | Key::ArrowUp | Key::ArrowDown)
}

/// Keys that work wherever the keyboard is.
fn global(key: Key, modifiers: Modifiers) -> Option<Command> {
    if key == Key::F1 {
        return Some(Command::ShowDialog(Dialog::Keys));
    }
    match (modifiers.command && !modifiers.shift && !modifiers.alt, key) {
        (true, Key::O) => Some(Command::AskForFiles),
        (true, Key::S) => Some(Command::AskForReport),
        (true, Key::F) => Some(Command::FocusFilter),
        _ => None,
    }
}

/// Keys that work unless text is being typed. Letters that stand for directions go by their place on the keyboard.
fn in_window(state: &State, key: Key, place: Key, modifiers: Modifiers) -> Option<Command> {
    if modifiers.command {
        return match (key, modifiers.shift) {
            (Key::Z, false) => Some(Command::Undo),
            (Key::Z, true) | (Key::Y, false) => Some(Command::Redo),
            _ => None,
        };
    }
    if modifiers.alt {
        return match key {
            Key::ArrowLeft => Some(Command::ViewBack),
            Key::ArrowRight => Some(Command::ViewForward),
            _ => None,
        };
    }
    match place {
        Key::W => return Some(Command::Zoom(None, 0.8)),
        Key::S => return Some(Command::Zoom(None, 1.25)),
        Key::A => return Some(Command::Pan(-0.1)),
        Key::D => return Some(Command::Pan(0.1)),
        _ => {}
    }
    match key {
        Key::ArrowLeft => Some(Command::Pan(-0.1)),
        Key::ArrowRight => Some(Command::Pan(0.1)),
        Key::ArrowUp => Some(Command::SelectNext(-1)),
        Key::ArrowDown => Some(Command::SelectNext(1)),
        Key::F => Some(Command::FitRange),
        Key::Home => Some(Command::FitAll),
        Key::G => Some(Command::SuggestGrowth),
        Key::P => Some(Command::GoToPeak),
        Key::OpenBracket => Some(Command::GoToStep(-1)),
        Key::CloseBracket => Some(Command::GoToStep(1)),
        Key::Escape => Some(Command::Escape),
        Key::Questionmark => Some(Command::ShowDialog(Dialog::Keys)),
        Key::Slash if modifiers.shift => Some(Command::ShowDialog(Dialog::Keys)),
        _ => {
            let at = DIGITS.iter().position(|&digit| digit == key)?;
            Tab::ALL.get(at).filter(|&&tab| state.has_tab(tab)).map(|&tab| Command::ShowTab(tab))
        }
    }
}
