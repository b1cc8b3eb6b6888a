//! The picture as PNG, on white ground, twice as fine as its points.

use std::io::Cursor;
use std::sync::Arc;

use anyhow::Context as _;
use image::{ImageFormat, RgbImage};
use skrifa::MetadataProvider as _;
use skrifa::instance::{LocationRef, Size};
use vello_cpu::color::{AlphaColor, Srgb};
use vello_cpu::kurbo::{Affine, BezPath, Join, Line, Point, Rect, Shape as _, Stroke};
use vello_cpu::peniko::{Blob, FontData};
use vello_cpu::{Glyph, Pixmap, RenderContext, Resources};

use super::{Anchor, BOTTOM, COLOURS, HEIGHT, LEFT, MARK, Picture, RIGHT, Shape, TOP, WIDTH};

const SCALE: f64 = 2.0;
const FONT_SIZE: f32 = 12.0;
/// Curves leave the picture by this much at most, which is drawn as if it were its edge.
const TOLERANCE: f64 = 0.1;
const GROUND: AlphaColor<Srgb> = colour(0xff_ffff, 255);
const TEXT: AlphaColor<Srgb> = colour(0x5b_6270, 255);
const GRID: AlphaColor<Srgb> = colour(0x88_8888, 136);
const RANGE: u32 = 0x2f_7de1;

pub(super) fn encode(picture: &Picture) -> anyhow::Result<Vec<u8>> {
    let (width, height) = ((WIDTH * SCALE) as u16, (picture.height * SCALE).ceil() as u16);
    let mut canvas = RenderContext::new(width, height);
    canvas.set_paint(GROUND);
    canvas.fill_rect(&Rect::new(0.0, 0.0, width.into(), height.into()));
    canvas.set_transform(Affine::scale(SCALE));
    let (mut resources, fonts) = (Resources::new(), fonts());
    for shape in &picture.shapes {
        draw(&mut canvas, &mut resources, &fonts, shape);
    }
    let mut pixels = Pixmap::new(width, height);
    canvas.render(&mut pixels, &mut resources);
    // The ground is opaque, so colours need not be divided by what covers them.
    let rgb =
        pixels.data_as_u8_slice().chunks_exact(4).flat_map(|pixel| [pixel[0], pixel[1], pixel[2]]).collect();
    let image = RgbImage::from_raw(width.into(), height.into(), rgb).context("a pixel is missing")?;
    let mut file = Cursor::new(Vec::new());
    image.write_to(&mut file, ImageFormat::Png)?;
    Ok(file.into_inner())
}

fn draw(canvas: &mut RenderContext, resources: &mut Resources, fonts: &[FontData], shape: &Shape) {
    let base = HEIGHT - BOTTOM;
    let line = |canvas: &mut RenderContext, from: (f64, f64), to: (f64, f64), width: f64| {
        canvas.set_stroke(Stroke::new(width));
        canvas.stroke_path(&Line::new(from, to).to_path(TOLERANCE));
    };
    match shape {
        Shape::Grid { y } => {
            canvas.set_paint(GRID);
            line(canvas, (LEFT, *y), (WIDTH - RIGHT, *y), 0.5);
        }
        Shape::Range { from, to } => {
            canvas.set_paint(colour(RANGE, 41));
            canvas.fill_rect(&Rect::new(*from, TOP, to.max(from + 1.0), base));
            canvas.set_paint(colour(RANGE, 255));
            line(canvas, (*from, TOP), (*from, base), 1.0);
            line(canvas, (*to, TOP), (*to, base), 1.0);
        }
        Shape::Curve { colour, points } => {
            let mut path = BezPath::new();
            for (index, &point) in points.iter().enumerate() {
                if index == 0 { path.move_to(Point::from(point)) } else { path.line_to(Point::from(point)) }
            }
            canvas.set_paint(of_curve(*colour));
            canvas.set_stroke(Stroke::new(1.6).with_join(Join::Round));
            canvas.stroke_path(&path);
        }
        Shape::Mark { colour, x, y } => {
            canvas.set_paint(of_curve(*colour));
            canvas.fill_rect(&Rect::new(*x, *y, x + MARK.0, y + MARK.1));
        }
        Shape::Text { x, y, anchor, text } => {
            let (glyphs, width) = lay_out(fonts, text);
            let left = *x as f32
                - match anchor {
                    Anchor::Start => 0.0,
                    Anchor::Middle => width / 2.0,
                    Anchor::End => width,
                };
            canvas.set_paint(TEXT);
            for (number, font) in fonts.iter().enumerate() {
                let of_font = glyphs.iter().filter(|glyph| glyph.font == number);
                let placed = of_font.map(|glyph| Glyph { id: glyph.id, x: left + glyph.x, y: *y as f32 });
                canvas.glyph_run(resources, font).font_size(FONT_SIZE).hint(false).fill_glyphs(placed);
            }
        }
    }
}

