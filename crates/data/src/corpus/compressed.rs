//! Reads files that may be compressed. The first bytes of a file show whether and how it is compressed.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::Path;

use flate2::bufread::MultiGzDecoder;
use lzma_rust2::XzReader;
use ruzstd::decoding::StreamingDecoder;

use crate::error::DataError;

/// The memory limit for decoding an xz stream in KiB. The limit is eight times the memory that `xz -9` requires.
const XZ_MEMORY_KIB: u32 = 512 << 10;

const BUFFER: usize = 1 << 17;

const GZIP: [u8; 2] = [0x1f, 0x8b];
const XZ: [u8; 6] = [0xfd, b'7', b'z', b'X', b'Z', 0];
const ZSTD: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];

/// Opens a file for reading. If the file is compressed with gzip, xz or Zstandard, it is decompressed as it is read.
/// The file may consist of several concatenated streams.
///
/// # Errors
/// Fails if the file cannot be opened. If a stream is damaged, a later read fails, and [`read_error`] converts the error
/// to a message.
pub fn open(path: &Path) -> Result<Box<dyn BufRead + Send>, DataError> {
    let io = |error: io::Error| DataError::io("read", path, &error);
    if path.is_dir() {
        return Err(io(io::Error::other("it is a folder")));
    }
    let file = File::open(path).map_err(io)?;
    let mut file = BufReader::with_capacity(BUFFER, file);
    let start = file.fill_buf().map_err(io)?;
    Ok(if start.starts_with(&GZIP) {
        Box::new(BufReader::with_capacity(BUFFER, MultiGzDecoder::new(file)))
    } else if start.starts_with(&XZ) {
        let xz = XzReader::new_mem_limit(file, true, XZ_MEMORY_KIB);
        Box::new(BufReader::with_capacity(BUFFER, xz))
    } else if start.starts_with(&ZSTD) {
        Box::new(BufReader::with_capacity(BUFFER, Zstd::new(file)?))
    } else {
        Box::new(file)
    })
}

/// Converts an error that occurred while reading a file that [`open`] opened.
pub fn read_error(path: &Path, error: &io::Error) -> DataError {
    use io::ErrorKind as K;
    match error.kind() {
        K::UnexpectedEof => DataError::invalid(format!(
            "`{}` ends in the middle of its compressed data: it is truncated; download or compress it again",
            path.display()
        )),
        K::InvalidData | K::InvalidInput | K::Other => DataError::invalid(format!(
            "`{}` cannot be decompressed ({error}): it is damaged; download or compress it again",
            path.display()
        )),
        _ => DataError::io("read", path, error),
    }
}

/// Returns the name of the file without the extension that indicates compression.
pub fn bare_name(path: &Path) -> String {
    let name = path
        .file_name()
        .map(|name| name.to_string_lossy().into_owned())
        .unwrap_or_default();
    for ending in [".gz", ".xz", ".zst"] {
        if let Some(bare) = name.strip_suffix(ending) {
            return bare.to_owned();
        }
    }
    name
}

struct Zstd<R: BufRead> {
    frame: Option<StreamingDecoder<R, ruzstd::decoding::FrameDecoder>>,
}

impl<R: BufRead> Zstd<R> {
    fn new(file: R) -> Result<Self, DataError> {
        let frame = StreamingDecoder::new(file)
            .map_err(|error| DataError::invalid(format!("not a Zstandard stream: {error}")))?;
        Ok(Self { frame: Some(frame) })
    }
}

impl<R: BufRead> Read for Zstd<R> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let invalid = |error: String| io::Error::new(io::ErrorKind::InvalidData, error);
        loop {
            let Some(frame) = &mut self.frame else {
                return Ok(0);
            };
            let count = frame.read(out)?;
            if count > 0 || out.is_empty() {
                return Ok(count);
            }
            let Some(ended) = self.frame.take() else {
                return Ok(0);
            };
            let mut file = ended.into_inner();
            if !file.fill_buf()?.is_empty() {
                let next = StreamingDecoder::new(file).map_err(|e| invalid(e.to_string()))?;
                self.frame = Some(next);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    fn read(path: &Path) -> io::Result<String> {
        let mut text = String::new();
        open(path).unwrap().read_to_string(&mut text)?;
        Ok(text)
    }

    #[test]
    fn compressed_files_read_like_plain_ones() {
        let folder = tempfile::tempdir().unwrap();
        let text = "one line\nand another\n".repeat(5000);
        let plain = folder.path().join("plain");
        std::fs::write(&plain, &text).unwrap();
        assert_eq!(read(&plain).unwrap(), text);

        let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        gzip.write_all(text.as_bytes()).unwrap();
        let gzip = gzip.finish().unwrap();
        let zstd = ruzstd::encoding::compress_to_vec(
            text.as_bytes(),
            ruzstd::encoding::CompressionLevel::Fastest,
        );
        for (name, bytes) in [("a.gz", gzip), ("a.zst", zstd)] {
            let path = folder.path().join(name);
            std::fs::write(&path, &bytes).unwrap();
            assert_eq!(read(&path).unwrap(), text, "{name}");
            // The file consists of two streams, one after the other, as `cat` would create it.
            std::fs::write(&path, [&bytes[..], &bytes[..]].concat()).unwrap();
            assert_eq!(read(&path).unwrap(), text.repeat(2), "{name} twice");
            std::fs::write(&path, &bytes[..bytes.len() / 2]).unwrap();
            let error = read_error(&path, &read(&path).unwrap_err()).to_string();
            assert!(error.contains(name), "{error}");
            assert!(
                error.contains("truncated") || error.contains("damaged"),
                "{error}"
            );
        }
    }

    #[test]
    fn xz_made_by_the_xz_utilities_is_read() {
        // The bytes are the output of `printf 'hello hello hello\n' | xz | xxd -i`.
        const BYTES: [u8; 72] = [
            0xfd, 0x37, 0x7a, 0x58, 0x5a, 0x00, 0x00, 0x04, 0xe6, 0xd6, 0xb4, 0x46, 0x02, 0x00,
            0x21, 0x01, 0x16, 0x00, 0x00, 0x00, 0x74, 0x2f, 0xe5, 0xa3, 0xe0, 0x00, 0x11, 0x00,
            0x0c, 0x5d, 0x00, 0x34, 0x19, 0x49, 0xee, 0x8d, 0xe9, 0x4f, 0x7e, 0x21, 0x21, 0xb0,
            0x00, 0x00, 0x1f, 0x01, 0xd9, 0xc8, 0x87, 0xc1, 0x43, 0xc8, 0x00, 0x01, 0x28, 0x12,
            0xc9, 0x6a, 0x62, 0x8e, 0x1f, 0xb6, 0xf3, 0x7d, 0x01, 0x00, 0x00, 0x00, 0x00, 0x04,
            0x59, 0x5a,
        ];
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.xz");
        std::fs::write(&path, BYTES).unwrap();
        assert_eq!(read(&path).unwrap(), "hello hello hello\n");
        std::fs::write(&path, &BYTES[..40]).unwrap();
        let error = read_error(&path, &read(&path).unwrap_err()).to_string();
        assert!(
            error.contains("truncated") || error.contains("damaged"),
            "{error}"
        );
    }

    #[test]
    fn endings_of_compression_are_no_part_of_the_name() {
        assert_eq!(
            bare_name(Path::new("x/docword.nips.txt.gz")),
            "docword.nips.txt"
        );
        assert_eq!(bare_name(Path::new("a.jsonl")), "a.jsonl");
    }
}
