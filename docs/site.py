"""A hook of mkdocs: pages from outside docs/, generated pages, and links that fit the site."""

import json
import os
import posixpath
import re
import subprocess
import sys
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path
from typing import Any

from capture_analysis.concepts import Concept, captures_for, concepts
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page
from notebook_outputs import with_outputs
from site_pages import ELEMENTS, card_tables, cards, element_page

from twoway.commands.options import SCHEMAS
from twoway.paths import PACKAGE

ROOT = Path(__file__).resolve().parents[1]
# Pages of the site that are files of the repository outside docs/.
ELSEWHERE = {
    "guides/captures.md": "capture-analysis/docs/tutorial.md",
    "guides/wireshark.md": "capture-analysis/docs/wireshark.md",
    "guides/kernel-modules.md": "kernel-modules/README.md",
    "concepts/backends.md": "vm/README.md",
    "concepts/limits.md": "capture-analysis/docs/limits.md",
    "concepts/how-true.md": "capture-analysis/docs/how-true.md",
    "reference/capture-formats.md": "capture-analysis/README.md",
    "contributing.md": "CONTRIBUTING.md",
    "changelog.md": "CHANGELOG.md",
}
_IN_SITE = {there: here for here, there in ELSEWHERE.items()} | {"README.md": "index.md"}
_LINK = re.compile(r"\[([^\]]*)\]\((?![a-z]+:|#)([^)#\s]+)(#[^)\s]*)?\)")
_OF_CAPTURES = (
    "As `capture-analysis metrics` (one capture) and `capture-analysis match` (two captures of a "
    "path) print them, as JSON; `capture-analysis metrics --list` lists the names."
)
# The line of docs/metrics.md that the site replaces by the table.
_TABLE = "<!-- the table of `twoway metrics` -->"
# The line of docs/catalogue.md that the site replaces by the cards.
_CARDS = "<!-- the cards of the experiments -->"
# The line of a page of docs/suites that the site replaces by the suite's card.
_CARD = "<!-- the card -->"
# The line of docs/index.md that the site replaces by links.
_REFERENCE = "Reference, in the site that `make docs` builds"
_REFERENCES = (
    "Reference: [experiments](reference/experiment.md), [link profiles](reference/profile.md), "
    "[commands](reference/twoway.md), [metrics](metrics.md)"
)
# The parts of a schema to describe first, because every reader looks for them.
_FIRST_PARTS = {"profile": ("Direction",)}
_COMMAND = re.compile(r"^ {2,4}([a-z]+)(?: {2,}\S.*)?$", re.MULTILINE)


def on_config(config: MkDocsConfig) -> None:
    """Add sections with all decisions and all link elements; their headings are the titles."""
    elements = [f"reference/link-{name.replace('_', '-')}.md" for name in ELEMENTS]
    for section in config.nav or ():
        section.get("Reference", []).append({"Elements of a link": elements})
    pages = sorted(f"decisions/{p.name}" for p in (ROOT / "docs/decisions").glob("[a-z]*.md"))
    config.nav = [*(config.nav or ()), {"Decisions": ["decisions/README.md", *pages]}]


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages that are not files of docs/, and the outputs of notebooks.

    With SHORT in the environment notebooks stay as they are: tests compare their outputs.
    """
    for here, there in ELSEWHERE.items():
        files.append(File.generated(config, here, abs_src_path=str(ROOT / there)))
    texts = {
        **{name: schema_page(title, name) for name, title in SCHEMAS.items()},
        "twoway": help_page("twoway"),
        "capture-analysis": help_page("capture-analysis"),
        "capture-metrics": capture_metrics_page(concepts()),
    }
    profile = json.loads(_output("twoway", "schema", "profile"))
    for name in ELEMENTS:
        texts[f"link-{name.replace('_', '-')}"] = element_page(name, profile, _fields)
    for name, text in texts.items():
        files.append(File.generated(config, f"reference/{name}.md", content=text))
    for path in (PACKAGE / "schemas").glob("*.json"):
        files.append(File.generated(config, f"schemas/{path.name}", abs_src_path=str(path)))
    notebooks = [each for each in files if each.src_uri.endswith(".ipynb")]
    for file in [] if os.environ.get("SHORT") else notebooks:
        files.remove(file)
        ran = with_outputs(ROOT / "docs" / file.src_uri)
        files.append(File.generated(config, file.src_uri, content=ran))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Turn links between files of the repository into links between pages of the site.

    A link to a file that is not a page becomes plain text. A link to a missing file stays: mkdocs
    fails.
    """
    del config
    here = page.file.src_uri
    folder = posixpath.dirname(ELSEWHERE.get(here, f"docs/{here}"))

    def fitted(found: re.Match[str]) -> str:
        text, target, anchor = found[1], found[2], found[3] or ""
        path = posixpath.normpath(posixpath.join(folder, target))
        in_site = _IN_SITE.get(path, path.removeprefix("docs/"))
        if files.get_file_from_path(in_site):
            return f"[{text}]({posixpath.relpath(in_site, posixpath.dirname(here))}{anchor})"
        return text if (ROOT / path).exists() else found[0]

    markdown = _LINK.sub(fitted, markdown.replace(_TABLE, run_metrics_table()))
    if posixpath.dirname(here) == "suites":
        markdown = markdown.replace(_CARD, card_tables(Path(here).stem))
    if here == "catalogue.md":
        listed = json.loads(_output("twoway", "list", "--json"))
        those = [each for each in listed if not each["folder"].startswith("suites/")]
        markdown = markdown.replace(_CARDS, cards(those))
    return markdown.replace(_REFERENCE, _REFERENCES) if here == "index.md" else markdown


