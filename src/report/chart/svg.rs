//! The picture as SVG.

use maud::{Markup, PreEscaped, html};

use super::{Anchor, BOTTOM, COLOURS, HEIGHT, LEFT, MARK, Picture, RIGHT, Shape, TOP, WIDTH};

const STYLE: &str = "\
.chart text{font:12px system-ui,sans-serif;fill:#5b6270}\
.chart .grid{stroke:#8888;stroke-width:.5}\
.chart .range{fill:#2f7de1;fill-opacity:.16}\
.chart .edge{stroke:#2f7de1;stroke-width:1}\
.chart .curve{fill:none;stroke-width:1.6;stroke-linejoin:round}";
const DARK: &str = "@media (prefers-color-scheme:dark){.chart text{fill:#a0a7b4}}";

pub(super) fn markup(picture: &Picture) -> Markup {
    let colour = |(number, rgb): (usize, &u32)| format!(".s{number}{{stroke:#{rgb:06x};fill:#{rgb:06x}}}");
    let colours: String = COLOURS.iter().enumerate().map(colour).collect();
    html! {
        svg.chart xmlns="http://www.w3.org/2000/svg" viewBox=(format!("0 0 {WIDTH} {}", picture.height)) role="img"
            aria-label=(picture.label) {
            style { (PreEscaped(STYLE)) (colours) (PreEscaped(DARK)) }
            @for shape in &picture.shapes { (self::shape(shape)) }
        }
    }
}

fn shape(shape: &Shape) -> Markup {
    let base = HEIGHT - BOTTOM;
    match shape {
        Shape::Grid { y } => {
            html! { line.grid x1=(LEFT) x2=(WIDTH - RIGHT) y1=(number(*y)) y2=(number(*y)) {} }
        }
        Shape::Range { from, to } => html! {
            rect.range x=(number(*from)) y=(TOP) width=(number((to - from).max(1.0))) height=(base - TOP) {}
            @for x in [*from, *to] {
                line.edge x1=(number(x)) x2=(number(x)) y1=(TOP) y2=(base) {}
            }
        },
        Shape::Curve { colour, points } => html! {
            path class=(format!("curve s{colour}")) style="fill:none" d=(path(points)) {}
        },
        Shape::Mark { colour, x, y } => html! {
            rect class=(format!("s{colour}")) x=(x) y=(y) width=(MARK.0) height=(MARK.1) {}
        },
        Shape::Text { x, y, anchor, text } => {
            let anchor = match anchor {
                Anchor::Start => "start",
                Anchor::Middle => "middle",
                Anchor::End => "end",
            };
            html! { text x=(number(*x)) y=(number(*y)) text-anchor=(anchor) { (text) } }
        }
    }
}

/// Points as a path, with the short forms of level and upright lines.
fn path(points: &[(f64, f64)]) -> String {
    let mut path = String::new();
    let mut last: Option<(String, String)> = None;
    for &(x, y) in points {
        let (x, y) = (number(x), number(y));
        let part = match &last {
            None => format!("M{x} {y}"),
            Some((last_x, last_y)) => match (*last_x == x, *last_y == y) {
                (true, true) => continue,
                (false, true) => format!("H{x}"),
                (true, false) => format!("V{y}"),
                (false, false) => format!("L{x} {y}"),
            },
        };
        path.push_str(&part);
        last = Some((x, y));
    }
    path
}

/// A coordinate, to a tenth.
fn number(value: f64) -> String {
    let text = format!("{value:.1}");
    text.strip_suffix(".0").map_or(text.clone(), str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_say_each_point_once() {
        assert_eq!(path(&[(0.0, 1.0), (2.0, 1.0), (2.0, 3.04), (2.01, 3.0), (4.0, 5.5)]), "M0 1H2V3L4 5.5");
    }
}
