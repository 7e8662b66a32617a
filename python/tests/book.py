"""Generates pages of the book from the package: the reference, and the examples with their output."""

import importlib.util
import inspect
import os
import re
import shutil
import subprocess
import sys
import tempfile
import textwrap
from pathlib import Path

import jensen
from jensen import distributed

ROOT = Path(__file__).resolve().parents[2]
BOOK = ROOT / "docs" / "book" / "src"
PICTURES = BOOK / "python-gallery"
EXAMPLES = ROOT / "python" / "examples"
NOTE = "<!-- Made of the package: JENSEN_GOLDEN=update pytest python/tests/test_book.py -->"


def reference():
    """Returns the page with the signature and docstring of every public name."""
    parts = [f"# Python reference\n\n{NOTE}\n\n{_prose(inspect.getdoc(jensen))}"]
    for name in sorted(jensen.__all__):
        what = getattr(jensen, name)
        if inspect.isclass(what):
            parts.append(_class(name, what))
        elif callable(what):
            parts.append(f"## jensen.{name}\n\n{_code(_signature(f'jensen.{name}', what))}\n\n{_prose(inspect.getdoc(what))}")
    for name in distributed.__all__:
        what, name = getattr(distributed, name), f"jensen.distributed.{name}"
        parts.append(f"## {name}\n\n{_code(_signature(name, what))}\n\n{_prose(inspect.getdoc(what))}")
    return "\n\n".join(parts) + "\n"


def _class(name, what):
    parts = [f"## jensen.{name}"]
    if issubclass(what, BaseException):
        bases = ", ".join(base.__name__ for base in what.__bases__)
        return f"{parts[0]}\n\nA `{bases}`. {_prose(inspect.getdoc(what))}"
    if name not in ("BoundModel", "Fit", "Minibatch"):
        # Users create the others with functions and methods.
        parts.append(_code(_signature(f"jensen.{name}", what)))
    parts.append(_prose(inspect.getdoc(what)))
    for member, value in vars(what).items():
        if member.startswith("_"):
            continue
        if isinstance(value, property):
            parts.append(f"### {name}.{member}\n\n{_prose(inspect.getdoc(value))}")
        elif inspect.isfunction(value) and inspect.getdoc(value):
            parts.append(f"### {name}.{member}\n\n{_code(_signature(member, value))}\n\n{_prose(inspect.getdoc(value))}")
    return "\n\n".join(parts)


def _signature(name, what):
    """Formats a signature on one line, or with one parameter per line if it is too long."""
    signature = inspect.signature(what)
    parts: list[str] = []
    for parameter in signature.parameters.values():
        if parameter.name == "self":
            continue
        if parameter.kind is parameter.KEYWORD_ONLY and "*" not in parts:
            parts.append("*")
        star = "**" if parameter.kind is parameter.VAR_KEYWORD else ""
        default = "" if parameter.default is parameter.empty else f" = {parameter.default!r}"
        if "factory" in default:
            default = " = {}"
        parts.append(f"{star}{parameter.name}: {parameter.annotation}{default}")
    gives = "" if inspect.isclass(what) else f" -> {signature.return_annotation}"
    line = f"{name}({', '.join(parts)}){gives}"
    if len(line) <= 100:
        return line
    body = "".join(f"    {part},\n" for part in parts)
    return f"{name}(\n{body}){gives}"


def _code(text):
    return f"```python\n{text}\n```"


def _prose(text):
    """Converts a docstring to Markdown, with its sections as lists."""
    blocks = []
    for block in text.split("\n\n"):
        head, _, rest = block.partition("\n")
        if head in ("Args:", "Raises:"):
            rows = re.split(r"\n(?=\S)", textwrap.dedent(rest))
            items = [re.sub(r"\s+", " ", row) for row in rows]
            items = [re.sub(r"^([\w, ]+): ", _named, item) for item in items]
            block = f"{head}\n\n" + "\n".join(f"- {item}" for item in items)
        elif block.startswith(">>>"):
            blocks.append(_code("\n".join(line.removeprefix(">>> ") for line in block.splitlines())))
            continue
        blocks.append(re.sub(r":\w+:`([\w.]+)`", r"`\1`", block.replace("``", "`")))
    return "\n\n".join(blocks)


def _named(match):
    return ", ".join(f"`{name}`" for name in match[1].split(", ")) + ": "


def gallery(kept):
    """Returns the page with the examples and their output. ``kept`` is the existing page."""
    parts = [
        f"# Python gallery\n\n{NOTE}\n\nScripts of `python/examples`, run unchanged, with their output. Last digits "
        "are those of one machine."
    ]
    for script in sorted(EXAMPLES.glob("*.py")):
        text = script.read_text(encoding="utf-8")
        title, body = re.match(r'"""(.+?)\."""\n+(.*)', text, re.DOTALL).groups()
        if missing(text):
            # Keep the existing section if it shows this script.
            parts.extend(section for section in _sections(kept) if _code(body.rstrip()) in section)
            continue
        text, pictures = _printed(script)
        printed = f"```text\n{text}\n```"
        # Numbers differ between processors, but words do not. Keep the numbers of the page if the words agree.
        if (before := next((block for block in _blocks(kept) if _words(block) == _words(printed)), None)) is not None:
            printed = before
        shown = "".join(f"\n\n![{name}]({PICTURES.name}/{name})" for name in pictures)
        parts.append(f"## {title}\n\n`{script.name}`\n\n{_code(body.rstrip())}\n\n{printed}{shown}")
    return "\n\n".join(parts) + "\n"


def missing(script):
    """Returns the packages that a script imports and that are not installed."""
    named = re.findall(r"^(?:import|from) (\w+)", script, re.MULTILINE)
    return [name for name in named if importlib.util.find_spec(name) is None]


def runnable(page):
    """Returns the files of a page by name, and its scripts with the mark ``run``."""
    blocks = re.findall(r"^```([\w,=.]+)\n(.*?)^```$", page, re.DOTALL | re.MULTILINE)
    files = {info.partition("file=")[2]: text for info, text in blocks if "file=" in info}
    return files, [text for info, text in blocks if info == "python,run"]


def _sections(page):
    return [f"## {section.rstrip()}" for section in re.split(r"^## ", page, flags=re.MULTILINE)[1:]]


def _blocks(page):
    return re.findall(r"```text\n.*?\n```", page, re.DOTALL)


def _words(text):
    """Removes numbers and the spaces that align them."""
    return re.sub(r"\s+", " ", re.sub(r"-?\d[\d.]*(e[+-]?\d+)?", "0", text))


def _printed(script):
    """Runs a script, and returns its output and the names of its pictures. An update of the page stores the pictures."""
    environment = {**os.environ, "PYTHONWARNINGS": "ignore", "MPLBACKEND": "Agg"}
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, script]
        run = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, encoding="utf-8")
        assert run.returncode == 0, f"{script.name} failed:\n{run.stdout}{run.stderr}"
        pictures = sorted(Path(folder).glob("*.png"))
        for picture in pictures:
            kept = PICTURES / picture.name
            if os.environ.get("JENSEN_GOLDEN") == "update":
                PICTURES.mkdir(exist_ok=True)
                shutil.copyfile(picture, kept)
            assert kept.exists(), f"the book has no {picture.name}"
    return run.stdout.strip(), [picture.name for picture in pictures]
