//! Reads Parquet files as JSON lines. Each row becomes an object that contains the requested columns.
//!
//! Rows are read one at a time, and only the columns that contain the text and the names are decoded. Therefore only
//! one page of each of these columns is in memory. Pages may be uncompressed or compressed with Snappy.

use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::Path;
use std::sync::Arc;

use parquet::errors::ParquetError;
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::record::Field;
use parquet::record::reader::RowIter;
use parquet::schema::types::Type;
use serde_json::{Map, Value};

use crate::error::DataError;

/// Opens a Parquet file. Every line of the result is a JSON object. The object contains the given columns, except those
/// that do not exist.
///
/// # Errors
/// Fails if the file cannot be read, is not a Parquet file, or does not have the column `field`.
pub fn open(
    path: &Path,
    field: &str,
    id: Option<&str>,
) -> Result<Box<dyn BufRead + Send>, DataError> {
    let invalid = |error: ParquetError| {
        DataError::invalid(format!(
            "`{}` cannot be read as Parquet: {error}",
            path.display()
        ))
    };
    let file = File::open(path).map_err(|error| DataError::io("read", path, &error))?;
    let reader = SerializedFileReader::new(file).map_err(invalid)?;
    let schema = reader.metadata().file_metadata().schema().clone();
    let columns = schema.get_fields();
    if !columns.iter().any(|column| column.name() == field) {
        let names: Vec<&str> = columns.iter().map(|column| column.name()).collect();
        return Err(DataError::invalid(format!(
            "`{}` has no column `{field}`; its columns are {}: name one with --field",
            path.display(),
            names.join(", ")
        )));
    }
    let wanted = columns
        .iter()
        .filter(|column| column.name() == field || id == Some(column.name()))
        .map(Arc::clone)
        .collect();
    let projection = Type::group_type_builder(schema.name())
        .with_fields(wanted)
        .build()
        .map_err(invalid)?;
    let rows = RowIter::from_file_into(Box::new(reader))
        .project(Some(projection))
        .map_err(invalid)?;
    Ok(Box::new(BufReader::new(Lines {
        rows,
        left: VecDeque::new(),
    })))
}

struct Lines {
    rows: RowIter<'static>,
    left: VecDeque<u8>,
}

impl Read for Lines {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.left.is_empty() {
            match self.rows.next() {
                None => return Ok(0),
                Some(row) => {
                    let row =
                        row.map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))?;
                    let line: Map<String, Value> = row
                        .get_column_iter()
                        .map(|(name, field)| (name.clone(), value(field)))
                        .collect();
                    self.left.extend(Value::Object(line).to_string().bytes());
                    self.left.push_back(b'\n');
                }
            }
        }
        self.left.read(buffer)
    }
}

/// Converts a field to JSON. Text is unchanged, even if the column does not declare its bytes as text. Lists are
/// converted element by element. Any other single value becomes a word, and a field of any other type becomes empty.
fn value(field: &Field) -> Value {
    match field {
        Field::Str(text) => Value::from(text.as_str()),
        Field::Bytes(bytes) => std::str::from_utf8(bytes.data()).map_or(Value::Null, Value::from),
        Field::ListInternal(list) => list.elements().iter().map(value).collect(),
        Field::Null | Field::Group(_) | Field::MapInternal(_) => Value::Null,
        other => Value::from(other.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use std::io::BufRead;

    use parquet::basic::Compression;
    use parquet::data_type::{ByteArray, ByteArrayType, Int32Type};
    use parquet::file::properties::WriterProperties;
    use parquet::file::writer::SerializedFileWriter;
    use parquet::schema::parser::parse_message_type;

    use super::*;

    fn write(path: &Path) {
        let schema = "message rows { OPTIONAL BYTE_ARRAY text (UTF8); REQUIRED INT32 id; REQUIRED INT32 other; }";
        let schema = Arc::new(parse_message_type(schema).unwrap());
        let properties = WriterProperties::builder()
            .set_compression(Compression::SNAPPY)
            .build();
        let file = File::create(path).unwrap();
        let mut writer = SerializedFileWriter::new(file, schema, Arc::new(properties)).unwrap();
        let mut group = writer.next_row_group().unwrap();
        let mut column = group.next_column().unwrap().unwrap();
        let texts =
            ["cats \"purr\"\n", "dogs bark"].map(|t| ByteArray::from(t.as_bytes().to_vec()));
        let present = [1, 0, 1];
        column
            .typed::<ByteArrayType>()
            .write_batch(&texts, Some(&present), None)
            .unwrap();
        column.close().unwrap();
        for first in [7, 70] {
            let mut column = group.next_column().unwrap().unwrap();
            let values = [first, first + 1, first + 2];
            column
                .typed::<Int32Type>()
                .write_batch(&values, None, None)
                .unwrap();
            column.close().unwrap();
        }
        group.close().unwrap();
        writer.close().unwrap();
    }

    #[test]
    fn rows_are_json_lines_of_the_wanted_columns() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("rows.parquet");
        write(&path);
        let lines: Vec<Value> = open(&path, "text", Some("id"))
            .unwrap()
            .lines()
            .map(|line| serde_json::from_str(&line.unwrap()).unwrap())
            .collect();
        let row = |text: Value, id: i32| serde_json::json!({ "text": text, "id": id.to_string() });
        assert_eq!(
            lines,
            [
                row("cats \"purr\"\n".into(), 7),
                row(Value::Null, 8),
                row("dogs bark".into(), 9)
            ]
        );
        let error = |result: Result<Box<dyn BufRead + Send>, DataError>| match result {
            Ok(_) => panic!("it was opened"),
            Err(error) => error.to_string(),
        };
        let message = error(open(&path, "body", None));
        assert!(message.contains("no column `body`") && message.contains("text, id, other"));
        std::fs::write(&path, "no Parquet").unwrap();
        assert!(error(open(&path, "text", None)).contains("cannot be read as Parquet"));
    }
}
