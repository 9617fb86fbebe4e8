"""Dashboards, Prometheus rules and their previews, as code. `python -m grafana.build` writes what a
Grafana and a Prometheus load; everything in `json/` and the YAML in `rules/` comes from here."""
