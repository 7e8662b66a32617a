"""Records the verdicts of Stan's compiler on programs in `crates/stan/tests/verdicts/*.txt`: a line has a program, and `+` if the compiler
accepts it or `-` if it rejects it.

    python verdicts.py STANC

STANC is the stanc binary, for instance the binary in the httpstan package (4.17 has version 2.39). The programs are the lines of
`hand.txt`, all operators on all pairs of types, and all assignments. Further programs are accepted ones with a token deleted, doubled,
exchanged with the next, or taken from another program.
"""

import random
import re
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

FOLDER = Path(__file__).parent.parent.parent / "crates/stan/tests/verdicts"

TYPES = {
    "int": "int {}", "real": "real {}", "complex": "complex {}", "vector": "vector[2] {}", "row_vector": "row_vector[2] {}",
    "matrix": "matrix[2, 2] {}", "complex_vector": "complex_vector[2] {}", "complex_row_vector": "complex_row_vector[2] {}",
    "complex_matrix": "complex_matrix[2, 2] {}", "ints": "array[2] int {}", "reals": "array[2] real {}",
    "vectors": "array[2] vector[2] {}", "tuple": "tuple(int, real) {}",
}
OPERATORS = ["+", "-", "*", "/", "%", "%/%", "\\", ".*", "./", "^", ".^", "==", "<", "&&"]
ASSIGNING = ["=", "+=", "-=", "*=", "/=", ".*=", "./="]


def of_types():
    for a, first in TYPES.items():
        for b, second in TYPES.items():
            declared = f"transformed data {{ {first.format('a')}; {second.format('b')}; "
            for op in OPERATORS:
                yield f"{declared}print(a {op} b); }}"
            for op in ASSIGNING:
                yield f"{declared}a {op} b; }}"
            yield f"{declared}print(1 ? a : b); }}"
            yield f"{declared}print({{a, b}}); print([a, b]); }}"
        for op in ("-", "+", "!"):
            yield f"transformed data {{ {first.format('a')}; print({op}a); }}"
        for index in ("1", "1, 1", "1:2", "{1, 2}", ":, 1", "1, :", "a"):
            yield f"transformed data {{ {first.format('a')}; print(a[{index}]); a[{index}] = a[{index}]; }}"
        yield f"transformed data {{ {first.format('a')}; print(a'); for (x in a) print(x); }}"
        yield f"parameters {{ {first.format('a')}; }} model {{ target += a; }}"
        yield f"functions {{ void f({a if a in ('int', 'real') else 'real'} x) {{}} }} model {{ {first.format('a')}; f(a); }}"


def mutants(accepted, count, rng):
    cut = re.compile(r'"[^"]*"|\w+|\.[*/^]=?|[-+*/<>=!]=|&&|\|\||%/%|\S')
    tokens = [cut.findall(text) for text in accepted if len(text) < 300 and "----" not in text]
    made = set()
    while len(made) < count:
        own = list(rng.choice(tokens))
        at = rng.randrange(len(own))
        kind = rng.randrange(4)
        if kind == 0:
            del own[at]
        elif kind == 1:
            own.insert(at, own[at])
        elif kind == 2 and at + 1 < len(own):
            own[at], own[at + 1] = own[at + 1], own[at]
        else:
            own[at] = rng.choice(rng.choice(tokens))
        made.add(" ".join(own))
    return sorted(made)


def verdict(stanc, program):
    with tempfile.NamedTemporaryFile("w", suffix=".stan") as file:
        file.write(program + "\n")
        file.flush()
        done = subprocess.run([stanc, "--o=/dev/null", file.name], capture_output=True, timeout=60)
    return "+" if done.returncode == 0 else "-"


def write(stanc, name, programs):
    with ThreadPoolExecutor(4) as pool:
        verdicts = list(pool.map(lambda program: verdict(stanc, program), programs))
    (FOLDER / name).write_text("".join(f"{v} {p}\n" for v, p in zip(verdicts, programs)))
    print(name, len(programs), verdicts.count("+"), "accepted")
    return [program for v, program in zip(verdicts, programs) if v == "+"]


def main():
    stanc = sys.argv[1]
    hand = [line[2:] for line in (FOLDER / "hand.txt").read_text().splitlines()]
    accepted = write(stanc, "hand.txt", hand)
    accepted += write(stanc, "types.txt", list(dict.fromkeys(of_types())))
    write(stanc, "mutants.txt", mutants(accepted, 1500, random.Random(1)))


if __name__ == "__main__":
    main()
