"""One browser for every module: Playwright allows no second."""

from tests.reports.browser import chromium as chromium
