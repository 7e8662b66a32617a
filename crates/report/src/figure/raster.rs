//! Draws the shapes of a scene as PNG.

use tiny_skia::{
    Color, FillRule, FilterQuality, LineCap, LineJoin, Paint, Path, PathBuilder, Pixmap,
    PixmapPaint, StrokeDash, Transform,
};
use ttf_parser::OutlineBuilder;

use super::colour::Tint;
use super::images::Image;
use super::scene::{Anchor, Colour, DASH, Scene, Shape, Stroke, font, glyph, text_width};

/// The number of PNG pixels per pixel of the scene, in each direction.
const ZOOM: f32 = 2.0;

/// The largest number of pixels along a side of the PNG. Larger scenes are scaled down.
const LARGEST: f64 = 12_000.0;

pub(super) fn render(scene: &Scene) -> Vec<u8> {
    let zoom = ZOOM.min((LARGEST / scene.width.max(scene.height).max(1.0)) as f32);
    let pixels = |length: f64| ((length as f32 * zoom).round() as u32).max(1);
    let mut map = Pixmap::new(pixels(scene.width), pixels(scene.height))
        .expect("a side must have between 1 and 12000 pixels");
    map.fill(color(Tint::Card.into()));
    let transform = Transform::from_scale(zoom, zoom);
    for shape in &scene.shapes {
        draw(&mut map, shape, transform);
    }
    encode(&map)
}

fn encode(map: &Pixmap) -> Vec<u8> {
    map.encode_png()
        .expect("memory takes what is written to it")
}

/// Encodes an image at its own size and without transparency. A grey image has eight bits per pixel.
pub(super) fn encode_image(image: &Image) -> Vec<u8> {
    let grey = image.pixels().iter().all(|[r, g, b]| r == g && g == b);
    let mut bytes = Vec::new();
    let mut encoder = png::Encoder::new(&mut bytes, image.width() as u32, image.height() as u32);
    encoder.set_depth(png::BitDepth::Eight);
    encoder.set_compression(png::Compression::High);
    let data: Vec<u8> = if grey {
        encoder.set_color(png::ColorType::Grayscale);
        image.pixels().iter().map(|pixel| pixel[0]).collect()
    } else {
        encoder.set_color(png::ColorType::Rgb);
        image.pixels().as_flattened().to_vec()
    };
    let written = encoder
        .write_header()
        .and_then(|mut writer| writer.write_image_data(&data));
    // This cannot fail, because the output is written to memory and the number of pixels matches the size of the image.
    written.map_or_else(|_| encode(&pixmap(image)), |()| bytes)
}

fn draw(map: &mut Pixmap, shape: &Shape, transform: Transform) {
    match shape {
        Shape::Line { points, stroke } => {
            if let Some(path) = outline(points, false) {
                let paint = paint(stroke.colour);
                map.stroke_path(&path, &paint, &pen(stroke), transform, None);
            }
        }
        Shape::Area { points, colour, .. } => {
            if let Some(path) = outline(points, true) {
                map.fill_path(&path, &paint(*colour), FillRule::Winding, transform, None);
            }
        }
        Shape::Disc {
            centre,
            radius,
            colour,
        } => {
            let circle = PathBuilder::from_circle(centre.0 as f32, centre.1 as f32, *radius as f32);
            if let Some(path) = circle {
                map.fill_path(&path, &paint(*colour), FillRule::Winding, transform, None);
            }
        }
        Shape::Text {
            at,
            size,
            anchor,
            tint,
            upward,
            text,
        } => {
            let width = text_width(text, *size);
            let shift = match anchor {
                Anchor::Start => 0.0,
                Anchor::Middle => -width / 2.0,
                Anchor::End => -width,
            };
            let transform = transform
                .pre_translate(at.0 as f32, at.1 as f32)
                .pre_concat(Transform::from_rotate(if *upward { -90.0 } else { 0.0 }))
                .pre_translate(shift as f32, 0.0);
            if let Some(path) = letters(text, *size) {
                map.fill_path(
                    &path,
                    &paint((*tint).into()),
                    FillRule::Winding,
                    transform,
                    None,
                );
            }
        }
        Shape::Picture {
            corner,
            width,
            height,
            image,
        } => {
            let picture = pixmap(image);
            let transform = transform
                .pre_translate(corner.0 as f32, corner.1 as f32)
                .pre_scale(
                    (*width / f64::from(picture.width())) as f32,
                    (*height / f64::from(picture.height())) as f32,
                );
            let paint = PixmapPaint {
                quality: FilterQuality::Nearest,
                ..PixmapPaint::default()
            };
            map.draw_pixmap(0, 0, picture.as_ref(), &paint, transform, None);
        }
    }
}

