"""Today's part of tests that take long: the date chooses one of DAYS; `make check` has all."""

from datetime import UTC, datetime

DAYS = 7
WEEK, DAY = divmod(datetime.now(tz=UTC).date().toordinal(), DAYS)
