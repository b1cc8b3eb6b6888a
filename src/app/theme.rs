//! Colours and sizes: two palettes, one picked by the theme in use. Text on every colour here keeps a contrast of 4.5.

use egui::{Color32, CornerRadius, FontId, Stroke, Theme, Visuals};

use crate::analysis::findings::Severity;
use crate::model::Quantity;

/// How many colours tell things of one sort apart.
pub const COLORS: usize = 12;
/// How many shades a quantity has, for the curves of several processes.
const SHADES: usize = 4;

/// The colours that egui's visuals have no place for.
#[derive(Clone, Copy, Debug)]
pub struct Palette {
    /// Behind tracks.
    pub track: Color32,
    /// Lines that divide.
    pub grid: Color32,
    /// Around fields, boxes and buttons.
    pub outline: Color32,
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
    /// Blocks that have no colour of their own.
    pub others: Color32,
    /// Blocks that are summed since they are small.
    pub small: Color32,
    categories: [Color32; COLORS],
    allocated: [Color32; SHADES],
    reserved: [Color32; SHADES],
    driver: [Color32; SHADES],
    capacity: Color32,
}

const fn rgb(hex: u32) -> Color32 {
    Color32::from_rgb((hex >> 16) as u8, (hex >> 8) as u8, hex as u8)
}

const DARK: Palette = Palette {
    track: rgb(0x15_181d),
    grid: rgb(0x2a_2f37),
    outline: rgb(0x74_7d8a),
    text: rgb(0xd8_dde5),
    weak_text: rgb(0x9a_a4b2),
    range_fill: Color32::from_rgba_premultiplied(16, 26, 40, 26),
    range_edge: rgb(0x9c_c4ff),
    crosshair: rgb(0x7d_8896),
    error: rgb(0xff_7b72),
    warning: rgb(0xf0_b429),
    good: rgb(0x56_d364),
    others: rgb(0x8a_8f98),
    small: rgb(0x73_7b87),
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
    allocated: [rgb(0x58_a6ff), rgb(0x4f_d6d2), rgb(0xa9_8bff), rgb(0xbf_deff)],
    reserved: [rgb(0xf0_9b3c), rgb(0xf2_d24b), rgb(0xe5_6f55), rgb(0xff_d3a8)],
    driver: [rgb(0x7e_c699), rgb(0xb5_d35c), rgb(0x3f_a98c), rgb(0xcf_eed8)],
    capacity: rgb(0xff_7b72),
};

const LIGHT: Palette = Palette {
    track: rgb(0xfb_fcfd),
    grid: rgb(0xd5_dae1),
    outline: rgb(0x7b_8490),
    text: rgb(0x1f_2630),
    weak_text: rgb(0x56_6070),
    range_fill: Color32::from_rgba_premultiplied(6, 16, 34, 34),
    range_edge: rgb(0x1f_5fbf),
    crosshair: rgb(0x6b_7686),
    error: rgb(0xb4_2318),
    warning: rgb(0x8a_5a00),
    good: rgb(0x18_7a34),
    others: rgb(0x76_7c86),
    small: rgb(0x7d_8592),
    categories: [
        rgb(0x2b_7bd1),
        rgb(0xc4_6a0c),
        rgb(0x2b_9453),
        rgb(0xc2_4179),
        rgb(0x7a_5cd6),
        rgb(0x9a_7d00),
        rgb(0x13_8c94),
        rgb(0xc7_4a36),
        rgb(0x66_8a2c),
        rgb(0x9a_56b8),
        rgb(0x4f_7ba6),
        rgb(0xa1_6d42),
    ],
    allocated: [rgb(0x0f_62c4), rgb(0x08_8294), rgb(0x6b_46c8), rgb(0x1c_3f78)],
    reserved: [rgb(0xb8_5c00), rgb(0x8c_7400), rgb(0xb4_3a2a), rgb(0x74_4417)],
    driver: [rgb(0x1f_7a46), rgb(0x5f_7d14), rgb(0x0f_7d74), rgb(0x16_4a2c)],
    capacity: rgb(0xb4_2318),
};

