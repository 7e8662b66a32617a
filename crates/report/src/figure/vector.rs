//! Draws the shapes of a scene as SVG.

use std::fmt::Write;

use super::colour::Tint;
use super::scene::{Anchor, Colour, DASH, Scene, Shape};
use crate::text;

/// Returns the content of an SVG file. `label` describes the picture for readers who cannot see it.
pub(super) fn file(scene: &Scene, label: &str) -> String {
    let mut out = String::from(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" xmlns:xlink=\"http://www.w3.org/1999/xlink\" ",
    );
    head(&mut out, scene, label);
    let _ = write!(
        out,
        " font-family=\"DejaVu Sans, Verdana, sans-serif\">\n\
         <rect width=\"100%\" height=\"100%\" fill=\"{}\"/>\n",
        Tint::Card.hex()
    );
    let medium = Medium {
        colour: Tint::hex,
        reference: "xlink:href",
    };
    for shape in &scene.shapes {
        medium.push(&mut out, shape);
        out.push('\n');
    }
    out.push_str("</svg>\n");
    out
}

impl Scene {
    /// Returns an SVG element for use in a page. The page must define the background, the font and the colours.
    pub(crate) fn to_inline_svg(&self, label: &str) -> String {
        let mut out = String::from("<svg ");
        head(&mut out, self, label);
        out.push('>');
        let medium = Medium {
            colour: Tint::css,
            reference: "href",
        };
        for shape in &self.shapes {
            medium.push(&mut out, shape);
        }
        out.push_str("</svg>");
        out
    }
}

fn head(out: &mut String, scene: &Scene, label: &str) {
    let (w, h) = (scene.width, scene.height);
    let _ = write!(
        out,
        "viewBox=\"0 0 {w:.0} {h:.0}\" width=\"{w:.0}\" height=\"{h:.0}\" role=\"img\" aria-label=\"{}\"",
        text::escape(label)
    );
}

/// The notation of an output format: how it writes colours, and which attribute refers to an embedded picture.
struct Medium {
    colour: fn(Tint) -> String,
    reference: &'static str,
}

impl Medium {
    fn push(&self, out: &mut String, shape: &Shape) {
        let _ = match shape {
            Shape::Line { points, stroke } => write!(
                out,
                "<path d=\"{}\" fill=\"none\" stroke=\"{}\" stroke-width=\"{}\" stroke-linejoin=\"round\"{}{}/>",
                outline(points),
                (self.colour)(stroke.colour.tint),
                stroke.width,
                opacity("stroke-opacity", stroke.colour),
                if stroke.dashed {
                    format!(" stroke-dasharray=\"{d} {d}\"", d = DASH * stroke.width)
                } else {
                    String::new()
                }
            ),
            Shape::Area {
                points,
                colour,
                tip,
            } => {
                let end = match tip.as_str() {
                    "" => "/>".to_owned(),
                    tip => format!("><title>{}</title></path>", text::escape(tip)),
                };
                write!(
                    out,
                    "<path d=\"{}Z\" fill=\"{}\"{}{end}",
                    outline(points),
                    (self.colour)(colour.tint),
                    opacity("fill-opacity", *colour)
                )
            }
            Shape::Disc {
                centre,
                radius,
                colour,
            } => write!(
                out,
                "<circle cx=\"{:.2}\" cy=\"{:.2}\" r=\"{radius}\" fill=\"{}\"{}/>",
                centre.0,
                centre.1,
                (self.colour)(colour.tint),
                opacity("fill-opacity", *colour)
            ),
            Shape::Text {
                at,
                size,
                anchor,
                tint,
                upward,
                text,
            } => {
                let (x, y) = *at;
                let turned = if *upward {
                    format!(" transform=\"rotate(-90 {x:.2} {y:.2})\"")
                } else {
                    String::new()
                };
                let anchor = match anchor {
                    Anchor::Start => "start",
                    Anchor::Middle => "middle",
                    Anchor::End => "end",
                };
                write!(
                    out,
                    "<text x=\"{x:.2}\" y=\"{y:.2}\" font-size=\"{size}\" text-anchor=\"{anchor}\" \
                     fill=\"{}\"{turned}>{}</text>",
                    (self.colour)(*tint),
                    text::escape(text)
                )
            }
            #[cfg(feature = "pictures")]
            Shape::Picture {
                corner,
                width,
                height,
                image,
            } => write!(
                out,
                "<image x=\"{:.2}\" y=\"{:.2}\" width=\"{width:.2}\" height=\"{height:.2}\" \
                 preserveAspectRatio=\"none\" image-rendering=\"pixelated\" \
                 {}=\"data:image/png;base64,{}\"/>",
                corner.0,
                corner.1,
                self.reference,
                base64(&image.to_png())
            ),
        };
    }
}

fn outline(points: &[(f64, f64)]) -> String {
    let mut data = String::with_capacity(12 * points.len());
    for (i, (x, y)) in points.iter().enumerate() {
        let _ = write!(data, "{}{x:.2} {y:.2}", if i == 0 { 'M' } else { 'L' });
    }
    data
}

fn opacity(name: &str, colour: Colour) -> String {
    if colour.opacity < 1.0 {
        format!(" {name}=\"{:.3}\"", colour.opacity)
    } else {
        String::new()
    }
}

/// Encodes bytes in base 64 with padding, as RFC 4648 specifies.
fn base64(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut out = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for chunk in bytes.chunks(3) {
        let word = chunk
            .iter()
            .enumerate()
            .fold(0u32, |w, (i, b)| w | u32::from(*b) << (16 - 8 * i));
        for i in 0..4 {
            if i <= chunk.len() {
                let digit = word >> (18 - 6 * i) & 63;
                out.push(char::from(DIGITS[digit as usize]));
            } else {
                out.push('=');
            }
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base64_is_that_of_the_standard() {
        // These are the test vectors of RFC 4648.
        let cases = [
            ("", ""),
            ("f", "Zg=="),
            ("fo", "Zm8="),
            ("foo", "Zm9v"),
            ("foobar", "Zm9vYmFy"),
        ];
        for (text, expected) in cases {
            assert_eq!(base64(text.as_bytes()), expected);
        }
        assert_eq!(base64(&[0xfb, 0xff]), "+/8=");
    }
}
