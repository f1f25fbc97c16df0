"""Reads headroom's answers: a path language over JSON, sizes, and the checks of the table."""
import re

UNITS = {"B": 1, "KiB": 2**10, "MiB": 2**20, "GiB": 2**30, "TiB": 2**40, "KB": 10**3, "MB": 10**6, "GB": 10**9}


class Missing(Exception):
    """A path that the answer does not have."""


def size(value):
    """A number, or a text such as "2.14 GiB", as a number."""
    if isinstance(value, (int, float)):
        return value
    number, unit = re.fullmatch(r"(-?[0-9.]+) ?([KMGT]?i?B)", value).groups()
    return float(number) * UNITS[unit]


def step(value, key, path):
    if isinstance(value, dict) and key in value:
        return value[key]
    raise Missing(f"{path}: there is no '{key}'")


def choose(value, selector, path):
    """[3], [name=text], or [text], which is [name=text]."""
    if not isinstance(value, list):
        raise Missing(f"{path}: no list")
    if re.fullmatch(r"-?[0-9]+", selector):
        if not -len(value) <= int(selector) < len(value):
            raise Missing(f"{path}: only {len(value)} elements")
        return value[int(selector)]
    key, _, wanted = selector.rpartition("=")
    for element in value:
        if isinstance(element, dict) and str(element.get(key or "name")) == wanted:
            return element
    raise Missing(f"{path}: nothing named '{wanted}'")


def look(answers, path):
    """The value at a path such as "remedies[micro-batch].saves_bytes"; a path that begins with "against." reads the second
    command's answer."""
    value = answers["answer"]
    rest = path
    if path.startswith("against."):
        value, rest = answers["against"], path[len("against."):]
    for part in re.findall(r"[^.\[\]]+|\[[^\]]*\]", rest):
        value = choose(value, part[1:-1], path) if part.startswith("[") else step(value, part, path)
    return value


def number(answers, path):
    """A number at a path, or the sum over a list of paths, where "-path" is subtracted."""
    if isinstance(path, list):
        return sum(-number(answers, p[1:]) if p.startswith("-") else number(answers, p) for p in path)
    value = look(answers, path)
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise Missing(f"{path}: {value!r} is not a number")
    return value


def words_of(value):
    if isinstance(value, list):
        return "\n".join(words_of(element) for element in value)
    if isinstance(value, dict):
        return "\n".join(words_of(element) for element in value.values())
    return str(value)


def in_range(value, check, what):
    low, high = size(check.get("from", float("-inf"))), size(check.get("to", float("inf")))
    return "" if low <= value <= high else f"{what} is {value:.6g}, not between {low:.6g} and {high:.6g}"


def near(value, check, what):
    wanted, within = size(check["near"]), size(check["within"])
    return "" if abs(value - wanted) <= within else f"{what} is {value:.6g}, not {wanted:.6g} within {within:.6g}"


def said(text, check, what):
    found = " ".join(text.split())
    for key, wanted in (("says", True), ("never_says", False)):
        phrases = check.get(key, [])
        for phrase in [phrases] if isinstance(phrases, str) else phrases:
            if (phrase in found) != wanted:
                return f"{what} {'does not say' if wanted else 'says'} '{phrase}': {found[:300]!r}"
    return ""


def order(answers, check):
    names = [remedy["name"] for remedy in answers["answer"]["remedies"]]
    if "first" in check:
        found = [name for name in names[: check["within"]] if name == check["first"]]
        return "" if found else f"'{check['first']}' is not among the first {check['within']} remedies: {names[:6]}"
    earlier, later = check["before"]
    if earlier not in names or later not in names:
        return f"'{earlier}' and '{later}' are not both remedies: {names}"
    return "" if names.index(earlier) < names.index(later) else f"'{earlier}' comes behind '{later}'"


def at_path(answers, check):
    path = check["at"]
    what = " + ".join(path) if isinstance(path, list) else path
    if check.get("exists") is False:
        try:
            value = look(answers, path)
        except Missing:
            return ""
        return "" if value is None else f"{what} is there: {value!r}"
    if "is" in check:
        value = look(answers, path)
        return "" if value == check["is"] else f"{what} is {value!r}, not {check['is']!r}"
    if "says" in check or "never_says" in check:
        return said(words_of(look(answers, path)), check, what)
    if "near" in check:
        return near(number(answers, path), check, what)
    if "of" in check:
        whole = number(answers, check["of"])
        if whole == 0:
            return f"{check['of']} is 0"
        return in_range(number(answers, path) / whole, check, f"{what} as a part of {check['of']}")
    if "from" in check or "to" in check:
        return in_range(number(answers, path), check, what)
    return "" if look(answers, path) is not None else f"{what} is null"


def failure_of(answers, check):
    """Why a check fails; empty when it passes."""
    try:
        if "text" in check:
            return said(answers["text"], {"says": check["text"]}, "the long answer")
        if "file" in check:
            return said(answers["files"].get(check["file"], ""), check, check["file"])
        if "first" in check or "before" in check:
            return order(answers, check)
        return at_path(answers, check)
    except Missing as missing:
        return "" if check.get("may_be_absent") else str(missing)
