"""Runs over many machines, put together from what Prometheus or VictoriaMetrics has scraped."""
