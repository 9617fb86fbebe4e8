"""Dashboards, Prometheus rules and their previews, as code. `python -m grafana.build` writes the files that
Grafana and Prometheus load: everything in `json/` and the YAML in `rules/`."""
