"""Build the documentation site in build/site/html: `make site`.

The pages are the repository's own Markdown files, at the same relative paths, so that links between them work on the
site as they do in the repository. Zensical turns them into HTML, without network access. A warning, such as a dead link
or a heading that does not exist, is an error. So are a page that NAVIGATION does not list, and HTML that loads
something from another server.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
SITE = ROOT / "build" / "site"
HTML = SITE / "html"
STYLE = ROOT / "tools" / "site.css"
WORKER = ROOT / "tools" / "iframe-worker.js"  # replaces the one that Zensical loads from a server
LINK = re.compile(r"\]\(([^)\s#]+)[^)\s]*\)")
# Elements of HTML and rules of CSS that make a browser load an address of another server.
LOAD = re.compile(
    r"""<(?:script|img|iframe|source|audio|video|embed|object)\b[^>]*\s(?:src|data)=["']?((?:https?:)?//[^"'\s>]+)"""
    r"""|<link\b(?=[^>]*\brel=["']?(?:stylesheet|preload|preconnect|icon|manifest))[^>]*\shref=["']?((?:https?:)?//[^"'\s>]+)"""
    r"""|@import\s+(?:url\()?["']?((?:https?:)?//[^"')\s]+)|url\(["']?((?:https?:)?//[^"')\s]+)"""
)


# Sections by audience and their pages; the part of a title after a slash is a section inside. `*` stands for all pages
# of a folder that no other section lists.
NAVIGATION = {
    "Start": "README docs/index docs/what-run-does docs/which-tool-when docs/glossary",
    "PyTorch users": """
        docs/how-to/your-own-model docs/how-to/onnx docs/how-to/tflite docs/how-to/tinygrad docs/how-to/scikit-learn
        docs/how-to/integer-networks docs/how-to/int8 docs/how-to/find-what-is-slow docs/how-to/fit-into-little-ram
        docs/how-to/tune docs/how-to/studio docs/how-to/*""",
    "PyTorch users/Coming from": "docs/coming-from/*",
    "Firmware engineers": """
        docs/how-to/flash-and-monitor docs/how-to/use-the-c-code docs/how-to/use-an-sdk docs/how-to/your-own-application
        docs/how-to/debug docs/how-to/two-cores docs/how-to/use-an-npu docs/how-to/clusters docs/how-to/your-own-board
        docs/how-to/your-own-unit examples/pico4ml/README""",
    "Firmware engineers/Boards": "docs/boards/README docs/boards/*",
    "Teachers": """
        docs/teach/README examples/sine/README docs/teach/* examples/rps/README examples/mnist/README
        examples/words/README""",
    "Contributors": """
        CONTRIBUTING docs/how-it-works docs/reference/source-tree zoo/README docs/contributing/* docs/internals/*""",
    "Reference": """
        docs/reference/cli docs/reference/python docs/reference/json docs/reference/boards docs/reference/ops
        docs/arithmetic docs/benchmarks docs/troubleshooting CHANGELOG docs/reference/*""",
}


def pages() -> list[str]:
    """Return the Markdown files of the site, relative to the repository, without `.md`."""
    found = [*ROOT.glob("*.md"), *(p for d in ("docs", "examples", "zoo") for p in (ROOT / d).rglob("*.md"))]
    return sorted(path.relative_to(ROOT).with_suffix("").as_posix() for path in found)


def navigation(names: list[str]) -> list[Any]:
    """Return NAVIGATION as the generator reads it, with every page once."""
    listed = {word for words in NAVIGATION.values() for word in words.split()}
    missing = sorted(word for word in listed - set(names) if "*" not in word)
    sections: dict[str, list[Any]] = {}
    for title, words in NAVIGATION.items():
        found: list[Any] = []
        for word in words.split():
            rest = [name for name in names if name.startswith(word[:-1]) and name not in listed]
            found += [f"{name}.md" for name in (rest if word.endswith("*") else [word])]
        outer, _, inner = title.partition("/")
        sections.setdefault(outer, []).extend([{inner: found}] if inner else found)
        listed.update(path.removesuffix(".md") for path in found)
    if missing:
        sys.exit(f"site: NAVIGATION in tools/build_site.py lists {missing}, which do not exist")
    if unlisted := sorted(set(names) - listed):
        sys.exit(f"site: NAVIGATION in tools/build_site.py does not list {unlisted}")
    return [{title: found} for title, found in sections.items()]


def configuration(names: list[str]) -> dict[str, Any]:
    """Return the generator's configuration. With the plugin `offline` the search works on files, too."""
    features = ["navigation.tabs", "navigation.indexes", "navigation.top", "toc.follow", "content.code.copy"]
    schemes = (("(prefers-color-scheme: light)", "default", "dark"), ("(prefers-color-scheme: dark)", "slate", "light"))
    palette = [
        {"media": media, "scheme": scheme, "toggle": {"icon": "lucide/sun-moon", "name": f"Switch to {other}"}}
        for media, scheme, other in schemes
    ]
    return {
        "site_name": "Baretorch",
        "site_description": "Trained models on microcontrollers without an operating system.",
        "docs_dir": "pages",
        "site_dir": HTML.name,
        "use_directory_urls": False,
        "nav": navigation(names),
        "plugins": ["search", "offline"],
        "extra_css": [STYLE.name],
        "extra": {"generator": False, "polyfills": [WORKER.name]},
        "theme": {"font": False, "features": features, "palette": palette},
        "markdown_extensions": [
            {"toc": {"permalink": True}},
            *("attr_list", "sane_lists", "tables", "pymdownx.highlight", "pymdownx.superfences"),
        ],
    }


def stage(names: list[str]) -> None:
    """Copy all pages, and the files that they link or show, and write the configuration."""
    shutil.rmtree(SITE, ignore_errors=True)
    for page in (ROOT / f"{name}.md" for name in names):
        linked = ((page.parent / target).resolve() for target in LINK.findall(page.read_text("utf-8")))
        for path in (page, *(path for path in linked if path.is_file())):
            copy = SITE / "pages" / path.relative_to(ROOT)
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, copy)
    for file in (STYLE, WORKER):
        shutil.copy(file, SITE / "pages")
    (SITE / "mkdocs.yml").write_text(json.dumps(configuration(names), indent=1), "utf-8")  # JSON is YAML


def loads() -> Iterator[str]:
    """Yield what the site's files would load from other servers."""
    for path in sorted(HTML.rglob("*")):
        if path.suffix in (".html", ".css", ".svg"):
            for match in LOAD.finditer(path.read_text("utf-8")):
                yield f"{path.relative_to(HTML)} loads {next(filter(None, match.groups()))}"


def main() -> None:
    stage(pages())
    command = [Path(sys.executable).with_name("zensical"), "build", "--strict"]
    done = subprocess.run(command, cwd=SITE, check=False)
    if done.returncode:
        sys.exit(done.returncode)
    if found := list(loads()):
        sys.exit("site: pages must not load anything from other servers:\n" + "\n".join(found))
    print(f"site: {HTML.relative_to(ROOT)}/index.html, {sum(1 for _ in HTML.rglob('*.html'))} pages")


if __name__ == "__main__":
    main()
