"""Renders HTML reports in a real browser: nothing runs, names stay text, light and dark and paper can be read.

Usage: python tests/browser.py target/debug/vramscope [FOLDER_FOR_PICTURES]

Needs Chromium; html5lib (valid HTML) and pillow (what the pictures show) from PyPI are used when they are there. What
is missing is skipped and named.
"""

import html.parser
import pathlib
import pickle
import shutil
import subprocess
import sys
import tempfile

REPOSITORY = pathlib.Path(__file__).parent.parent
BROWSERS = ["chromium-headless-shell", "chromium", "chromium-browser", "google-chrome"]
# Names as a hostile program could give its functions. Each would change the title if it ran.
HOSTILE = [
    "<script>document.title = 'ran'</script>",
    "<img src=x onerror=\"document.title='ran'\">",
    "](javascript:document.title='ran')",
    "</pre></td></table><svg onload=\"document.title='ran'\">",
    "<style>*{display:none}</style>",
]
MIB = 1 << 20


def hostile_snapshot(path):
    start_us = 1_796_104_323_000_000
    events = [
        {
            "action": "alloc",
            "addr": 0x7F0000000000 + number * 2 * MIB,
            "size": 2 * MIB,
            "stream": 0,
            "time_us": start_us + number * 1000,
            "frames": [
                {"filename": f"/home/ann/{name}/train.py", "line": 7, "name": name},
                {"filename": "/home/ann/train.py", "line": 9, "name": "main"},
            ],
        }
        for number, name in enumerate(HOSTILE * 4)
    ]
    path.write_bytes(pickle.dumps({"segments": [], "device_traces": [events]}))


def browse(browser, arguments, page):
    with tempfile.TemporaryDirectory() as profile:
        command = [
            browser,
            *([] if "shell" in browser else ["--headless"]),
            "--no-sandbox",
            "--disable-gpu",
            "--hide-scrollbars",
            # No name is looked up, so nothing is loaded from anywhere.
            "--host-resolver-rules=MAP * ~NOTFOUND",
            f"--user-data-dir={profile}",
            *arguments,
            page.as_uri(),
        ]
        return subprocess.run(command, check=True, capture_output=True, text=True, timeout=120)


def check_html(page):
    try:
        import html5lib
    except ImportError:
        print("skipped: html5lib is not installed, so HTML is not validated")
        return
    parser = html5lib.HTMLParser(strict=True)
    parser.parse(page.read_text(encoding="utf-8"))
    print(f"valid HTML: {page.name}")


class Dom(html.parser.HTMLParser):
    """What a page holds after the browser is done with it."""

    def __init__(self, text):
        super().__init__()
        self.tags, self.attributes, self.text = set(), [], ""
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.tags.add(tag)
        self.attributes += [(name, value or "") for name, value in attrs]

    def handle_data(self, data):
        self.text += data


def check_dom(browser, page, texts):
    dom = Dom(browse(browser, ["--dump-dom"], page).stdout)
    assert "title" in dom.tags and "ran" not in dom.text.split(), "something ran"
    active = dom.tags & {"script", "img", "iframe", "object", "embed", "link", "base", "form", "a"}
    assert not active, f"a name became an element: {active}"
    for name, value in dom.attributes:
        assert not name.startswith("on") and "javascript:" not in value or name == "title", f"{name}={value}"
    for text in texts:
        assert text in dom.text, f"{text} is not shown as it stands"
    print(f"nothing ran, names are text: {page.name}")


def brightness(picture):
    from PIL import Image

    image = Image.open(picture).convert("L")
    return sum(image.histogram()[value] * value for value in range(256)) / (image.width * image.height)


def check_pictures(browser, page, folder):
    shots = {}
    for scheme, setting in [("light", 1), ("dark", 0)]:
        shot = folder / f"{page.stem}_{scheme}.png"
        size = ["--window-size=1200,2400", f"--blink-settings=preferredColorScheme={setting}"]
        browse(browser, [*size, f"--screenshot={shot}"], page)
        shots[scheme] = shot
    paper = folder / f"{page.stem}.pdf"
    browse(browser, ["--no-pdf-header-footer", f"--print-to-pdf={paper}"], page)
    assert paper.read_bytes().startswith(b"%PDF")
    try:
        light, dark = brightness(shots["light"]), brightness(shots["dark"])
    except ImportError:
        print("skipped: pillow is not installed, so pictures are not looked at")
        return
    assert light > 200 and dark < 70, f"light is {light:.0f} bright, dark {dark:.0f}"
    print(f"light, dark and paper: {page.name}")


def main(program, pictures=None):
    browser = next(filter(None, map(shutil.which, BROWSERS)), None)
    if browser is None:
        print("skipped: no Chromium is installed")
        return
    with tempfile.TemporaryDirectory() as temporary:
        folder = pathlib.Path(temporary)
        pictures = pathlib.Path(pictures) if pictures else folder
        pictures.mkdir(parents=True, exist_ok=True)
        hostile = folder / "hostile.pickle"
        hostile_snapshot(hostile)
        for name, source, texts in [
            ("leak", REPOSITORY / "samples/val_without_no_grad", ["record.py:63 validate"]),
            ("healthy", REPOSITORY / "samples/healthy", []),
            ("hostile", hostile, HOSTILE),
        ]:
            page = pictures / f"{name}.html"
            subprocess.run([program, "report", source, "-o", page], check=True)
            check_html(page)
            check_dom(browser, page, texts)
            check_pictures(browser, page, pictures)


if __name__ == "__main__":
    main(*sys.argv[1:])
