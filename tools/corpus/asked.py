"""Reads the output folder from the command line, for the other scripts of this folder."""

import argparse
import pathlib


def folder(about):
    """Returns the only argument. `--help` prints the docstring of the script."""
    parser = argparse.ArgumentParser(description=about, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=pathlib.Path, metavar="FOLDER", help="made where there is none")
    return parser.parse_args().folder
