"""Write layers and packages into ``architecture.md`` and ``CONTRIBUTING.md``; ``--check`` compares.

The order of layers is written once, as import-linter's contract in ``pyproject.toml``. The purpose
of a package is written once, as its docstring.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from pathlib import Path

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ROOT = Path(__file__).resolve().parent.parent
SOURCE = ROOT / "src" / "puredelta"
PAGES = (ROOT / "docs" / "architecture.md", ROOT / "CONTRIBUTING.md")
_BEGIN, _END = "<!-- begin {} -->\n", "<!-- end {} -->\n"


def main() -> int:
    lagging = [page for page in PAGES if renewed(page) != page.read_text()]
    if "--check" in sys.argv[1:]:
        return 1 if lagging else 0
    for page in lagging:
        page.write_text(renewed(page))
    return 0


def renewed(page: Path) -> str:
    """The page with regenerated text between its marks."""
    text = page.read_text()
    for name, lines in (("layers", [layers_line()]), ("rooms", list(rooms()))):
        begin, end = _BEGIN.format(name), _END.format(name)
        if begin in text:
            before, _, rest = text.partition(begin)
            _, _, after = rest.partition(end)
            text = before + begin + "".join(f"{line}\n" for line in lines) + end + after
    return text


def layers() -> list[str]:
    """The layers from the top down, as the contract has them."""
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]
    (contract,) = (c for c in contracts["contracts"] if c["name"] == "layers point downward")
    return [name.strip() for row in contract["layers"] for name in row.split("|")]


def layers_line() -> str:
    return " > ".join(f"`{name}`" for name in layers()) + "."


def rooms() -> Iterator[str]:
    """One line per layer and package: its place in the tree and the sentence of its docstring."""
    yield "```"
    for name in layers():
        package = SOURCE / name
        if package.is_dir():
            yield from _tree(package, 0)
        else:
            yield f"{name + '.py':<24} {_sentence(package.with_suffix('.py'))}"
    yield "```"


def _tree(package: Path, depth: int) -> Iterator[str]:
    place = "  " * depth + package.name + "/"
    yield f"{place:<24} {_sentence(package / '__init__.py')}"
    for room in sorted(p.parent for p in package.glob("*/__init__.py")):
        yield from _tree(room, depth + 1)


def _sentence(module: Path) -> str:
    docstring = ast.get_docstring(ast.parse(module.read_text())) or ""
    return docstring.split("\n\n")[0].replace("\n", " ")


if __name__ == "__main__":
    sys.exit(main())
