//! Runs commands under adverse conditions: little memory, little disk space, closed pipes, read-only folders, and
//! processes that compete for one folder.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use super::scenes::{self, Scene};
use super::{Dice, Finds, Flags, compare, finish, run, start};

/// Takes each resource away from every command in turn.
pub fn attack(root: &Path, arguments: &[String]) -> Result<String, String> {
    let flags = Flags::read(arguments, 3)?.built(root)?;
    let desk = root.join("target/attack/limits");
    let _ = fs::remove_dir_all(&desk);
    fs::create_dir_all(&desk).map_err(|e| e.to_string())?;
    let scenes = scenes::all(root, &flags.jensen, &desk)?;
    let mut dice = Dice(flags.seed);
    let mut finds = Finds::default();
    let mounts = can_mount();
    let mut tried: BTreeMap<&str, usize> = BTreeMap::new();
    for i in 0..flags.count {
        for (k, scene) in scenes.iter().enumerate() {
            let folder = desk.join(format!("run-{k}-{i}"));
            let jensen = &flags.jensen;
            let files = format!("ulimit -f {}", 1 + dice.below(60));
            let mut attacks = vec![
                ("small files", small_files(jensen, scene, &folder, &files)),
                (
                    "a failing call",
                    failing_call(jensen, scene, &folder, &mut dice),
                ),
                (
                    "little memory",
                    little_memory(jensen, scene, &folder, &mut dice),
                ),
                ("a closed pipe", closed_pipe(jensen, scene, &folder)),
                ("a file for a folder", no_folder(jensen, scene, &desk)),
                ("a racing process", race(jensen, scene, &folder, 2)),
                ("seven racing processes", race(jensen, scene, &folder, 8)),
            ];
            if mounts {
                attacks.push((
                    "a disk that is nearly full",
                    small_disk(jensen, scene, &folder, &desk, &mut dice),
                ));
                attacks.push((
                    "a disk that is only read",
                    read_only(jensen, scene, &folder),
                ));
            }
            for (kind, outcome) in attacks {
                *tried.entry(kind).or_default() += 1;
                if let Err(find) = outcome {
                    finds.add(&format!("{}: {find}", scene.name));
                }
            }
            let _ = fs::remove_dir_all(&folder);
        }
    }
    let tried = tried.iter();
    let counts: Vec<String> = tried.map(|(kind, n)| format!("{n} with {kind}")).collect();
    let skipped = if mounts {
        ""
    } else {
        "; no disks of its own: `unshare` cannot mount here"
    };
    finds.conclude(format!("runs: {}{skipped}", counts.join(", ")))
}

fn can_mount() -> bool {
    let mut command = Command::new("unshare");
    command.args(["-rm", "sh", "-c", "mount -t tmpfs none /mnt"]);
    let quiet = command.stdout(Stdio::null()).stderr(Stdio::null());
    quiet.status().is_ok_and(|status| status.success())
}

fn limited(jensen: &Path, limit: &str, line: &[String]) -> Result<super::Ended, String> {
    let mut shell = Command::new("sh");
    shell.args(["-c", &format!("{limit}; exec \"$@\"")]);
    under(shell, jensen, line)
}

fn mounted(jensen: &Path, script: &str, line: &[String]) -> Result<super::Ended, String> {
    let mut shell = Command::new("unshare");
    shell.args(["-rm", "sh", "-c", script]);
    under(shell, jensen, line)
}

