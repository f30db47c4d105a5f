"""What tests of several files are given."""

import pytest
from capture_analysis import native
from capture_analysis.tracking_fallback import PythonTracker
from capture_analysis.tracking_native import NativeTracker
from conversation import NewTracker


@pytest.fixture(params=[PythonTracker, NativeTracker])
def new_tracker(request: pytest.FixtureRequest) -> NewTracker:
    """Each tracker there is."""
    made: NewTracker = request.param
    if made is NativeTracker and not native.available():
        pytest.skip("the library is not built (pip install, with a C compiler)")
    return made
