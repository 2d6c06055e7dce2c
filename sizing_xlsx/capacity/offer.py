"""A card, or several, offered to a job that names none: what a run would cost there, if it fits."""

from typing import Any

from ..formula.declare import Input, Number, Whole, term
from ..formula.primitives import either

_MOST = 1e300
verdict_code = Input("count", Whole(1, 3), 1, "Verdict", "1 fits, 2 tight, 3 does not fit.")
rules_kept = Input("switch", Whole(0, 1), 1, "Rules kept", "1 when the job can run on so many cards.")
price_known = Input("switch", Whole(0, 1), 1, "Price known", "1 when the card has a price.")
speed_known = Input("switch", Whole(0, 1), 1, "Speed known", "1 when the card's speed is known.")
card_rent = Input("currency", Number(0, _MOST), 0, "Rent of a run", "Rent of the cards as expected.")


@term("currency")
def offer_cost(verdict_code: Any, rules_kept: Any, price_known: Any, speed_known: Any, card_rent: Any) -> Any:
    """Rent of a run on the offered cards, where even the upper estimate fits and both price and speed are known."""
    return either((verdict_code <= 1) & (rules_kept * price_known * speed_known > 0), card_rent, "no")
