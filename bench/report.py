"""What a benchmark measured, what that is held to, and how it is shown."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING

from rich.console import Console
from rich.table import Column, Table

from bench.core import judge

if TYPE_CHECKING:
    from pathlib import Path


@dataclass
class Report:
    """What was measured: figures in the unit that their name ends with, and ratios within the run."""

    machine: dict[str, str]
    figures: dict[str, float] = field(default_factory=dict)
    ratios: dict[str, dict[str, float]] = field(default_factory=dict)

    def figure(self, name: str, value: float) -> None:
        """Note a figure."""
        self.figures[name] = float(f"{value:.4g}")

    def ratio(self, name: str, value: float, *, at_most: float = 0, at_least: float = 0) -> None:
        """Note a ratio and what it is held to, if it is."""
        self.ratios[name] = {"value": round(value, 2), "at_most": at_most, "at_least": at_least}

    def show(self, into: Path | None) -> None:
        """Print tables, and write all of it into a file if there is to be one."""
        console = Console()
        console.print(", ".join(f"{key} {value}" for key, value in self.machine.items()))
        figures = Table("measured", Column("", justify="right"), title="Figures (medians of the rounds)")
        for name, value in self.figures.items():
            figures.add_row(name, f"{value:,.2f}" if value < 100 else f"{value:,.0f}")
        ratios = Table("ratio within the run", Column("value", justify="right"), "held to", "", title="Ratios")
        for name, each in self.ratios.items():
            ratios.add_row(name, f"{each['value']:,.2f}", *judge(**each))
        console.print(figures, ratios)
        if into is not None:
            into.parent.mkdir(parents=True, exist_ok=True)
            into.write_text(json.dumps(asdict(self), indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
            console.print(f"wrote {into}")
