"""The report of a placement: one page that needs no network."""

from placeto.reports.page.render import save_report
from placeto.reports.page.report import Report, RunContext, make_report

__all__ = ["Report", "RunContext", "make_report", "save_report"]
