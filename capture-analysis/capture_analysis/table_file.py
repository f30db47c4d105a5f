"""Write Arrow tables to a Parquet or CSV file; a failure leaves no file."""

from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet

from capture_analysis.complete_file import written_whole
from capture_analysis.errors import AnalysisError

_WRITERS: dict[str, Callable[..., Any]] = {
    ".parquet": lambda path, schema: pyarrow.parquet.ParquetWriter(
        path, schema, compression="zstd"
    ),
    ".csv": pyarrow.csv.CSVWriter,
}


class TableFile:
    """A file of tables of one schema; it gets its name when complete.

    Args:
        target: a name that ends in its format: .parquet or .csv.
        schema: the schema of every table.

    Attributes:
        rows: number of rows written so far.

    Raises: AnalysisError if the name has another ending; on leaving, if the disk refuses.
    """

    def __init__(self, target: Path, schema: pa.Schema) -> None:
        if target.suffix not in _WRITERS:
            raise AnalysisError(
                f'{target}: the name must end in {" or ".join(_WRITERS)}, got "{target.suffix}"'
            )
        self.rows = 0
        self._target, self._schema = target, schema
        self._writer: Any = None

    def __enter__(self) -> Self:
        with ExitStack() as stack:
            aside = stack.enter_context(written_whole(self._target))
            writer = _WRITERS[self._target.suffix](str(aside), self._schema)
            self._writer = stack.enter_context(writer)
            self._open = stack.pop_all()
        return self

    def write(self, table: pa.Table) -> None:
        """Append the rows of a table."""
        self._writer.write_table(table)
        self.rows += table.num_rows

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._open.__exit__(kind, error, traceback)
