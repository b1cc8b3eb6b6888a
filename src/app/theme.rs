//! Colours and sizes: two palettes, one picked by the theme in use. Text on every colour here keeps a contrast of 4.5.

use egui::{Color32, CornerRadius, FontId, Stroke, Theme, Visuals};

use crate::analysis::findings::Severity;
use crate::model::Quantity;

/// The colours that egui's visuals have no place for.
#[derive(Clone, Copy, Debug)]
pub struct Palette {
    /// Behind tracks.
    pub track: Color32,
    /// Lines that divide.
    pub grid: Color32,
    /// Text on tracks.
    pub text: Color32,
    /// Text that steps back.
    pub weak_text: Color32,
    /// The brushed range.
    pub range_fill: Color32,
    /// The edges of the brushed range.
    pub range_edge: Color32,
    /// The crosshair.
    pub crosshair: Color32,
    /// Errors.
    pub error: Color32,
    /// Warnings.
    pub warning: Color32,
    /// All is well.
    pub good: Color32,
    categories: [Color32; 12],
    allocated: Color32,
    reserved: Color32,
    driver: Color32,
    capacity: Color32,
}

const fn rgb(hex: u32) -> Color32 {
    Color32::from_rgb((hex >> 16) as u8, (hex >> 8) as u8, hex as u8)
}

const DARK: Palette = Palette {
    track: rgb(0x15_181d),
    grid: rgb(0x2a_2f37),
    text: rgb(0xd8_dde5),
    weak_text: rgb(0x9a_a4b2),
    range_fill: Color32::from_rgba_premultiplied(16, 26, 40, 26),
    range_edge: rgb(0x9c_c4ff),
    crosshair: rgb(0x7d_8896),
    error: rgb(0xff_7b72),
    warning: rgb(0xf0_b429),
    good: rgb(0x56_d364),
    categories: [
        rgb(0x4e_a1f3),
        rgb(0xf2_9e4c),
        rgb(0x5f_c27e),
        rgb(0xe0_6c9f),
        rgb(0xa6_8cf0),
        rgb(0xd9_c04a),
        rgb(0x46_bfc6),
        rgb(0xe8_7461),
        rgb(0x8f_b35a),
        rgb(0xc0_8ad6),
        rgb(0x7f_a3c7),
        rgb(0xc9_9a74),
    ],
    allocated: rgb(0x58_a6ff),
    reserved: rgb(0xf0_9b3c),
    driver: rgb(0x7e_c699),
    capacity: rgb(0xff_7b72),
};

const LIGHT: Palette = Palette {
    track: rgb(0xfb_fcfd),
    grid: rgb(0xd5_dae1),
    text: rgb(0x1f_2630),
    weak_text: rgb(0x56_6070),
    range_fill: Color32::from_rgba_premultiplied(6, 16, 34, 34),
    range_edge: rgb(0x1f_5fbf),
    crosshair: rgb(0x6b_7686),
    error: rgb(0xb4_2318),
    warning: rgb(0x8a_5a00),
    good: rgb(0x1a_7f37),
    categories: [
        rgb(0x2b_7bd1),
        rgb(0xd9_7a17),
        rgb(0x2f_9a57),
        rgb(0xc2_4179),
        rgb(0x7a_5cd6),
        rgb(0xa9_8a00),
        rgb(0x13_8c94),
        rgb(0xc7_4a36),
        rgb(0x66_8a2c),
        rgb(0x9a_56b8),
        rgb(0x4f_7ba6),
        rgb(0xa1_6d42),
    ],
    allocated: rgb(0x0f_62c4),
    reserved: rgb(0xb8_5c00),
    driver: rgb(0x1f_7a46),
    capacity: rgb(0xb4_2318),
};

