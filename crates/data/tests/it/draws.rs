//! Tests that draws written as Stan CSV and NetCDF are read back to the same bits.

use std::collections::BTreeMap;
use std::fs;

use jensen_data::{
    AdviConfig, Coordinates, DataSet, DrawsTable, DrawsVariable, NetcdfAttributes, Roles,
    StanCsvHeader, read_draws_csv, write_draws_csv, write_draws_netcdf,
};
use netcdf_reader::NcFile;

/// Returns draws of variables of every rank, including extreme numbers. Each scalar has a value of its own, by which it
/// can be identified.
fn table(draws: usize) -> DrawsTable {
    let variables = vec![
        DrawsVariable::new("mu", []),
        DrawsVariable::new("theta", [3]),
        DrawsVariable::new("none", [0, 2]),
        DrawsVariable::new("Sigma", [2, 2]),
        DrawsVariable::new("a", [2, 3, 2]),
        DrawsVariable::new("log_lik", [2]),
        DrawsVariable::new("y_rep", []),
    ];
    let width = 1 + 3 + 4 + 12 + 2 + 1;
    let mut values: Vec<f64> = (0..draws * width)
        .map(|i| ((i / width) as f64 * 100.0 + (i % width) as f64) / 3.0)
        .collect();
    let awkward = [
        f64::MIN_POSITIVE,
        5e-324,
        -0.0,
        1e300,
        -1e-300,
        0.1 + 0.2,
        f64::INFINITY,
        f64::NEG_INFINITY,
    ];
    values[..awkward.len()].copy_from_slice(&awkward);
    let log_p = (0..draws).map(|d| -10.0 - d as f64 / 7.0).collect();
    let log_g = (0..draws).map(|d| -11.0 + d as f64 / 3.0).collect();
    DrawsTable::new(variables, values, log_p, log_g).unwrap()
}

fn header() -> StanCsvHeader {
    StanCsvHeader {
        model: "/home/eight\nschools = 1.stan".into(),
        family: "lowrank=4".into(),
        draws_of: "approximation".into(),
        seed: 7,
        advi: AdviConfig {
            grad_samples: 16,
            ..AdviConfig::default()
        },
        eta: 0.1,
        settings: vec![("method".into(), "advi".into())],
    }
}

#[test]
fn scalars_are_named_column_major() {
    let names = table(1).scalar_names();
    assert_eq!(
        names.join(" "),
        "mu theta.1 theta.2 theta.3 Sigma.1.1 Sigma.2.1 Sigma.1.2 Sigma.2.2 \
         a.1.1.1 a.2.1.1 a.1.2.1 a.2.2.1 a.1.3.1 a.2.3.1 a.1.1.2 a.2.1.2 a.1.2.2 a.2.2.2 a.1.3.2 a.2.3.2 \
         log_lik.1 log_lik.2 y_rep"
    );
    assert_eq!(
        DrawsVariable::new("S", [2, 2]).display_names().join(" "),
        "S[1,1] S[2,1] S[1,2] S[2,2]"
    );
    assert_eq!(DrawsVariable::new("mu", []).display_names(), ["mu"]);
}

#[test]
fn csv_reads_back_bit_for_bit() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("draws.csv");
    let mean: Vec<f64> = (0..23).map(|k| k as f64 / 7.0).collect();
    let table = table(5).with_mean(mean).unwrap();
    let comments = header().comments(5);
    write_draws_csv(&path, &table, &comments).unwrap();
    let (back, read) = read_draws_csv(&path).unwrap();
    assert_eq!(read, comments);
    assert_eq!(back.mean(), table.mean());
    for draw in 0..table.len() {
        let (a, b) = (table.row(draw), back.row(draw));
        assert!(
            a.iter()
                .map(|x| x.to_bits())
                .eq(b.iter().map(|x| x.to_bits())),
            "{a:?}\n{b:?}"
        );
    }
    assert_eq!((back.log_p(), back.log_g()), (table.log_p(), table.log_g()));
    let kept: Vec<_> = table
        .variables()
        .iter()
        .filter(|v| !v.is_empty())
        .cloned()
        .collect();
    assert_eq!(back.variables(), kept);
    assert_eq!(
        back.column(1),
        (0..5).map(|d| table.row(d)[1]).collect::<Vec<_>>()
    );
}

