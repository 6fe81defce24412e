"""Pairs of lessons, half of them contradicting each other: what the finder of conflicts is developed on and judged by.

The pairs were written before the rules. The rules were made with DEVELOPED in view; HELD_OUT was only counted, once for
each time that pairs were added.
A pair: do they clash, the one, the other, and where it matters their contexts and outcomes.
"""

from collections.abc import Sequence
from typing import NamedTuple

from bank.clashes import Clash, clash_of
from bank.model import Gist, Outcome

FAILURE, SUCCESS = Outcome.FAILURE, Outcome.SUCCESS


class Pair(NamedTuple):
    clash: bool
    one: str
    other: str
    one_context: str = "The weekly report is made."
    other_context: str = "The weekly report is made."
    one_outcome: Outcome = SUCCESS
    other_outcome: Outcome = SUCCESS

    def found(self) -> Clash | None:
        """What the finder says, whichever of the two comes first."""
        one = lesson(self.one, self.one_context, self.one_outcome)
        other = lesson(self.other, self.other_context, self.other_outcome)
        clash = clash_of(one, other)
        assert (clash is None) == (clash_of(other, one) is None), "which lesson comes first makes no difference"
        return clash


def lesson(text: str, context: str = "", outcome: Outcome = SUCCESS) -> Gist:
    return Gist(1, 1, "ACTIVE", "default", "PROJECT", outcome, text, context, [], [])


def judged(pairs: Sequence[Pair]) -> tuple[float, float, list[Pair]]:
    """Precision, recall, and the pairs that were judged wrongly."""
    alarms = [pair for pair in pairs if pair.found() is not None]
    right = sum(pair.clash for pair in alarms)
    wrong = [pair for pair in pairs if pair.clash != (pair in alarms)]
    return right / len(alarms), right / sum(pair.clash for pair in pairs), wrong


