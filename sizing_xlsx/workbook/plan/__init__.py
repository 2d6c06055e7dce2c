"""The capacity plan as a workbook: jobs down the rows of one sheet, what follows from them on the others."""