/// A letter's form, whose font it comes from, and where it stands.
struct Placed {
    font: usize,
    id: u32,
    x: f32,
}

/// The fonts that letters are looked for in, one after the other.
fn fonts() -> [FontData; 2] {
    [epaint_default_fonts::UBUNTU_LIGHT, crate::text::CHINESE_FONT]
        .map(|bytes| FontData::new(Blob::new(Arc::new(bytes)), 0))
}

/// Letters side by side, and how wide they are. What no font has becomes the first one's box.
fn lay_out(fonts: &[FontData], text: &str) -> (Vec<Placed>, f32) {
    let known: Vec<skrifa::FontRef<'_>> =
        fonts.iter().filter_map(|font| skrifa::FontRef::new(font.data.data()).ok()).collect();
    let mut x = 0.0;
    let mut glyphs = Vec::new();
    for letter in text.chars() {
        let found =
            known.iter().enumerate().find_map(|(font, known)| Some((font, known.charmap().map(letter)?)));
        let (font, id) = found.unwrap_or_default();
        glyphs.push(Placed { font, id: id.to_u32(), x });
        if let Some(known) = known.get(font) {
            let metrics = known.glyph_metrics(Size::new(FONT_SIZE), LocationRef::default());
            x += metrics.advance_width(id).unwrap_or(FONT_SIZE / 2.0);
        }
    }
    (glyphs, x)
}

fn of_curve(number: usize) -> AlphaColor<Srgb> {
    colour(COLOURS[number % COLOURS.len()], 255)
}

const fn colour(rgb: u32, alpha: u8) -> AlphaColor<Srgb> {
    let [_, red, green, blue] = rgb.to_be_bytes();
    AlphaColor::from_rgba8(red, green, blue, alpha)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn letters_come_from_the_font_that_has_them() {
        let fonts = fonts();
        let (glyphs, width) = lay_out(&fonts, "GiB 显存 \u{e000}");
        let of_fonts: Vec<usize> = glyphs.iter().map(|glyph| glyph.font).collect();
        assert_eq!(of_fonts, [0, 0, 0, 0, 1, 1, 0, 0]);
        assert!(glyphs.windows(2).all(|pair| pair[0].x < pair[1].x) && width > 40.0, "{width}");
        // What no font has is the box of the first.
        assert!(glyphs[..6].iter().all(|glyph| glyph.id != 0) && glyphs[7].id == 0);
    }

    #[test]
    fn shapes_have_their_colours_where_they_lie() {
        let shapes = vec![
            Shape::Range { from: 200.0, to: 400.0 },
            Shape::Curve { colour: 1, points: vec![(100.0, 50.0), (900.0, 50.0)] },
            Shape::Mark { colour: 2, x: 100.0, y: 200.0 },
        ];
        let picture = Picture { label: String::new(), height: HEIGHT, shapes };
        let image = image::load_from_memory(&encode(&picture).unwrap()).unwrap().into_rgb8();
        assert_eq!(image.dimensions(), (2000, 600));
        let at = |x: u32, y: u32| image.get_pixel(2 * x, 2 * y).0;
        assert_eq!(at(5, 5), [255, 255, 255]);
        assert_eq!(at(150, 50), [0xd9, 0x73, 0x1a]);
        assert_eq!(at(105, 202), [0x1f, 0x9d, 0x63]);
        let [red, green, blue] = at(300, 150);
        assert!(red < green && green < blue && blue < 255, "{red} {green} {blue}");
    }
}