DEVELOPED = [
    Pair(True, "Always validate the schema before loading a file.", "Never validate the schema before loading a file."),
    Pair(True, "You must retry failed uploads.", "You must not retry failed uploads."),
    Pair(True, "Set the request timeout to 30 seconds.", "Set the request timeout to 90 seconds."),
    Pair(True, "Enable the query cache for dashboards.", "Disable the query cache for dashboards."),
    Pair(True, "Increase the batch size when the loader is slow.", "Decrease the batch size when the loader is slow."),
    Pair(True, "Prefer a hash join for the orders table.", "Avoid a hash join for the orders table."),
    Pair(True, "Trust the figures in the March file.", "Do not trust the figures in the March file."),
    Pair(True, "Use median prices to compare regions.", "Don't use median prices to compare regions."),
    Pair(True, "Deduplicate customers before joining orders.", "Deduplicate customers after joining orders."),
    Pair(True, "Include cancelled orders in the revenue total.", "Exclude cancelled orders from the revenue total."),
    Pair(True, "Sort the results in ascending order of price.", "Sort the results in descending order of price."),
    Pair(True, "Use the staging database rather than the live database for tests.", "Use the live database rather than the staging database for tests."),
    Pair(True, "Keep at least 7 backups of the warehouse.", "Keep at most 3 backups of the warehouse."),
    Pair(True, "Round amounts to 2 decimals in the export.", "Round amounts to 4 decimals in the export."),
    Pair(True, "Raise the sampling rate to 50% for small shops.", "Raise the sampling rate to 10% for small shops."),
    Pair(True, "The supplier feed is reliable on weekends.", "The supplier feed is unreliable on weekends."),
    Pair(True, "Stop the scheduler during migrations.", "Never stop the scheduler during migrations."),
    Pair(True, "Ask the customer for approval before sending the invoice.", "Send the invoice without asking the customer for approval."),
    Pair(True, "A review is required for every hotfix.", "A review is not required for a hotfix."),
    Pair(True, "Cache exchange rates for 24 hours.", "Cache exchange rates for 15 minutes."),
    Pair(True, "Join sales and stock on the order date.", "Join sales and stock on the order date.", one_outcome=SUCCESS, other_outcome=FAILURE),
    Pair(True, "Allow partial shipments for the Oslo warehouse.", "Forbid partial shipments for the Oslo warehouse."),
    Pair(True, "Store timestamps in UTC, never in local time.", "Store timestamps in local time, not in UTC."),
    Pair(True, "Nulls in the price column should be replaced by zero.", "Nulls in the price column should never be replaced by zero."),
    Pair(True, "Run the forecast with 12 months of history.", "Run the forecast with 36 months of history."),
    Pair(True, "Lower the threshold for fraud alerts at night.", "Raise the threshold for fraud alerts at night."),
    # ------------------------------------------------ harder ones that clash: other words, orders and contexts
    Pair(True, "Increase the timeout of the loader to 60 seconds.", "Decrease the timeout of the loader to 5 seconds."),
    Pair(True, "Retry the payment call three times.", "Retry the payment call five times."),
    Pair(True, "Read orders from the replica, not the primary.", "Read orders from the primary, not the replica."),
    Pair(True, "It is forbidden to email customers on Sunday.", "Email customers on Sunday."),
    Pair(True, "Check totals first, then send the file.", "Send the file first, then check totals."),
    Pair(True, "Show the tax on the invoice.", "Hide the tax on the invoice."),
    Pair(True, "Always validate the schema of a file.", "Never validate the schema of a file.", one_context="Loading files", other_context="Loading a big file at night into the warehouse"),
    Pair(True, "Fetch at most two pages per call.", "Fetch at least ten pages per call."),
    Pair(True, "Partial refunds are allowed for vouchers.", "Partial refunds are forbidden for vouchers."),
    Pair(True, "Quote the column names.", "Do not quote the column names.", one_context="Queries are written for the warehouse.", other_context="Queries for the warehouse are written by an agent."),
    Pair(True, "Send the reminder twice.", "Send the reminder once."),
    Pair(True, "Clean the addresses, then match them with the register.", "Match the addresses with the register, then clean them."),
    Pair(True, "Retry a rejected booking 3 times.", "Retry a rejected booking 5 times."),
    Pair(True, "Filter the returns before summing.", "Sum before filtering the returns.", one_context="Revenue is computed.", other_context="Revenue is computed for a single region."),
    # ------------------------------------------------ harmless
    Pair(False, "Set the request timeout to 30 seconds.", "Set the number of retries to 5."),
    Pair(False, "Always validate the schema before loading a file.", "Never load a file without validating the schema."),
    Pair(False, "Do not disable the query cache for dashboards.", "Enable the query cache for dashboards."),
    Pair(False, "Never skip the smoke test after a deployment.", "Always run the smoke test after a deployment."),
    Pair(False, "Never delete raw files.", "Always compress raw files."),
    Pair(False, "Prefer a hash join for the orders table.", "Avoid a nested loop for the orders table."),
    Pair(False, "Increase the batch size of the loader.", "Decrease the log level of the loader."),
    Pair(False, "Trust the figures in the March file.", "Do not trust the figures in the April file."),
    Pair(False, "Use 4 decimals for exchange rates.", "Use 2 decimals for prices."),
    Pair(False, "The 2023 export lacks the region column.", "The 2024 export lacks the region column."),
    Pair(False, "Check deliveries before orders.", "Check orders after deliveries."),
    Pair(False, "Keep at least 3 backups of the warehouse.", "Keep at most 10 backups of the warehouse."),
    Pair(False, "Use a hash join.", "Avoid a hash join.", one_context="Both tables fit into memory.", other_context="One table is far larger than memory."),
    Pair(False, "When demand is high, order early.", "When demand is low, do not order early."),
    Pair(False, "Cache exchange rates for 1 hour.", "Cache exchange rates for 60 minutes."),
    Pair(False, "Do not forget to close the connection.", "Always close the connection."),
    Pair(False, "Avoid full scans of the events table.", "Never scan the whole events table."),
    Pair(False, "Don't trust averages without the median.", "Trust averages only together with the median."),
    Pair(False, "Ask the dealers how many cars wait.", "Compare with the same month of last year."),
    Pair(False, "Use step 3 of the runbook for outages.", "Use step 5 of the runbook for restores."),
    Pair(False, "Write errors to the log.", "Do not write passwords to the log."),
    Pair(False, "Retrying at once overloads the API.", "Do not retry at once.", one_outcome=FAILURE, other_outcome=FAILURE),
    Pair(False, "Round totals to 2 decimals and rates to 4 decimals.", "Round rates to 4 decimals and totals to 2 decimals."),
    Pair(False, "Include tax in retail prices.", "Exclude tax from wholesale prices."),
    Pair(False, "Use the staging database rather than the live database for tests.", "Prefer the staging database over the live database for tests."),
    Pair(False, "Compare orders with deliveries before explaining a dip in sales.", "Compare orders with returns after explaining a rise in sales."),
    # ------------------------------------------------ harmless, though it looks otherwise
    Pair(False, "For requests like this, in 2 of 2 successful tries `check_totals` was done; in 0 of 1 failed try that was so.", "For requests like this, in 5 of 5 successful tries `check_totals` was done; in 0 of 3 failed tries that was so."),
    Pair(False, "All 3 tries for requests like this succeeded, and all of them went this way: `describe_table` → `run_sql`.", "All 5 tries for requests like this succeeded, and all of them went this way: `describe_table` → `run_sql`."),
    Pair(False, "In one session `fetch` ended with the error “no permission”, 3 times with the same parameters in the last of them, and nothing that was tried got past it.", "In 2 sessions `fetch` ended with the error “no permission”, 4 times with the same parameters in the last of them, and nothing that was tried got past it."),
    Pair(False, "Do not use more than 5 colours in a chart.", "Use at most 5 colours in a chart."),
    Pair(False, "Tier 1 customers get 10 % off.", "Tier 2 customers get 20 % off."),
    Pair(False, "Don't hesitate to ask the user.", "Ask the user."),
    Pair(False, "Not only totals but also shares are needed.", "Totals and shares are needed."),
    Pair(False, "The loader fails without an index.", "The loader needs an index."),
    Pair(False, "Do not cache prices; cache names.", "Cache names, not prices."),
    Pair(False, "Do not load all columns, load only the needed ones.", "Load only the needed columns."),
    Pair(False, "Sending the mail twice is not a problem.", "Send the mail twice."),
    Pair(False, "It is impossible to refund after 30 days.", "Refunds are possible within 30 days."),
    Pair(False, "Cancel within 24 hours for a full refund.", "After 24 hours cancel without a refund."),
    Pair(False, "Use 8 workers for large files.", "Use 2 workers for small files."),
]  # fmt: skip

