//! Tests `jensen vae` with convolutional layers.

use std::fs;

use crate::common::{Desk, Finished, jensen, read_json};
use crate::vae::{images, refused, weights};

const QUICK: &str = "--latent 3 --convolutions 6,8 --hidden 16 --batch 20 --optimizer adam --step-size 0.01 --quiet";

fn run(line: &str) -> Finished {
    jensen(line.split_whitespace())
}

#[test]
fn images_are_learned_and_stored_weights_are_used() {
    let desk = Desk::new();
    let (train, test) = images(&desk);
    let out = desk.name("run");
    let line =
        format!("vae fit {train} --validation {test} {QUICK} --epochs 100 --out {out} --json");
    let made = run(&line).expect(0).json();
    let number = |name: &str| made[name].as_f64().unwrap();
    // If the pixels were independent with their means, the log density would be −16 nats.
    assert!(number("bound") > -12.0, "{}", made["bound"]);
    assert!((number("bound") - number("validation_bound")).abs() < 1.5);
    assert_eq!(made["trusted"].as_bool(), Some(true));
    let stored = read_json(&desk.path("run/architecture.json"));
    let layers = &stored["architecture"]["convolutions"];
    assert_eq!(layers["image"]["height"].as_u64(), Some(6));
    assert_eq!(layers["window"].as_u64(), Some(4));
    // The importance-weighted bound needs the stored networks in another evaluation.
    let marginal = run(&format!(
        "vae evaluate {out} {test} --importance 50 --no-marginal --json"
    ));
    let marginal = marginal.expect(0).json();
    let tighter = marginal["importance"]["bound"].as_f64().unwrap();
    assert!(tighter > number("validation_bound") - 0.1, "{marginal}");
    let samples = desk.name("samples.png");
    run(&format!("vae sample {out} --count 4 --out {samples}")).expect(0);
    assert!(fs::metadata(desk.path("samples.png")).unwrap().len() > 0);
}

#[test]
fn a_stopped_fit_ends_with_the_same_bits_on_any_number_of_threads() {
    let desk = Desk::new();
    let (train, _) = images(&desk);
    let fitted = |name: &str, epochs: u32, threads: u32| {
        let out = desk.name(name);
        run(&format!(
            "vae fit {train} {QUICK} --epochs {epochs} --threads {threads} --out {out} --exit-zero"
        ))
        .expect(0);
        out
    };
    fitted("whole", 4, 1);
    fitted("other", 4, 2);
    let parts = fitted("parts", 2, 2);
    run(&format!(
        "vae fit --resume {parts} --epochs 4 --quiet --exit-zero"
    ))
    .expect(0);
    for folder in ["other", "parts"] {
        assert_eq!(weights(&desk.path(folder)), weights(&desk.path("whole")));
    }
}

/// In each row, a bar covers one row or column of a picture. One pixel in ten is missing.
#[test]
fn missing_pixels_are_those_of_the_bar() {
    let desk = Desk::new();
    let side = 6;
    let mut csv = String::new();
    let mut missing = Vec::new();
    for record in 0..360 {
        let (position, lying) = (record % side, record / side % 2 == 0);
        let mut cells = Vec::new();
        for pixel in 0..side * side {
            let on = if lying { pixel / side } else { pixel % side } == position;
            let gone = (7 * record + 3 * pixel) % 10 == 0;
            if gone {
                missing.push((record, pixel, on));
            }
            cells.push(if gone {
                ""
            } else if on {
                "1"
            } else {
                "0"
            });
        }
        csv += &(cells.join(",") + "\n");
    }
    let table = desk.file("bars.csv", &csv);
    let (out, complete) = (desk.name("run"), desk.name("complete.csv"));
    run(&format!(
        "vae fit {table} --image 6x6 {QUICK} --epochs 200 --out {out} --exit-zero"
    ))
    .expect(0);
    run(&format!(
        "vae reconstruct {out} {table} --impute --out {complete}"
    ))
    .expect(0);
    let text = fs::read_to_string(desk.path("complete.csv")).unwrap();
    let rows: Vec<Vec<f64>> = text
        .lines()
        .map(|line| {
            line.split(',')
                .filter_map(|cell| cell.parse().ok())
                .collect()
        })
        .filter(|row: &Vec<f64>| row.len() == side * side)
        .collect();
    assert_eq!(rows.len(), 360);
    let right = missing
        .iter()
        .filter(|(record, pixel, on)| (rows[*record][*pixel] > 0.5) == *on);
    let share = right.count() as f64 / missing.len() as f64;
    // Without the pictures, every missing pixel would be dark, which is right for 83 % of them.
    assert!(share > 0.97, "{share}");
}

#[test]
fn layers_without_images_are_refused() {
    let desk = Desk::new();
    let table = desk.file(
        "numbers.csv",
        "a,b,c,d\n0,1,0,1\n1,0,1,0\n0,1,1,0\n1,1,0,0\n",
    );
    for (more, words) in [
        ("--convolutions 4", ["--convolutions", "--image"]),
        ("--window 3", ["--window", "--convolutions"]),
        ("--image 2x2 --convolutions 4,4", ["2 × 2", "after layer 1"]),
        ("--image 2x2 --convolutions 4,x", ["filters", "32,64"]),
        ("--image 2x2 --convolutions 4 --window 1", ["--window", "1"]),
        (
            "--decoder mixed --convolutions 4",
            ["--convolutions", "mixed"],
        ),
    ] {
        let line = format!("vae fit {table} {more} --epochs 1");
        refused(&line.split_whitespace().collect::<Vec<_>>(), 2, &words);
    }
}
