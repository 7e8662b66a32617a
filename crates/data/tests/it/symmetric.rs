//! Tests the reader of sparse symmetric matrices in their usual formats, and with damaged files.

use jensen_data::Symmetric;

fn parse(text: &str) -> Result<Symmetric, String> {
    Symmetric::parse(text.as_bytes(), "q").map_err(|e| e.to_string())
}

#[test]
fn one_matrix_in_every_format() {
    let entries = vec![
        (0, 0, 2.0),
        (1, 0, -1.0),
        (0, 1, -1.0),
        (1, 1, 2.5),
        (2, 2, 1.0),
    ];
    let expected = Symmetric { size: 3, entries };
    for text in [
        "%%MatrixMarket matrix coordinate real symmetric\n% made by hand\n3 3 4\n1 1 2\n2 1 -1\n2 2 2.5\n3 3 1\n",
        "%%MatrixMarket matrix coordinate real general\n3 3 5\n1 1 2\n2 1 -1\n1 2 -1\n2 2 2.5\n3 3 1\n",
        "i,j,x\n1,1,2\n2,1,-1\n2,2,2.5\n3,3,1\n",
        "0 0 2\n0 1 -1 # the upper triangle\n1 1 2.5\n\n2 2 1",
        "2\t2\t1\n1\t0\t-1\n0\t1\t-1\n0\t0\t2\n1\t1\t2.5\n",
    ] {
        assert_eq!(parse(text).unwrap(), expected, "{text}");
    }
}

#[test]
fn damaged_files_are_reported() {
    for (text, reported) in [
        ("", "the matrix has no entries"),
        ("1 1 2\n2 1\n", "a row, a column and a value"),
        ("1 1 2\n2 x 1\n", "found `x`"),
        ("1 1 nan\n", "a finite number"),
        ("1 1 2\n1 1 2\n", "for the second time"),
        ("1 1 2\n1 2 -1\n2 1 -3\n2 2 2\n", "not symmetric"),
        ("1 1 2\n99999999999 1 1\n", "too many"),
        (
            "%%MatrixMarket matrix array real general\n",
            "matrix coordinate real",
        ),
        (
            "%%MatrixMarket matrix coordinate real general\n",
            "ends before its size",
        ),
        (
            "%%MatrixMarket matrix coordinate real general\n2 3 1\n1 1 1\n",
            "square",
        ),
        (
            "%%MatrixMarket matrix coordinate real general\n2 2 2\n1 1 1\n",
            "declares 2 entries",
        ),
        (
            "%%MatrixMarket matrix coordinate real general\n2 2 1\n0 1 1\n",
            "from 1 to 2",
        ),
    ] {
        let error = parse(text).unwrap_err();
        assert!(error.contains(reported), "{text:?}: {error}");
    }
}