impl Palette {
    /// The palette that goes with `visuals`.
    pub fn of(visuals: &Visuals) -> &'static Self {
        if visuals.dark_mode { &DARK } else { &LIGHT }
    }

    /// The colour of a curve, in the `nth` shade of its quantity; `index` tells apart those that have no colour of their
    /// own.
    pub fn curve(&self, quantity: &Quantity, nth: usize, index: usize) -> Color32 {
        match quantity {
            Quantity::Allocated => self.allocated[nth % SHADES],
            Quantity::Reserved => self.reserved[nth % SHADES],
            Quantity::DriverUsed => self.driver[nth % SHADES],
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
            visuals.widgets.inactive.bg_stroke = Stroke::new(1.0, palette.outline);
            // What has the keyboard looks active too: the ring shows where it is.
            visuals.widgets.active.bg_stroke = Stroke::new(2.0, palette.range_edge);
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

    /// `top` as it looks over `below`.
    fn over(top: Color32, below: Color32) -> Color32 {
        let rest = 1.0 - f32::from(top.a()) / 255.0;
        let mix = |top: u8, below: u8| top.saturating_add((f32::from(below) * rest).round() as u8);
        Color32::from_rgb(mix(top.r(), below.r()), mix(top.g(), below.g()), mix(top.b(), below.b()))
    }

    /// Both palettes with the visuals that go with them.
    fn themes() -> Vec<(&'static str, Palette, Visuals)> {
        let ctx = egui::Context::default();
        install(&ctx);
        let of = |theme| ctx.style_of(theme).visuals.clone();
        vec![("dark", DARK, of(Theme::Dark)), ("light", LIGHT, of(Theme::Light))]
    }

    #[track_caller]
    fn assert_contrast(least: f64, what: &str, top: Color32, below: Color32) {
        let ratio = contrast(top, below);
        assert!(ratio >= least, "{what}: {top:?} on {below:?} has {ratio:.2}, not {least}");
    }

    /// WCAG's AA for text: 4.5 to 1.
    #[test]
    fn every_text_meets_aa_on_what_it_is_written_on() {
        for (name, palette, visuals) in themes() {
            let plain = [palette.track, visuals.panel_fill, visuals.window_fill, visuals.faint_bg_color];
            for below in plain {
                for (what, text) in [
                    ("text", palette.text),
                    ("weak text", palette.weak_text),
                    ("strong text", visuals.strong_text_color()),
                    ("error", palette.error),
                    ("warning", palette.warning),
                    ("good", palette.good),
                    ("link", visuals.hyperlink_color),
                    ("own frame", palette.range_edge),
                ] {
                    assert_contrast(4.5, &format!("{name} {what}"), text, below);
                }
                // A figure over the bar of its share.
                for fill in palette.categories {
                    let bar = over(fill.gamma_multiply(0.3), below);
                    assert_contrast(4.5, &format!("{name} figure on its bar"), palette.text, bar);
                }
            }
            let widgets = &visuals.widgets;
            for widget in
                [widgets.noninteractive, widgets.inactive, widgets.hovered, widgets.active, widgets.open]
            {
                for fill in [widget.bg_fill, widget.weak_bg_fill] {
                    assert_contrast(4.5, &format!("{name} button"), palette.text, fill);
                }
            }
            let selected = visuals.selection.bg_fill;
            assert_contrast(4.5, &format!("{name} selected"), palette.text, selected);
            assert_contrast(4.5, &format!("{name} selected"), visuals.strong_text_color(), selected);
            for fill in palette.categories {
                assert_contrast(4.5, &format!("{name} slice"), Palette::text_on(fill), fill);
                let annotation = over(fill.gamma_multiply(0.35), palette.track);
                assert_contrast(4.5, &format!("{name} annotation"), palette.text, annotation);
            }
            for fill in [palette.grid, over(palette.grid.gamma_multiply(0.6), palette.track)] {
                assert_contrast(4.5, &format!("{name} step"), palette.text, fill);
            }
            let range = over(palette.range_fill, palette.track);
            for text in [palette.text, palette.weak_text, palette.error] {
                assert_contrast(4.5, &format!("{name} in the range"), text, range);
            }
        }
    }

    /// WCAG's AA for lines and shapes that tell something: 3 to 1.
    #[test]
    fn every_line_and_shape_meets_aa_on_its_background() {
        for (name, palette, visuals) in themes() {
            let curves = [palette.allocated, palette.reserved, palette.driver].concat();
            let lines = [
                palette.capacity,
                palette.range_edge,
                palette.crosshair,
                palette.others,
                palette.small,
                palette.outline,
            ];
            let range = over(palette.range_fill, palette.track);
            for below in [palette.track, range] {
                for &line in curves.iter().chain(&lines).chain(&palette.categories) {
                    assert_contrast(3.0, &format!("{name} shape"), line, below);
                }
            }
            for below in [visuals.panel_fill, visuals.window_fill] {
                let edges = [
                    ("field", visuals.widgets.inactive.bg_stroke.color),
                    ("focus", visuals.widgets.active.bg_stroke.color),
                    ("focused text", visuals.selection.stroke.color),
                    ("check mark's box", palette.outline),
                ];
                for (what, edge) in edges {
                    assert_contrast(3.0, &format!("{name} {what}"), edge, below);
                }
            }
            for below in [visuals.panel_fill, visuals.faint_bg_color] {
                assert_contrast(3.0, &format!("{name} small curve"), palette.category(0), below);
            }
        }
    }
}
