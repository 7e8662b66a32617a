//! Reads folders of grey-level pictures in PNG and PGM format.

use std::path::Path;

use crate::error::DataError;
use crate::files::{list_folder, read_bytes};

/// The width and the height of a picture, and its grey levels, row by row from the top.
struct Picture {
    width: usize,
    height: usize,
    levels: Vec<u8>,
}

/// Reads the pictures of a folder in the order of their names. Returns the shape `[pictures, height, width]` and the
/// grey levels.
pub(super) fn read(folder: &Path) -> Result<(Vec<usize>, Vec<u8>), DataError> {
    let mut size: Option<(usize, usize, String)> = None;
    let (mut count, mut levels) = (0, Vec::new());
    for path in list_folder(folder)? {
        let ending = path.extension().map(|e| e.to_string_lossy().to_lowercase());
        let decode = match ending.as_deref() {
            Some("png") => png,
            Some("pgm") => pgm,
            _ => continue,
        };
        let label = path.display().to_string();
        let picture = decode(&read_bytes(&path)?).map_err(|what| {
            DataError::invalid(format!("`{label}` cannot be read as a picture: {what}"))
        })?;
        let (width, height, first) =
            size.get_or_insert((picture.width, picture.height, label.clone()));
        if (*width, *height) != (picture.width, picture.height) {
            return Err(DataError::invalid(format!(
                "`{label}` is {}x{} and `{first}` is {width}x{height}: all pictures of a folder must have the \
                 same size",
                picture.width, picture.height
            )));
        }
        levels.extend(picture.levels);
        count += 1;
    }
    let Some((width, height, _)) = size else {
        return Err(DataError::invalid(format!(
            "the folder `{}` has no PNG or PGM pictures",
            folder.display()
        )));
    };
    Ok((vec![count, height, width], levels))
}

/// Decodes a PNG picture. Colours are converted to luma according to Rec. 601, and transparency is ignored.
#[cfg(feature = "pictures")]
fn png(bytes: &[u8]) -> Result<Picture, String> {
    let mut decoder = png::Decoder::new(std::io::Cursor::new(bytes));
    decoder.set_transformations(png::Transformations::normalize_to_color8());
    let mut reader = decoder.read_info().map_err(|e| e.to_string())?;
    let size = reader.output_buffer_size().ok_or("its size is invalid")?;
    let mut buffer = vec![0; size];
    let info = reader.next_frame(&mut buffer).map_err(|e| e.to_string())?;
    let samples = info.color_type.samples();
    let levels = buffer[..info.buffer_size()]
        .chunks_exact(samples)
        .map(|pixel| match *pixel {
            [r, g, b, ..] => {
                ((299 * u32::from(r) + 587 * u32::from(g) + 114 * u32::from(b) + 500) / 1000) as u8
            }
            [grey, ..] => grey,
            [] => 0,
        })
        .collect();
    Ok(Picture {
        width: info.width as usize,
        height: info.height as usize,
        levels,
    })
}

#[cfg(not(feature = "pictures"))]
fn png(_: &[u8]) -> Result<Picture, String> {
    Err("this build does not include PNG; to add it: cargo build --release -p jensen-cli".into())
}

fn pgm(bytes: &[u8]) -> Result<Picture, String> {
    let mut at = 0;
    let magic = token(bytes, &mut at).unwrap_or_default();
    if magic != b"P5" && magic != b"P2" {
        return Err("it starts with neither P5 nor P2".into());
    }
    let mut number = |what: &str| {
        token(bytes, &mut at)
            .and_then(|t| std::str::from_utf8(t).ok()?.parse::<usize>().ok())
            .ok_or(format!("it has no {what}"))
    };
    let (width, height) = (number("width")?, number("height")?);
    let largest = number("largest level")?;
    if !(1..=65535).contains(&largest) {
        return Err(format!("its largest level is {largest}"));
    }
    let count = width
        .checked_mul(height)
        .filter(|n| *n <= bytes.len())
        .ok_or("it is incomplete")?;
    let grey = |level: usize| ((level.min(largest) * 255 + largest / 2) / largest) as u8;
    let levels = if magic == b"P2" {
        (0..count)
            .map(|_| number("level for every pixel").map(grey))
            .collect::<Result<_, _>>()?
    } else {
        // A single white-space character ends the header.
        let size = if largest < 256 { 1 } else { 2 };
        bytes
            .get(at + 1..)
            .and_then(|body| body.get(..count * size))
            .ok_or("it is incomplete")?
            .chunks_exact(size)
            .map(|b| grey(b.iter().fold(0, |x, b| x << 8 | usize::from(*b))))
            .collect()
    };
    Ok(Picture {
        width,
        height,
        levels,
    })
}

