//! R dumps: what is accepted, what it becomes, and what is said about the rest.

use jensen_data::{DataError, DataSet, Value};

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

#[test]
fn errors_say_what_and_where() {
    let cases = [
        (
            "a <- c(1, NA)",
            "data variable `a`: Stan has no missing values (NA)",
            1,
            11,
        ),
        (
            "a <- TRUE",
            "data variable `a`: TRUE is no number; write 0 or 1",
            1,
            6,
        ),
        ("a <- 1\na <- 2", "data variable `a` is given twice", 2, 1),
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
        ("a <- 1.2.3", "data variable `a`: this is no number", 1, 6),
        ("a <- 12abc", "data variable `a`: this is no number", 1, 6),
        (
            "a <- 1e999",
            "data variable `a`: the number is too large",
            1,
            6,
        ),
        (
            "a <- 1:99999999999",
            "data variable `a`: ranges and lengths ask for more than 33554432 numbers in all",
            1,
            6,
        ),
        (
            "a <- integer(30000000)\nb <- 1:30000000",
            "data variable `b`: ranges and lengths ask for more than 33554432 numbers in all",
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
    for (text, message, line, column) in cases {
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
