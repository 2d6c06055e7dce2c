"""Two workbooks of one job: which results moved, and whether an input, a preset or a formula moved them.

side: what one workbook says. compare: the shares, by calculating again. words: the answer as text.
"""
