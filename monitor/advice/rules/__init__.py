"""One cause per file: `area_cause.py` is the rule `area.cause`."""
