//! The font of Chinese texts. File names and the user's own text can hold any character: those come from the system's
//! fonts, which eframe looks up.

use std::sync::Arc;

use egui::{FontData, FontDefinitions};

use crate::text::CHINESE_FONT;

const NAME: &str = "Noto Sans SC";

/// Adds the font behind those of Latin text, and before those of emoji, which have some full-width signs of their own.
pub fn install(ctx: &egui::Context) {
    let mut fonts = FontDefinitions::default();
    fonts.font_data.insert(NAME.to_owned(), Arc::new(FontData::from_static(CHINESE_FONT)));
    for names in fonts.families.values_mut() {
        let at = names.iter().position(|name| name.to_lowercase().contains("emoji")).unwrap_or(names.len());
        names.insert(at, NAME.to_owned());
    }
    ctx.set_fonts(fonts);
}

#[cfg(test)]
mod tests {
    use egui::FontId;

    /// What the default fonts lack, the subset has.
    #[test]
    fn every_character_of_the_chinese_texts_has_a_glyph() {
        let ctx = egui::Context::default();
        super::install(&ctx);
        ctx.run_ui(egui::RawInput::default(), |_| {}).textures_delta.clear();
        let texts = crate::text::all_chinese();
        for font in [FontId::proportional(14.0), FontId::monospace(14.0)] {
            let lacking: std::collections::BTreeSet<char> = texts
                .chars()
                .filter(|&c| c != '\n' && !ctx.fonts_mut(|fonts| fonts.has_glyph(&font, c)))
                .collect();
            assert!(lacking.is_empty(), "run assets/fonts/make_subset.py: {lacking:?}");
        }
    }
}
