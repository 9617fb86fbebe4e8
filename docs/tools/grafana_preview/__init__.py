"""Draws the dashboards for the docs, without Grafana: see ``__main__.py``."""
