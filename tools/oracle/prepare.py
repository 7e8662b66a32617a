"""Rearrangements of raw data that are more than picking variables.

Each function is named after its model and maps the raw variables to the data
of the program.
"""
