//! Tests `jensen latent points`.

use std::fs;

use crate::common::{Desk, jensen};

#[test]
fn points_are_fitted_stored_and_predicted_from() {
    let desk = Desk::new();
    let mut text = "east,north\n".to_owned();
    for i in 0..120_u32 {
        let (u, v) = (
            f64::from(i * 37 % 121) / 121.0,
            f64::from(i * 53 % 127) / 127.0,
        );
        text += &format!("{},{}\n", 10.0 * u * u, 6.0 * v);
    }
    let points = desk.file("points.csv", &text);
    let window = desk.file("window.csv", "east,north\n0,0\n10,0\n10,6\n0,6\n");
    let (out, map) = (desk.name("run"), desk.name("map.csv"));
    let base = ["latent", "points", &points, "--on", "east,north"];
    let more = [
        "--window",
        &window,
        "--cell",
        "0.8",
        "--prior",
        "intercept() + fixed(east)",
    ];
    let last = ["--out", &out, "--intensity", &map, "--json"];
    let fit = jensen([&base[..], &more, &last].concat()).expect(0).json();
    assert_eq!(
        (fit["points"].as_u64(), fit["cells"].as_u64()),
        (Some(120), Some(104))
    );
    assert!(
        (fit["expected"].as_f64().unwrap() - 120.0).abs() < 2.0,
        "{fit}"
    );
    assert!(fit["integral_error"].as_f64().unwrap() < 1.0, "{fit}");
    let map = fs::read_to_string(map).unwrap();
    assert_eq!(map.lines().next(), Some("east,north,area,mean,q05,q95"));
    let at = desk.file(
        "at.csv",
        "east,north,area,log_mean\n1,3,1,0.69\n9,3,1,0.69\n",
    );
    let predicted = jensen(["latent", "predict", &out, "--at", &at])
        .expect(0)
        .stdout;
    let mean = |line: usize| -> f64 {
        let line = predicted.lines().nth(line).unwrap();
        line.split(',').nth(3).unwrap().parse().unwrap()
    };
    assert!(mean(1) > 2.0 * mean(2), "{predicted}");
    let shown = jensen([&base[..], &more].concat()).expect(0).stdout;
    assert!(
        shown.contains("points    120, expected 12") && shown.contains("104 cells"),
        "{shown}"
    );
    for (code, flags, message) in [
        (2, vec!["--on", "east"], "--on needs the two columns"),
        (3, vec!["--on", "east,south"], "south"),
        (
            2,
            vec!["--on", "east,north", "--cell", "1e-6"],
            "more than 200000 cells",
        ),
        (
            3,
            vec!["--on", "east,north", "--window", &points],
            "sides that cross",
        ),
    ] {
        let done = jensen([&["latent", "points", &points][..], &flags].concat()).expect(code);
        assert!(done.stderr.contains(message), "{}", done.stderr);
    }
}
