"""The workbooks: what is emitted, how it looks, and what an emitted file must obey."""
