#!/usr/bin/env python3
"""A report, and the curve of `plan --curve`, in a real browser: sections, charts, layout on a phone and a desktop, no scripts, no
network.

Usage: browser_check.py HEADROOM [FOLDER]
Makes a tiny run with HEADROOM, draws its report and its curve, and opens both in a headless Chromium or Chrome found on PATH,
at widths 390 and 1280, in light and dark mode. Screenshots are left in FOLDER if it is given. Prints N passed, N failed; exits
77 if there is no browser.
"""
import json
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from browser import SKIPPED, Browser, find_browser  # noqa: E402

MODEL = {"architectures": ["LlamaForCausalLM"], "model_type": "llama", "vocab_size": 258, "hidden_size": 64, "intermediate_size": 128,
         "num_hidden_layers": 6, "num_attention_heads": 4, "num_key_value_heads": 2, "max_position_embeddings": 128, "rms_norm_eps": 1e-5,
         "rope_theta": 10000.0, "hidden_act": "silu", "tie_word_embeddings": True, "torch_dtype": "float32", "bos_token_id": 256, "eos_token_id": 257}
# Those of docs/report.md, with the least number of charts in each part.
PARTS = {"Memory of a step": 1, "The peak": 0, "The run": 3, "Row lengths": 0, "Techniques": 0, "What another budget would give": 2, "Planned and measured": 0}
# What is visible to a reader: the charts under each heading and the shapes in each, and elements outside the screen.
PROBE = """(() => {
  const seen = element => { const box = element.getBoundingClientRect(); return box.width > 0 && box.height > 0; };
  const drawn = shape => { const box = shape.getBoundingClientRect(); return box.width > 0 || box.height > 0; };
  const parts = {};
  let part = null;
  for (const element of document.body.children) {
    if (element.tagName === 'H1') parts.facts = document.querySelectorAll('.facts div').length;
    if (element.tagName === 'H2') parts[part = element.textContent] = {charts: [], text: 0};
    if (!part || element.tagName === 'H2') continue;
    parts[part].text += element.textContent.length;
    for (const chart of [element, ...element.querySelectorAll('.chart')].filter(found => found.matches('.chart')))
      parts[part].charts.push({shapes: [...chart.querySelectorAll('svg *')].filter(drawn).length,
        titles: chart.querySelectorAll('svg title').length, labels: [...chart.querySelectorAll('span')].filter(seen).length});
  }
  const wide = document.documentElement.clientWidth;
  const outside = [...document.body.querySelectorAll('*')].filter(element => seen(element) && !element.closest('svg'))
    .filter(element => { const box = element.getBoundingClientRect(); return box.right > wide + 0.5 || box.left < -0.5; })
    .map(element => element.tagName + '.' + element.className + ': ' + element.textContent.slice(0, 60));
  const lapping = [];
  for (const chart of document.querySelectorAll('.chart')) {
    const boxes = [...chart.querySelectorAll('span')].filter(seen).map(label => {
      const text = document.createRange();
      text.selectNodeContents(label);
      return [label.textContent, text.getBoundingClientRect()];
    });
    boxes.forEach(([text, a], i) => boxes.slice(i + 1).forEach(([other, b]) => {
      const across = Math.min(a.right, b.right) - Math.max(a.left, b.left), down = Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top);
      if (across > 1 && down > 1) lapping.push(text + ' / ' + other);
    }));
  }
  const style = getComputedStyle(document.body);
  return {parts, outside, lapping, scroll: document.documentElement.scrollWidth, wide, height: document.documentElement.scrollHeight,
    scripts: document.scripts.length, back: style.backgroundColor, ink: style.color};
})()"""
passed, failed = 0, 0


def check(name, holds, figure=""):
    global passed, failed
    print(("ok   " if holds else "FAIL ") + name, figure if not holds else "")
    passed, failed = passed + bool(holds), failed + (not holds)


def probe(browser, first=""):
    return browser.value(first + PROBE)


def open_page(browser, page, width, height, scheme):
    browser.show(width, height, scheme)
    browser.load(page.as_uri())
    return probe(browser)


def complaints(events):
    """Errors of the console, of scripts and of loading, and all requests except the page itself."""
    out = []
    for event in events:
        told = event.get("params", {})
        if event["method"] == "Runtime.exceptionThrown" or (event["method"] == "Runtime.consoleAPICalled" and told["type"] in ("error", "assert")):
            out.append(json.dumps(told)[:300])
        if event["method"] == "Log.entryAdded" and told["entry"]["level"] in ("error", "warning"):
            out.append(told["entry"]["text"])
        if event["method"] == "Network.requestWillBeSent" and not re.search(r"/(page|curve)\.html(#.*)?$|^data:", told["request"]["url"]):
            out.append("asks for " + told["request"]["url"])
    return out


def make_page(program, folder):
    """The report of a tiny run with evaluation, whose rows have various lengths."""
    (folder / "config.json").write_text(json.dumps(MODEL))
    words = "the quick brown fox jumps over the lazy dog and sleeps on "
    (folder / "rows.jsonl").write_text("".join(json.dumps({"text": words * (1 + n * n % 7)}) + "\n" for n in range(60)))

    def call(*arguments):
        subprocess.run([program, *arguments], cwd=folder, check=True, stdout=subprocess.DEVNULL, timeout=300,
                       env={**os.environ, "HOME": str(folder), "XDG_CACHE_HOME": str(folder)})

    call("init", "--config", "config.json", "--tokenizer", "bytes", "--output-dir", "model")
    call("train", "--model", "model", "--data", "rows.jsonl", "--eval-data", "rows.jsonl", "--eval-steps", "10", "--eval-max-batches", "2", "--output-dir", "run",
         "--memory", "48MiB", "--threads", "1", "--max-seq-length", "128", "--global-batch-size", "8", "--max-steps", "40", "--quiet")
    call("report", "run", "-o", "page.html")
    call("plan", "--model", "model", "--threads", "1", "--max-seq-length", "128", "--global-batch-size", "8", "--memory", "48MiB", "--curve", "curve.html")
    return folder / "page.html", folder / "curve.html"


