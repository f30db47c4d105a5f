"""Tables and captions as LaTeX, and tables as Markdown and CSV."""

import csv
import io
from collections.abc import Iterable, Sequence
from typing import Any

_LATEX = str.maketrans(
    {
        **{each: f"\\{each}" for each in "&%$#_{}"},
        "\\": r"\textbackslash{}",
        "~": r"\textasciitilde{}",
        "^": r"\textasciicircum{}",
        "±": r"$\pm$",
        "|": r"\textbar{}",
        "<": r"\textless{}",
        ">": r"\textgreater{}",
        "≤": r"$\leq$",
        "≥": r"$\geq$",
    }
)
# The first characters of a formula in a spreadsheet.
_STARTS = ("=", "+", "-", "@", "\t", "\r")


def latex(text: str) -> str:
    """Write a text so that LaTeX prints it as it is, in one paragraph."""
    return " ".join(text.split()).translate(_LATEX)


def latex_table(table: Sequence[Sequence[str]], left: int = 1) -> str:
    """Write rows after titles as a tabular of booktabs; `left` columns of words come first."""
    titles, *rows = (" & ".join(map(latex, row)) + r" \\" for row in table)
    columns = "l" * left + "r" * (len(table[0]) - left)
    head = [rf"\begin{{tabular}}{{{columns}}}", r"\toprule", titles, r"\midrule"]
    return "\n".join([*head, *rows, r"\bottomrule", r"\end{tabular}", ""])


def latex_figure(name: str, caption: str) -> str:
    """Write the environment of a figure in NAME.pdf."""
    lines = [
        r"\begin{figure}",
        rf"  \includegraphics[width=\linewidth]{{{name}.pdf}}",
        rf"  \caption{{{latex(caption)}}}",
        rf"  \label{{fig:{name}}}",
        r"\end{figure}",
        "",
    ]
    return "\n".join(lines)


def markdown_table(table: Sequence[Sequence[str]], left: int = 1) -> str:
    """Write rows after a row of titles as a table of Markdown."""
    titles, *rows = (f"| {' | '.join(map(_markdown, row))} |" for row in table)
    aligns = [*["---"] * left, *["---:"] * (len(table[0]) - left)]
    return "\n".join([titles, f"| {' | '.join(aligns)} |", *rows, ""])


def _markdown(cell: str) -> str:
    """Write a text so that a cell of Markdown shows it as it is, without HTML."""
    return " ".join(cell.split()).replace("|", r"\|").replace("<", "&lt;")


def csv_text(rows: Iterable[Iterable[Any]]) -> str:
    """Write rows as CSV, their titles first."""
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(rows)
    return text.getvalue()


def cells(row: Iterable[Any]) -> list[Any]:
    """Put an apostrophe before texts that a spreadsheet would compute; keep numbers."""
    return [f"'{cell}" if _is_formula(cell) else cell for cell in row]


def _is_formula(cell: object) -> bool:
    if not (isinstance(cell, str) and cell.startswith(_STARTS)):
        return False
    try:
        float(cell)
    except ValueError:
        return True
    return False
