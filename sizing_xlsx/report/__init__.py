"""Paper from a planner's workbook: its Summary as PDF, its charts as pictures. The workbook is only read."""
