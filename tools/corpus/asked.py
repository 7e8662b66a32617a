"""The folder that the programs beside this one write to, from their command line."""

import argparse
import pathlib


def folder(about):
    """The only argument; `--help` prints what the program says about itself."""
    parser = argparse.ArgumentParser(description=about, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=pathlib.Path, metavar="FOLDER", help="made where there is none")
    return parser.parse_args().folder
