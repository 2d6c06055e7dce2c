"""sizing_xlsx: does this model fit on that GPU? One definition of every formula, in Python and in Excel."""

__version__ = "0.1.0"
