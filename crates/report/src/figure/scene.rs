//! Shapes in drawing order, in pixels from the upper left corner.

use std::sync::OnceLock;

use super::images::Image;

/// Red, green, blue, opacity.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Colour {
    pub rgb: [u8; 3],
    pub opacity: f64,
}

impl Colour {
    pub const fn new(r: u8, g: u8, b: u8) -> Self {
        Self {
            rgb: [r, g, b],
            opacity: 1.0,
        }
    }

    pub fn with_opacity(self, opacity: f64) -> Self {
        Self { opacity, ..self }
    }
}

/// Text and axes.
pub(super) const INK: Colour = Colour::new(0x22, 0x22, 0x22);
/// Labels of ticks.
pub(super) const FAINT: Colour = Colour::new(0x55, 0x55, 0x55);
/// Grid lines.
pub(super) const GRID: Colour = Colour::new(0xe2, 0xe2, 0xe2);
/// The paper.
pub(super) const PAPER: Colour = Colour::new(0xff, 0xff, 0xff);

/// Which point of a text stands at its position.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Anchor {
    Start,
    Middle,
    End,
}

/// How a line is drawn.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Stroke {
    pub colour: Colour,
    pub width: f64,
    pub dashed: bool,
}

impl Stroke {
    pub fn solid(colour: Colour, width: f64) -> Self {
        Self {
            colour,
            width,
            dashed: false,
        }
    }
}

/// A size kept within bounds; NaN is the least.
pub(super) fn within(size: f64, least: f64, most: f64) -> f64 {
    if size.is_nan() {
        least
    } else {
        size.clamp(least, most)
    }
}

/// One shape.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Shape {
    Line {
        points: Vec<(f64, f64)>,
        stroke: Stroke,
    },
    Area {
        points: Vec<(f64, f64)>,
        colour: Colour,
    },
    Disc {
        centre: (f64, f64),
        radius: f64,
        colour: Colour,
    },
    Text {
        at: (f64, f64),
        size: f64,
        anchor: Anchor,
        colour: Colour,
        /// Read from below.
        upward: bool,
        text: String,
    },
    Picture {
        corner: (f64, f64),
        width: f64,
        height: f64,
        image: Image,
    },
}

/// Shapes on a white ground.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Scene {
    pub width: f64,
    pub height: f64,
    pub shapes: Vec<Shape>,
}

impl Scene {
    pub fn new(width: f64, height: f64) -> Self {
        Self {
            width: width.ceil(),
            height: height.ceil(),
            shapes: Vec::new(),
        }
    }

    pub fn line(&mut self, points: Vec<(f64, f64)>, stroke: Stroke) {
        self.shapes.push(Shape::Line { points, stroke });
    }

    pub fn area(&mut self, points: Vec<(f64, f64)>, colour: Colour) {
        self.shapes.push(Shape::Area { points, colour });
    }

    pub fn frame(&mut self, corner: (f64, f64), size: (f64, f64), stroke: Stroke) {
        let (x, y) = corner;
        let (w, h) = size;
        let outline = vec![(x, y), (x + w, y), (x + w, y + h), (x, y + h), (x, y)];
        self.line(outline, stroke);
    }

    pub fn disc(&mut self, centre: (f64, f64), radius: f64, colour: Colour) {
        self.shapes.push(Shape::Disc {
            centre,
            radius,
            colour,
        });
    }

    pub fn text(&mut self, at: (f64, f64), size: f64, anchor: Anchor, colour: Colour, text: &str) {
        self.shapes.push(Shape::Text {
            at,
            size,
            anchor,
            colour,
            upward: false,
            text: text.to_owned(),
        });
    }

    pub fn upward_text(&mut self, at: (f64, f64), size: f64, colour: Colour, text: &str) {
        self.shapes.push(Shape::Text {
            at,
            size,
            anchor: Anchor::Middle,
            colour,
            upward: true,
            text: text.to_owned(),
        });
    }

    pub fn picture(&mut self, corner: (f64, f64), width: f64, height: f64, image: Image) {
        self.shapes.push(Shape::Picture {
            corner,
            width,
            height,
            image,
        });
    }
}

/// The embedded font: Latin, Greek and the signs of formulae, under the licence beside it.
static FONT: &[u8] = include_bytes!("../../assets/DejaVuSans-subset.ttf");

pub(super) fn font() -> &'static ttf_parser::Face<'static> {
    static FACE: OnceLock<ttf_parser::Face<'static>> = OnceLock::new();
    FACE.get_or_init(|| ttf_parser::Face::parse(FONT, 0).expect("the embedded font is a font"))
}

/// The glyph of a character, that of an unknown one where the font has none, and its advance in ems.
pub(super) fn glyph(c: char) -> (ttf_parser::GlyphId, f64) {
    let font = font();
    let id = font
        .glyph_index(c)
        .or_else(|| font.glyph_index('\u{fffd}'))
        .unwrap_or_default();
    let advance = f64::from(font.glyph_hor_advance(id).unwrap_or(0));
    (id, advance / f64::from(font.units_per_em()))
}

/// Width of a text in pixels.
pub(super) fn text_width(text: &str, size: f64) -> f64 {
    text.chars().map(|c| glyph(c).1).sum::<f64>() * size
}
