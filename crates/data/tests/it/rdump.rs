//! Tests the reader of R dumps. The tests cover the values of accepted input, and the errors that all other input
//! causes.

use jensen_data::{DataError, DataFile, DataSet, Value};

fn read(text: &str) -> DataSet {
    DataSet::from_rdump(text.as_bytes(), "data.R").unwrap_or_else(|e| panic!("{text}\n{e}"))
}

#[test]
fn values_are_read_and_reordered() {
    let data = read(
        "# a comment; with <- inside\nN <- 3L\n\"x\" <- -1.5 # trailing\n`k` <- 1:4;d <- 3:1\n\
         y <-\nc(1,\n  -2, # why\n 3e2)\nM <- structure(c(1, 2, 3, 4, 5, 6), .Dim = c(2L, 3L))\n\
         A <- structure(1:12, .Dim = c(2, 3, 2))\nnone <- integer(0)\nz <- structure(numeric(0), .Dim = c(0L, 3L))\n\
         w = c(Inf, -Inf)\nints <- c(1L, 2L)\nlong <- c(1:3, 7)\ne <- 1e2L\nzeros <- double(2)\nempty <- c()\n",
    );
    let cases: Vec<(&str, Value)> = vec![
        ("N", Value::int(3)),
        ("x", Value::real(-1.5)),
        ("k", Value::ints(vec![4], vec![1, 2, 3, 4]).unwrap()),
        ("d", Value::ints(vec![3], vec![3, 2, 1]).unwrap()),
        ("y", Value::reals(vec![3], vec![1.0, -2.0, 300.0]).unwrap()),
        (
            "M",
            Value::ints(vec![2, 3], vec![1, 3, 5, 2, 4, 6]).unwrap(),
        ),
        (
            "A",
            Value::ints(vec![2, 3, 2], vec![1, 7, 3, 9, 5, 11, 2, 8, 4, 10, 6, 12]).unwrap(),
        ),
        ("none", Value::ints(vec![0], vec![]).unwrap()),
        ("z", Value::reals(vec![0, 3], vec![]).unwrap()),
        (
            "w",
            Value::reals(vec![2], vec![f64::INFINITY, f64::NEG_INFINITY]).unwrap(),
        ),
        ("ints", Value::ints(vec![2], vec![1, 2]).unwrap()),
        ("long", Value::ints(vec![4], vec![1, 2, 3, 7]).unwrap()),
        ("e", Value::int(100)),
        ("zeros", Value::reals(vec![2], vec![0.0, 0.0]).unwrap()),
        ("empty", Value::ints(vec![0], vec![]).unwrap()),
    ];
    assert_eq!(data.len(), cases.len());
    for ((name, value), (expected_name, expected)) in data.iter().zip(&cases) {
        assert_eq!((name, value), (*expected_name, expected));
    }
}

/// Files that cannot be read. Each has the message of the error, and the line and the column at which the error is
/// reported.
const WRONG: &[(&str, &str, usize, usize)] = &[
    (
        "a <- c(1, NA)",
        "data variable `a`: Stan has no missing values (NA)",
        1,
        11,
    ),
    (
        "a <- TRUE",
        "data variable `a`: TRUE is not a number; write 0 or 1",
        1,
        6,
    ),
    ("a <- 1\na <- 2", "data variable `a` appears twice", 2, 1),
    (
        "a <- structure(c(1,2,3), .Dim = c(2,2))",
        "data variable `a`: 3 numbers do not fill .Dim = [2, 2]",
        1,
        26,
    ),
    (
        "a <- structure(1:4, .Dim = c(-2,-2))",
        "data variable `a`: dimensions must be integers ≥ 0",
        1,
        21,
    ),
    (
        "a <- structure(1:4, .Names = c(1))",
        "data variable `a`: expected `.Dim = c(…)`",
        1,
        21,
    ),
    (
        "a <- c(1, 2",
        "data variable `a`: the file ends where `,` or `)` should follow",
        1,
        12,
    ),
    (
        "a <- ",
        "data variable `a`: the file ends where a number",
        1,
        6,
    ),
    ("a 1", "expected `<-` after the name, found `1`", 1, 3),
    ("1 <- a", "expected the name of a variable, found `1`", 1, 1),
    (
        "a <- 1 b <- 2",
        "data variable `a`: expected the end of the assignment, found `b`",
        1,
        8,
    ),
    (
        "a <- 1.2.3",
        "data variable `a`: this is not a number",
        1,
        6,
    ),
    (
        "a <- 12abc",
        "data variable `a`: this is not a number",
        1,
        6,
    ),
    (
        "a <- 1e999",
        "data variable `a`: the number is too large",
        1,
        6,
    ),
    (
        "a <- 1:99999999999",
        "data variable `a`: ranges and lengths would give more than 33554432 numbers in total",
        1,
        6,
    ),
    (
        "a <- integer(30000000)\nb <- 1:30000000",
        "data variable `b`: ranges and lengths would give more than 33554432 numbers in total",
        2,
        6,
    ),
    (
        "a <- 1.5:3",
        "data variable `a`: the ends of a range must be integers",
        1,
        6,
    ),
    (
        "a <- integer(-1)",
        "data variable `a`: expected a length",
        1,
        6,
    ),
    ("a <- list(1)", "data variable `a`: expected a number", 1, 6),
    ("'a <- 1", "this name has no closing quote", 1, 1),
];