/// Returns a path through those points that are finite, or `None` if there are fewer than two of them.
fn outline(points: &[(f64, f64)], close: bool) -> Option<Path> {
    let mut path = PathBuilder::new();
    let mut finite = points
        .iter()
        .filter(|(x, y)| x.is_finite() && y.is_finite());
    let (x, y) = finite.next()?;
    path.move_to(*x as f32, *y as f32);
    for (x, y) in finite {
        path.line_to(*x as f32, *y as f32);
    }
    if close {
        path.close();
    }
    path.finish()
}

fn pen(stroke: &Stroke) -> tiny_skia::Stroke {
    let dash = (DASH * stroke.width) as f32;
    tiny_skia::Stroke {
        width: stroke.width as f32,
        line_cap: LineCap::Butt,
        line_join: LineJoin::Round,
        dash: stroke
            .dashed
            .then(|| StrokeDash::new(vec![dash, dash], 0.0))
            .flatten(),
        ..tiny_skia::Stroke::default()
    }
}

fn color(colour: Colour) -> Color {
    let [r, g, b] = colour.tint.rgb();
    Color::from_rgba8(
        r,
        g,
        b,
        (colour.opacity.clamp(0.0, 1.0) * 255.0).round() as u8,
    )
}

fn paint(colour: Colour) -> Paint<'static> {
    let mut paint = Paint::default();
    paint.set_color(color(colour));
    paint.anti_alias = true;
    paint
}

fn pixmap(image: &Image) -> Pixmap {
    let mut map = Pixmap::new(image.width() as u32, image.height() as u32)
        .expect("the constructors limit the number of pixels");
    for (pixel, [r, g, b]) in map.pixels_mut().iter_mut().zip(image.pixels()) {
        *pixel = tiny_skia::ColorU8::from_rgba(*r, *g, *b, 255).premultiply();
    }
    map
}

fn letters(text: &str, size: f64) -> Option<Path> {
    let scale = size / f64::from(font().units_per_em());
    let mut pen = Letters {
        path: PathBuilder::new(),
        scale,
        x: 0.0,
    };
    for c in text.chars() {
        let (id, advance) = glyph(c);
        // The outline may be missing, because a space has none.
        let _ = font().outline_glyph(id, &mut pen);
        pen.x += advance * size;
    }
    pen.path.finish()
}

/// Converts outlines of a font to outlines of a scene. The y axis of a font points upwards, and the y axis of a scene
/// points downwards.
struct Letters {
    path: PathBuilder,
    scale: f64,
    x: f64,
}

impl Letters {
    fn at(&self, x: f32, y: f32) -> (f32, f32) {
        (
            (self.x + f64::from(x) * self.scale) as f32,
            (-f64::from(y) * self.scale) as f32,
        )
    }
}

impl OutlineBuilder for Letters {
    fn move_to(&mut self, x: f32, y: f32) {
        let (x, y) = self.at(x, y);
        self.path.move_to(x, y);
    }

    fn line_to(&mut self, x: f32, y: f32) {
        let (x, y) = self.at(x, y);
        self.path.line_to(x, y);
    }

    fn quad_to(&mut self, x1: f32, y1: f32, x: f32, y: f32) {
        let ((x1, y1), (x, y)) = (self.at(x1, y1), self.at(x, y));
        self.path.quad_to(x1, y1, x, y);
    }

    fn curve_to(&mut self, x1: f32, y1: f32, x2: f32, y2: f32, x: f32, y: f32) {
        let ((x1, y1), (x2, y2), (x, y)) = (self.at(x1, y1), self.at(x2, y2), self.at(x, y));
        self.path.cubic_to(x1, y1, x2, y2, x, y);
    }

    fn close(&mut self) {
        self.path.close();
    }
}