def schema_page(title: str, name: str) -> str:
    """Describe every field of a file format, from its JSON Schema."""
    schema = json.loads(_output("twoway", "schema", name))
    lines = [f"# {title}", "", f"From `twoway schema {name}`. Unknown fields are errors.", ""]
    lines += _fields(schema)
    parts, first = schema.get("$defs", {}), _FIRST_PARTS.get(name, ())
    for part in [*first, *(part for part in parts if part not in first)]:
        lines += [f"## {part}", "", *_fields(parts[part])]
    return "\n".join(lines)


def _fields(schema: Mapping[str, Any]) -> Iterable[str]:
    required = schema.get("required", ())
    yield from (schema.get("description", ""), "")
    yield from ("| field | values | default | meaning |", "|---|---|---|---|")
    for name, field in schema.get("properties", {}).items():
        default = field.get("default")
        plain = default is not None and not isinstance(default, dict | list)
        shown = "*required*" if name in required else f"`{json.dumps(default)}`" if plain else ""
        meaning = " ".join(field.get("description", "").split()).replace("|", "\\|")
        yield f"| `{name}` | {_values(field)} | {shown} | {meaning} |"
    yield ""


def _values(field: Mapping[str, Any]) -> str:
    """Describe a field's type in a few words."""
    if "$ref" in field:
        part = field["$ref"].rpartition("/")[2]
        return f"[{part}](#{part.lower()})"
    if "const" in field or "enum" in field:
        return ", ".join(f"`{value}`" for value in field.get("enum", [field.get("const")]))
    if alternatives := field.get("anyOf", field.get("oneOf")):
        return " or ".join(dict.fromkeys(map(_values, alternatives)))
    kind = str(field.get("type", "any"))
    bounds = {"minimum": "≥", "exclusiveMinimum": ">", "maximum": "≤", "exclusiveMaximum": "<"}
    if kind == "array":
        return f"list of {_values(field.get('items', {}))}"
    named = [field.get("additionalProperties"), *field.get("patternProperties", {}).values()]
    if kind == "object" and (each := next((n for n in named if isinstance(n, Mapping)), None)):
        return f"names, each with {_values(each)}"
    return " ".join([kind, *(f"{sign} {field[k]:,}" for k, sign in bounds.items() if k in field)])


def help_page(program: str) -> str:
    """Show the help of a program and of each of its commands."""
    names = [
        program,
        *(f"{program} {name}" for name in _COMMAND.findall(_output(program, "--help"))),
    ]
    texts = ((name, _output(*name.split(), "--help")) for name in names)
    return "\n".join(f"## {name}\n\n```text\n{text}\n```\n" for name, text in texts)[1:]


def _output(*words: str) -> str:
    program = Path(sys.executable).with_name(words[0])
    plain = os.environ | {"COLUMNS": "82", "NO_COLOR": "1", "HOME": "/home/you"}
    return subprocess.check_output([str(program), *words[1:]], env=plain, text=True).rstrip()


def capture_metrics_page(metrics: Iterable[Concept]) -> str:
    """Describe each metric of captures: its texts, its definitions."""
    lines = ["# Metrics of captures", "", _OF_CAPTURES, ""]
    for concept in metrics:
        lines += [f"## {concept.title}", "", concept.text, ""]
        lines += ["| name | unit | captures | meaning | source |", "|---|---|---|---|---|"]
        lines += [
            f"| `{each.name}` | {each.unit} | {captures_for(each)} | {each.meaning} "
            f"| {each.source} |"
            for each in concept.definitions
        ]
        lines += [""]
    return "\n".join(lines)


@cache
def run_metrics_table() -> str:
    """Make the table of a run's metrics."""
    lines = ["| metric | definition | unit | source |", "|---|---|---|---|"]
    lines += [
        f"| `{each['name']}` | {each['meaning']} | {each['unit']} | {each['source']} |"
        for each in json.loads(_output("twoway", "metrics", "--json"))
    ]
    return "\n".join(lines)
