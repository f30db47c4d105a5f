"""sch_dtm with the distribution's tc, in the guest: kernel-modules/tests/dtm, each case a test."""

import pytest
from dtm_cases import case_names, run_dtm_cases

from twoway.build import Guest

Results = dict[str, dict[str, str]]


@pytest.fixture(scope="session")
def results(guest: Guest, tmp_path_factory: pytest.TempPathFactory) -> Results:
    """What became of every case, in one boot."""
    return run_dtm_cases(guest, tmp_path_factory.mktemp("dtm") / "run")


@pytest.mark.parametrize("name", case_names())
def test_dtm(results: Results, name: str) -> None:
    """The case holds."""
    result = results[name]
    if "skipped" in result:
        pytest.skip(result["skipped"])
    assert "failed" not in result, result["failed"]


def test_every_attribute_is_tried_with_what_must_be_refused() -> None:
    """No option of the interface is left without a value that the kernel must refuse."""
    from dtm_in_guest import all_cases, attribute_names

    tried = {
        name
        for case in all_cases().values()
        if case.get("errno")
        for name in case.get("netlink", {})
    }
    assert set(attribute_names()) - tried == set()
