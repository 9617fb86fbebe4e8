"""Recording and alerting rules. Ids and thresholds are those of the advice rules (`monitor.advice`)."""
