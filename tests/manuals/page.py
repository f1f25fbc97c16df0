"""docs/manuals.md: what the five manuals say, and what headroom answers."""
import re

from answers import Missing, look

INTRODUCTION = """# The manuals, line by line

Five manuals tell people what to try by hand when memory runs out. `tests/manuals` assigns to each line the answer that
headroom must give, and runs the commands; it also writes this page (`python3 tests/manuals/run_manuals.py HEADROOM --write docs/manuals.md`).
The commands are those of the test, run from the root of the repository. A claim *holds*, holds *in part*, is *stale* (it was
true once) or *wrong*; the answer says why. Figures are headroom's own estimates for the job in the command.
"""


def figure(value):
    if abs(value) >= 0.1 * 2**30:
        return f"{value / 2**30:.2f} GiB"
    return f"{value / 2**20:.1f} MiB"


def shown(path, value):
    if value is None:
        raise Missing(f"{path} is null")
    if isinstance(value, list):
        return "; ".join(shown(path, element) for element in value)
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return str(value)
    if "bytes" in path.rpartition(".")[2]:
        return figure(value)
    return f"{value:.2f}".rstrip("0").rstrip(".") if isinstance(value, float) else str(value)


def filled(template, answers):
    """A template with {paths} replaced by the figures of a run."""

    def fill(match):
        path, _, unit = match.group(1).partition(":")
        return shown(unit or path, look(answers, path))

    return " ".join(re.sub(r"\{([^{}]+)\}", fill, template).split())


def command_text(words):
    return "headroom " + " ".join(f"'{word}'" if re.search(r"[ |;&*\"]", word) else word for word in words)


def lines_text(ranges):
    return ", ".join(str(first) if first == last else f"{first}-{last}" for first, last in ranges)


def cell(text):
    return text.replace("|", "\\|")


def row(entry, text):
    commands = [command_text(entry["command"])] + ([command_text(entry["against"])] if "against" in entry else [])
    shown_commands = "<br>against<br>".join(f"`{cell(command.replace('{out}/', ''))}`" for command in commands)
    return (f"| {lines_text(entry['lines'])} | {cell(entry['claim'])} | {entry['verdict']} | {cell(text)} "
            f"| {shown_commands} |\n")


def page(manuals, texts):
    """`manuals`: the tables; `texts`: the completed answers, by the entry's id."""
    out = INTRODUCTION
    for manual in manuals:
        claims = [entry for entry in manual["entries"] if entry["kind"] != "narration"]
        rest = [entry for entry in manual["entries"] if entry["kind"] == "narration"]
        out += f"\n## {manual['manual']}: {manual['title']}\n\n{len(claims)} claims.\n\n"
        out += "| lines | claim | verdict | headroom answers | command |\n|---|---|---|---|---|\n"
        for entry in claims:
            out += row(entry, texts[entry["id"]])
        if rest:
            out += "\nThe other lines: " + "; ".join(f"{lines_text(entry['lines'])} {entry['why']}" for entry in rest)
            out += ".\n"
    return out
