"""A planner's work survives a rebuild: what was typed, added and drawn goes over into the new version of a workbook.

record: what a workbook says of itself, so that a later version can tell what was changed. old_book: reads a
workbook that lies in the folder. changes: what in it is the planner's. rebuild: puts that into the new one.
"""
