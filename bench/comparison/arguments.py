# SPDX-License-Identifier: BSD-3-Clause
"""Values on the command lines of compare and slices."""
import argparse


def count(least, most=1000):
    def parse(text):
        if not text.isdigit() or not least <= int(text) <= most:
            raise argparse.ArgumentTypeError(f"{text!r}: a whole number from {least} to {most} is needed")
        return int(text)
    return parse


def seconds(text):
    try:
        value = float(text)
    except ValueError:
        value = 0
    if not 1e-4 <= value <= 3600:
        raise argparse.ArgumentTypeError(f"{text!r}: seconds are needed, like 0.02")
    return value
