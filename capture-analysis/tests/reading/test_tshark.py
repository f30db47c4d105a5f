"""Every packet of a corpus of captures compared with tshark's fields.

Reasoned differences from tshark are listed: tshark_fields.DEVIATIONS,
tshark_fields.RTT_DEVIATIONS and NOT_ANALYSED, and `why` of a Specimen for which tshark reads
another capture. Any other difference fails, and so does a deviation that nothing shows.
"""

import corpus
import corpus_tools
import numpy as np
import pytest
import tshark_fields
import tshark_oracle
from capture_analysis.columns import concatenate, empty_columns
from capture_analysis.reading.capture import Capture
from corpus import Specimen
from reference.parser import PlainParser
from tshark_oracle import Compared

pytestmark = pytest.mark.slow

LEAST = 200


@pytest.fixture(scope="module")
def specimens(tmp_path_factory: pytest.TempPathFactory) -> list[Specimen]:
    """Return the corpus."""
    folder = tmp_path_factory.mktemp("corpus")
    plain = corpus.build(folder)
    named = {each.name: each for each in plain}
    return plain + corpus_tools.build(folder, named) + corpus_tools.build_real(folder)


@pytest.fixture(scope="module")
def cases(specimens: list[Specimen]) -> list[Compared]:
    """Read the whole corpus; return each capture with tshark's answers."""
    return tshark_oracle.cases(specimens)


def test_corpus_is_large(specimens: list[Specimen]) -> None:
    """The corpus has at least 200 captures with different names and contents."""
    assert len({each.name for each in specimens}) == len(specimens)
    assert len({each.path.read_bytes() for each in specimens}) >= LEAST


def test_frames_are_counted_as_tshark_counts_them(cases: list[Compared]) -> None:
    """Each frame has the kind that tshark's fields imply: packet, fragment, not TCP, not IP."""
    found = [text for case in cases for text in tshark_fields.count_differences(case)]
    assert not found, "\n".join(found)


def test_packets_are_as_tshark_says(cases: list[Compared]) -> None:
    """Every column of every packet equals tshark's fields, and all listed deviations occur."""
    seen: set[str] = set()
    found = [text for case in cases for text in tshark_fields.field_differences(case, seen)]
    assert not found, "\n".join(found)
    assert seen == {each.reason for each in tshark_fields.DEVIATIONS}


def test_ends_and_marks_are_as_tshark_says(cases: list[Compared]) -> None:
    """Every packet has tshark's ends and options."""
    found = [text for case in cases for text in tshark_fields.end_differences(case)]
    assert not found, "\n".join(found)


def test_reference_parser_agrees(cases: list[Compared], monkeypatch: pytest.MonkeyPatch) -> None:
    """Both parsers have the same packets, connections and counts for each capture."""
    monkeypatch.setattr("capture_analysis.reading.capture.Parser", PlainParser)
    for case in cases:
        capture = Capture(case.specimen.path)
        parts = [part.widen() for part in capture.chunks()]
        packets = concatenate([empty_columns(0).widen(), *parts])
        for name, column in vars(packets).items():
            assert np.array_equal(column, vars(case.packets)[name]), f"{case.name}: {name}"
        assert capture.counts == case.counts, case.name
        assert np.array_equal(capture.flows.rows, case.flows.rows), case.name


def test_sequence_numbers_are_as_tshark_says(cases: list[Compared]) -> None:
    """Unwrapped sequence and acknowledgement numbers equal tshark's relative ones, mod 2^32."""
    known = [case for case in cases if tshark_fields.analysed(case)]
    found = [text for case in known for text in tshark_fields.sequence_differences(case)]
    assert not found, "\n".join(found)


def test_round_trip_times_are_as_tshark_says(cases: list[Compared]) -> None:
    """Round trips equal tshark's to the nanosecond, and all listed deviations occur."""
    seen: set[str] = set()
    known = [case for case in cases if tshark_fields.analysed(case)]
    found = [text for case in known for text in tshark_fields.rtt_differences(case, seen)]
    assert not found, "\n".join(found)
    assert seen == {each.reason for each in tshark_fields.RTT_DEVIATIONS}
