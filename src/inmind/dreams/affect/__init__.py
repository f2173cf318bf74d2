"""Affect: three levels that rise with events and decay over time."""
