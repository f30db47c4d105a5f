"""Colours that colour-blind readers can tell apart (Okabe and Ito 2008)."""

COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000", "#8c8c00")
