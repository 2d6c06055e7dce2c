"""Readers of the preset data: what comes out is checked, what is wrong is named in one sentence.

names         which text may be a name, and how an error shows a value
config_file   a config.json, wherever it is -> its checked content
families      families.toml -> what a family of models calls things, assumes and builds
config        a model's config.json -> Architecture, each figure with where it came from
layers        which layers have a window, which have experts
layer_forms   layer_forms.toml -> what a layer of each family keeps for backward
vision        parameters of image towers
quantisation  how published weights are stored
meta          a family that is not described, built by transformers without memory; the only part that needs torch
csv_file      a CSV file -> rows of checked cells
mig           slices of cards -> cards of their own
catalogue     the whole presets folder -> tables for the formulas, rows with sources for the sheets
card_file     a planner's file of cards -> rows like those of the catalogue
own           a planner's own models and cards added to the catalogue
sweeps        the measured sweeps in the words of the inputs
"""
