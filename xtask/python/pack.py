"""Packs a wheel of the Python package around an extension module that is already built.

    python pack.py MODULE FOLDER VERSION

With `pip install .`, maturin compiles the module in a separate profile and folder. The checks use the module of their
shared build instead. The metadata comes from pyproject.toml.
"""

import base64
import hashlib
import pathlib
import sys
import sysconfig
import zipfile

try:
    import tomllib
except ModuleNotFoundError:  # Python 3.10; pip brings one.
    from pip._vendor import tomli as tomllib

ROOT = pathlib.Path(__file__).parents[2]


def metadata(project: dict, version: str) -> str:
    lines = ["Metadata-Version: 2.1", f"Name: {project['name']}", f"Version: {version}"]
    lines.append(f"Requires-Python: {project['requires-python']}")
    lines += [f"Requires-Dist: {name}" for name in project["dependencies"]]
    for extra, names in project["optional-dependencies"].items():
        lines.append(f"Provides-Extra: {extra}")
        lines += [f"Requires-Dist: {name}; extra == '{extra}'" for name in names]
    return "\n".join(lines) + "\n"


def main(module: str, folder: str, version: str) -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    package, info = ROOT / "python/jensen", f"jensen-{version}.dist-info"
    sources = [file for file in sorted(package.rglob("*")) if file.suffix in (".py", ".pyi") or file.name == "py.typed"]
    files = {f"jensen/{file.relative_to(package)}": file.read_bytes() for file in sources}
    files["jensen/_jensen.abi3.so"] = pathlib.Path(module).read_bytes()
    files[f"{info}/METADATA"] = metadata(project, version).encode()
    tag = f"cp310-abi3-{sysconfig.get_platform().replace('-', '_').replace('.', '_')}"
    files[f"{info}/WHEEL"] = f"Wheel-Version: 1.0\nGenerator: pack\nRoot-Is-Purelib: false\nTag: {tag}\n".encode()
    scripts = "".join(f"{name} = {target}\n" for name, target in project["scripts"].items())
    files[f"{info}/entry_points.txt"] = f"[console_scripts]\n{scripts}".encode()
    record = ""
    for name, content in files.items():
        digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
        record += f"{name},sha256={digest},{len(content)}\n"
    files[f"{info}/RECORD"] = f"{record}{info}/RECORD,,\n".encode()
    wheels = ROOT / folder
    wheels.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(wheels / f"jensen-{version}-{tag}.whl", "w") as wheel:
        for name, content in files.items():
            wheel.writestr(name, content)


main(*sys.argv[1:])
