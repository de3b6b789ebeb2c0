"""Stored results to tables, figures and one HTML page; runs nothing."""
