"""What a job takes beside memory: its work, its time, its files and its money. Formulas alone, as in memory/.

Every job has the same modules; what differs between jobs (which parameters work, which are trained, what is saved)
stands in adapter_work.py and full_work.py, in terms of one name.
"""
