use std::sync::Arc;

use parquet::basic::Compression;
use parquet::data_type::{
    BoolType, ByteArray, ByteArrayType, DoubleType, FloatType, Int32Type, Int64Type,
};
use parquet::file::properties::WriterProperties;
use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use parquet::schema::parser::parse_message_type;

use super::*;
use crate::dataset::Elements;

const SCHEMA: &str = "message rows {
    REQUIRED INT32 a; OPTIONAL DOUBLE b; REQUIRED BOOLEAN c; OPTIONAL BYTE_ARRAY d (UTF8);
    OPTIONAL GROUP e (LIST) { REPEATED GROUP list { OPTIONAL FLOAT element; } }
    REQUIRED INT64 f (UINT_64); REQUIRED INT32 g (DATE); }";

struct Group {
    b: Vec<Option<f64>>,
    words: Vec<&'static str>,
    lists: Vec<Vec<f32>>,
    f: Vec<i64>,
}

impl Group {
    fn of(rows: usize, first: usize) -> Self {
        let numbers = || (first..first + rows).map(|n| n as f64);
        Self {
            b: numbers().map(|n| Some(n / 2.0)).collect(),
            words: numbers()
                .map(|n| ["pear", "fig", "apple"][n as usize % 3])
                .collect(),
            lists: numbers().map(|n| vec![n as f32, -n as f32]).collect(),
            f: numbers().map(|n| n as i64).collect(),
        }
    }
}

fn column<T: parquet::data_type::DataType>(
    group: &mut SerializedRowGroupWriter<'_, File>,
    values: &[T::T],
    defs: Option<&[i16]>,
    reps: Option<&[i16]>,
) {
    let mut column = group.next_column().unwrap().unwrap();
    column.typed::<T>().write_batch(values, defs, reps).unwrap();
    column.close().unwrap();
}

fn write(path: &Path, schema: &str, groups: &[Group]) {
    let schema = Arc::new(parse_message_type(schema).unwrap());
    let properties = WriterProperties::builder()
        .set_compression(Compression::SNAPPY)
        .build();
    let file = File::create(path).unwrap();
    let mut writer = SerializedFileWriter::new(file, schema, Arc::new(properties)).unwrap();
    for own in groups {
        let rows = own.f.len();
        let mut group = writer.next_row_group().unwrap();
        let counted: Vec<i32> = own.f.iter().map(|n| *n as i32 - 1).collect();
        column::<Int32Type>(&mut group, &counted, None, None);
        let present: Vec<i16> = own.b.iter().map(|b| i16::from(b.is_some())).collect();
        let b: Vec<f64> = own.b.iter().flatten().copied().collect();
        column::<DoubleType>(&mut group, &b, Some(&present), None);
        let c: Vec<bool> = own.f.iter().map(|n| n % 2 == 1).collect();
        column::<BoolType>(&mut group, &c, None, None);
        let words: Vec<ByteArray> = own
            .words
            .iter()
            .map(|word| ByteArray::from(*word))
            .collect();
        column::<ByteArrayType>(&mut group, &words, Some(&vec![1; rows]), None);
        let elements: Vec<f32> = own.lists.concat();
        let defs = own.lists.iter().flat_map(|list| match list.len() {
            0 => vec![1],
            n => vec![3; n],
        });
        let reps = own.lists.iter().flat_map(|list| {
            (0..list.len().max(1))
                .map(|k| i16::from(k > 0))
                .collect::<Vec<_>>()
        });
        let (defs, reps): (Vec<i16>, Vec<i16>) = (defs.collect(), reps.collect());
        column::<FloatType>(&mut group, &elements, Some(&defs), Some(&reps));
        column::<Int64Type>(&mut group, &own.f, None, None);
        column::<Int32Type>(&mut group, &counted, None, None);
        group.close().unwrap();
    }
    writer.close().unwrap();
}

fn refused<T>(result: Result<T, DataError>) -> String {
    match result {
        Ok(_) => panic!("it was read"),
        Err(error) => error.to_string(),
    }
}

