"""The sorts of workbooks that a build makes, told apart by defined names: those that size a job, and the plan."""

from __future__ import annotations

from collections.abc import Collection

SIZING, PLAN = "sizing", "plan"
NAMES = {  # names that are in every version
    SIZING: ("GPU_Choice", "Fit_Verdict", "Checks_Failed"),
    PLAN: ("Plan_Job_Kind_List", "Plan_Start", "Plan_Total_Spend", "Plan_Peak_Cards", "Checks_Failed"),
}


def sort_of(names: Collection[str]) -> str:
    """Which sort a workbook is, by its defined names in lower case; "" where it is none of ours."""
    return next((sort for sort, ours in NAMES.items() if all(name.casefold() in names for name in ours)), "")


def refuse_plan(names: Collection[str], where: str, why: str) -> None:
    """Raise ValueError, one sentence, where a capacity plan was named for what sizing workbooks alone can do.

    why: what it lacks, or what is not done with it.
    """
    if sort_of(names) == PLAN:
        raise ValueError(f"{where} is a capacity plan, {why}; name a sizing workbook, or read it with `plan FILE`")
