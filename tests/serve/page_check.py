#!/usr/bin/env python3
"""The page of a running server in a real browser: it loads, sends, shows the answer, stops, asks for a key, compares lines, and
fits a phone.

Usage: page_check.py HEADROOM [FOLDER]
Serves a small model with HEADROOM, once without and once with a chat template and a key, and an encoder, and opens / in a headless Chromium or
Chrome found on PATH. Screenshots are left in FOLDER if it is given. Prints N passed, N failed; exits 77 if there is no
browser.
"""
import json
import math
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
import urllib.request
from pathlib import Path

sys.path[:0] = [str(Path(__file__).resolve().parents[1]), str(Path(__file__).resolve().parents[1] / "data_files")]
from browser import SKIPPED, Browser, find_browser  # noqa: E402
from data_files import DATA, SHARED  # noqa: E402
from served import Server  # noqa: E402

KEY = "sk-page"
TEMPLATE = "{% for m in messages %}{{ m['role'] }}: {{ m['content'] }}\n{% endfor %}{% if add_generation_prompt %}assistant:{% endif %}"
passed, failed = 0, 0


def check(name, holds, figure=""):
    global passed, failed
    print(("ok   " if holds else "FAIL ") + name, figure if not holds else "", flush=True)
    passed, failed = passed + bool(holds), failed + (not holds)


def wait_for(browser, expression, seconds=60):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if browser.value(expression):
            return True
        time.sleep(0.05)
    return False


def type_text(browser, text):
    browser.value("document.getElementById('text').focus()")
    browser("Input.insertText", text=text)


def press(browser, key, modifiers=0):
    codes = {"Enter": 13, "Escape": 27, "Tab": 9}
    more = {"text": "\r"} if key == "Enter" else {}
    browser("Input.dispatchKeyEvent", type="keyDown", key=key, code=key, windowsVirtualKeyCode=codes[key], modifiers=modifiers, **more)
    browser("Input.dispatchKeyEvent", type="keyUp", key=key, code=key, windowsVirtualKeyCode=codes[key], modifiers=modifiers)


LAST = "document.querySelector('#log article.assistant:last-of-type')"
IDLE = "document.getElementById('stop').hidden"
READY = "document.getElementById('state').classList.contains('good')"
OVERFLOW = """[...document.body.querySelectorAll('*')].filter(element => {
  const box = element.getBoundingClientRect();
  return box.width > 0 && !element.closest('#arena, svg, .said pre, .hidden-label') && (box.right > innerWidth + 0.5 || box.left < -0.5);
}).map(element => element.tagName + '#' + element.id)"""
# Controls without an accessible name.
NAMELESS = """[...document.querySelectorAll('input, textarea, select, button')].filter(control =>
  !(control.labels && control.labels.length) && !control.textContent.trim() && !control.getAttribute('aria-label')).map(control => control.id)"""


def complaints(events, url):
    """Errors of the console, of scripts and of the policy, and requests to other hosts."""
    out = []
    for event in events:
        told = event.get("params", {})
        if event["method"] == "Runtime.exceptionThrown" or (event["method"] == "Runtime.consoleAPICalled" and told["type"] in ("error", "assert")):
            out.append(json.dumps(told)[:300])
        if event["method"] == "Log.entryAdded" and told["entry"]["level"] in ("error", "warning") and "favicon.ico" not in told["entry"].get("url", ""):
            out.append(told["entry"]["text"] + " " + told["entry"].get("url", ""))
        if event["method"] == "Network.requestWillBeSent" and not told["request"]["url"].startswith((url + "/", "data:")):
            out.append("asks for " + told["request"]["url"])
    return out