#[test]
fn csv_has_cmdstans_layout() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("draws.csv");
    let small = DrawsTable::new(
        vec![DrawsVariable::new("x", [2])],
        vec![0.25, f64::NAN, 1e-7, -3.0],
        vec![-1.5, -2.0],
        vec![-1.0, f64::NEG_INFINITY],
    )
    .unwrap();
    let small = small.with_mean(vec![0.5, 2.0]).unwrap();
    write_draws_csv(&path, &small, &header().comments(2)).unwrap();
    let expected = format!(
        "# jensen_version = {}
# model = eight_schools___1_model
# method = variational
#   variational
#     algorithm = fullrank
#       fullrank
#     iter = 10000 (Default)
#     grad_samples = 16
#     elbo_samples = 100 (Default)
#     eta = 1 (Default)
#     adapt
#       engaged = 1
#     tol_rel_obj = 0.01 (Default)
#     eval_elbo = 100 (Default)
#     output_samples = 2
# id = 1
# warmup = 0
# thin = 1
# save_warmup = 0
# random
#   seed = 7
# jensen
#   jensen_fitted_family = lowrank 4
#   jensen_draws_of = approximation
#   jensen_method = advi
lp__,log_p__,log_g__,x.1,x.2
# Stepsize adaptation complete.
# eta = 0.1
0,0,0,0.5,2
0,-1.5,-1,0.25,nan
0,-2,-inf,1e-7,-3
",
        env!("CARGO_PKG_VERSION")
    );
    assert_eq!(fs::read_to_string(&path).unwrap(), expected);
}

#[test]
fn csv_of_earlier_versions_has_no_mean() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("draws.csv");
    fs::write(
        &path,
        "# a\nlp__,log_p__,log_g__,x\n-1,-1,-2,0.5\n-3,-3,-4,0.25\n",
    )
    .unwrap();
    let (table, comments) = read_draws_csv(&path).unwrap();
    assert_eq!((table.len(), table.mean()), (2, None));
    assert_eq!(table.column(0), [0.5, 0.25]);
    assert_eq!(comments.above, "# a\n");
}

#[test]
fn broken_csv_is_refused_with_its_line() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("draws.csv");
    for (text, message) in [
        ("", "there is no header"),
        ("# c\nmu\n1\n", "line 2: the header does not begin"),
        (
            "lp__,log_p__,log_g__,x\n1,2,3\n",
            "line 2: 3 values under 4 columns",
        ),
        (
            "lp__,log_p__,log_g__,x\n1,2,3,four\n",
            "line 2: `four` is not a number",
        ),
        ("lp__,log_p__,log_g__,x.1,x.3\n", "line 1: the subscripts"),
        ("lp__,log_p__,log_g__,x.2,x.1\n", "line 1: the subscripts"),
        (
            "lp__,log_p__,log_g__,x.99999999999999999999\n",
            "line 1: the subscripts",
        ),
        ("lp__,log_p__,log_g__,x,y,x\n", "`x` appear twice"),
    ] {
        fs::write(&path, text).unwrap();
        let error = read_draws_csv(&path).unwrap_err().to_string();
        assert!(error.contains(message), "{text}\n{error}");
    }
}

#[test]
fn tables_must_have_matching_lengths_and_distinct_names() {
    let v = |name: &str| DrawsVariable::new(name, [2]);
    assert!(DrawsTable::new(vec![v("x")], vec![0.0; 3], vec![0.0; 2], vec![0.0; 2]).is_err());
    assert!(DrawsTable::new(vec![v("x")], vec![0.0; 4], vec![0.0; 2], vec![0.0; 1]).is_err());
    assert!(DrawsTable::new(vec![v("x"), v("x")], vec![0.0; 4], vec![0.0], vec![0.0]).is_err());
    let huge = DrawsVariable::new("x", [usize::MAX, 2]);
    assert!(DrawsTable::new(vec![huge], vec![], vec![], vec![]).is_err());
    let one = DrawsTable::new(vec![v("x")], vec![0.0; 2], vec![0.0], vec![0.0]).unwrap();
    assert!(one.with_mean(vec![0.0; 3]).is_err());
}