/// Returns the next word, after skipping any comments.
fn token<'b>(bytes: &'b [u8], at: &mut usize) -> Option<&'b [u8]> {
    loop {
        while bytes.get(*at)?.is_ascii_whitespace() {
            *at += 1;
        }
        if bytes[*at] != b'#' {
            break;
        }
        while *bytes.get(*at)? != b'\n' {
            *at += 1;
        }
    }
    let start = *at;
    while bytes.get(*at).is_some_and(|b| !b.is_ascii_whitespace()) {
        *at += 1;
    }
    Some(&bytes[start..*at])
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn encode(width: u32, height: u32, color: png::ColorType, data: &[u8]) -> Vec<u8> {
        let mut bytes = Vec::new();
        let mut encoder = png::Encoder::new(&mut bytes, width, height);
        encoder.set_color(color);
        encoder.set_depth(png::BitDepth::Eight);
        let mut writer = encoder.write_header().unwrap();
        writer.write_image_data(data).unwrap();
        writer.finish().unwrap();
        bytes
    }

    #[test]
    fn pictures_are_read_in_order() {
        let folder = tempfile::tempdir().unwrap();
        let put = |name: &str, bytes: &[u8]| fs::write(folder.path().join(name), bytes).unwrap();
        put("a.pgm", b"P5 # made by hand\n2 1\n255\n\x07\xff");
        put("b.PGM", b"P2\n2 1\n5\n0 5\n");
        put("c.png", &encode(2, 1, png::ColorType::Grayscale, &[3, 4]));
        put(
            "d.png",
            &encode(2, 1, png::ColorType::Rgb, &[9, 9, 9, 255, 0, 0]),
        );
        put("readme", b"no picture");
        let (shape, levels) = read(folder.path()).unwrap();
        assert_eq!(shape, [4, 1, 2]);
        assert_eq!(levels, [7, 255, 0, 255, 3, 4, 9, 76]);
    }

    #[test]
    fn mixed_sizes_and_damaged_pictures_are_named() {
        let folder = tempfile::tempdir().unwrap();
        let put = |name: &str, bytes: &[u8]| fs::write(folder.path().join(name), bytes).unwrap();
        let refused = || read(folder.path()).unwrap_err().to_string();
        assert!(refused().contains("has no PNG"));
        put("a.pgm", b"P5 2 1 255\n\x07\xff");
        put("b.pgm", b"P5 1 2 255\n\x07\xff");
        let said = refused();
        assert!(said.contains("1x2") && said.contains("2x1"), "{said}");
        for bad in [
            &b"P5 2 1 255\n\x07"[..],
            b"P5 2",
            b"P6 2 1 255\n\x07\x08",
            b"P5 2 1 0\n\x07\x08",
            b"P2 2 1 9\n1 x",
            b"P5 9999999999 9999999999 255\n",
        ] {
            put("b.pgm", bad);
            assert!(refused().contains("b.pgm"), "{}", refused());
        }
        put("b.pgm", b"P5 2 1 255\n\x07\xff");
        let whole = encode(2, 1, png::ColorType::Grayscale, &[3, 4]);
        put("c.png", &whole[..whole.len() / 2]);
        assert!(refused().contains("c.png"));
    }
}
