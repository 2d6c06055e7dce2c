"""The sheets of a workbook, one module each; each has write(book)."""
