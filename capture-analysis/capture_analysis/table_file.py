"""Arrow tables written to a Parquet or CSV file, whole or not at all."""

import os
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet

from capture_analysis.errors import AnalysisError

_WRITERS: dict[str, Callable[..., Any]] = {
    ".parquet": lambda path, schema: pyarrow.parquet.ParquetWriter(
        path, schema, compression="zstd"
    ),
    ".csv": pyarrow.csv.CSVWriter,
}


class TableFile:
    """A file of tables of one schema; it appears under its name when all is well.

    Args:
        target: the name's end says the format: .parquet or .csv.
        schema: of every table.

    Attributes:
        rows: how many were written.

    Raises: AnalysisError if the name ends otherwise; on leaving, if the disk refuses.
    """

    def __init__(self, target: Path, schema: pa.Schema) -> None:
        if target.suffix not in _WRITERS:
            raise AnalysisError(
                f'{target}: the name must end in {" or ".join(_WRITERS)}, got "{target.suffix}"'
            )
        self.rows = 0
        self._target, self._schema = target, schema
        self._partial = target.with_name(f".{target.name}.partial")
        self._writer: Any = None

    def __enter__(self) -> Self:
        try:
            self._writer = _WRITERS[self._target.suffix](str(self._partial), self._schema)
        except OSError as error:
            raise self._refused(error) from error
        return self

    def write(self, table: pa.Table) -> None:
        """Write some more rows."""
        self._writer.write_table(table)
        self.rows += table.num_rows

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        try:
            self._writer.close()
            if error is None:
                self._partial.replace(self._target)
        except OSError as refused:
            raise self._refused(refused) from refused
        finally:
            self._partial.unlink(missing_ok=True)
        if isinstance(error, OSError):
            raise self._refused(error) from error

    def _refused(self, error: OSError) -> AnalysisError:
        return AnalysisError(f"{self._target}: cannot be written: {os.strerror(error.errno or 0)}")