#[test]
fn columns_of_any_stretches_are_arrays() {
    let folder = tempfile::tempdir().unwrap();
    write(
        &folder.path().join("1.parquet"),
        SCHEMA,
        &[Group::of(5, 0), Group::of(3, 5)],
    );
    write(&folder.path().join("2.parquet"), SCHEMA, &[Group::of(4, 8)]);
    let files = RowFiles::open(&[folder.path().to_owned()]).unwrap();
    assert_eq!(files.rows(), 12);
    let mut stretches = files.groups();
    assert_eq!(
        stretches.iter().map(|s| s.first).collect::<Vec<_>>(),
        [0, 5, 8]
    );
    // The first range contains the rows 8 to 11, and the second range contains the rows 2 and 3.
    stretches[0].rows = 2..4;
    let chosen = [stretches[2].clone(), stretches[0].clone()];
    let data = files
        .read(&["a", "b", "c", "d", "e", "f"], &chosen)
        .unwrap();
    let rows = [8, 9, 10, 11, 2, 3];
    let ints = |f: &dyn Fn(i64) -> i64| Elements::Int(rows.iter().map(|n| f(*n)).collect());
    let of = |name: &str| data.get(name).unwrap();
    assert_eq!(*of("a").elements(), ints(&|n| n - 1));
    assert_eq!(*of("f").elements(), ints(&|n| n));
    assert_eq!(*of("c").elements(), ints(&|n| n % 2));
    // The words are apple, fig and pear, in this order.
    assert_eq!(*of("d").elements(), ints(&|n| [3, 2, 1][n as usize % 3]));
    let halves = rows.iter().map(|n| *n as f64 / 2.0).collect();
    assert_eq!(*of("b").elements(), Elements::Real(halves));
    assert_eq!(of("e").shape(), [6, 2]);
    let pairs = rows.iter().flat_map(|n| [*n as f64, -*n as f64]).collect();
    assert_eq!(*of("e").elements(), Elements::Real(pairs));
    assert_eq!(files.list_length("e").unwrap(), Some(2));
    assert_eq!(files.list_length("a").unwrap(), None);
}

#[test]
fn what_is_missing_or_no_number_is_refused_with_its_location() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("rows.parquet");
    let read = |name: &str, change: &dyn Fn(&mut Group)| {
        let mut second = Group::of(4, 3);
        change(&mut second);
        write(&path, SCHEMA, &[Group::of(3, 0), second]);
        let files = RowFiles::open(std::slice::from_ref(&path)).unwrap();
        refused(files.read(&[name], &files.groups()))
    };
    type Change<'a> = &'a dyn Fn(&mut Group);
    let cases: [(&str, Change<'_>, &str, &str); 6] = [
        ("b", &|group| group.b[2] = None, "row 6", "a null"),
        ("b", &|group| group.b[1] = Some(f64::NAN), "row 5", "NaN"),
        (
            "e",
            &|group| group.lists[3] = vec![1.0],
            "row 7",
            "length differs from the 2",
        ),
        ("e", &|group| group.lists[0].clear(), "row 4", "is empty"),
        (
            "f",
            &|group| group.f[3] = -1,
            "row 7",
            "18446744073709551615 is too large",
        ),
        ("g", &|_| {}, "column `g`", "found Date"),
    ];
    for (name, change, location, what) in cases {
        let message = read(name, change);
        assert!(
            message.contains("rows.parquet`")
                && message.contains(location)
                && message.contains(what),
            "{name}: {message}"
        );
    }
    let message = read("h", &|_| {});
    assert!(
        message.contains("no column `h`") && message.contains("`a`, `b`"),
        "{message}"
    );
}