#[test]
fn errors_say_what_and_where() {
    for &(text, message, line, column) in WRONG {
        let error = match DataSet::from_rdump(text.as_bytes(), "data.R") {
            Err(DataError::Parse(e)) => e,
            other => panic!("{text}\n{other:?}"),
        };
        assert!(error.message.starts_with(message), "{text}\n{error}");
        assert_eq!(
            (error.line, error.column),
            (line, column),
            "{text}\n{error}"
        );
    }
}

#[test]
fn expressions_are_computed() {
    let data = read(
        "N <- 3\nM <- N * 2 + 1\nh <- N / 2\np <- -2^2\nr <- -1:2 * 10\nv <- rep(c(1, 2.5), times = 2)\n\
         each <- rep(1:2, each = 2)\nw <- (v + 1) * 2\nX <- matrix(1:6, nrow = 2)\nY <- matrix(1:6, ncol = 3, byrow = TRUE)\n\
         Z <- array(0L, dim = c(2, 2))\nX2 <- X * 10\ns <- seq(0, 1, by = 0.25)\nk <- seq_len(N)\nn <- length(v)\n\
         i <- as.integer(c(1.0, 2.0))\nnamed <- c(a = 1, b = 2)\n",
    );
    let ints = |shape: &[usize], x: &[i64]| Value::ints(shape.to_vec(), x.to_vec()).unwrap();
    let reals = |shape: &[usize], x: &[f64]| Value::reals(shape.to_vec(), x.to_vec()).unwrap();
    let cases = [
        ("M", Value::int(7)),
        ("h", Value::real(1.5)),
        ("p", Value::real(-4.0)),
        ("r", ints(&[4], &[-10, 0, 10, 20])),
        ("v", reals(&[4], &[1.0, 2.5, 1.0, 2.5])),
        ("each", ints(&[4], &[1, 1, 2, 2])),
        ("w", reals(&[4], &[4.0, 7.0, 4.0, 7.0])),
        ("X", ints(&[2, 3], &[1, 3, 5, 2, 4, 6])),
        ("Y", ints(&[2, 3], &[1, 2, 3, 4, 5, 6])),
        ("Z", ints(&[2, 2], &[0; 4])),
        ("X2", ints(&[2, 3], &[10, 30, 50, 20, 40, 60])),
        ("s", reals(&[5], &[0.0, 0.25, 0.5, 0.75, 1.0])),
        ("k", ints(&[3], &[1, 2, 3])),
        ("n", Value::int(4)),
        ("i", ints(&[2], &[1, 2])),
        ("named", ints(&[2], &[1, 2])),
    ];
    for (name, expected) in cases {
        assert_eq!(data.get(name), Some(&expected), "{name}");
    }
    for wrong in [
        "a <- c(1, 2) + c(1, 2, 3)",
        "a <- 1:1000000000 * 2",
        "a <- rep(1, 1e12)",
        "a <- b + 1",
    ] {
        assert!(
            DataSet::from_rdump(wrong.as_bytes(), "data.R").is_err(),
            "{wrong}"
        );
    }
}

#[test]
fn values_that_are_no_data_spoil_no_others() {
    let folder = tempfile::tempdir().unwrap();
    let dump = "N <- 3\nnames <- c(\"a; b\", \"c\\n\")\nwho <- \"me\" # 'quoted'\nf <- factor(c(1, 2), levels = 1:2)\n\
                l <- list(a = 1,\n  b = \"x)\")\nmissing <- c(1, NA)\ny <- c(1, 2)\n";
    let json = r#"{"N": 3, "names": ["a", "b"], "who": null, "y": [1, 2], "o": {"k": [true, {}]}, "ragged": [[1], [1, 2]]}"#;
    for (name, text, refused) in [
        (
            "d.R",
            dump,
            ["names", "who", "f", "l", "missing"].as_slice(),
        ),
        ("d.json", json, &["names", "who", "o", "ragged"]),
    ] {
        let path = folder.path().join(name);
        std::fs::write(&path, text).unwrap();
        assert!(DataSet::read(&path).is_err());
        let data = DataFile::read(&path).unwrap().parse_apart().unwrap();
        assert_eq!(data.names().collect::<Vec<_>>(), ["N", "y"]);
        for name in refused {
            let why = data.refusal(name).unwrap().to_string();
            assert!(why.contains(&format!("`{name}")), "{why}");
        }
        assert_eq!(data.refusal("y"), None);
    }
    // An incomplete file is an error.
    for text in [
        "{\"x\": [\"a\", }",
        "{\"x\": \"a\" \"y\": 1}",
        "{\"x\": [1, ",
    ] {
        let path = folder.path().join("bad.json");
        std::fs::write(&path, text).unwrap();
        assert!(DataSet::read(&path).is_err(), "{text}");
    }
}
