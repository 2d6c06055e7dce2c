"""The formula language: a formula is written once, as a plain function, and rendered to every surface.

units       what may be added, compared, multiplied
expression  the tree that a formula becomes when it is called with symbols
primitives  what Python's operators cannot say: maximum, when, given, look-ups, words
declare     inputs, constants, terms: facts attached to plain Python
job         the graph: collects declarations, orders and checks them
engine      numbers from trees: one job, or a million
render      text from trees: cells, table rows, documentation
inverse     "what is the largest x that still fits": more terms, derived from the trees

Nothing in this folder knows of GPUs or of where a cell stands.
"""
