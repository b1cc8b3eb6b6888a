//! What a drawing function gets: the state to read, and a place for commands.

use egui::Ui;

use super::command::Command;
use super::data::Data;
use super::state::State;
use super::theme::Palette;
use crate::model::{format_bytes, format_bytes_exact};

/// The state to read, and a place for commands.
pub struct Scene<'a> {
    /// What the window knows.
    pub state: &'a State,
    /// The session.
    pub data: &'a Data,
    /// The colours of the theme in use.
    pub palette: &'static Palette,
    /// What the user asks for.
    pub commands: &'a mut Vec<Command>,
    /// Whether answers are still being worked out.
    pub is_busy: bool,
}

impl<'a> Scene<'a> {
    /// A scene in the theme that `ui` uses.
    pub fn new(ui: &Ui, state: &'a State, data: &'a Data, commands: &'a mut Vec<Command>) -> Self {
        Self { state, data, palette: Palette::of(ui.visuals()), commands, is_busy: false }
    }

    /// Bytes as the user wants to read them.
    pub fn bytes(&self, bytes: u64) -> String {
        if self.state.settings.exact_bytes { format_bytes_exact(bytes) } else { format_bytes(bytes) }
    }

    /// Asks for something.
    pub fn ask(&mut self, command: Command) {
        self.commands.push(command);
    }
}
