"""The report of a placement: one page that needs no network."""

from placeto.reports.page.render import save_report
from placeto.reports.page.report import Report, Told, make_report

__all__ = ["Report", "Told", "make_report", "save_report"]