fn under(mut shell: Command, jensen: &Path, line: &[String]) -> Result<super::Ended, String> {
    let child = shell
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

/// Limits the size of files. A run over an earlier fit must end with one error and leave the earlier fit unchanged, or
/// it must end with the new fit.
fn small_files(jensen: &Path, scene: &Scene, folder: &Path, limit: &str) -> Result<(), String> {
    // The limit is in blocks of 512 bytes. With `trap`, a write beyond the limit fails instead of ending the process.
    over_an_earlier_fit(jensen, scene, folder, limit, |line| {
        limited(jensen, limit, line)
    })
}

const CALLS_THAT_WRITE: [(&str, &str); 10] = [
    ("write", "ENOSPC"),
    ("write", "EIO"),
    ("pwrite64", "EIO"),
    ("rename", "EIO"),
    ("fsync", "EIO"),
    ("fdatasync", "EIO"),
    ("ftruncate", "ENOSPC"),
    ("mkdir", "EACCES"),
    ("unlink", "EACCES"),
    ("copy_file_range", "EIO"),
];

/// Approximate largest number of system calls of one kind in a scene.
const CALLS_OF_A_KIND: usize = 60;

/// Makes a single system call fail that writes, renames or syncs a file, if `strace` can inject errors.
fn failing_call(
    jensen: &Path,
    scene: &Scene,
    folder: &Path,
    dice: &mut Dice,
) -> Result<(), String> {
    if !has_strace() {
        return Ok(());
    }
    let (call, error) = CALLS_THAT_WRITE[dice.below(CALLS_THAT_WRITE.len())];
    let occurrence = match call {
        "write" => 1 + dice.below(CALLS_OF_A_KIND),
        _ => 1 + dice.below(CALLS_OF_A_KIND / 4),
    };
    let fault = format!("inject={call}:error={error}:when={occurrence}");
    let message = format!("{call} number {occurrence} fails with {error}");
    over_an_earlier_fit(jensen, scene, folder, &message, |line| {
        let mut strace = Command::new("strace");
        strace.args(["-f", "-qq", "-o", "/dev/null", "-e"]);
        strace.args([
            &format!("trace={call}"),
            "-e",
            &fault,
            "sh",
            "-c",
            "exec \"$@\"",
        ]);
        under(strace, jensen, line)
    })
}

fn has_strace() -> bool {
    let mut command = Command::new("strace");
    command.args(["-f", "-qq", "-o", "/dev/null", "true"]);
    let quiet = command.stdout(Stdio::null()).stderr(Stdio::null());
    quiet.status().is_ok_and(|status| status.success())
}

fn small_disk(
    jensen: &Path,
    scene: &Scene,
    folder: &Path,
    desk: &Path,
    dice: &mut Dice,
) -> Result<(), String> {
    let disk = desk.join("disk");
    fs::create_dir_all(&disk).map_err(|e| e.to_string())?;
    let room = dice.below(300);
    // The disk disappears when the shell that mounts it ends.
    let script = format!(
        "set -e; mount -t tmpfs -o size=4m none {disk}; cp -r {folder} {disk}/run
         cat /dev/zero > {disk}/taken 2> /dev/null || truncate -s -{room}K {disk}/taken
         set +e; \"$@\"; code=$?; set -e; rm -r {folder}; cp -r {disk}/run {folder}; exit $code",
        disk = disk.display(),
        folder = folder.display(),
    );
    let message = format!("a disk of 4 MB with {room} kB of room");
    over_an_earlier_fit(jensen, scene, folder, &message, |_| {
        mounted(jensen, &script, &scene.fit(&disk.join("run")))
    })
}

/// Runs the command under a limit. It must end with one error and leave the earlier fit unchanged, or it must end with
/// the new fit. The command then runs again without the limit.
fn over_an_earlier_fit(
    jensen: &Path,
    scene: &Scene,
    folder: &Path,
    limit: &str,
    limited: impl Fn(&[String]) -> Result<super::Ended, String>,
) -> Result<(), String> {
    let line = scene.fit(folder);
    let first = run(jensen, &line)?;
    first.clean()?;
    let kept = folder.with_extension("kept");
    copy(folder, &kept)?;
    let ended = limited(&line)?;
    ended.clean().map_err(|find| format!("{limit}: {find}"))?;
    if !matches!(ended.code, Some(0 | 4)) {
        let lost = compare::differences(&kept, folder)?;
        if !lost.is_empty() {
            return Err(format!(
                "{limit}: the earlier fit is lost: {}",
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

/// Address space in megabytes below which the loader of the system cannot load the command.
const LOADED: usize = 128;

fn little_memory(
    jensen: &Path,
    scene: &Scene,
    folder: &Path,
    dice: &mut Dice,
) -> Result<(), String> {
    let alone = folder.with_extension("alone");
    run(jensen, &scene.fit(&alone))?.clean()?;
    let line = scene.fit(folder);
    let kilobytes = 1024 * (LOADED + dice.below(1600));
    let ended = limited(jensen, &format!("ulimit -v {kilobytes}"), &line)?;
    let failed = |find: String| format!("{kilobytes} kB of memory: {find}");
    ended.clean().map_err(failed)?;
    run(jensen, &line)?.clean().map_err(failed)?;
    let differences = compare::differences(&alone, folder)?;
    let _ = fs::remove_dir_all(&alone);
    let _ = fs::remove_dir_all(folder);
    match differences.is_empty() {
        true => Ok(()),
        false => Err(failed(differences.join(", "))),
    }
}

fn read_only(jensen: &Path, scene: &Scene, folder: &Path) -> Result<(), String> {
    fs::create_dir_all(folder).map_err(|e| e.to_string())?;
    let target = folder.display();
    let script = format!("mount -t tmpfs -o ro none {target} && \"$@\"");
    let ended = mounted(jensen, &script, &scene.fit(&folder.join("run")))?;
    let _ = fs::remove_dir_all(folder);
    match ended.code {
        Some(2) => Ok(()),
        code => Err(format!(
            "a disk that is only read: exit {code:?}: {}",
            ended.message
        )),
    }
}

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

fn no_folder(jensen: &Path, scene: &Scene, desk: &Path) -> Result<(), String> {
    let file = desk.join("file");
    fs::write(&file, "mine").map_err(|e| e.to_string())?;
    let ended = run(jensen, &scene.fit(&file))?;
    if ended.code != Some(2) {
        return Err(format!(
            "a file as folder: exit {:?}: {}",
            ended.code, ended.message
        ));
    }
    let kept = fs::read(&file).map_err(|e| e.to_string())?;
    if kept == b"mine" {
        Ok(())
    } else {
        Err("a file was overwritten".to_owned())
    }
}

/// Starts several processes in the same folder. Only one process at a time may use the folder, and the others must end
/// with an error. All files must come from a single process.
fn race(jensen: &Path, scene: &Scene, folder: &Path, processes: usize) -> Result<(), String> {
    let alone = folder.with_extension("alone");
    run(jensen, &scene.fit(&alone))?.clean()?;
    let line = scene.fit(folder);
    let started: Result<Vec<_>, String> = (0..processes).map(|_| start(jensen, &line)).collect();
    for child in started? {
        finish(child)?.clean()?;
    }
    let differences = compare::differences(&alone, folder)?;
    let _ = fs::remove_dir_all(&alone);
    let _ = fs::remove_dir_all(folder);
    match differences.is_empty() {
        true => Ok(()),
        false => Err(format!("{processes} at once: {}", differences.join(", "))),
    }
}

fn copy(from: &Path, to: &Path) -> Result<(), String> {
    fs::create_dir_all(to).map_err(|e| e.to_string())?;
    for entry in fs::read_dir(from).map_err(|e| e.to_string())?.flatten() {
        fs::copy(entry.path(), to.join(entry.file_name())).map_err(|e| e.to_string())?;
    }
    Ok(())
}
