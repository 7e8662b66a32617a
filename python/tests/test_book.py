"""The pages that are made of the package are those of this package."""

import os

import book


def check(name, made):
    path = book.BOOK / name
    kept = path.read_text(encoding="utf-8") if path.exists() else ""
    text = made(kept)
    if os.environ.get("JENSEN_GOLDEN") == "update":
        path.write_text(text, encoding="utf-8")
        return
    assert text == kept, f"{name} is not what the package has: run with JENSEN_GOLDEN=update and read the difference"


def test_the_reference():
    check("python-reference.md", lambda kept: book.reference())


def test_the_gallery():
    """Scripts whose packages are not installed keep their sections; `cargo xtask bridges` runs that of PyMC."""
    check("python-gallery.md", book.gallery)
