//! The shapes of a figure, in the order in which they are drawn. Positions are in pixels from the upper left corner.

use std::sync::OnceLock;

use super::colour::Tint;
#[cfg(feature = "pictures")]
use super::images::Image;

#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Colour {
    pub tint: Tint,
    pub opacity: f64,
}

impl Colour {
    pub fn with_opacity(self, opacity: f64) -> Self {
        Self { opacity, ..self }
    }
}

impl From<Tint> for Colour {
    fn from(tint: Tint) -> Self {
        Self { tint, opacity: 1.0 }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Anchor {
    Start,
    Middle,
    End,
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Stroke {
    pub colour: Colour,
    pub width: f64,
    pub dashed: bool,
}

impl Stroke {
    pub fn solid(colour: impl Into<Colour>, width: f64) -> Self {
        Self {
            colour: colour.into(),
            width,
            dashed: false,
        }
    }

    pub fn dashed(colour: impl Into<Colour>, width: f64) -> Self {
        Self {
            dashed: true,
            ..Self::solid(colour, width)
        }
    }
}

/// Limits a size to a range. If the size is NaN, returns the smallest size.
pub(crate) fn within(size: f64, least: f64, most: f64) -> f64 {
    if size.is_nan() {
        least
    } else {
        size.clamp(least, most)
    }
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Shape {
    Line {
        points: Vec<(f64, f64)>,
        stroke: Stroke,
    },
    Area {
        points: Vec<(f64, f64)>,
        colour: Colour,
        tip: String,
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
        tint: Tint,
        upward: bool,
        text: String,
    },
    #[cfg(feature = "pictures")]
    Picture {
        corner: (f64, f64),
        width: f64,
        height: f64,
        image: Image,
    },
}

/// The lengths of a dash and of the gap that follows it. Both are multiples of the width of the line.
pub(super) const DASH: f64 = 4.0;

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Scene {
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

    pub fn area(&mut self, points: Vec<(f64, f64)>, colour: impl Into<Colour>) {
        self.shapes.push(Shape::Area {
            points,
            colour: colour.into(),
            tip: String::new(),
        });
    }

    pub fn rectangle(&mut self, corner: (f64, f64), size: (f64, f64), colour: impl Into<Colour>) {
        self.titled_rectangle(corner, size, colour, "");
    }

    /// Adds a rectangle for which a page shows a tooltip.
    pub fn titled_rectangle(
        &mut self,
        (x, y): (f64, f64),
        (w, h): (f64, f64),
        colour: impl Into<Colour>,
        tip: &str,
    ) {
        self.shapes.push(Shape::Area {
            points: vec![(x, y), (x + w, y), (x + w, y + h), (x, y + h)],
            colour: colour.into(),
            tip: tip.to_owned(),
        });
    }

    pub fn frame(&mut self, corner: (f64, f64), size: (f64, f64), stroke: Stroke) {
        let (x, y) = corner;
        let (w, h) = size;
        let outline = vec![(x, y), (x + w, y), (x + w, y + h), (x, y + h), (x, y)];
        self.line(outline, stroke);
    }

    pub fn disc(&mut self, centre: (f64, f64), radius: f64, colour: impl Into<Colour>) {
        self.shapes.push(Shape::Disc {
            centre,
            radius,
            colour: colour.into(),
        });
    }

    pub fn text(&mut self, at: (f64, f64), size: f64, anchor: Anchor, tint: Tint, text: &str) {
        self.shapes.push(Shape::Text {
            at,
            size,
            anchor,
            tint,
            upward: false,
            text: text.to_owned(),
        });
    }

    pub fn upward_text(&mut self, at: (f64, f64), size: f64, tint: Tint, text: &str) {
        self.shapes.push(Shape::Text {
            at,
            size,
            anchor: Anchor::Middle,
            tint,
            upward: true,
            text: text.to_owned(),
        });
    }

    #[cfg(feature = "pictures")]
    pub fn picture(&mut self, corner: (f64, f64), width: f64, height: f64, image: Image) {
        self.shapes.push(Shape::Picture {
            corner,
            width,
            height,
            image,
        });
    }
}

/// The embedded font, which contains Latin, Greek and mathematical symbols. Its licence is in the same folder.
static FONT: &[u8] = include_bytes!("../../assets/DejaVuSans-subset.ttf");

pub(crate) fn font() -> &'static ttf_parser::Face<'static> {
    static FACE: OnceLock<ttf_parser::Face<'static>> = OnceLock::new();
    FACE.get_or_init(|| ttf_parser::Face::parse(FONT, 0).expect("the embedded font is a font"))
}

/// Returns the glyph of a character and its advance in ems. An unknown character is represented by a special glyph.
pub(crate) fn glyph(c: char) -> (ttf_parser::GlyphId, f64) {
    let font = font();
    let id = font
        .glyph_index(c)
        .or_else(|| font.glyph_index('\u{fffd}'))
        .unwrap_or_default();
    let advance = f64::from(font.glyph_hor_advance(id).unwrap_or(0));
    (id, advance / f64::from(font.units_per_em()))
}

pub(crate) fn text_width(text: &str, size: f64) -> f64 {
    text.chars().map(|c| glyph(c).1).sum::<f64>() * size
}
