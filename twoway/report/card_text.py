"""Chosen rows of a card as text to hand on: LaTeX, Markdown, and plain ASCII for mail."""

import math
import textwrap
from collections.abc import Callable, Mapping, Sequence
from itertools import groupby

from capture_analysis.pages.page_template import number

from twoway.errors import UsageError
from twoway.report.card import Card, Cell, Line
from twoway.report.card_comparing import compare_cards
from twoway.report.paper_text import latex, latex_table, markdown_table

# The width of a line of mail, as on the kernel's lists.
_MAIL_COLUMNS = 72


def card_text(card: Card, form: str, rows: Sequence[str]) -> str:
    """Write rows of a card in a form of FORMS.

    Rows are those that have one of the words in their situation or metric; all without words.

    Raises: UsageError if a word chooses no row.
    """
    titles = {f"{line.place(card.suite)}: {line.metric}": line for line in card.lines}
    for word in rows:
        if not any(word in title for title in titles):
            situations = dict.fromkeys(line.situation(card.suite) for line in card.lines)
            raise UsageError(
                f"--rows: {word:.80}: no such row", f"there are {', '.join(situations)}"
            )
    chosen = [
        line
        for title, line in titles.items()
        if line.metric and (not rows or any(word in title for word in rows))
    ]
    return FORMS[form](card, chosen)


def _source(card: Card) -> list[str]:
    kernels = ", ".join(card.kernels)
    seeds = f" --seeds {card.repetitions}" if card.repetitions > 1 else ""
    return [
        f"{card.title}.",
        f"Suite {card.suite} {card.suite_sha256[:12]}, Linux {kernels}; {card.runs_in_words}.",
        f"twoway score {' '.join(card.columns)} --suite {card.suite}{seeds}",
    ]


def _show_cell(cell: Cell) -> str:
    """Write a cell's number, with its range over the seeds, and "?" if it is doubted."""
    if cell.value is None:
        return "-"
    if len(cell.runs) > 1 and cell.least is not None and cell.most is not None:
        spread = f" ({number(cell.least)} to {number(cell.most)})"
    else:
        spread = ""
    return f"{number(cell.value)}{spread}{'?' if cell.doubt else ''}"


def _table(card: Card, lines: Sequence[Line]) -> list[list[str]]:
    rows = [["situation", "metric", "better", *card.columns]]
    for line in lines:
        where = line.place(card.suite)
        cells = [_show_cell(line.cells[column]) for column in card.columns]
        rows.append([where, _metric(line), line.aim, *cells])
    return rows


def _metric(line: Line) -> str:
    return line.metric + (f", {line.unit}" if line.unit != "1" else "")


def _latex(card: Card, lines: Sequence[Line]) -> str:
    said = "".join(f"% {latex(each)}\n" for each in _source(card))
    return said + latex_table(_table(card, lines), 3)


def _markdown(card: Card, lines: Sequence[Line]) -> str:
    title, source, command = _source(card)
    return f"{markdown_table(_table(card, lines), 3)}\n{title} {source} `{command}`\n"


def _mail(card: Card, lines: Sequence[Line]) -> str:
    text = [*_source(card)]
    for where, of_place in groupby(lines, lambda line: (line.situation(card.suite), line.at)):
        text += ["", " ".join(where).strip()]
        for line in of_place:
            text.append(f"  {_metric(line)} ({line.aim} is better)")
            # NUL keeps a control and its number on one line.
            cells = (f"{c}\0{_show_cell(line.cells[c])}" for c in card.columns)
            text.append(f"    {'; '.join(cells)}")
    return _folded(text)


def _folded(text: Sequence[str], indent: str = "    ") -> str:
    """Fold lines for mail; a NUL becomes a space at which no line ends."""
    plain = (each.encode("ascii", "replace").decode() for each in text)
    wrapped = (
        textwrap.fill(each, _MAIL_COLUMNS, subsequent_indent=indent, break_on_hyphens=False)
        for each in plain
    )
    return "\n".join(wrapped).replace("\0", " ") + "\n"


def change_mail(before: Card, after: Card, title: str, last: Sequence[str]) -> str:
    """Write a mail on what a patch changes: the cells that differ beyond chance.

    `last` are lines for the end, such as the command that repeats the runs.
    """
    found = compare_cards(before, after)
    cells = [each for each in found.cells if each.beyond_chance]
    was, now = ({(x.row, x.at, x.metric): x for x in card.lines} for card in (before, after))
    runs, chance = after.repetitions, math.comb(2 * after.repetitions, after.repetitions) // 2
    kernels = f"Linux {', '.join(before.kernels)} before, {', '.join(after.kernels)} after"
    counts = (
        f"{len(cells)} of {len(found.cells) + found.common_cells} cells change beyond chance, "
        f"{len(found.cells) - len(cells)} more within it."
    )
    means = (
        f"A cell has the median of {runs} runs with other seeds, the least and the most. It is "
        "listed if no run after the change is in the range of those before; of cells whose runs "
        f"differ by their seeds alone one in {chance} would be."
    )
    alone = "A cell is of one run, so that chance may decide it; --seeds 5 excludes chance."
    text = [
        f"On: {title}",
        "",
        f"Suite {after.suite}: {after.title}. {kernels}.",
        counts,
        means if runs > 1 else alone,
    ]
    for (row, at), group in groupby(cells, lambda each: (each.row, each.at)):
        text += ["", f"{row.removeprefix(f'{after.suite}-')} {at}".strip()]
        for metric, of_metric in groupby(group, lambda each: each.metric):
            place = row, at, metric
            text.append(f"  {_metric(now[place])} ({now[place].aim} is better)")
            for each in of_metric:
                values = [_show_cell(cards[place].cells[each.control]) for cards in (was, now)]
                verdict = {"first": ", worse", "second": ", better", None: ""}[each.better]
                shown = f"{each.control}: {' -> '.join(values)}{verdict}"
                text.append(f"    {shown}")
    return _folded([*text, "", *last], indent="")


FORMS: Mapping[str, Callable[[Card, Sequence[Line]], str]] = {
    "latex": _latex,
    "markdown": _markdown,
    "mail": _mail,
}
