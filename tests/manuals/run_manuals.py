#!/usr/bin/env python3
"""Checks headroom against the five manuals that it replaces: run_manuals.py HEADROOM [--doctor PROGRAM] [--only ID] [--write PAGE
| --page PAGE].

Fails when a table (M0.json to M4.json in this folder) is malformed, when an answer is not what its table expects, or when PAGE
is out of date; if the manuals are next to the repository, also when a line of one is in no table. Exit codes: 0 all passed, 1
failures. --doctor names a program that answers instead of `HEADROOM doctor`; --only runs the entries whose id starts with ID;
--write rewrites PAGE, --page compares it."""
import argparse
import hashlib
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "data_files"))
from data_files import SHARED  # noqa: E402

from answers import Missing, failure_of
from page import filled, page

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
MANUALS = SHARED / "manuals"
KINDS = {"advice", "option", "figure", "caveat", "narration"}
VERDICTS = {"holds", "in part", "stale", "wrong"}
COPIED_WORDS = 8  # a claim must never share this many consecutive words with its manual


class Runner:
    """Runs commands at the root of the repository, each once."""

    def __init__(self, headroom, doctor):
        self.headroom, self.doctor = headroom, doctor
        self.known = {}

    def run(self, words, folder):
        program = [self.headroom] + words
        if words[0] == "doctor" and self.doctor:
            program = [self.doctor] + words[1:]
        done = subprocess.run([word.replace("{out}", folder) for word in program], cwd=ROOT, capture_output=True,
                              text=True, errors="replace", stdin=subprocess.DEVNULL, timeout=300)
        return done.returncode, done.stdout, done.stderr

    def with_option(self, words, option):
        place = words.index("--") if "--" in words else len(words)
        return words[:place] + [option] + words[place:]

    def answer(self, words, verbose):
        """Exit code, the JSON answer, the detailed text if asked for, and the written files."""
        key = (tuple(words), verbose)
        if key in self.known:
            return self.known[key]
        with tempfile.TemporaryDirectory() as folder:
            code, out, error = self.run(self.with_option(words, "--json"), folder)
            files = {path.name: path.read_text(errors="replace") for path in pathlib.Path(folder).iterdir()}
            text = "".join(self.run(self.with_option(words, "--verbose"), folder)[1:]) if verbose else ""
        try:
            answer = json.loads(out)
        except ValueError:
            answer = {}
        self.known[key] = {"exit": code, "answer": answer, "text": text, "files": files, "error": error}
        return self.known[key]


def words_in(text):
    return re.findall(r"[a-z0-9_]+", text.lower())


def malformed(entry, manual_words):
    """Errors in an entry itself."""
    if entry["kind"] not in KINDS:
        return f"unknown kind '{entry['kind']}'"
    if entry["kind"] == "narration":
        return "" if entry.get("why") else "narration without a reason"
    for field in ("id", "claim", "verdict", "command", "expect", "answer"):
        if not entry.get(field):
            return f"no {field}"
    if entry["verdict"] not in VERDICTS:
        return f"unknown verdict '{entry['verdict']}'"
    claim = words_in(entry["claim"])
    for start in range(len(claim) - COPIED_WORDS + 1):
        if " " + " ".join(claim[start:start + COPIED_WORDS]) + " " in manual_words:
            return "the claim copies the manual: " + " ".join(claim[start:start + COPIED_WORDS])
    return ""


def label_of(manual, entry):
    return entry.get("id", f"{manual['manual']} {entry['lines']}")


def check_table(manual, manual_words, failures):
    """Every entry is well formed and occurs once."""
    ids = set()
    for entry in manual["entries"]:
        label = label_of(manual, entry)
        if wrong := malformed(entry, manual_words):
            failures.append(f"{label}: {wrong}")
        if "id" in entry and entry["id"] in ids:
            failures.append(f"{label}: stands twice")
        ids.add(entry.get("id"))


