//! Kills runs at random moments and resumes them.

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use super::scenes::{self, Again, Scene};
use super::{Dice, Finds, Flags, compare, finish, run, start};

/// Kills every command, and compares the files of the resumed run with those of an uninterrupted run.
pub fn attack(root: &Path, arguments: &[String]) -> Result<String, String> {
    let flags = Flags::read(arguments, 90)?.built(root)?;
    let desk = root.join("target/attack/kill");
    let _ = fs::remove_dir_all(&desk);
    fs::create_dir_all(&desk).map_err(|e| e.to_string())?;
    let scenes = scenes::all(root, &flags.jensen, &desk)?;
    let mut dice = Dice(flags.seed);
    let mut finds = Finds::default();
    let (mut resumed, mut anew, mut late) = (0, 0, 0);
    for (k, scene) in scenes.iter().enumerate() {
        let whole = desk.join(format!("whole-{k}"));
        let begun = Instant::now();
        let reference = run(&flags.jensen, &scene.fit(&whole))?;
        let seconds = begun.elapsed();
        if !matches!(reference.code, Some(0 | 4)) {
            return Err(format!("{}: {}", scene.name, reference.message));
        }
        for i in (k..flags.count).step_by(scenes.len()) {
            let folder = desk.join(format!("killed-{k}-{i}"));
            // Moments near the beginning and the end are more likely, because files are written there.
            let share = [dice.below(1000), dice.below(100), 900 + dice.below(200)][dice.below(3)];
            let wait = seconds.mul_f64(share as f64 / 1000.0);
            let how = one(&flags.jensen, scene, &folder, &whole, wait, reference.code);
            match how {
                Ok(How::Resumed) => resumed += 1,
                Ok(How::Anew) => anew += 1,
                Ok(How::Late) => late += 1,
                Err(find) => finds.add(&format!("{}, killed after {wait:?}: {find}", scene.name)),
            }
            let _ = fs::remove_dir_all(&folder);
        }
    }
    finds.conclude(format!(
        "{} kills of {} commands: {resumed} resumed, {anew} started again, {late} had already ended, all with the same files",
        resumed + anew + late,
        scenes.len()
    ))
}

enum How {
    Resumed,
    Anew,
    Late,
}

fn one(
    jensen: &Path,
    scene: &Scene,
    folder: &Path,
    whole: &Path,
    wait: Duration,
    code: Option<i32>,
) -> Result<How, String> {
    let mut child = start(jensen, &scene.fit(folder))?;
    std::thread::sleep(wait);
    // A run that has already ended cannot be killed.
    let _ = child.kill();
    let killed = finish(child)?;
    let begun = folder.join("run.json").is_file() && folder.join("jensen.json").is_file();
    let how = match killed.code {
        Some(_) => How::Late,
        None if begun || matches!(scene.again, Again::Same) => How::Resumed,
        None => How::Anew,
    };
    let line = match how {
        How::Late => None,
        How::Resumed => Some(scene.resume(folder)),
        How::Anew => Some(scene.fit(folder)),
    };
    if let Some(line) = line {
        let ended = run(jensen, &line)?;
        if ended.code != code {
            return Err(format!(
                "exit {:?} of `{}`: {}",
                ended.code,
                line.join(" "),
                ended.message.trim()
            ));
        }
    }
    let differences = compare::differences(whole, folder)?;
    if differences.is_empty() {
        Ok(how)
    } else {
        Err(differences.join(", "))
    }
}
