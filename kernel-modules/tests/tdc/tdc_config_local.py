"""Settings with which tdc runs these cases: a copy, or link, of it lies beside the kernel's tdc.py.

TC_LIB_DIR is the folder with q_dtm.so and the tool dtm.
"""

import os
import shutil

EXTRA_NAMES = {
    "TC": shutil.which("tc"),
    "IP": shutil.which("ip"),
    "DTM": os.environ["TC_LIB_DIR"] + "/dtm",
}
ENVIR = {name: os.environ[name] for name in ("PATH", "TC_LIB_DIR")}