#[test]
fn files_that_differ_are_damaged_or_change_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let paths = [
        folder.path().join("1.parquet"),
        folder.path().join("2.parquet"),
    ];
    write(&paths[0], SCHEMA, &[Group::of(300, 0)]);
    write(
        &paths[1],
        &SCHEMA.replace("INT32 a", "INT32 A"),
        &[Group::of(3, 0)],
    );
    let message = refused(RowFiles::open(&paths));
    assert!(message.contains("differ in the column `A`"), "{message}");

    let whole = std::fs::read(&paths[0]).unwrap();
    let open = |bytes: &[u8]| {
        std::fs::write(&paths[0], bytes).unwrap();
        RowFiles::open(&paths[..1])
    };
    assert!(refused(open(&whole[..whole.len() / 2])).contains("cannot be read as Parquet"));
    assert!(refused(open(b"")).contains("cannot be read as Parquet"));
    // If bytes within the pages are damaged, the result is an error or other numbers, never a panic.
    for at in (4..whole.len()).step_by(7) {
        let mut bytes = whole.clone();
        bytes[at] ^= 0x55;
        if let Ok(files) = open(&bytes) {
            let _ = files.read(&["a", "b", "c", "d", "e", "f"], &files.groups());
        }
    }

    let files = open(&whole).unwrap();
    let before = files.digest();
    write(&paths[0], SCHEMA, &[Group::of(301, 0)]);
    let message = refused(files.read(&["a"], &files.groups()));
    assert!(
        message.contains("changed while Jensen read it"),
        "{message}"
    );
    assert_ne!(RowFiles::open(&paths[..1]).unwrap().digest(), before);

    let empty = folder.path().join("empty");
    std::fs::create_dir(&empty).unwrap();
    assert!(refused(RowFiles::open(&[empty])).contains("no file whose name ends in .parquet"));
}

#[test]
fn a_file_is_a_table() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("rows.parquet");
    let schema = SCHEMA.replace(" (DATE)", "");
    let mut second = Group::of(3, 2);
    second.b[1] = None;
    second.f[2] = -1;
    write(&path, &schema, &[Group::of(2, 0), second]);
    let table = crate::Table::read(&path).unwrap();
    assert_eq!(table.names(), ["a", "b", "c", "d", "e1", "e2", "f", "g"]);
    assert_eq!(table.rows(), 5);
    let numbers = |name: &str| table.numbers(name).unwrap();
    assert_eq!(numbers("a")[..4], [-1.0, 0.0, 1.0, 2.0]);
    let b = numbers("b");
    assert!(b[..3] == [0.0, 0.5, 1.0] && b[3].is_nan() && b[4] == 2.0);
    assert_eq!(numbers("c")[..4], [0.0, 1.0, 0.0, 1.0]);
    assert_eq!(numbers("e1"), [0.0, 1.0, 2.0, 3.0, 4.0]);
    assert_eq!(numbers("e2"), [-0.0, -1.0, -2.0, -3.0, -4.0]);
    assert_eq!(numbers("f"), [0.0, 1.0, 2.0, 3.0, u64::MAX as f64]);
    assert_eq!(
        table.column("d").unwrap().levels(),
        ["apple", "fig", "pear"]
    );

    // Lists of different lengths are not supported, and neither are dates.
    let refusal = |group: Group, schema: &str| {
        write(&path, schema, &[Group::of(2, 0), group]);
        refused(crate::Table::read(&path))
    };
    let mut shorter = Group::of(3, 2);
    shorter.lists[1] = vec![1.0];
    let message = refusal(shorter, &schema);
    assert!(
        message.contains("row 4, column `e`: a list whose length differs"),
        "{message}"
    );
    let message = refusal(Group::of(3, 2), SCHEMA);
    assert!(
        message.contains("column `g`") && message.contains("found Date"),
        "{message}"
    );

    // If bytes are damaged, the result is an error or other numbers.
    write(&path, &schema, &[Group::of(300, 0)]);
    let whole = std::fs::read(&path).unwrap();
    for at in (4..whole.len()).step_by(7) {
        let mut bytes = whole.clone();
        bytes[at] ^= 0x55;
        let _ = crate::Table::parse(&bytes, "rows.parquet");
    }
}