def check_coverage(manual, lines, failures):
    """Every non-blank line is in an entry."""
    covered = set()
    for entry in manual["entries"]:
        for first, last in entry["lines"]:
            if not 1 <= first <= last <= len(lines):
                failures.append(f"{label_of(manual, entry)}: lines {first} to {last} are not in the manual")
            covered.update(range(first, last + 1))
    for index, line in enumerate(lines, start=1):
        if line.strip() and index not in covered:
            failures.append(f"{manual['manual']} line {index} is in no entry: {line.strip()[:80]!r}")


def check_manual(manual, failures):
    """Checks the table and, if the manual's text is available, that it covers all of it."""
    text = MANUALS / f"{manual['manual']}.txt"
    if not MANUALS.is_dir():
        check_table(manual, "", failures)
        return
    raw = text.read_bytes()
    lines = raw.decode("utf-8", "replace").splitlines()
    if hashlib.sha256(raw).hexdigest() != manual["sha256"]:
        failures.append(f"{manual['manual']}: the text is not the one that was mapped")
    check_table(manual, " " + " ".join(words_in(" ".join(lines))) + " ", failures)
    check_coverage(manual, lines, failures)


def exit_code(words, answer):
    """The exit code that an answering command must have: 3 says that a job without an error does not fit."""
    refused = words[0] == "doctor" and answer.get("fits") is False and not answer.get("messages")
    return 3 if refused or answer.get("feasible") is False else 0


def check_entry(entry, runner, failures):
    """Runs an entry; returns the text of its answer."""
    verbose = any("text" in check for check in entry["expect"])
    answers = dict(runner.answer(entry["command"], verbose))
    if "against" in entry:
        answers["against"] = runner.answer(entry["against"], False)["answer"]
    problems = []
    if answers["exit"] != exit_code(entry["command"], answers["answer"]):
        problems.append(f"exit code {answers['exit']}: {answers['error'].strip()[:300]}")
    problems += [problem for check in entry["expect"] if (problem := failure_of(answers, check))]
    try:
        text = filled(entry["answer"], answers)
    except Missing as missing:
        text = ""
        problems.append(f"answer: {missing}")
    failures += [f"{entry['id']}: {problem}" for problem in problems]
    return text


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("headroom")
    parser.add_argument("--doctor")
    parser.add_argument("--only", default="")
    group = parser.add_mutually_exclusive_group()
    group.add_argument("--write")
    group.add_argument("--page")
    return parser.parse_args()


def check_page(options, text, failures):
    target = pathlib.Path(options.write or options.page)
    target = target if target.is_absolute() else ROOT / target
    if options.write:
        target.write_text(text)
    elif not target.exists() or target.read_text() != text:
        failures.append(f"{target.name} is out of date: run with --write")


def main():
    options = arguments()
    runner = Runner(os.path.abspath(options.headroom), options.doctor and os.path.abspath(options.doctor))
    manuals = [json.loads(path.read_text()) for path in sorted(HERE.glob("M[0-9].json"))]
    failures, texts, total, failed = [], {}, 0, 0
    for manual in manuals:
        check_manual(manual, failures)
    if MANUALS.is_dir() and {manual["manual"] for manual in manuals} != {path.stem for path in MANUALS.glob("M*.txt")}:
        failures.append("not every manual has a table")
    for line in failures:
        print(line)
    for entry in (entry for manual in manuals for entry in manual["entries"]):
        if entry["kind"] == "narration" or not entry["id"].startswith(options.only):
            continue
        before = len(failures)
        texts[entry["id"]] = check_entry(entry, runner, failures)
        total += 1
        failed += len(failures) > before
        for line in failures[before:]:
            print(line)
    if (options.write or options.page) and not options.only:
        before = len(failures)
        check_page(options, page(manuals, texts), failures)
        for line in failures[before:]:
            print(line)
    print(f"{total - failed} passed, {failed} failed")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
