"""The sheets of a workbook of serving, where they differ from those of the other workbooks."""

from . import cards, chart_data, figures, models, runs, sizing, summary, taken

__all__ = ["cards", "chart_data", "figures", "models", "runs", "sizing", "summary", "taken"]