def check_head(url):
    with urllib.request.urlopen(url + "/") as answer:
        text, policy = answer.read().decode(), answer.headers["Content-Security-Policy"]
    check("the page is served without a key", answer.status == 200 and text.startswith("<!doctype html>"))
    check("the policy allows the page's own style and script alone", "default-src 'none'" in policy and policy.count("'sha256-") == 2 and "unsafe" not in policy, policy)
    check("what a model says never becomes markup", not re.search(r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(", text))


def send_and_stop(browser, text):
    """Sends a long request with Enter and stops it with Esc."""
    browser.value("document.getElementById('max_tokens').value = 400")
    type_text(browser, text)
    press(browser, "Enter")
    began = wait_for(browser, f"!{IDLE} && {LAST} && {LAST}.querySelector('.said').textContent.length > 5")
    press(browser, "Escape")
    ended = wait_for(browser, IDLE)
    return began, ended, browser.value(f"{LAST}.querySelector('.figures').textContent")


def check_text(browser, server, pictures):
    browser.show(1280, 860)
    browser.load(server.url + "/")
    check("without a template the page continues texts", wait_for(browser, f"{READY} && document.getElementById('mode').value === 'text'"))
    check("every control has a name", not browser.value(NAMELESS), browser.value(NAMELESS))
    check("the field for text has the focus", browser.value("document.activeElement.id") == "text")
    browser.value("document.getElementById('temperature').value = 0; document.getElementById('max_tokens').value = 30")
    type_text(browser, "Once upon a time")
    press(browser, "Enter", modifiers=8)
    check("Shift+Enter begins a line", browser.value("document.getElementById('text').value") == "Once upon a time\n" and browser.value(IDLE))
    browser.value("document.getElementById('text').value = ''")
    type_text(browser, "Once upon a time")
    press(browser, "Enter")
    check("an answer ends", wait_for(browser, f"!!({LAST} && {LAST}.querySelector('.figures'))"))
    told = json.loads(server.post("/v1/completions", prompt="Once upon a time", max_tokens=30, temperature=0)[1])
    expected, count = told["choices"][0]["text"], told["usage"]["completion_tokens"]
    shown = browser.value(f"{LAST}.querySelector('.said').textContent")
    check("it is what the API gives", shown == expected and len(shown) > 20, (shown, expected))
    figures = browser.value(f"{LAST}.querySelector('.figures').textContent")
    check("its tokens are counted", figures.startswith(f"{count} token"), figures)
    began, ended, figures = send_and_stop(browser, "The little dog")
    check("Esc stops an answer", began and ended and figures.endswith("stopped"), (began, ended, figures))
    freed = wait_for(browser, "fetch('arena').then(a => a.json()).then(a => a.running === 0 && a.kv_blocks_used === 0)")
    check("the server is free again", freed)
    check_arena(browser)
    if pictures:
        browser.screenshot(pictures / "page-1280.png", {"wide": 1280, "height": 860})


def check_arena(browser):
    with_figures = wait_for(browser, "document.querySelectorAll('#regions li').length >= 6 && +document.getElementById('history').firstElementChild.getAttribute('points').length > 10")
    check("the regions are drawn", with_figures)
    sizes = browser.value("fetch('arena').then(a => a.json()).then(a => [a.planned_peak_bytes, a.regions.reduce((sum, r) => sum + r.bytes, 0)])")
    check("they add up to the planned peak", sizes[0] == sizes[1] > 0, sizes)
    drawn = browser.value("(() => { const bar = document.getElementById('arena').getBoundingClientRect().width; "
                          "return [...document.querySelectorAll('#arena div')].reduce((sum, part) => sum + part.getBoundingClientRect().width, 0) / bar })()")
    check("they fill the bar", abs(drawn - 1) < 0.01, drawn)


def check_hostile(browser):
    hostile = "<img src=x onerror=alert(1)>\n```html\n<script>x</script>\n```\nend"
    browser.value(f"addTurn('assistant', {json.dumps(hostile)})")
    seen = browser.value(f"[{LAST}.querySelectorAll('img, script').length, {LAST}.querySelector('pre').textContent, {LAST}.querySelector('.said').textContent]")
    check("markup in an answer is shown as text", seen[0] == 0 and seen[1] == "<script>x</script>" and "<img src=x" in seen[2] and "```" not in seen[2], seen)


def check_chat(browser, server, pictures):
    for width, scheme in ((390, "dark"), (390, "light"), (320, "light")):
        browser.show(width, 844, scheme)
        browser.load(server.url + "/")
        browser.value("sessionStorage.clear()")
        browser.load(server.url + "/")
        name = f"{width} {scheme}: "
        check(name + "the page asks for the key", wait_for(browser, "!document.getElementById('access').hidden"))
        browser.value("document.getElementById('key').focus()")
        browser("Input.insertText", text=KEY)
        press(browser, "Enter")
        check(name + "the key opens it", wait_for(browser, READY) and browser.value("document.getElementById('access').hidden"))
        check(name + "chats are the default", browser.value("document.getElementById('mode').value") == "chat")
        browser.value("document.getElementById('max_tokens').value = 24; document.getElementById('system').value = 'Tell a story.'")
        for text in ("Tell me of a dog", "a" * 200):
            count = browser.value("document.querySelectorAll('.figures').length")
            type_text(browser, text)
            browser.value("document.getElementById('send').click()")
            check(name + "an answer comes", wait_for(browser, f"document.querySelectorAll('.figures').length > {count}"), browser.value("document.getElementById('problem').textContent"))
        browser.value("document.querySelectorAll('details').forEach(folded => { folded.open = false; })")
        check(name + "nothing is wider than the screen", browser.value("document.documentElement.scrollWidth <= innerWidth") and not browser.value(OVERFLOW), browser.value(OVERFLOW))
        check(name + "the field and its buttons are on the screen", browser.value("document.getElementById('send').getBoundingClientRect().bottom <= innerHeight"))
        if pictures and width == 390:
            browser.screenshot(pictures / f"page-390-{scheme}.png", {"wide": 390, "height": 844})
        browser.value("document.querySelectorAll('details').forEach(folded => { folded.open = true; })")
        check(name + "nor is anything unfolded", browser.value("document.documentElement.scrollWidth <= innerWidth") and not browser.value(OVERFLOW), browser.value(OVERFLOW))
        check(name + "the header stays", browser.value("scrollY === 0 && document.querySelector('header').getBoundingClientRect().top === 0"))
        check(name + "the conversation keeps room", browser.value("document.getElementById('log').clientHeight >= 80"), browser.value("document.getElementById('log').clientHeight"))
        if pictures and width == 390:
            browser.screenshot(pictures / f"page-390-{scheme}-open.png", {"wide": 390, "height": 844})
    browser.value("sessionStorage.setItem(KEY, 'wrong')")
    browser.value("look(), undefined")
    check("a wrong key is asked for again", wait_for(browser, "!document.getElementById('access').hidden"))


ENCODER = {"architectures": ["BertModel"], "model_type": "bert", "vocab_size": 512, "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2,
           "intermediate_size": 64, "max_position_embeddings": 128, "type_vocab_size": 2, "hidden_act": "gelu", "layer_norm_eps": 1e-12, "pad_token_id": 0}
SHOWN = "[...document.querySelectorAll('.similarities tr')].slice(1).map(row => [...row.cells].slice(1).map(cell => cell.textContent))"


def cosines(server, lines):
    """What the page should show, from the API's embeddings."""
    vectors = [each["embedding"] for each in json.loads(server.post("/v1/embeddings", input=lines)[1])["data"]]
    return [[sum(x * y for x, y in zip(a, b)) / math.hypot(*a) / math.hypot(*b) for b in vectors] for a in vectors]


def check_comparison(browser, server, pictures):
    browser.show(1280, 860)
    browser.load(server.url + "/")
    check("an encoder compares lines", wait_for(browser, f"{READY} && document.getElementById('mode').value === 'compare'"))
    offered = browser.value("[...document.getElementById('mode').options].filter(option => !option.disabled).map(option => option.value)")
    check("it offers nothing else", offered == ["compare"], offered)
    check("nor settings of drawing", browser.value("document.getElementById('temperature').hidden"))
    lines = ["The dog runs.", "A cat sleeps <b>here</b>.", "The dog runs."]
    type_text(browser, "\n".join(["", *lines, " "]))
    press(browser, "Enter")
    check("a table of them comes", wait_for(browser, "document.querySelectorAll('.similarities td').length === 9"), browser.value("document.getElementById('problem').textContent"))
    shown, expected = browser.value(SHOWN), cosines(server, lines)
    check("its figures are the API's", all(abs(float(a) - b) < 0.0051 for row, line in zip(shown, expected) for a, b in zip(row, line)) and shown[0][2] == "1.00", (shown, expected))
    check("markup in a line is shown as text", browser.value("document.querySelectorAll('#log b').length") == 0)
    check("a comparison is not part of a conversation", browser.value("turns.length") == 0)
    if pictures:
        browser.screenshot(pictures / "comparison-1280.png", {"wide": 1280, "height": 860})
    type_text(browser, "x\n" * 25)
    press(browser, "Enter")
    check("too many lines stay in the field", wait_for(browser, "!document.getElementById('problem').hidden") and browser.value("document.getElementById('text').value.length") == 50)
    browser.show(390, 844)
    check("the table fits a phone", browser.value("document.documentElement.scrollWidth <= innerWidth"), browser.value("document.documentElement.scrollWidth"))


def make_encoder(program, folder):
    folder.mkdir()
    (folder / "encoder.json").write_text(json.dumps(ENCODER))
    subprocess.run([program, "init", "--config", folder / "encoder.json", "--tokenizer", "bytes", "--output-dir", folder / "model"], check=True, capture_output=True)
    return folder / "model"


def make_model(program, folder):
    """A model that tells stories, or one of its shape with random weights."""
    told = SHARED / "data" / "stories260K"
    if (told / "model.safetensors").exists():
        shutil.copytree(told, folder)
        return
    small = DATA / "stories260K"
    subprocess.run([program, "init", "--config", small / "config.json", "--tokenizer", small / "tokenizer.json", "--output-dir", folder], check=True, capture_output=True)
    if not (folder / "tokenizer_config.json").exists():
        shutil.copy(small / "tokenizer_config.json", folder)


def serve_and_check(program, folder, pictures):
    make_model(program, folder / "plain")
    shutil.copytree(folder / "plain", folder / "chat")
    described = folder / "chat" / "tokenizer_config.json"
    described.write_text(json.dumps({**json.loads(described.read_text()), "chat_template": TEMPLATE}))
    browser = Browser(find_browser(), str(folder / "profile"), reached=("127.0.0.1",))
    try:
        server = Server(program, folder / "plain", folder, "--memory", "64MiB")
        check_text(browser, server, pictures)
        check_hostile(browser)
        trouble = complaints(browser.events, server.url)
        check("no error, nothing asked for elsewhere", not trouble, trouble)
        log = server.stop()
        check("looking at the memory leaves no lines in the log", "/arena" not in log and "/v1/completions" in log)
        server = Server(program, folder / "chat", folder, "--memory", "64MiB", "--api-key", KEY)
        check_head(server.url)
        check_chat(browser, server, pictures)
        server.stop()
        server = Server(program, make_encoder(program, folder / "encoder"), folder, "--memory", "64MiB")
        seen = len(browser.events)
        check_comparison(browser, server, pictures)
        trouble = complaints(browser.events[seen:], server.url)
        check("no error there either", not trouble, trouble)
        server.stop()
    finally:
        browser.close()


def main():
    if len(sys.argv) not in (2, 3):
        sys.exit(__doc__)
    if not find_browser():
        print("skipped: no Chromium or Chrome on PATH\n0 passed, 0 failed, 1 skipped")
        return SKIPPED
    pictures = Path(sys.argv[2]) if len(sys.argv) == 3 else None
    with tempfile.TemporaryDirectory(prefix="headroom-page-", ignore_cleanup_errors=True) as folder:
        serve_and_check(os.path.abspath(sys.argv[1]), Path(folder), pictures)
    print(f"{passed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
