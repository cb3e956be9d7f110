# SPDX-License-Identifier: BSD-3-Clause
"""Values on the command lines of compare, slices, footprint and progress."""
import argparse
import os

import results


def count(least, most=1000):
    def parse(text):
        if not text.isdigit() or not least <= int(text) <= most:
            raise argparse.ArgumentTypeError(f"{text!r}: a whole number from {least} to {most} is needed")
        return int(text)
    return parse


def seconds(most=3600):
    def parse(text):
        try:
            value = float(text)
        except ValueError:
            value = 0
        if not 1e-4 <= value <= most:
            raise argparse.ArgumentTypeError(f"{text!r}: seconds are needed, like 0.02, at most {most}")
        return value
    return parse


def writable(path):
    """A file for results, told before hours have gone into them. It is as it was until then."""
    first = results.first_place(path)
    there = os.path.exists(first)
    try:
        open(first, "a").close()
    except OSError as e:
        raise argparse.ArgumentTypeError(f"{path}: {e.strerror}; name a file that can be written")
    if not there:
        os.remove(first)
    return path


def places(text):
    """N or N,M: bytes behind a page. As the programs take it, which begin both buffers at N then."""
    parts = text.split(",")
    if len(parts) > 2 or not all(n.isdigit() and int(n) < 4096 for n in parts):
        raise argparse.ArgumentTypeError(f"{text!r}: N or N,M are needed, each from 0 to 4095")
    return text