#[test]
fn netcdf_has_the_groups_of_arviz_and_the_same_bits() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("draws.nc");
    let table = table(4);
    let attributes = NetcdfAttributes {
        model: "schools".into(),
        extra: vec![("seed".into(), "7".into())],
    };
    let observed = DataSet::from_json(
        br#"{"N": 2, "y": [[1.5, 2], [3, 4]], "t": {"1": 5, "2": [6, 7]}, "none": []}"#,
        "",
    )
    .unwrap();
    let roles = Roles::by_name(["log_lik", "y_rep", "theta"].into_iter(), true);
    write_draws_netcdf(&path, &table, &roles, &attributes, Some(&observed)).unwrap();

    let file = NcFile::from_bytes(&fs::read(&path).unwrap()).unwrap();
    let read = |name: &str, shape: &[usize]| -> Vec<u64> {
        let array = file.read_variable::<f64>(name).unwrap();
        assert_eq!(array.shape(), shape, "{name}");
        array.iter().map(|x| x.to_bits()).collect()
    };
    let bits = |v: Vec<f64>| -> Vec<u64> { v.into_iter().map(f64::to_bits).collect() };
    assert_eq!(read("posterior/mu", &[1, 4]), bits(table.column(0)));
    assert_eq!(
        read("posterior/theta", &[1, 4, 3]),
        bits((0..4).flat_map(|d| table.row(d)[1..4].to_vec()).collect())
    );
    let sigma = |d: usize| [4, 6, 5, 7].map(|i| table.row(d)[i]);
    assert_eq!(
        read("posterior/Sigma", &[1, 4, 2, 2]),
        bits((0..4).flat_map(sigma).collect())
    );
    let names = table.scalar_names();
    let column = |name: String| names.iter().position(|n| *n == name).unwrap();
    let mut a = Vec::new();
    for d in 0..4 {
        for (i, j, k) in
            (1..=2).flat_map(|i| (1..=3).flat_map(move |j| (1..=2).map(move |k| (i, j, k))))
        {
            a.push(table.row(d)[column(format!("a.{i}.{j}.{k}"))]);
        }
    }
    assert_eq!(read("posterior/a", &[1, 4, 2, 3, 2]), bits(a));
    assert_eq!(
        read("sample_stats/lp", &[1, 4]),
        bits(table.log_p().to_vec())
    );
    assert_eq!(
        read("approximation/log_q", &[1, 4]),
        bits(table.log_g().to_vec())
    );
    assert_eq!(
        read("approximation/log_weight", &[1, 4]),
        bits(table.log_weights())
    );
    assert_eq!(
        read("observed_data/y", &[2, 2]),
        bits(vec![1.5, 2.0, 3.0, 4.0])
    );
    assert_eq!(
        file.read_variable::<i64>("constant_data/t:2")
            .unwrap()
            .as_slice()
            .unwrap(),
        [6, 7]
    );
    assert_eq!(
        file.read_variable::<i64>("posterior/draw")
            .unwrap()
            .as_slice()
            .unwrap(),
        [0, 1, 2, 3]
    );
    assert_eq!(
        read("log_likelihood/log_lik", &[1, 4, 2]),
        bits((0..4).flat_map(|d| table.row(d)[20..22].to_vec()).collect())
    );
    assert_eq!(
        read("posterior_predictive/y_rep", &[1, 4]),
        bits(table.column(22))
    );
    for elsewhere in [
        "posterior/none",
        "posterior/y_rep",
        "posterior/log_lik",
        "observed_data/N",
        "constant_data/y",
    ] {
        assert!(file.variable(elsewhere).is_err(), "{elsewhere}");
    }
    let group = file.group("posterior").unwrap();
    let attribute = |name: &str| group.attribute(name).and_then(|a| a.value.as_string());
    assert_eq!(attribute("model_name").as_deref(), Some("schools"));
    assert_eq!(attribute("inference_library").as_deref(), Some("jensen"));
    assert_eq!(attribute("seed").as_deref(), Some("7"));
}

