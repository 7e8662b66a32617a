//! Damages the files of finished folders by flipping bits and by truncating files.

use std::fs;
use std::path::Path;

use super::scenes::{self, Scene};
use super::{Dice, Finds, Flags, run};

/// Damages every artefact. Each command that uses the artefact must then end with exactly one error, or with the same
/// result as for the undamaged folder.
pub fn attack(root: &Path, arguments: &[String]) -> Result<String, String> {
    let flags = Flags::read(arguments, 300)?.built(root)?;
    let desk = root.join("target/attack/damage");
    let _ = fs::remove_dir_all(&desk);
    fs::create_dir_all(&desk).map_err(|e| e.to_string())?;
    let mut scenes = scenes::all(root, &flags.jensen, &desk)?;
    scenes.retain(|scene| !scene.uses.is_empty());
    let mut dice = Dice(flags.seed);
    let (mut refused, mut same, mut finds) = (0, 0, Finds::default());
    let each = flags.count.div_ceil(scenes.len());
    for (k, scene) in scenes.iter().enumerate() {
        let folder = desk.join(format!("run-{k}"));
        run(&flags.jensen, &scene.fit(&folder))?;
        let wanted = outcomes(&flags.jensen, scene, &folder, &desk)?;
        if wanted.iter().any(Option::is_none) {
            return Err(format!(
                "{}: a command that uses the whole folder fails",
                scene.name
            ));
        }
        let mut files: Vec<_> = fs::read_dir(&folder)
            .map_err(|e| e.to_string())?
            .flatten()
            .map(|entry| entry.path())
            .collect();
        files.sort();
        for i in 0..each {
            let file = &files[i % files.len()];
            let name = file
                .file_name()
                .unwrap_or_default()
                .to_string_lossy()
                .into_owned();
            let whole = fs::read(file).map_err(|e| e.to_string())?;
            fs::write(file, damaged(&whole, &mut dice)).map_err(|e| e.to_string())?;
            match outcomes(&flags.jensen, scene, &folder, &desk) {
                Err(find) => finds.add(&format!("{}: {name}: {find}", scene.name)),
                Ok(found) => {
                    for (wanted, found) in wanted.iter().zip(found) {
                        match found {
                            None => refused += 1,
                            Some(_) if found == *wanted => same += 1,
                            Some(_) => finds.add(&format!("{}: {name}: other results", scene.name)),
                        }
                    }
                }
            }
            fs::write(file, whole).map_err(|e| e.to_string())?;
        }
    }
    finds.conclude(format!(
        "{} damaged files: {refused} uses refused, {same} with the same results",
        each * scenes.len()
    ))
}

fn damaged(whole: &[u8], dice: &mut Dice) -> Vec<u8> {
    let mut bytes = whole.to_vec();
    let at = dice.below(bytes.len());
    match dice.below(6) {
        0 => bytes.truncate(at),
        1 => bytes[at] = dice.below(256) as u8,
        _ => bytes[at] ^= 1 << dice.below(8),
    }
    bytes
}

/// Returns the output of each use of the folder. The output is `None` if the use ended with exactly one error.
fn outcomes(
    jensen: &Path,
    scene: &Scene,
    folder: &Path,
    desk: &Path,
) -> Result<Vec<Option<Vec<u8>>>, String> {
    let out = desk.join("out.csv");
    let mut made = Vec::new();
    for line in scene.uses(folder, &out) {
        let _ = fs::remove_file(&out);
        let ended = std::process::Command::new(jensen)
            .args(&line)
            .output()
            .map_err(|e| e.to_string())?;
        let message = String::from_utf8_lossy(&ended.stderr);
        made.push(match ended.status.code() {
            Some(0 | 4) if out.exists() => Some(fs::read(&out).map_err(|e| e.to_string())?),
            Some(0 | 4) => Some(ended.stdout),
            Some(2 | 3) if !message.trim().is_empty() => None,
            code => {
                return Err(format!(
                    "exit {code:?} of `{}`: {}",
                    line.join(" "),
                    message.trim()
                ));
            }
        });
    }
    Ok(made)
}
