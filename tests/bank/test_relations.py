"""Which lessons say the same: what is merged, and what only looks alike. (Through the service: test_consolidation.py)"""

import pytest

from bank.model import Gist, Outcome
from bank.relations import say_the_same


def lesson(text: str, context: str = "Weekly sales are reported.") -> Gist:
    return Gist(1, 1, "ACTIVE", "default", "PROJECT", Outcome.SUCCESS, text, context, [], [])


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Join sales and stock on the order date.", "Sales and stock: join on the order date."),
        ("Join sales and stock on the order date.", "Join stock and sales on their order dates."),
        ("Weigh the flour before mixing.", "Before mixing, weigh the flour."),
        ("Compare orders with deliveries before explaining a dip.", "Always compare the orders with deliveries before explaining dips."),
        ("Do not guess the age of a customer.", "Never guess a customer's age."),
        ("You must not retry failed uploads.", "You mustn't retry failed uploads."),
        ("Make sure to quote the column names.", "Quote column names."),
        ("Join the sales and the stock on the order date.", "Join the sales table and the stock on the order date."),
        ("Check totals first, then send.", "First check the totals, then send."),
        ("For reports, read orders from the replica, not the primary.", "Read orders from the replica, not the primary, for reports."),
        ("In 2 of 2 successful tries `check_totals` was done.", "In 5 of 6 successful tries `check_totals` was done."),
    ],
)  # fmt: skip
def test_the_same_in_other_words_is_merged(one: str, other: str) -> None:
    """Clauses, articles, endings and stress may differ, and one side may have a word that takes nothing away."""
    assert say_the_same(lesson(one), lesson(other), 0.95) and say_the_same(lesson(other), lesson(one), 0.95)


ALIKE = [
    ("Read orders from the replica, not the primary, for reports.", "Read orders from the primary, not the replica, for reports."),
    ("Check totals first, then send.", "Send first, then check totals."),
    ("Retry the payment call three times with a pause.", "Retry the payment call five times with a pause."),
    ("Retry the payment call 3 times with a pause.", "Retry the payment call 5 times with a pause."),
    ("The pricing service returns all prices in euros.", "The pricing service returns all prices in dollars."),
    ("Send the weekly report to finance on Monday.", "Send the weekly report to finance on Friday."),
    ("Set the region filter to north before summing.", "Set the region filter to south before summing."),
    ("Load deliveries from orders_eu into the warehouse.", "Load deliveries from orders_us into the warehouse."),
    ("Move the finished files from staging to archive.", "Move the finished files from archive to staging."),
    ("Clean the addresses, match them after deduplication.", "Clean the addresses, match them before deduplication."),
    ("Dealers call customers about delays.", "Customers call dealers about delays."),
    ("Add the returns to the orders of the week.", "Add the orders to the returns of the week."),
    ("Discounts may be combined in the spring sale.", "Discounts must be combined in the spring sale."),
    ("Check some rows of the export by hand.", "Check all rows of the export by hand."),
    ("Trust the figures in the supplier file.", "Trust the figures in the March supplier file."),
    ("Load the supplier files in one batch.", "Load the large supplier files in one batch."),
    ("Approve refunds of the desk at once.", "Approve refunds of the desk at once if the amount is small."),
    ("In 2 of 2 successful tries `check_totals` was done.", "In 2 of 2 failed tries `check_totals` was done."),
    ("Only managers can approve refunds.", "Managers can approve refunds."),
]  # fmt: skip


@pytest.mark.parametrize(("one", "other"), ALIKE)
def test_what_only_looks_alike_is_not_merged(one: str, other: str) -> None:
    """However near a model finds them: another word, number or name, or the same words the other way round."""
    assert not say_the_same(lesson(one), lesson(other), 0.99) and not say_the_same(lesson(other), lesson(one), 0.99)


def test_the_same_advice_about_other_things_is_not_merged() -> None:
    """A name or a number in the context says what it is about."""
    said = "Load the file in one batch."
    assert not say_the_same(
        lesson(said, "A file of orders_eu is loaded."), lesson(said, "A file of orders_us is loaded."), 1.0
    )
    assert say_the_same(lesson(said, "A file of orders is loaded."), lesson(said, "The file of orders is loaded."), 1.0)