#[test]
fn netcdf_dimensions_are_shared_by_name_and_have_labels() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("draws.nc");
    let variables = vec![
        DrawsVariable::new("theta", [2]),
        DrawsVariable::new("eta", [2]),
        DrawsVariable::new("Sigma", [2, 2]),
        DrawsVariable::new("y_rep", [2]),
    ];
    let draws = (0..20).map(f64::from).collect();
    let table = DrawsTable::new(variables, draws, vec![0.0; 2], vec![0.0; 2]).unwrap();
    let data = DataSet::from_json(br#"{"J": 2, "K": 7, "y": [1, 2], "x": [3, 4]}"#, "").unwrap();
    let given = r#"{"coords": {"J": ["bé", "a"], "x_dim_0": [1990, 1991]}, "dims": {"x": [null]}}"#;
    let one = |size: &str| vec![Some(size.to_owned())];
    let declared = BTreeMap::from([
        ("theta".to_owned(), one("J")),
        ("eta".to_owned(), one("J")),
        ("Sigma".to_owned(), [one("J"), one("J")].concat()),
        ("y_rep".to_owned(), one("J")),
        ("y".to_owned(), one("J")),
    ]);
    let roles = Roles {
        coordinates: Coordinates::from_json(given.as_bytes(), "")
            .unwrap()
            .over(declared),
        ..Roles::by_name(["y_rep"].into_iter(), false)
    };
    let attributes = NetcdfAttributes::default();
    write_draws_netcdf(&path, &table, &roles, &attributes, Some(&data)).unwrap();
    let file = NcFile::from_bytes(&fs::read(&path).unwrap()).unwrap();
    let dims = |name: &str| -> Vec<String> {
        let dims = file.variable(name).unwrap().dimensions().iter();
        dims.map(|dim| dim.name.clone()).collect()
    };
    assert_eq!(dims("posterior/theta"), ["chain", "draw", "J"]);
    assert_eq!(dims("posterior/eta"), ["chain", "draw", "J"]);
    assert_eq!(
        dims("posterior/Sigma"),
        ["chain", "draw", "J", "Sigma_dim_1"]
    );
    assert_eq!(dims("posterior_predictive/y_rep"), ["chain", "draw", "J"]);
    assert_eq!(dims("observed_data/y"), ["J"]);
    assert_eq!(dims("constant_data/x"), ["x_dim_0"]);
    for group in ["posterior", "observed_data", "posterior_predictive"] {
        let labels = file
            .read_variable_as_strings(&format!("{group}/J"))
            .unwrap();
        assert_eq!(labels, ["bé", "a"], "{group}");
    }
    let years = file.read_variable::<i64>("constant_data/x_dim_0").unwrap();
    assert_eq!(years.as_slice().unwrap(), [1990, 1991]);
    // J is not the name of a dimension of the other data. It therefore remains a number, like K.
    let size = file.read_variable::<i64>("constant_data/J").unwrap();
    assert_eq!(size.as_slice().unwrap(), [2]);
    assert!(file.variable("constant_data/K").is_ok());
}

#[test]
fn names_that_the_formats_would_break_are_refused() {
    for name in ["", "a/b", "a,b", "a.1", "a b", "a\nb", "#a", "\"a\""] {
        let variable = DrawsVariable::new(name, []);
        let error = DrawsTable::new(vec![variable], vec![1.0], vec![0.0], vec![0.0]).unwrap_err();
        assert!(
            error.to_string().contains("cannot name a variable"),
            "{error}"
        );
    }
    DrawsTable::new(
        vec![DrawsVariable::new("t:1", [])],
        vec![1.0],
        vec![0.0],
        vec![0.0],
    )
    .unwrap();
}

#[test]
fn a_file_that_cannot_be_encoded_is_one_error_and_leaves_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("draws.nc");
    // The variable has the name of a coordinate.
    let table = DrawsTable::new(
        vec![DrawsVariable::new("draw", [])],
        vec![1.0],
        vec![0.0],
        vec![0.0],
    )
    .unwrap();
    let error = write_draws_netcdf(
        &path,
        &table,
        &Roles::default(),
        &NetcdfAttributes::default(),
        None,
    )
    .unwrap_err()
    .to_string();
    assert!(
        error.starts_with(&format!("cannot write `{}`", path.display())),
        "{error}"
    );
    assert!(!path.exists());
}
