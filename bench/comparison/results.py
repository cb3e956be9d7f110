# SPDX-License-Identifier: BSD-3-Clause
"""Files of results: they are there whole, or as they were before."""
import contextlib
import json
import os
import sys


def first_place(path):
    """Where results are written first: beside their file, and were it named by a link. A device has no such place."""
    return path if os.path.exists(path) and not os.path.isfile(path) else os.path.realpath(path) + ".part"


def write_json(path, content):
    """Ends the program where they cannot be written."""
    first = first_place(path)
    try:
        with open(first, "w") as f:
            json.dump(content, f, indent=1)
            f.write("\n")
        if first != path:
            os.replace(first, os.path.realpath(path))
    except BaseException as e:
        if first != path:
            with contextlib.suppress(OSError):
                os.remove(first)
        if isinstance(e, OSError):
            sys.exit(f"{os.path.basename(sys.argv[0])}: the results were not written: {path}: {e.strerror}")
        raise