def check_view(browser, page, width, scheme, pictures):
    name = f"{width} {scheme}"
    found = open_page(browser, page, width, 844 if width < 600 else 900, scheme)
    if pictures:
        browser.screenshot(pictures / f"report-{width}-{scheme}.png", found)
    check(f"{name}: the parts of the page, in order", [part for part in found["parts"] if part != "facts"] == list(PARTS), found["parts"].keys())
    check(f"{name}: figures at the head", found["parts"].get("facts", 0) >= 8)
    for part, least in PARTS.items():
        seen = found["parts"].get(part, {"charts": [], "text": 0})
        charts = seen["charts"]
        check(f"{name}: {part}", seen["text"] > 40 and len(charts) >= least and all(chart["shapes"] >= 3 and chart["labels"] >= 4 for chart in charts), seen)
    memory = found["parts"].get("Memory of a step", {}).get("charts") or [{"titles": 0}]
    check(f"{name}: a pointer on the memory of a step shows figures", memory[0]["titles"] >= 20, memory)
    check(f"{name}: nothing is wider than the screen", found["scroll"] <= found["wide"] == width and not found["outside"], (found["scroll"], found["wide"], found["outside"]))
    unfolded = probe(browser, "document.querySelectorAll('details').forEach(folded => { folded.open = true; });")
    check(f"{name}: nor is anything unfolded", unfolded["height"] > found["height"] and unfolded["scroll"] <= width and not unfolded["outside"], unfolded["outside"])
    check(f"{name}: labels of a chart do not lap over each other", not found["lapping"], found["lapping"])
    check(f"{name}: no script", found["scripts"] == 0)
    trouble = complaints(browser.events)
    check(f"{name}: no error, nothing loaded", not trouble, trouble)
    return found["back"], found["ink"]


# The middle of each link of the first chart, and the plan that it names.
LINKS = """[...document.querySelector('.chart').querySelectorAll('a')].map(link => {
  const box = link.querySelector('path').getBoundingClientRect();
  return [link.getAttribute('href'), (box.left + box.right) / 2, (box.top + box.bottom) / 2];
})"""
# Where the page is: its fragment, whether its target is on the screen, and the background colour.
TARGET = """(() => {
  const box = document.querySelector(location.hash || 'body').getBoundingClientRect();
  return [location.hash, box.top >= -1 && box.top < innerHeight, getComputedStyle(document.querySelector(location.hash || 'body')).backgroundColor];
})()"""


def check_curve(browser, page, width, scheme, pictures):
    name = f"curve, {width} {scheme}"
    value = browser.value
    found = open_page(browser, page, width, 844, scheme)
    if pictures:
        browser.screenshot(pictures / f"curve-{width}-{scheme}.png", found)
    check(f"{name}: nothing is wider than the screen", found["scroll"] <= found["wide"] == width and not found["outside"], found["outside"])
    check(f"{name}: labels do not lap over each other", not found["lapping"], found["lapping"])
    check(f"{name}: no script", found["scripts"] == 0)
    links = value(LINKS)
    check(f"{name}: a link for each plan", len(links) == value("document.querySelectorAll('article').length") > 1, links)
    for place, x, y in (links[0], links[-1]):
        value("location.hash = ''; scrollTo(0, 0)")
        for kind in ("mousePressed", "mouseReleased"):
            browser("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", clickCount=1)
        reached = value(TARGET)
        check(f"{name}: a point leads to its plan, which stands out", reached[:2] == [place, True] and reached[2] not in (found["back"], "rgba(0, 0, 0, 0)"), (place, reached))
    trouble = complaints(browser.events)
    check(f"{name}: no error, nothing loaded", not trouble, trouble)


def main():
    if len(sys.argv) not in (2, 3):
        sys.exit(__doc__)
    program = find_browser()
    if not program:
        print("skipped: no Chromium or Chrome on PATH\n0 passed, 0 failed, 1 skipped")
        return SKIPPED
    pictures = Path(sys.argv[2]) if len(sys.argv) == 3 else None
    with tempfile.TemporaryDirectory(prefix="headroom-browser-", ignore_cleanup_errors=True) as folder:
        page, curve = make_page(os.path.abspath(sys.argv[1]), Path(folder))
        browser = Browser(program, os.path.join(folder, "profile"))
        try:
            colours = {(width, scheme): check_view(browser, page, width, scheme, pictures) for width in (390, 1280) for scheme in ("light", "dark")}
            for width, scheme in ((390, "dark"), (1280, "light")):
                check_curve(browser, curve, width, scheme, pictures)
        finally:
            browser.close()
        for width in (390, 1280):
            light, dark = colours[width, "light"], colours[width, "dark"]
            check(f"{width}: ink and paper change in the dark", light[0] != dark[0] and light[1] != dark[1], (light, dark))
    print(f"{passed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
