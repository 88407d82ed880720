"""Checks a pack description (PDSC) by the rules that Open-CMSIS-Pack documents in its PACK.xsd, as far as we write such
files: elements and attributes that are unknown, missing or malformed, and files that are not there."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from xml.etree import ElementTree

NAME = r"[\-_A-Za-z0-9]+"
VERSION = r"\d+\.\d+\.\d+((-|\+)[0-9A-Za-z.+\-]+)?"
IDENTITY = r"[\-_A-Za-z0-9 /.&]{2,64}"
CATEGORIES = "doc|header|include|library|object|source|sourceC|sourceCpp|sourceAsm|linkerScript|utility|image|other"
XSI = "{http://www.w3.org/2001/XMLSchema-instance}noNamespaceSchemaLocation"


@dataclass(frozen=True)
class Element:
    """The allowed and required contents of an XML element. `many` children may occur more than once."""

    needs: str = ""
    may: str = ""
    many: str = ""
    attributes: Mapping[str, str] = field(default_factory=dict)  # those it needs, and a pattern of their values
    others: Mapping[str, str] = field(default_factory=dict)
    text: str | None = None  # a pattern; None: no text


PATTERNS: dict[str, Element] = {
    "package": Element(
        "vendor name description url releases",
        "license requirements keywords conditions components",
        attributes={"schemaVersion": r"\d+\.\d+\.\d+"},
        others={XSI: ".*"},
    ),
    "vendor": Element(text=NAME),
    "name": Element(text=NAME),
    "description": Element(text=r"(?s).{1,256}"),
    "url": Element(text=r"(https://.+/)?"),
    "license": Element(text=r"[^\\]+"),
    "releases": Element("release", many="release"),
    "release": Element(attributes={"version": VERSION}, others={"date": r"\d{4}-\d\d-\d\d"}, text=r"(?s).+"),
    "keywords": Element("keyword", many="keyword"),
    "keyword": Element(text=".+"),
    "requirements": Element(may="packages languages compilers"),
    "languages": Element("language", many="language"),
    "language": Element(attributes={"name": r"C|C\+\+", "version": r"\d+"}),
    "components": Element("component", many="component"),
    "component": Element(
        "description files",
        attributes={"Cclass": IDENTITY, "Cgroup": IDENTITY, "Cversion": VERSION},
        others={"Csub": r"[\-_A-Za-z0-9 /.&]{1,128}", "Cvendor": NAME, "condition": ".+"},
    ),
    "files": Element("file", many="file"),
    "file": Element(attributes={"category": CATEGORIES, "name": r"[^\\]+"}, others={"condition": ".+"}),
}


def faults(name: str, text: str, files: Mapping[str, object]) -> list[str]:
    """Return the faults of the description called `name` in a pack of these files."""
    try:
        root = ElementTree.fromstring(text)
    except ElementTree.ParseError as error:
        return [str(error)]
    if root.tag != "package":
        return [f"the root is {root.tag}"]
    return [*_walk(root), *_names(name, root), *_files(root, files)]


def _walk(element: ElementTree.Element) -> Iterator[str]:
    known = PATTERNS.get(element.tag)
    if known is None:
        yield f"unknown element {element.tag}"
        return
    for key, value in element.attrib.items():
        pattern = {**known.attributes, **known.others}.get(key)
        if pattern is None:
            yield f"{element.tag} has no attribute {key}"
        elif not re.fullmatch(pattern, value):
            yield f"{element.tag}: {key} is {value!r}"
    yield from (f"{element.tag} lacks the attribute {key}" for key in known.attributes if key not in element.attrib)
    said = (element.text or "").strip()
    if not re.fullmatch(known.text or "", said):
        yield f"{element.tag} says {said!r}"
    tags = [child.tag for child in element]
    yield from (f"{element.tag} lacks {tag}" for tag in known.needs.split() if tag not in tags)
    for child in element:
        if child.tag not in f"{known.needs} {known.may} {known.many}".split():
            yield f"{child.tag} does not belong in {element.tag}"
        elif tags.count(child.tag) > 1 and child.tag not in known.many.split():
            yield f"{element.tag} has {child.tag} twice"
        yield from _walk(child)


def _names(name: str, root: ElementTree.Element) -> Iterator[str]:
    expected = f"{root.findtext('vendor')}.{root.findtext('name')}.pdsc"
    if name != expected:
        yield f"the file is called {name}, not {expected}"
    versions = [[int(n) for n in r.get("version", "0").split("-")[0].split(".")] for r in root.iter("release")]
    if versions != sorted(versions, reverse=True):
        yield "the newest release is not the first"


def _files(root: ElementTree.Element, files: Mapping[str, object]) -> Iterator[str]:
    for element in root.iter("file"):
        name = element.get("name", "")
        if name.startswith("/") or ".." in name.split("/"):
            yield f"{name} leads out of the pack"
        if element.get("category") == "include":
            if not name.endswith("/") or not any(f.startswith(name) for f in files):
                yield f"{name} is no folder of the pack"
        elif name not in files:
            yield f"{name} is not in the pack"
    license_ = root.findtext("license")
    if license_ is not None and license_ not in files:
        yield f"{license_} is not in the pack"
