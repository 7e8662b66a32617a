"""Rewrite a Stan program for Stan 2.21 (the syntax before `array[N] real y;`).

    python old_syntax.py model.stan [--keep-constants] > old.stan

Handles what the corpus uses: array declarations, array types in function
signatures, `gp_exp_quad_cov`, integer division, `.^`, and initialised
declarations, which the old compiler knows too.
"""

import re
import sys

from stan_source import closing, keep_constants, strip_comments

TYPE = re.compile(r"(?:int|real|vector|row_vector|matrix|simplex|ordered|positive_ordered|unit_vector|"
                  r"cov_matrix|corr_matrix|cholesky_factor_corr|cholesky_factor_cov)\b")


def array_declarations(text):
    out, i = [], 0
    pattern = re.compile(r"\barray\s*\[")
    for m in iter(lambda: pattern.search(text, i), None):
        out.append(text[i:m.start()])
        end = closing(text, m.end() - 1)
        dims = text[m.end():end]
        j = end + 1
        while text[j].isspace():
            j += 1
        kind = TYPE.match(text, j)
        k = kind.end()
        while True:  # constraints and sizes of the element type
            while text[k].isspace():
                k += 1
            if text[k] == "<":
                k = text.index(">", k) + 1
            elif text[k] == "[":
                k = closing(text, k) + 1
            else:
                break
        element = text[j:k].rstrip()
        if dims.replace(",", "").strip() == "":
            out.append(f"{element}[{dims.strip()}] ")
            i = k
            continue
        name = re.compile(r"[A-Za-z_]\w*").match(text, k)
        out.append(f"{element} {name.group(0)}[{dims}]")
        i = name.end()
    out.append(text[i:])
    return "".join(out)


def old(text):
    text = array_declarations(strip_comments(text))
    text = text.replace("gp_exp_quad_cov", "cov_exp_quad").replace("%/%", "/")
    text = re.sub(r"std_normal_lpdf\((.+?) \|\)", r"normal_lpdf(\1 | 0, 1)", text)
    return re.sub(r"\.\^", "^", text)


if __name__ == "__main__":
    program = open(sys.argv[1]).read()
    if "--keep-constants" in sys.argv[2:]:
        program = keep_constants(program)
    sys.stdout.write(old(program))
