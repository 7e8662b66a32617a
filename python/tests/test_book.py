"""Generated pages agree with the package, and scripts of other pages run."""

import os
import subprocess
import sys

import book


def check(name, made):
    path = book.BOOK / name
    kept = path.read_text(encoding="utf-8") if path.exists() else ""
    text = made(kept)
    if os.environ.get("JENSEN_GOLDEN") == "update":
        path.write_text(text, encoding="utf-8")
        return
    assert text == kept, f"{name} is outdated: run with JENSEN_GOLDEN=update and read the difference"


def test_the_reference():
    check("python-reference.md", lambda kept: book.reference())


def test_the_gallery():
    """Sections of scripts whose packages are not installed stay unchanged. `cargo xtask bridges` runs the script for PyMC."""
    check("python-gallery.md", book.gallery)


def test_scripts_of_pages_run(tmp_path):
    """Runs each block of Python with the mark ``run`` separately, in a folder with the files of its page."""
    tried = 0
    for page in sorted(book.BOOK.glob("*.md")):
        files, scripts = book.runnable(page.read_text(encoding="utf-8"))
        desk = tmp_path / page.stem
        desk.mkdir()
        for name, text in files.items():
            (desk / name).write_text(text, encoding="utf-8")
        for script in scripts:
            if {name for name in book.missing(script) if f"{name}.py" not in files}:
                continue
            run = subprocess.run([sys.executable, "-"], cwd=desk, input=script, capture_output=True, text=True, encoding="utf-8")
            assert run.returncode == 0, f"{page.name}:\n{script}\n{run.stdout}{run.stderr}"
            tried += 1
    assert tried > 0
