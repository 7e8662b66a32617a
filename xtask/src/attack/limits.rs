//! Little memory, little disk, closed pipes, folders that cannot be written, processes that race.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use super::scenes::{self, Scene};
use super::{Dice, Flags, compare, finish, run, start};

/// Takes from every command what it needs.
pub fn attack(root: &Path, arguments: &[String]) -> Result<String, String> {
    let flags = Flags::read(arguments, 20)?.built(root)?;
    let desk = root.join("target/attack/limits");
    let _ = fs::remove_dir_all(&desk);
    fs::create_dir_all(&desk).map_err(|e| e.to_string())?;
    let scenes = scenes::all(root, &flags.jensen, &desk)?;
    let mut dice = Dice(flags.seed);
    let mut finds = Vec::new();
    let mut tried = [0; 4];
    for i in 0..flags.count {
        for (k, scene) in scenes.iter().enumerate() {
            let folder = desk.join(format!("run-{k}-{i}"));
            let attacks: [(usize, Result<(), String>); 4] = [
                (0, small_files(&flags.jensen, scene, &folder, &mut dice)),
                (1, closed_pipe(&flags.jensen, scene, &folder)),
                (2, no_folder(&flags.jensen, scene, &desk)),
                (3, race(&flags.jensen, scene, &folder)),
            ];
            for (kind, outcome) in attacks {
                tried[kind] += 1;
                if let Err(find) = outcome {
                    finds.push(format!("{}: {find}", scene.name));
                }
            }
            let _ = fs::remove_dir_all(&folder);
        }
    }
    if !finds.is_empty() {
        return Err(finds.join("\nerror: "));
    }
    let [disk, pipe, folder, race] = tried;
    Ok(format!(
        "{disk} runs with small files, {pipe} with a closed pipe, {folder} without a folder, {race} racing pairs"
    ))
}

/// A shell that sets a limit and becomes the command.
fn limited(jensen: &Path, limit: &str, line: &[String]) -> Result<super::Ended, String> {
    let child = Command::new("sh")
        .arg("-c")
        .arg(format!("{limit}; exec \"$@\""))
        .arg("sh")
        .arg(jensen)
        .args(line)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(|e| format!("cannot start a shell: {e}"))?;
    finish(child)
}

/// Over an earlier fit: one error and the earlier fit as it was, or the new one.
fn small_files(jensen: &Path, scene: &Scene, folder: &Path, dice: &mut Dice) -> Result<(), String> {
    let line = scene.fit(folder);
    let first = run(jensen, &line)?;
    first.clean()?;
    let kept = folder.with_extension("kept");
    copy(folder, &kept)?;
    // Blocks of 512 bytes; `trap` has a write beyond the limit fail where it would end the process.
    let blocks = 1 + dice.below(60);
    let ended = limited(jensen, &format!("trap '' XFSZ; ulimit -f {blocks}"), &line)?;
    ended
        .clean()
        .map_err(|find| format!("files of {blocks} blocks: {find}"))?;
    if !matches!(ended.code, Some(0 | 4)) {
        let lost = compare::differences(&kept, folder)?;
        if !lost.is_empty() {
            return Err(format!(
                "files of {blocks} blocks: the earlier fit is lost: {}",
                lost.join(", ")
            ));
        }
    }
    let again = run(jensen, &line)?;
    again
        .clean()
        .map_err(|find| format!("after a full disk: {find}"))?;
    let differences = compare::differences(&kept, folder)?;
    let _ = fs::remove_dir_all(&kept);
    let _ = fs::remove_dir_all(folder);
    match differences.is_empty() {
        true => Ok(()),
        false => Err(format!("after a full disk: {}", differences.join(", "))),
    }
}

/// Nobody reads what it says.
fn closed_pipe(jensen: &Path, scene: &Scene, folder: &Path) -> Result<(), String> {
    let line: Vec<String> = scene
        .fit(folder)
        .into_iter()
        .filter(|word| word != "-q")
        .collect();
    let mut child = Command::new(jensen)
        .args(&line)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(|e| format!("cannot start the command: {e}"))?;
    drop(child.stdout.take());
    let ended = finish(child)?;
    let _ = fs::remove_dir_all(folder);
    ended
        .clean()
        .map_err(|find| format!("with a closed pipe: {find}"))
}

/// The folder is a file.
fn no_folder(jensen: &Path, scene: &Scene, desk: &Path) -> Result<(), String> {
    let file = desk.join("file");
    fs::write(&file, "mine").map_err(|e| e.to_string())?;
    let ended = run(jensen, &scene.fit(&file))?;
    if ended.code != Some(2) {
        return Err(format!(
            "a file as folder: exit {:?}: {}",
            ended.code, ended.told
        ));
    }
    let kept = fs::read(&file).map_err(|e| e.to_string())?;
    if kept == b"mine" {
        Ok(())
    } else {
        Err("a file was overwritten".to_owned())
    }
}

/// Two processes, one folder: one has it, the other is refused, and the files are those of one.
fn race(jensen: &Path, scene: &Scene, folder: &Path) -> Result<(), String> {
    let alone = folder.with_extension("alone");
    run(jensen, &scene.fit(&alone))?.clean()?;
    let line = scene.fit(folder);
    let (a, b) = (start(jensen, &line)?, start(jensen, &line)?);
    let (a, b) = (finish(a)?, finish(b)?);
    a.clean()?;
    b.clean()?;
    let differences = compare::differences(&alone, folder)?;
    let _ = fs::remove_dir_all(&alone);
    let _ = fs::remove_dir_all(folder);
    match differences.is_empty() {
        true => Ok(()),
        false => Err(format!("two at once: {}", differences.join(", "))),
    }
}

fn copy(from: &Path, to: &Path) -> Result<(), String> {
    fs::create_dir_all(to).map_err(|e| e.to_string())?;
    for entry in fs::read_dir(from).map_err(|e| e.to_string())?.flatten() {
        fs::copy(entry.path(), to.join(entry.file_name())).map_err(|e| e.to_string())?;
    }
    Ok(())
}
