"""From jobs to cards, hours and money: what a list of jobs asks of a fleet, month by month. Formulas alone.

The verdict, the hours and the cost of a run are the terms of the jobs themselves; here stands what is added to them:
when a job runs (window.py), what it takes (demand.py), in each month (month.py), which card is proposed (offer.py), how
many cards are needed at once (load.py), what is bought and what is rented (fleet.py). kinds.py makes the graphs.
"""