impl Palette {
    /// The palette that goes with `visuals`.
    pub fn of(visuals: &Visuals) -> &'static Self {
        if visuals.dark_mode { &DARK } else { &LIGHT }
    }

    /// The colour of a curve; `index` tells apart those that have no colour of their own.
    pub fn curve(&self, quantity: &Quantity, index: usize) -> Color32 {
        match quantity {
            Quantity::Allocated => self.allocated,
            Quantity::Reserved => self.reserved,
            Quantity::DriverUsed => self.driver,
            Quantity::Capacity => self.capacity,
            _ => self.category(index),
        }
    }

    /// A colour for the `index`th of many.
    pub fn category(&self, index: usize) -> Color32 {
        self.categories[index % self.categories.len()]
    }

    /// The colour of a finding.
    pub fn severity(&self, severity: Severity) -> Color32 {
        match severity {
            Severity::Error => self.error,
            Severity::Warning => self.warning,
            Severity::Info => self.weak_text,
        }
    }

    /// Black or white, whichever reads better on `fill`.
    pub fn text_on(fill: Color32) -> Color32 {
        // Above this luminance black has the higher contrast.
        if luminance(fill) > 0.179 { Color32::BLACK } else { Color32::WHITE }
    }
}

/// The relative luminance by which WCAG reckons contrast.
fn luminance(color: Color32) -> f64 {
    let channel = |value: u8| {
        let value = f64::from(value) / 255.0;
        if value <= 0.039_28 { value / 12.92 } else { ((value + 0.055) / 1.055).powf(2.4) }
    };
    0.2126 * channel(color.r()) + 0.7152 * channel(color.g()) + 0.0722 * channel(color.b())
}

/// The font of labels on tracks.
pub fn track_font() -> FontId {
    FontId::proportional(11.0)
}

/// Sets both themes once.
pub fn install(ctx: &egui::Context) {
    for theme in [Theme::Dark, Theme::Light] {
        ctx.style_mut_of(theme, |style| {
            let palette = if theme == Theme::Dark { &DARK } else { &LIGHT };
            let visuals = &mut style.visuals;
            visuals.weak_text_color = Some(palette.weak_text);
            visuals.override_text_color = Some(palette.text);
            visuals.warn_fg_color = palette.warning;
            visuals.error_fg_color = palette.error;
            visuals.panel_fill = if theme == Theme::Dark { rgb(0x1b_1f25) } else { rgb(0xf3_f5f8) };
            visuals.window_fill = visuals.panel_fill;
            visuals.extreme_bg_color = palette.track;
            visuals.faint_bg_color = if theme == Theme::Dark { rgb(0x20_252c) } else { rgb(0xe9_edf2) };
            visuals.selection.bg_fill = if theme == Theme::Dark { rgb(0x24_4a7c) } else { rgb(0xbf_d9fb) };
            visuals.selection.stroke = Stroke::new(1.0, palette.text);
            visuals.hyperlink_color = palette.range_edge;
            visuals.widgets.noninteractive.bg_stroke = Stroke::new(1.0, palette.grid);
            let radius = CornerRadius::same(4);
            for widget in [
                &mut visuals.widgets.inactive,
                &mut visuals.widgets.hovered,
                &mut visuals.widgets.active,
                &mut visuals.widgets.open,
            ] {
                widget.corner_radius = radius;
            }
            style.spacing.item_spacing = egui::vec2(8.0, 5.0);
            style.spacing.button_padding = egui::vec2(8.0, 3.0);
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn contrast(a: Color32, b: Color32) -> f64 {
        let (a, b) = (luminance(a), luminance(b));
        (a.max(b) + 0.05) / (a.min(b) + 0.05)
    }

    #[test]
    fn text_meets_aa_on_tracks_and_on_every_category() {
        for (name, palette) in [("dark", DARK), ("light", LIGHT)] {
            for text in [
                palette.text,
                palette.weak_text,
                palette.error,
                palette.warning,
                palette.good,
                palette.range_edge,
            ] {
                assert!(contrast(text, palette.track) >= 4.5, "{name} {text:?}");
            }
            for fill in palette.categories {
                let ratio = contrast(Palette::text_on(fill), fill);
                assert!(ratio >= 4.5, "{name} {fill:?}: {ratio}");
            }
            for line in [palette.allocated, palette.reserved, palette.driver, palette.capacity] {
                assert!(contrast(line, palette.track) >= 3.0, "{name} {line:?}");
            }
        }
    }
}
