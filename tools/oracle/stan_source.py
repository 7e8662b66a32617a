"""Rewrites Stan programs at the level of the source text.

Reference implementations evaluate programs without the constants of `~` statements and with the Jacobians of the transforms. The oracle
values of the other variants therefore come from rewritten programs.
"""

import re

DISCRETE = {
    "bernoulli", "bernoulli_logit", "bernoulli_logit_glm", "binomial", "binomial_logit",
    "beta_binomial", "categorical", "categorical_logit", "categorical_logit_glm",
    "multinomial", "multinomial_logit", "neg_binomial", "neg_binomial_2",
    "neg_binomial_2_log", "neg_binomial_2_log_glm", "ordered_logistic", "ordered_probit",
    "poisson", "poisson_log", "poisson_log_glm", "hypergeometric",
}


def strip_comments(text):
    text = re.sub(r"/\*.*?\*/", " ", text, flags=re.S)
    return re.sub(r"//[^\n]*|^\s*#(?!include)[^\n]*", "", text, flags=re.M)


def tightened(text):
    """The program with a solver tolerance of 1e-11 instead of 1e-8."""
    return text.replace("1e-8", "1e-11")


def closing(text, start):
    """Index of the bracket that closes the one at `start`."""
    depth = 0
    for i in range(start, len(text)):
        if text[i] in "([{":
            depth += 1
        elif text[i] in ")]}":
            depth -= 1
            if depth == 0:
                return i
    raise ValueError("unbalanced brackets")


def blocks(text):
    """Top-level blocks in order: {name: body}."""
    found, i = {}, 0
    for m in iter(lambda: re.compile(r"\s*([a-z][a-z ]*?)\s*\{").match(text, i), None):
        end = closing(text, m.end() - 1)
        found[m.group(1)] = text[m.end():end]
        i = end + 1
    if text[i:].strip():
        raise ValueError(f"cannot read: {text[i:i + 40]!r}")
    return found


def join(found):
    return "\n".join(f"{name} {{{body}}}" for name, body in found.items()) + "\n"


def statement_start(text, tilde):
    """Where the left-hand side of the `~` at this index begins."""
    depth, i = 0, len(text[:tilde].rstrip()) - 1
    if text[i] == "}":  # an array written out
        i = text.rindex("{", 0, i) - 1
    while i >= 0:
        if text[i] in ")]":
            depth += 1
        elif text[i] in "([":
            depth -= 1
        elif depth == 0 and text[i] in ";{}":
            break
        i -= 1
    start = i + 1
    while True:  # the statement may be the body of a loop or branch without braces
        header = re.compile(r"\s*(?:(?:for|while|if)\s*(\()|else\b)").match(text, start)
        if not header:
            return start + re.match(r"\s*", text[start:]).end()
        start = closing(text, header.start(1)) + 1 if header.group(1) else header.end()


def keep_constants(text):
    """Every `y ~ d(args) T[l, u];` as `target += d_lpdf(y | args) - ...;`."""
    text = strip_comments(text)
    out, i = [], 0
    for m in iter(lambda: re.compile(r"~\s*(\w+)\s*(?=\()").search(text, i), None):
        start, dist = statement_start(text, m.start()), m.group(1)
        lhs = text[start:m.start()].strip()
        end = closing(text, m.end())
        args = text[m.end() + 1:end].strip()
        user = re.search(rf"\breal\s+{dist}_lpmf\b", text)
        kind = "lpmf" if user or dist in DISCRETE else "lpdf"
        bar = f"{lhs} | {args}" if args else f"{lhs} |"
        if dist == "std_normal":
            expr = f"std_normal_lpdf({lhs} |)"
        else:
            expr = f"{dist}_{kind}({bar})"
        tail = re.match(r"\s*T\s*\[([^\]]*)\]", text[end + 1:])
        if tail:
            low, high = (s.strip() for s in tail.group(1).split(","))
            if kind == "lpmf" and low:
                low = f"{low} - 1"
            if low and high:
                expr += f" - log_diff_exp({dist}_lcdf({high} | {args}), {dist}_lcdf({low} | {args}))"
            elif low:
                expr += f" - {dist}_lccdf({low} | {args})"
            else:
                expr += f" - {dist}_lcdf({high} | {args})"
            end += tail.end()
        out += [text[i:start], f"target += {expr}"]
        i = end + 1
    out.append(text[i:])
    result = "".join(out)
    if "~" in result:
        raise ValueError("a ~ statement was not rewritten")
    return result


def jacobian_only(text):
    """The program with its transforms and nothing else in the density."""
    found = blocks(strip_comments(text))
    found["model"] = ""
    found.pop("transformed parameters", None)
    found.pop("generated quantities", None)
    return join(found)