HELD_OUT = [
    Pair(True, "Always lock the row before updating the balance.", "Never lock the row before updating the balance."),
    Pair(True, "Agents must cite a source in every answer.", "Agents must not cite a source in every answer."),
    Pair(True, "Limit the report to 5 pages.", "Limit the report to 20 pages."),
    Pair(True, "Turn on compression for the archive.", "Turn off compression for the archive."),
    Pair(True, "Do quote column names in generated SQL.", "Do not quote column names in generated SQL."),
    Pair(True, "Use seasonal adjustment for the retail series.", "Avoid seasonal adjustment for the retail series."),
    Pair(True, "Run the vacuum after the nightly import.", "Run the vacuum before the nightly import."),
    Pair(True, "Prefer Parquet over CSV for exchange with finance.", "Prefer CSV over Parquet for exchange with finance."),
    Pair(True, "Add the freight cost to the margin.", "Remove the freight cost from the margin."),
    Pair(True, "Set the learning rate to 0.01 for the churn model.", "Set the learning rate to 0.1 for the churn model."),
    Pair(True, "Outliers should be removed from the survey.", "Outliers shouldn't be removed from the survey."),
    Pair(True, "Accept orders without a purchase number.", "Reject orders without a purchase number."),
    Pair(True, "Wait 5 minutes between two calls of the partner API.", "Wait 30 seconds between two calls of the partner API."),
    Pair(True, "It is safe to restart the gateway at noon.", "It is unsafe to restart the gateway at noon."),
    Pair(True, "Show the newest ticket first.", "Show the newest ticket last."),
    Pair(True, "Use the net price instead of the gross price in the dashboard.", "Use the gross price instead of the net price in the dashboard."),
    Pair(True, "Widen the date window for slow movers.", "Narrow the date window for slow movers."),
    Pair(True, "Approval by a manager is mandatory for refunds.", "Approval by a manager is optional for refunds."),
    Pair(True, "Merge small files in the lake every night.", "Never merge small files in the lake."),
    Pair(True, "Impute missing ages with the mean.", "Impute missing ages with the mean.", one_outcome=FAILURE, other_outcome=SUCCESS),
    Pair(True, "Give the model more context for legal questions.", "Give the model less context for legal questions."),
    Pair(True, "Alert when the error rate is above 2%.", "Alert when the error rate is above 8%."),
    Pair(True, "Start the export at 02:00.", "Start the export at 06:00."),
    Pair(True, "Discounts may be combined in the spring sale.", "Discounts cannot be combined in the spring sale."),
    Pair(True, "Encrypt the nightly dump.", "There is no need to encrypt the nightly dump."),
    Pair(True, "Keep the connection pool small on the reporting host.", "Keep the connection pool large on the reporting host."),
    # ------------------------------------------------ harder ones that clash: other words, orders and contexts
    Pair(True, "Raise the memory of the cluster to 64 gigabytes.", "Lower the memory of the cluster to 16 gigabytes."),
    Pair(True, "Ask the customer two questions at most.", "Ask the customer at least four questions."),
    Pair(True, "Take the price from the contract, not the catalogue.", "Take the price from the catalogue, not the contract."),
    Pair(True, "It is prohibited to share raw exports with partners.", "Share raw exports with partners."),
    Pair(True, "First translate the survey, then code the answers.", "First code the answers, then translate the survey."),
    Pair(True, "Display the discount in the offer.", "Hide the discount in the offer."),
    Pair(True, "Always restart the worker after a failed import.", "Never restart the worker after a failed import.", one_context="An import has failed.", other_context="An import of stock figures has failed during the night."),
    Pair(True, "Poll the queue every ten seconds.", "Poll the queue every thirty seconds."),
    Pair(True, "Editing the ledger by hand is allowed.", "Editing the ledger by hand is not allowed."),
    Pair(True, "Round the shares to one decimal.", "Round the shares to three decimals."),
    Pair(True, "Group the tickets by team instead of by product.", "Group the tickets by product instead of by team."),
    Pair(True, "Mask phone numbers in the transcript.", "Phone numbers must not be masked in the transcript."),
    Pair(True, "Post the summary, then close the ticket.", "Close the ticket, then post the summary.", one_context="A ticket is solved.", other_context="A ticket of a key customer is solved."),
    Pair(True, "Repeat the measurement 3 times.", "Repeat the measurement 10 times."),
    # ------------------------------------------------ harmless
    Pair(False, "Limit the report to 5 pages.", "Limit the upload to 20 megabytes."),
    Pair(False, "Never answer without citing a source.", "Always cite a source in an answer."),
    Pair(False, "Do not turn off compression for the archive.", "Turn on compression for the archive."),
    Pair(False, "Never omit the unit in a chart.", "Always show the unit in a chart."),
    Pair(False, "Use seasonal adjustment for the retail series.", "Avoid seasonal adjustment for the currency series."),
    Pair(False, "Add the freight cost to the margin.", "Remove the duplicate rows from the margin table."),
    Pair(False, "Set the learning rate to 0.01.", "Set the dropout to 0.1."),
    Pair(False, "Q3 figures are final.", "Q4 figures are not final."),
    Pair(False, "Run the import before the vacuum.", "Run the vacuum after the import."),
    Pair(False, "Wait at most 30 seconds for the partner API.", "Wait at least 5 seconds for the partner API."),
    Pair(False, "If the queue is empty, start the export.", "If the queue is full, do not start the export."),
    Pair(False, "Restart the gateway.", "Do not restart the gateway.", one_context="Nobody is connected to the gateway.", other_context="Payments are being settled."),
    Pair(False, "Wait 2 minutes before the second call.", "Wait 120 seconds before the second call."),
    Pair(False, "Make sure to quote column names.", "Do not leave column names unquoted."),
    Pair(False, "Avoid guessing a customer's age.", "Do not guess the age of a customer."),
    Pair(False, "Sample 10% of clicks.", "Sample 50% of purchases."),
    Pair(False, "Prefer CSV over Excel for exchange with finance.", "Prefer Parquet over CSV for exchange with finance."),
    Pair(False, "Send reminders to dealers.", "Do not send reminders to private customers."),
    Pair(False, "Version 2 of the API pages its answers.", "Version 1 of the API does not page its answers."),
    Pair(False, "Reading the whole table at once failed.", "Do not read the whole table at once.", one_outcome=FAILURE, other_outcome=SUCCESS),
    Pair(False, "Never trust a single sensor.", "Always compare two sensors."),
    Pair(False, "Increase the memory of the worker.", "Reduce the number of workers."),
    Pair(False, "Ask for the budget first.", "Ask for the deadline last."),
    Pair(False, "Use bold for totals and italics for notes.", "Use italics for notes and bold for totals."),
    Pair(False, "No report leaves the house without a second pair of eyes.", "Every report needs a second pair of eyes."),
    Pair(False, "Open tickets are counted in the morning.", "Closed tickets are counted in the evening."),
    # ------------------------------------------------ harmless, though it looks otherwise
    Pair(False, "In 2 sessions `book` ended with the error “no seats”. The next call went well when `cabin` was changed from `business` to `economy`.", "In 6 sessions `book` ended with the error “no seats”. The next call went well when `cabin` was changed from `business` to `economy`."),
    Pair(False, "For requests like this, in 3 of 4 failed tries `guess_missing` was done; in 0 of 2 successful tries that was so.", "For requests like this, in 6 of 8 failed tries `guess_missing` was done; in 0 of 5 successful tries that was so."),
    Pair(False, "Never wait longer than 30 seconds for the gateway.", "Wait at most 30 seconds for the gateway."),
    Pair(False, "Zone 1 parcels cost 4 euros.", "Zone 3 parcels cost 9 euros."),
    Pair(False, "Do not fail to inform the customer.", "Inform the customer."),
    Pair(False, "Not just the mean but also the spread is reported.", "The mean and the spread are reported."),
    Pair(False, "The export does not work without a key.", "The export needs a key."),
    Pair(False, "Sort by date, not by name.", "Do not sort by name; sort by date."),
    Pair(False, "Never send every draft, send only the final one.", "Send the final draft."),
    Pair(False, "Running the check again does no harm.", "Run the check again."),
    Pair(False, "Do not approve expenses above 500 euros.", "Approve expenses below 500 euros."),
    Pair(False, "Use short codes for old contracts.", "Use short codes for new contracts."),
    Pair(False, "Choose 4 shards for busy tenants.", "Choose 1 shard for quiet tenants."),
    Pair(False, "Always restart the worker.", "Never restart the worker.", one_context="The worker hangs for an hour.", other_context="The worker writes a backup."),
]  # fmt: skip
