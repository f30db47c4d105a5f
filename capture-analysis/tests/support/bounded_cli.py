"""Run commands in little memory, all in one process; test_hostile.py runs this program.

Reads lists of arguments as lines of JSON, and writes status, output and errors of each in the same
way.
"""

import contextlib
import io
import json
import resource
import sys

from capture_analysis.cli import main

# numpy and its libraries reserve most of this; a command's own memory comes on top.
ADDRESS_SPACE_BYTES = 1 << 30


def serve() -> None:
    """Answer until the input ends."""
    resource.setrlimit(resource.RLIMIT_AS, (ADDRESS_SPACE_BYTES, ADDRESS_SPACE_BYTES))
    for line in sys.stdin:
        output, errors = io.StringIO(), io.StringIO()
        with contextlib.redirect_stdout(output), contextlib.redirect_stderr(errors):
            status = main(json.loads(line))
        answer = {"status": status, "output": output.getvalue(), "errors": errors.getvalue()}
        sys.stdout.write(json.dumps(answer) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    serve()
