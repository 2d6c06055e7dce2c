"""Readers of the preset data: what comes out is checked, what is wrong is named in one sentence.

names      which text may be a name, and how an error shows a value
config     a model's config.json -> Architecture
csv_file   a CSV file -> rows of checked cells
catalogue  the whole presets folder -> tables for the formulas, rows with sources for the sheets
"""
