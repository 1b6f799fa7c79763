"""Public deployments of differential privacy whose figures are published: for comparison, not as a norm.

Each figure was read at its source on the day given. Units of privacy and periods differ, so that an ε stands beside
another only with these words beside it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

LOOKED_UP: Final = "2026-11-27"


@dataclass(frozen=True, slots=True)
class Deployment:
    """One published figure. epsilon: what it comes to in ε, for the drawing; figure: as it is published.

    protects: the unit of privacy, and for which time the figure holds.
    """

    who: str
    what: str
    epsilon: float
    figure: str
    protects: str
    source: str


DEPLOYMENTS: Final = (
    Deployment(
        "Wikimedia Foundation", "page views by country", 1, "ρ 0.015, about ε 1 at δ 10⁻⁷",
        "the first 10 pages that a device views, of one day",
        "https://analytics.wikimedia.org/published/datasets/country_project_page/00_README.html",
    ),
    Deployment(
        "Google", "searches for symptoms of COVID-19", 1.68, "ε 1.68",
        "a user's searches of one day", "https://arxiv.org/abs/2009.01265",
    ),
    Deployment(
        "Google", "traffic in cities (Environmental Insights Explorer)", 2, "ε about 2",
        "a user's trips of one week", "https://arxiv.org/abs/2407.03496",
    ),
    Deployment(
        "Google", "searches for COVID-19 vaccination", 2.19, "ε 2.19, δ 10⁻⁵",
        "a user's searches of one day", "https://arxiv.org/abs/2107.01179",
    ),
    Deployment(
        "Apple", "emoji that are typed", 4, "ε 4, on the device",
        "a user's contributions of one day", "https://desfontain.es/blog/real-world-differential-privacy.html",
    ),
    Deployment(
        "Israel, Ministry of Health", "register of live births, 2014", 9.98, "ε 9.98",
        "a mother and her newborn; this one publication", "https://arxiv.org/abs/2405.00267",
    ),
    Deployment(
        "Apple", "new words that are typed", 16, "ε 16, on the device",
        "a user's contributions of one day", "https://desfontain.es/blog/real-world-differential-privacy.html",
    ),
    Deployment(
        "U.S. Census Bureau", "redistricting data of 2020, persons", 17.14, "ρ 2.56, which is ε 17.14 at δ 10⁻¹⁰",
        "a person's answers, replaced by others; this one publication",
        "https://github.com/uscensusbureau/DAS_2020_Redistricting_Production_Code",
    ),
    Deployment(
        "LinkedIn", "audience statistics for advertisers", 34.9, "ε 34.9, δ 7·10⁻⁹",
        "a member; the queries of one month", "https://arxiv.org/abs/2002.05839",
    ),
)  # fmt: skip
"""From the smallest ε to the largest."""
